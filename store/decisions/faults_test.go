package decisions_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"holdfast/decision"
	"holdfast/fault"
	"holdfast/store"
	"holdfast/store/decisions"
	"holdfast/store/storetest"
)

// TestEveryFault fails each operation of the disk in turn while batches and rewards are written, cuts the power afterwards
// and holds what is left to the contract: what was acknowledged is there, and the tallies equal a recount.
func TestEveryFault(t *testing.T) {
	for _, op := range []storetest.Op{storetest.WriteLog, storetest.SyncLog, storetest.WriteData, storetest.SyncData} {
		for name, err := range map[string]error{"EIO": syscall.EIO, "full": sqlite3.FULL} {
			for n := 1; n <= 4; n++ {
				t.Run(fmt.Sprintf("%s %d %s", op, n, name), func(t *testing.T) {
					oneFault(t, uint64(n), func(d *storetest.Disk) { d.FailOnce(op, n, err) })
				})
			}
		}
	}
}

func oneFault(t *testing.T, seed uint64, arm func(*storetest.Disk)) {
	disk := storetest.NewDisk()
	folder := filepath.Join(t.TempDir(), "before")
	cut := filepath.Join(t.TempDir(), "after")
	db, err := store.Open(t.Context(), store.Options{Path: file(t, folder), Migrations: decisions.Migrations(), Files: disk, Checkpoint: 8})
	if err != nil {
		t.Fatal(err)
	}
	d := decisions.New(db)
	key := newCapsule(t, d, "a")
	arm(disk)
	rewarded := map[string]int64{}
	for i := range 16 {
		id := "d" + strconv.Itoa(i)
		var seq int64
		for _, change := range []func(tx decision.Tx) error{
			func(tx decision.Tx) error { return tx.AppendBatch(logged(key, int64(10*i), id)) },
			func(tx decision.Tx) (err error) {
				seq, err = tx.AppendReward(key, 0, decision.Reward{DecisionID: id, Key: id})
				return err
			},
		} {
			err = d.Write(t.Context(), decision.Write{Change: change})
			if err != nil && fault.KindOf(err) != fault.Unavailable {
				t.Errorf("%s: %v, want unavailable", id, err)
			}
			if err != nil {
				break // a reward follows its decision only
			}
		}
		if err == nil {
			rewarded[id] = seq
		}
	}
	if db.Err() == nil && len(rewarded) < 15 {
		t.Errorf("only %d of 16 were acknowledged though the fault was not final", len(rewarded))
	}
	if err := disk.PowerCut(folder, cut, seed); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(context.Background()); (err != nil) != (db.Err() != nil) {
		t.Errorf("closing says %v, the store %v", err, db.Err())
	}
	afterCut(t, filepath.Join(cut, "decisions.db"), rewarded)
}

// file makes a folder and names the database in it.
func file(t *testing.T, folder string) string {
	t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, "decisions.db")
}

func afterCut(t *testing.T, path string, rewarded map[string]int64) {
	t.Helper()
	d := decisions.New(reopen(t, path))
	if found := findings(t, d); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	read(t, d, func(v decision.View) error {
		row, err := v.Capsule(decision.CapsuleID{Tenant: "north", Job: "web", Capsule: "a"})
		if err != nil {
			return err
		}
		for id, seq := range rewarded {
			found, err := v.RewardsOf(row.Key, id)
			if err != nil {
				return err
			}
			if len(found) != 1 || found[0].Seq != seq {
				t.Errorf("%s was acknowledged as reward %d, stored is %+v", id, seq, found)
			}
		}
		return nil
	})
}
