package decisions_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"holdfast/decision"
	"holdfast/fault"
	"holdfast/store"
	"holdfast/store/decisions"
	"holdfast/store/storetest"
)

func TestMain(m *testing.M) {
	if code, child := storetest.RunChild(map[string]func([]string) error{"load": load, "serve": serveLoad}); child {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

// The load of one child.
const (
	crashWorkers = 6
	crashAcks    = 150 // acknowledgements the parent waits for before it kills, and as many again at random
)

// load appends batches, rewards and repeats from several goroutines until it is killed. It prints a line for each
// acknowledgement: "b ID..." for a batch, "r SEQ ID KEY" for a reward.
func load(args []string) error {
	db, err := store.Open(context.Background(), store.Options{Path: args[0], Migrations: decisions.Migrations()})
	if err != nil {
		return err
	}
	d := decisions.New(db)
	id := decision.CapsuleID{Tenant: "north", Job: "web", Capsule: "a"}
	err = d.Write(context.Background(), decision.Write{Change: func(tx decision.Tx) error {
		_, err := tx.CreateCapsule(decision.CapsuleRow{ID: id, Spec: []byte("{}")})
		if fault.KindOf(err) == fault.Conflict {
			return nil
		}
		return err
	}})
	if err != nil {
		return err
	}
	var row decision.CapsuleRow
	if err := d.Read(context.Background(), func(v decision.View) (err error) { row, err = v.Capsule(id); return err }); err != nil {
		return err
	}
	failed := make(chan error, crashWorkers)
	var clock sync.Mutex // guards now: batches are made in time order, as the service does
	now := row.LastMS
	for worker := range crashWorkers {
		go func() {
			for round := 0; ; round++ {
				stamp := func(n int) int64 {
					clock.Lock()
					defer clock.Unlock()
					now += int64(n) + 1
					return now - int64(n)
				}
				if err := oneRound(d, row.Key, fmt.Sprintf("%s-%d-%d", args[1], worker, round), stamp); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

// oneRound logs a batch and rewards each of its decisions twice: under the usual key, then repeated or under another.
func oneRound(d *decisions.Decisions, key int64, name string, stamp func(n int) int64) error {
	var ids []string
	for n := range 1 + rand.IntN(5) {
		ids = append(ids, name+"-"+strconv.Itoa(n))
	}
	b := logged(key, stamp(len(ids)), ids...)
	b.Events = ids
	if err := d.Write(context.Background(), decision.Write{Change: func(tx decision.Tx) error { return tx.AppendBatch(b) }}); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "b", strings.Join(ids, " "))
	for i, id := range ids {
		for _, k := range [2]string{id, [2]string{id, id + ":more"}[i%2]} {
			var seq int64
			err := d.Write(context.Background(), decision.Write{Change: func(tx decision.Tx) (err error) {
				seq, err = tx.AppendReward(key, 0, decision.Reward{DecisionID: id, Key: k, Value: 1, Normalized: 1, Learned: true})
				return err
			}})
			if err != nil {
				return err
			}
			if seq != 0 {
				fmt.Fprintln(os.Stdout, "r", seq, id, k)
			}
		}
	}
	return nil
}

// acked is what children acknowledged.
type acked struct {
	decisions map[string]bool
	rewards   map[string]string // "SEQ KEY" by key: its number and decision
}

func (a *acked) add(t *testing.T, lines []string) {
	t.Helper()
	for _, line := range lines {
		f := strings.Fields(line)
		switch {
		case len(f) > 1 && f[0] == "b":
			for _, id := range f[1:] {
				a.decisions[id] = true
			}
		case len(f) == 4 && f[0] == "r":
			if a.rewards[f[3]] != "" {
				t.Errorf("key %s was applied twice: %s, then %s %s", f[3], a.rewards[f[3]], f[1], f[2])
			}
			a.rewards[f[3]] = f[1] + " " + f[2]
		default:
			t.Errorf("the child said %q", line)
		}
	}
}

// TestKilledUnderLoad kills a process under load, again and again on one file: what it acknowledged is there, nothing is
// there twice, and the tallies equal a recount.
func TestKilledUnderLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.db")
	all := &acked{decisions: map[string]bool{}, rewards: map[string]string{}}
	for cycle := range crashCycles {
		child := storetest.Start(t, "load", path, strconv.Itoa(cycle))
		lines := child.Lines(crashAcks + rand.IntN(crashAcks))
		lines = append(lines, child.Kill()...)
		if len(lines) < crashAcks {
			t.Fatalf("cycle %d: the child ended by itself after %d lines", cycle, len(lines))
		}
		all.add(t, lines)
		verify(t, path, all)
	}
	t.Logf("%d decisions and %d rewards acknowledged over %d kills", len(all.decisions), len(all.rewards), crashCycles)
}

// verify compares the file with what was acknowledged; more may be there, since a child may die between sync and answer.
func verify(t *testing.T, path string, all *acked) {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: path, Migrations: decisions.Migrations()})
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
		t.Fatalf("after a kill: %q", found)
	}
	stored, keys := map[string]bool{}, map[string]string{}
	read(t, d, func(v decision.View) error {
		row, err := v.Capsule(decision.CapsuleID{Tenant: "north", Job: "web", Capsule: "a"})
		if err != nil {
			return err
		}
		if err := v.Batches(row.Key, decision.BatchQuery{}, func(b decision.Batch) (bool, error) {
			return true, records(b.Payload, func(id string, _ int64) { stored[id] = true })
		}); err != nil {
			return err
		}
		last := int64(0)
		return v.Rewards(row.Key, 0, func(r decision.Reward) (bool, error) {
			if r.Seq != last+1 {
				t.Errorf("reward %d follows %d", r.Seq, last)
			}
			last = r.Seq
			keys[r.Key] = fmt.Sprintf("%d %s", r.Seq, r.DecisionID)
			return true, nil
		})
	})
	for id := range all.decisions {
		if !stored[id] {
			t.Errorf("decision %s was acknowledged and is missing", id)
		}
	}
	for key, want := range all.rewards {
		if keys[key] != want {
			t.Errorf("reward %s was acknowledged as %q and is stored as %q", key, want, keys[key])
		}
	}
}
