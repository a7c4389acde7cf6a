package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"holdfast/store"
	"holdfast/store/storetest"
)

// eventLog is a table in which a second copy of an id would show.
const eventLog = "-- +goose Up\nCREATE TABLE log (seq INTEGER PRIMARY KEY, id INTEGER NOT NULL, body BLOB) STRICT;\nCREATE INDEX log_id ON log (id);\n"

func logMigrations() store.Options {
	return store.Options{Migrations: migrations("001_log.sql", eventLog)}
}

// loadChild writes ids from args[1] on into the store in the folder args[0], from eight callers, and prints each id once
// it is acknowledged. It runs until it is killed.
func loadChild(args []string) error {
	dir, err := store.OpenDir(args[0])
	if err != nil {
		return err
	}
	o := logMigrations()
	o.Path, o.Checkpoint = dir.File("log.db"), 20
	db, err := store.Open(context.Background(), o)
	if err != nil {
		return err
	}
	first, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return err
	}
	var next atomic.Int64
	next.Store(first)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				id := next.Add(1)
				err := db.Write(context.Background(), store.Job{Rows: 1, Run: func(tx *store.Tx) error {
					_, err := tx.Stmt("INSERT INTO log (id, body) VALUES (?, ?)").Int(id).Blob(make([]byte, 100)).Exec()
					return err
				}})
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
				fmt.Fprintf(os.Stdout, "%d\n", id)
			}
		})
	}
	wg.Wait()
	return nil
}

// TestKilledUnderLoad kills a process that writes, 20 times on one store: everything it acknowledged is there, once.
func TestKilledUnderLoad(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	acked := map[int64]int{}
	for cycle := range 20 {
		child := storetest.Start(t, "load", folder, strconv.Itoa(cycle*1_000_000))
		lines := child.Lines(50 + 37*cycle%200)
		lines = append(lines, child.Kill()...)
		if len(lines) < 50 {
			t.Fatalf("cycle %d: the child acknowledged only %d writes", cycle, len(lines))
		}
		for _, line := range lines {
			id, err := strconv.ParseInt(line, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			acked[id]++
		}
		copies := copiesIn(t, folder)
		for id := range acked {
			if copies[id] != 1 {
				t.Fatalf("cycle %d: %d was acknowledged and is stored %d times", cycle, id, copies[id])
			}
		}
		for id, n := range copies {
			if n != 1 {
				t.Fatalf("cycle %d: %d is stored %d times", cycle, id, n)
			}
		}
	}
	report, err := store.Check(t.Context(), folder)
	if err != nil || len(report.Findings) > 0 {
		t.Errorf("%v %v", report.Findings, err)
	}
	t.Logf("%d acknowledged writes survived 20 kills", len(acked))
}

// copiesIn reads the store without changing it, so that the next child finds what the killed one left.
func copiesIn(tb testing.TB, folder string) map[int64]int {
	tb.Helper()
	o := logMigrations()
	o.Path, o.ReadOnly = filepath.Join(folder, "log.db"), true
	db := openStore(tb, o)
	got := map[int64]int{}
	err := db.Read(tb.Context(), func(s *store.Snapshot) error {
		rows := s.Query("SELECT id FROM log")
		for rows.Next() {
			got[rows.IntAt(0)]++
		}
		return rows.Err()
	})
	if err != nil {
		tb.Fatal(err)
	}
	if err := db.Close(tb.Context()); err != nil {
		tb.Error(err)
	}
	return got
}
