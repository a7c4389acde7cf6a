package decisions_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"holdfast/decision"
	"holdfast/fault"
	"holdfast/store"
	"holdfast/store/decisions"
)

// records reads the payloads of these tests: a line per record, its time and its id.
func records(payload []byte, visit func(id string, ms int64)) error {
	for line := range strings.SplitSeq(string(payload), "\n") {
		at, id, ok := strings.Cut(line, " ")
		ms, err := strconv.ParseInt(at, 10, 64)
		if !ok || err != nil {
			return errors.New("not a record")
		}
		visit(id, ms)
	}
	return nil
}

// logged makes a batch of the given ids, one ms apart, that records reads.
func logged(key, first int64, ids ...string) decision.Batch {
	b := decision.Batch{Capsule: key, FirstMS: first, LastMS: first + int64(len(ids)) - 1, Count: len(ids)}
	for i, id := range ids {
		if i > 0 {
			b.Payload = append(b.Payload, '\n')
		}
		b.Payload = fmt.Appendf(b.Payload, "%d %s", first+int64(i), id)
	}
	return b
}

func probe() decisions.Probe {
	return decisions.Probe{
		Records: records,
		Snapshot: func(bytes []byte) error {
			if string(bytes) != "model" {
				return errors.New("bad checksum")
			}
			return nil
		},
		Spec: func(text []byte) error {
			if string(text) != "{}" {
				return errors.New("not a spec")
			}
			return nil
		},
	}
}

// sound fills a capsule in every table, an erase and a retention included.
func sound(t *testing.T, d *decisions.Decisions) (key int64) {
	t.Helper()
	key = newCapsule(t, d, "a")
	id := decision.CapsuleID{Tenant: "north", Job: "web", Capsule: "a"}
	write(t, d, func(tx decision.Tx) error {
		var err error
		do := func(e error) { err = errors.Join(err, e) }
		reward := func(purges int64, name, k string) {
			_, e := tx.AppendReward(key, purges, decision.Reward{DecisionID: name, Key: k})
			do(e)
		}
		do(tx.AppendBatch(logged(key, 5, "erased")))
		reward(0, "erased", "erased")
		_, _, e := tx.PurgeLogs(key)
		do(e)
		do(tx.AppendBatch(logged(key, 10, "old")))
		reward(1, "old", "old")
		one := logged(key, 100, "x", "y", "cart")
		one.Events = []string{"cart"}
		do(tx.AppendBatch(one))
		do(tx.AppendBatch(logged(key, 50, "late")))
		reward(1, "x", "x")
		reward(1, "y", "paid")
		_, _, e = tx.DropBatches(key, decision.Retention{BeforeMS: 20, Watermark: 100, IDs: func(p []byte, visit func(string)) error {
			return records(p, func(id string, _ int64) { visit(id) })
		}})
		do(e)
		do(tx.SaveSnapshot(decision.Snapshot{Capsule: key, Version: 2, Seq: 4, Bytes: []byte("model")}, 3))
		do(tx.SavePublication(decision.Publication{Capsule: key, Tag: "t", Section: []byte("{}"), Seq: 1, Bytes: []byte("model")}, 3))
		do(tx.SaveHeld(decision.Held{Capsule: key, EventID: "h", Record: []byte("r")}))
		do(tx.AppendAudit(id, decision.AuditRow{Event: "capsule_created", Detail: []byte("{}")}))
		do(tx.AppendAudit(id, decision.AuditRow{Event: "spec_updated", Detail: []byte("{}")}))
		return err
	})
	return key
}

func findings(t *testing.T, d *decisions.Decisions) (texts []string) {
	t.Helper()
	found, err := d.Check(t.Context(), probe())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		texts = append(texts, f.Capsule.String()+": "+f.What)
	}
	return texts
}

func TestCheckFindsNothingWrongWithASoundStore(t *testing.T) {
	d := decisions.New(database(t))
	sound(t, d)
	newCapsule(t, d, "empty")
	if found := findings(t, d); len(found) != 0 {
		t.Errorf("found %q", found)
	}
	none, err := d.Check(t.Context(), decisions.Probe{})
	if err != nil || len(none) != 0 {
		t.Errorf("without a probe: %v, %v", none, err)
	}
}

func TestCheckFinds(t *testing.T) {
	const a = "north/web/a: "
	for _, c := range []struct{ name, harm, want string }{
		{"a wrong count", "UPDATE tallies SET decisions = 9", a + "decisions: the tally says 9, a recount 4"},
		{"a lost batch", "DELETE FROM batches WHERE late > 0", a + "decisions: the tally says 4, a recount 3"},
		{"wrong bytes", "UPDATE tallies SET bytes = bytes + 1", a + "payload bytes: the tally says"},
		{"wrong times", "UPDATE tallies SET first_ms = 1", a + "first decision (ms): the tally says 1, a recount 50"},
		{"a lost reward", "DELETE FROM rewards WHERE seq = 3", a + "rewards ever given: the tally says 4, a recount 3"},
		{"a reward from nowhere", "INSERT INTO rewards VALUES (1, 9, 0, 'x9', 'x', 0, 0, 1, NULL)", a + "reward 9 is numbered after the last, 4"},
		{"a reward without a decision", "UPDATE rewards SET decision = 'z' WHERE seq = 4", a + `reward 4 names "z", which is not in the log`},
		{"an id without a decision", "UPDATE events SET id = 'z'", a + `the client-made id "z" leads to no decision`},
		{"a torn payload", "UPDATE batches SET payload = substr(payload, 5) WHERE late IS NULL", a + "the batch of 100 to 102 ms does not read back: not a record"},
		{"a wrong row count", "UPDATE batches SET count = 2 WHERE late IS NULL", a + "the batch of 100 to 102 ms has 3 records, its row says 2"},
		{"records of other times", "UPDATE batches SET last_ms = 101 WHERE late IS NULL", a + "the batch of 100 to 101 ms has 1 records of other times"},
		{"an id twice", "UPDATE batches SET payload = CAST('50 x' AS BLOB) WHERE late > 0", a + "1 ids are in the log more than once"},
		{"a batch that ends early", "UPDATE batches SET first_ms = 200 WHERE late IS NULL", "ends before it begins"},
		{"a batch in the wrong lane", "UPDATE batches SET late = 3 WHERE late > 0", "which is not for lane 3"},
		{"a late batch among those in order", "UPDATE batches SET late = NULL, first_ms = 99, last_ms = 101 WHERE late > 0", "begins before the one in front of it ends"},
		{"an end too early", "UPDATE tallies SET tail_ms = 1", a + "the tally says that batches in order end at 1, they end at 102"},
		{"a length too short", "UPDATE batches SET late = 4, last_ms = 9000000 WHERE late > 0", a + "the tally says that the longest late batch"},
		{"a bad snapshot", "UPDATE snapshots SET bytes = x'00'", a + "the snapshot of version 2 does not read back: bad checksum"},
		{"a snapshot of the future", "UPDATE snapshots SET seq = 5", a + "the snapshot of version 2 covers reward 5, the last is 4"},
		{"a bad publication", "UPDATE publications SET bytes = x'00'", a + "the publication of version 0 does not read back"},
		{"a bad spec", "UPDATE capsules SET spec = '['", a + "the stored spec is not valid: not a spec"},
		{"no tallies", "DELETE FROM tallies", a + "has no tallies"},
		{"rows of nobody", "INSERT INTO held VALUES (77, 'e', 0, x'00', NULL)", "//: held holds 1 rows of capsule key 77, which does not exist"},
		{"a gap in a trail", "DELETE FROM audits WHERE seq = 1", "//: the trail of north/web/a has 1 events, its last number is 2"},
		{"a missing job", "DELETE FROM jobs", "//: job north/web of capsule a is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := reopen(t, filepath.Join(t.TempDir(), "decisions.db"))
			d := decisions.New(db)
			sound(t, d)
			if err := db.Write(t.Context(), store.Job{Run: func(tx *store.Tx) error { _, err := tx.Exec(c.harm); return err }}); err != nil {
				t.Fatal(err)
			}
			found := findings(t, d)
			for _, text := range found {
				if strings.Contains(text, c.want) {
					return
				}
			}
			t.Errorf("found %q, want %q among them", found, c.want)
		})
	}
}

func TestCheckTellsTheFirstOfMany(t *testing.T) {
	d := decisions.New(database(t))
	key := newCapsule(t, d, "a")
	write(t, d, func(tx decision.Tx) error {
		for n := range 30 {
			if _, err := tx.AppendReward(key, 0, nthReward(n)); err != nil {
				return err
			}
		}
		return nil
	})
	found := findings(t, d)
	if len(found) != 21 || found[20] != "north/web/a: and 10 more findings" {
		t.Errorf("%d findings, the last %q", len(found), found[len(found)-1])
	}
}

// TestCheckNeedsNoWriter checks a file as the operator's check does: opened read-only, beside a server that has it open.
func TestCheckNeedsNoWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.db")
	sound(t, decisions.New(reopen(t, path)))
	db, err := store.Open(t.Context(), store.Options{Path: path, Migrations: decisions.Migrations(), ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	d := decisions.New(db)
	if found := findings(t, d); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	if err := d.Write(t.Context(), decision.Write{Change: func(decision.Tx) error { return nil }}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a write to a store opened read-only: %v", err)
	}
}
