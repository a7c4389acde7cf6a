package decisions_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"holdfast/decision"
	"holdfast/store"
	"holdfast/store/decisions"
	"holdfast/store/storetest"
)

var hero = decision.CapsuleID{Tenant: "north", Job: "web", Capsule: "hero"}

// serve opens a file and the service on it; shut closes both.
func serve(path string) (s *decision.Service, db *store.DB, shut func() error, err error) {
	ctx := context.Background()
	db, err = store.Open(ctx, store.Options{Path: path, Migrations: decisions.Migrations()})
	if err != nil {
		return nil, nil, nil, err
	}
	s, err = decision.Open(ctx, decision.Options{Storage: decisions.New(db), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, nil, nil, err
	}
	return s, db, func() error {
		if err := s.Close(ctx); err != nil {
			return err
		}
		return db.Close(ctx)
	}, nil
}

// serveLoad decides and rewards through the service until it is killed. It prints "d ID" for each durable decision and
// "r KEY" for each reward that was applied.
func serveLoad(args []string) error {
	ctx := context.Background()
	s, _, _, err := serve(args[0])
	if err != nil {
		return err
	}
	if _, _, err := s.PutSpec(ctx, hero, []byte(`{"actions":[{"id":"small"},{"id":"large","features":{"cost":2}}],"rewards":"sum",
		"snapshotEvery":40,"learner":{"bits":10}}`), decision.Merge); err != nil {
		return err
	}
	c, err := s.Capsule(ctx, hero)
	if err != nil {
		return err
	}
	failed := make(chan error, crashWorkers)
	for worker := range crashWorkers {
		go func() {
			var answer decision.Answer
			for round := 0; ; round++ {
				if err := decideAndReward(c, fmt.Sprintf("%s-%d-%d", args[1], worker, round), &answer); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

func decideAndReward(c *decision.Capsule, name string, answer *decision.Answer) error {
	ctx := context.Background()
	body := fmt.Appendf(nil, `{"plan":%q,"load":%d}`, [2]string{"free", "pro"}[rand.IntN(2)], rand.IntN(9))
	req := decision.Request{Context: body, EventID: name, Durable: rand.IntN(3) > 0, Digest: sha256.Sum256(body)}
	if err := c.Decide(ctx, &req, answer); err != nil {
		return err
	}
	if req.Durable {
		fmt.Fprintln(os.Stdout, "d", name)
	}
	for _, key := range []string{name + ":a", name + ":b"} {
		for range 2 { // the second is a repeat
			r, err := c.Reward(ctx, decision.RewardRequest{DecisionID: name, Value: rand.Float64(), Key: key, HasKey: true})
			if err != nil {
				return err
			}
			if r.Applied {
				fmt.Fprintln(os.Stdout, "r", key)
			}
		}
	}
	return nil
}

// TestServiceKilledUnderLoad kills a process that serves decisions, again and again on one file: every durable decision
// and every reward it acknowledged is there once, and the model that a restart loads from the newest snapshot equals, byte
// for byte, the one that a replay of all rewards makes.
func TestServiceKilledUnderLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.db")
	durable, rewarded := map[string]bool{}, map[string]bool{}
	for cycle := range crashCycles {
		child := storetest.Start(t, "serve", path, strconv.Itoa(cycle))
		lines := child.Lines(crashAcks + rand.IntN(crashAcks))
		lines = append(lines, child.Kill()...)
		if len(lines) < crashAcks {
			t.Fatalf("cycle %d: the child ended by itself after %d lines: %q", cycle, len(lines), lines)
		}
		for _, line := range lines {
			kind, name, _ := strings.Cut(line, " ")
			acked := map[string]map[string]bool{"d": durable, "r": rewarded}[kind]
			if acked == nil || acked[name] {
				t.Fatalf("the child said %q, for the second time or out of turn", line)
			}
			acked[name] = true
		}
		verifyService(t, path, durable, rewarded)
	}
	t.Logf("%d durable decisions and %d rewards acknowledged over %d kills", len(durable), len(rewarded), crashCycles)
}

func verifyService(t *testing.T, path string, durable, rewarded map[string]bool) {
	t.Helper()
	loaded := model(t, path)
	db, err := store.Open(t.Context(), store.Options{Path: path, Migrations: decisions.Migrations()})
	if err != nil {
		t.Fatal(err)
	}
	d := decisions.New(db)
	checkReal(t, d)
	logged, keys := contents(t, d)
	for id := range durable {
		if !logged[id] {
			t.Errorf("decision %s was acknowledged as durable and is missing", id)
		}
	}
	for key := range rewarded {
		if !keys[key] {
			t.Errorf("reward %s was acknowledged and is missing", key)
		}
	}
	if err := db.Write(t.Context(), store.Job{Run: func(tx *store.Tx) error { _, err := tx.Exec("DELETE FROM snapshots"); return err }}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if replayed := model(t, path); !slices.Equal(loaded, replayed) {
		t.Errorf("the model loaded from a snapshot and the one replayed from the start differ: %d and %d bytes", len(loaded), len(replayed))
	}
}

// model loads the capsule as a restart does and returns the snapshot that stopping leaves.
func model(t *testing.T, path string) (bytes []byte) {
	t.Helper()
	s, db, shut, err := serve(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Capsule(t.Context(), hero); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	read(t, decisions.New(db), func(v decision.View) error {
		row, err := v.Capsule(hero)
		if err != nil {
			return err
		}
		snapshot, err := v.NewestSnapshot(row.Key)
		bytes = snapshot.Bytes
		if snapshot.Seq != row.LastSeq {
			t.Errorf("the snapshot covers reward %d of %d", snapshot.Seq, row.LastSeq)
		}
		return err
	})
	if err := shut(); err != nil {
		t.Error(err)
	}
	return bytes
}

// checkReal checks a store with the service's own readers.
func checkReal(t *testing.T, d *decisions.Decisions) {
	t.Helper()
	found, err := d.Check(t.Context(), decisions.Probe{
		Records: func(payload []byte, visit func(id string, ms int64)) error {
			return decision.DecodePayload(payload, func(d decision.Decision) bool { visit(d.ID, d.TimeMS); return true })
		},
		Snapshot: func(bytes []byte) error { _, _, err := decision.DecodeSnapshot(bytes); return err },
		Spec:     func(text []byte) error { _, err := decision.ParseSpec(text); return err },
	})
	if err != nil || len(found) > 0 {
		t.Errorf("found %v, %v", found, err)
	}
}

// contents returns the ids in the log and the keys of the rewards.
func contents(t *testing.T, d *decisions.Decisions) (ids, keys map[string]bool) {
	t.Helper()
	ids, keys = map[string]bool{}, map[string]bool{}
	read(t, d, func(v decision.View) error {
		row, err := v.Capsule(hero)
		if err != nil {
			return err
		}
		if err := v.Batches(row.Key, decision.BatchQuery{}, func(b decision.Batch) (bool, error) {
			return true, decision.RecordIDs(b.Payload, func(id string) { ids[id] = true })
		}); err != nil {
			return err
		}
		return v.Rewards(row.Key, 0, func(r decision.Reward) (bool, error) { keys[r.Key] = true; return true, nil })
	})
	return ids, keys
}
