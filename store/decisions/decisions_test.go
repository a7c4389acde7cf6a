package decisions_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/decision"
	"holdfast/store"
	"holdfast/store/decisions"
	"holdfast/store/storetest"
)

// database opens a database in a folder of its own and closes it when the test ends.
func database(t testing.TB) *store.DB {
	t.Helper()
	return reopen(t, filepath.Join(t.TempDir(), "decisions.db"))
}

func reopen(t testing.TB, path string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: path, Migrations: decisions.Migrations()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return db
}

func TestConformance(t *testing.T) {
	storetest.Decisions(t, func(t testing.TB) decision.Storage { return decisions.New(database(t)) })
}

func TestMigrationsArePinned(t *testing.T) {
	storetest.Pin(t, decisions.Migrations(), map[string]string{
		"001_decisions.sql": "4e1ac65f762b16acf1afde0c9c1e581a651857aabf2c6f3a1efd67a5965b827e",
	})
}

// TestStateOutlivesTheProcess closes the file and reads everything back from it.
func TestStateOutlivesTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.db")
	open := func() (*decisions.Decisions, func()) {
		db, err := store.Open(t.Context(), store.Options{Path: path, Migrations: decisions.Migrations()})
		if err != nil {
			t.Fatal(err)
		}
		return decisions.New(db), func() {
			if err := db.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	d, shut := open()
	key := sound(t, d)
	before := dump(t, d, key)
	shut()
	d, shut = open()
	defer shut()
	if diff := cmp.Diff(before, dump(t, d, key)); diff != "" {
		t.Error(diff)
	}
	if found := findings(t, d); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	write(t, d, func(tx decision.Tx) error { // numbers go on
		seq, err := tx.AppendReward(key, 1, decision.Reward{DecisionID: "cart", Key: "cart"})
		if seq != 5 {
			t.Errorf("the next sequence number is %d", seq)
		}
		return err
	})
}

// dump reads all that a capsule has.
func dump(t *testing.T, d *decisions.Decisions, key int64) (all []any) {
	t.Helper()
	id := decision.CapsuleID{Tenant: "north", Job: "web", Capsule: "a"}
	read(t, d, func(v decision.View) error {
		keep := func(x any, err error) {
			if err != nil {
				t.Error(err)
			}
			all = append(all, x)
		}
		row, err := v.Capsule(id)
		keep(row, err)
		jobs, err := v.Jobs("north")
		keep(jobs, err)
		snapshots, err := v.Snapshots(key)
		keep(snapshots, err)
		publication, err := v.Publication(key, "t")
		keep(publication, err)
		audits, err := v.Audits(id, 100)
		keep(audits, err)
		held, err := v.Held(key, "h")
		keep(held, err)
		ms, err := v.EventTime(key, "cart")
		keep(ms, err)
		keep("rewards", v.Rewards(key, 0, func(r decision.Reward) (bool, error) { keep(r, nil); return true, nil }))
		keep("batches", v.Batches(key, decision.BatchQuery{}, func(b decision.Batch) (bool, error) {
			b.Payload = slices.Clone(b.Payload)
			keep(b, nil)
			return true, nil
		}))
		return nil
	})
	if len(all) < 13 {
		t.Errorf("only %d things read", len(all))
	}
	return all
}

// TestAllocations holds the hot path to what its benchmarks show.
func TestAllocations(t *testing.T) {
	d := decisions.New(database(t))
	key := library(t, d, 3)
	runs := 200
	read(t, d, func(v decision.View) error {
		ceiling(t, runs, "batch", 2, func() {
			_ = v.Batches(key, decision.BatchQuery{Span: decision.Span{Since: 4, Until: 5}}, func(decision.Batch) (bool, error) { return true, nil })
		})
		ceiling(t, runs, "event", 0, func() { _, _ = v.EventTime(key, "cart-1") })
		ceiling(t, runs, "rewards", 6, func() { _, _ = v.RewardsOf(key, serverID(1)) })
		return nil
	})
	n := 10
	reward := nthReward(0)
	ids := make([]string, 2*runs)
	for i := range ids {
		ids[i] = serverID(i + n)
	}
	payload := make([]byte, 1000)
	write(t, d, func(tx decision.Tx) error {
		ceiling(t, runs, "append a reward", 1, func() {
			reward.DecisionID, reward.Key = ids[n], ids[n]
			n++
			if seq, err := tx.AppendReward(key, 0, reward); err != nil || seq == 0 {
				t.Errorf("reward %d: %d, %v", n, seq, err)
			}
		})
		ms := int64(1000)
		ceiling(t, runs, "append a batch", 1, func() {
			ms++
			if err := tx.AppendBatch(decision.Batch{Capsule: key, FirstMS: ms, LastMS: ms, Count: 1, Payload: payload}); err != nil {
				t.Error(err)
			}
		})
		return nil
	})
}

func ceiling(t *testing.T, runs int, what string, most float64, f func()) {
	t.Helper()
	if got := testing.AllocsPerRun(runs, f); got > most {
		t.Errorf("%s: %v allocations, at most %v", what, got, most)
	}
}
