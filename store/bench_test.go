package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/store"
)

// eventRow is a row of about 290 bytes with one secondary index, the shape the speeds of this package are told for.
const (
	eventSchema = "-- +goose Up\nCREATE TABLE events (id INTEGER PRIMARY KEY, source TEXT NOT NULL, at INTEGER NOT NULL, body BLOB NOT NULL) STRICT;\n" +
		"CREATE INDEX events_source ON events (source, at);\n"
	insertEvent = "INSERT INTO events (id, source, at, body) VALUES (?, ?, ?, ?)"
	eventBytes  = 240
)

// rawSyncRate appends one row's bytes to a file and syncs, again and again: what one caller could have without a group.
func rawSyncRate(tb testing.TB) float64 {
	tb.Helper()
	f, err := os.Create(filepath.Join(tb.TempDir(), "raw"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	began := time.Now()
	n := 0
	for ; time.Since(began) < 300*time.Millisecond; n++ {
		if _, err := f.Write(page); err != nil {
			tb.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			tb.Fatal(err)
		}
	}
	return float64(n) / time.Since(began).Seconds()
}

// BenchmarkGroupCommit reports acknowledged rows a second and how many times a bare write-and-sync loop of the same run
// that is.
func BenchmarkGroupCommit(b *testing.B) {
	for _, callers := range []int{1, 64, 1000} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { benchCallers(b, callers) })
	}
}

func benchCallers(b *testing.B, callers int) {
	raw := rawSyncRate(b)
	db := openBench(b, store.Options{})
	body := make([]byte, eventBytes)
	sources := make([]string, 100)
	for i := range sources {
		sources[i] = fmt.Sprintf("source-%d", i)
	}
	var id atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	before, busyBefore := db.Stats(), processorTime(b)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for {
				n := id.Add(1)
				if n > int64(b.N) {
					return
				}
				err := db.Write(context.Background(), store.Job{Rows: 1, Run: func(tx *store.Tx) error {
					_, err := tx.Stmt(insertEvent).Int(n).Text(sources[n%int64(len(sources))]).Int(n).Blob(body).Exec()
					return err
				}})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	busy := processorTime(b) - busyBefore
	after := db.Stats()
	raw = (raw + rawSyncRate(b)) / 2 // the disk is shared and changes within the run
	rate := float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(rate, "rows/s")
	b.ReportMetric(rate/raw, "x-raw-sync")
	b.ReportMetric(float64(busy.Nanoseconds())/1000/float64(b.N), "cpu-µs/row")
	b.ReportMetric(float64(b.N)/float64(after.Batches-before.Batches), "rows/batch")
	b.ReportMetric(float64(after.Syncs-before.Syncs)/float64(after.Batches-before.Batches), "syncs/batch")
	b.ReportMetric(float64(after.Bytes-before.Bytes)/float64(b.N), "written-B/row")
}

// BenchmarkInsert compares one job of many rows written one statement a row and 32 rows a statement.
func BenchmarkInsert(b *testing.B) {
	const rows = 3200
	many := store.NewInsert(store.SQLite(), "events", "id", "source", "at", "body")
	body := make([]byte, eventBytes)
	bind := func(s *store.Stmt, id int) { s.Int(int64(id)).Text("source").Int(int64(id)).Blob(body) }
	ways := map[string]func(tx *store.Tx, from int) error{
		"one by one": func(tx *store.Tx, from int) error {
			s := tx.Stmt(insertEvent)
			for i := range rows {
				if bind(s, from+i); s.Again() != nil {
					break
				}
			}
			return s.Close()
		},
		"32 at once": func(tx *store.Tx, from int) error {
			return many.Rows(tx, rows, func(s *store.Stmt, i int) { bind(s, from+i) })
		},
	}
	for name, way := range ways {
		b.Run(name, func(b *testing.B) {
			db := openBench(b, store.Options{})
			busy := processorTime(b)
			for i := range b.N {
				err := db.Write(b.Context(), store.Job{Rows: rows, Run: func(tx *store.Tx) error { return way(tx, i*rows) }})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processorTime(b)-busy).Nanoseconds())/1000/float64(b.N*rows), "cpu-µs/row")
		})
	}
}

// processorTime returns what the process has used so far: it says more than a rate on a shared machine.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRead reports point reads through the pool.
func BenchmarkRead(b *testing.B) {
	db := openBench(b, store.Options{})
	err := db.Write(b.Context(), store.Job{Run: func(tx *store.Tx) error {
		for i := range 10000 {
			if err := tx.Stmt(insertEvent).Int(int64(i)).Text("s").Int(int64(i)).Blob(make([]byte, eventBytes)).Again(); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := int64(0); pb.Next(); i = (i + 7919) % 10000 {
			err := db.Read(context.Background(), func(s *store.Snapshot) error {
				found, err := s.Stmt("SELECT at, body FROM events WHERE id = ?").Int(i).One(func(row *store.Stmt) {
					if row.IntAt(0) != i || len(row.RawAt(1)) != eventBytes {
						b.Error("wrong row")
					}
				})
				if !found {
					b.Error("no row")
				}
				return err
			})
			if err != nil {
				b.Error(err)
			}
		}
	})
}

func openBench(b *testing.B, o store.Options) *store.DB {
	b.Helper()
	o.Path = filepath.Join(b.TempDir(), "bench.db")
	o.Migrations = migrations("001_events.sql", eventSchema)
	db, err := store.Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return db
}
