package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"holdfast/fault"
	"holdfast/store"
)

// Opener opens an empty store of the engine under test with the given options, whose Path it sets, and closes it when
// the test ends. A second call within one test opens the same store again.
type Opener func(tb testing.TB, o store.Options) *store.DB

// Items is the schema the suite works on: one table, items.
func Items() fs.FS {
	return fstest.MapFS{"001_items.sql": {Data: []byte(`-- +goose Up
CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT UNIQUE, n INTEGER, x REAL, body BLOB);
`)}}
}

// The statements of the suite.
const (
	insertItem = "INSERT INTO items (id, name, n) VALUES (?, ?, ?)"
	countItems = "SELECT count(*) FROM items"
)

// errJob is an error that only a job of the suite returns.
var errJob = errors.New("the job's own error")

// Conform runs the suite. Every engine passes all of it.
func Conform(t *testing.T, open Opener) {
	tests := []struct {
		name string
		run  func(*testing.T, Opener)
	}{
		{"a write is there after it returned, and after opening again", testKept},
		{"values come back as they went in", testValues},
		{"a failed job is undone alone", testFailureAlone},
		{"a panic is undone alone and told", testPanicAlone},
		{"a constraint is a conflict", testConstraint},
		{"a job sees the jobs before it", testSeesEarlier},
		{"applied comes in commit order, before the caller, with the outcome", testApplied},
		{"one batch has one transaction", testOneBatch},
		{"the row cap closes a batch", testRowCap},
		{"a read is one state", testReadOneState},
		{"a read cannot write", testReadCannotWrite},
		{"a caller that leaves does not take the job along", testCallerLeaves},
		{"a read ends with its context", testReadInterrupted},
		{"a full queue refuses", testFullQueue},
		{"closing writes what was accepted and refuses the rest", testCloseDrains},
		{"an equal row is not written", testEqualRow},
		{"statements of one text may overlap", testOverlap},
		{"a bad statement is an error and nothing else", testBadStatement},
		{"many rows go in one statement", testManyRows},
		{"many callers are each answered once", testManyCallers},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, open) })
	}
}

// put returns a job that inserts one item.
func put(id int64, name string) store.Job {
	return store.Job{Rows: 1, Run: func(tx *store.Tx) error {
		_, err := tx.Stmt(insertItem).Int(id).Text(name).Int(id * 10).Exec()
		return err
	}}
}

func mustWrite(tb testing.TB, db *store.DB, job store.Job) {
	tb.Helper()
	if err := db.Write(tb.Context(), job); err != nil {
		tb.Fatalf("write: %v", err)
	}
}

// ids returns the ids of all items, sorted.
func ids(tb testing.TB, db *store.DB) []int64 {
	tb.Helper()
	var got []int64
	err := db.Read(tb.Context(), func(s *store.Snapshot) error {
		rows := s.Query("SELECT id FROM items ORDER BY id")
		for rows.Next() {
			got = append(got, rows.IntAt(0))
		}
		return rows.Err()
	})
	if err != nil {
		tb.Fatalf("read: %v", err)
	}
	return got
}

func wantIDs(tb testing.TB, db *store.DB, want ...int64) {
	tb.Helper()
	if got := ids(tb, db); !slices.Equal(got, want) {
		tb.Errorf("items are %v, want %v", got, want)
	}
}

func wantKind(tb testing.TB, err error, want fault.Kind) {
	tb.Helper()
	if err == nil || fault.KindOf(err) != want {
		tb.Errorf("error is %v, want one of kind %v", err, want)
	}
}

// Pause keeps the writer busy with one job until the returned function is called, so that jobs queued meanwhile share
// the next batch. It returns once the writer is inside the job.
func Pause(tb testing.TB, db *store.DB) (resume func()) {
	tb.Helper()
	inside, gate := make(chan struct{}), make(chan struct{})
	err := db.Queue(store.Job{Run: func(*store.Tx) error {
		close(inside)
		<-gate
		return nil
	}})
	if err != nil {
		tb.Fatalf("queue: %v", err)
	}
	<-inside
	resume = sync.OnceFunc(func() { close(gate) })
	tb.Cleanup(resume)
	return resume
}

func testKept(t *testing.T, open Opener) {
	db := open(t, store.Options{Migrations: Items()})
	mustWrite(t, db, put(1, "a"))
	wantIDs(t, db, 1)
	if err := db.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, open(t, store.Options{Migrations: Items()}), 1)
}

func testValues(t *testing.T, open Opener) {
	db := open(t, store.Options{Migrations: Items()})
	big := bytes.Repeat([]byte{0, 1, 254, 255}, 100_000)
	mustWrite(t, db, store.Job{Run: func(tx *store.Tx) error {
		_, err := tx.Exec("INSERT INTO items (id, name, n, x, body) VALUES (?, ?, ?, ?, ?)", 1, "é\x00z", int64(-1<<63), 0.1, big)
		_, err2 := tx.Exec("INSERT INTO items (id, name, n, x, body) VALUES (?, ?, ?, ?, ?)", int64(2), nil, uint64(1<<64-1), true, []byte{})
		_, err3 := tx.Stmt("INSERT INTO items (id, name, n, x, body) VALUES (?, ?, ?, ?, ?)").Int(3).RawText([]byte("raw")).Bool(true).Float(-0.5).Null().Exec()
		return errors.Join(err, err2, err3)
	}})
	err := db.Read(t.Context(), func(s *store.Snapshot) error {
		rows := s.Query("SELECT name, n, x, body FROM items ORDER BY id")
		rows.Next()
		if rows.TextAt(0) != "é\x00z" || rows.IntAt(1) != -1<<63 || rows.FloatAt(2) != 0.1 || !bytes.Equal(rows.RawAt(3), big) {
			t.Errorf("row 1 is %q %d %v and %d bytes", rows.TextAt(0), rows.IntAt(1), rows.FloatAt(2), len(rows.RawAt(3)))
		}
		rows.Next()
		if !rows.NullAt(0) || uint64(rows.IntAt(1)) != 1<<64-1 || !rows.BoolAt(2) || rows.NullAt(3) || len(rows.RawAt(3)) != 0 {
			t.Errorf("row 2 is %v %d %v null=%v", rows.NullAt(0), rows.IntAt(1), rows.BoolAt(2), rows.NullAt(3))
		}
		rows.Next()
		if got := rows.BlobAt(0, []byte("x-")); string(got) != "x-raw" || !rows.BoolAt(1) || rows.FloatAt(2) != -0.5 || !rows.NullAt(3) || rows.RawAt(3) != nil {
			t.Errorf("row 3 is %q %v %v null=%v", got, rows.BoolAt(1), rows.FloatAt(2), rows.NullAt(3))
		}
		if rows.Next() {
			t.Error("a fourth row")
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
}

func testFailureAlone(t *testing.T, open Opener) {
	db := open(t, store.Options{Migrations: Items()})
	failing := put(2, "b")
	insert := failing.Run
	failing.Run = func(tx *store.Tx) error { return errors.Join(insert(tx), errJob) }
	got := inOneBatch(t, db, put(1, "a"), failing, put(3, "c"))
	if got[0] != nil || got[2] != nil {
		t.Errorf("the neighbours were told %v and %v", got[0], got[2])
	}
	if !errors.Is(got[1], errJob) {
		t.Errorf("the failing job was told %v", got[1])
	}
	wantIDs(t, db, 1, 3)
}

// inOneBatch queues the jobs so that one batch takes them all and returns what each was told.
func inOneBatch(tb testing.TB, db *store.DB, jobs ...store.Job) []error {
	tb.Helper()
	before := db.Stats().Batches
	resume := Pause(tb, db)
	told := make([]error, len(jobs))
	var wg sync.WaitGroup
	for i, job := range jobs {
		wg.Add(1)
		applied := job.Applied
		job.Applied = func(err error) {
			if applied != nil {
				applied(err)
			}
			told[i] = err
			wg.Done()
		}
		if err := db.Queue(job); err != nil {
			tb.Fatalf("queue: %v", err)
		}
	}
	resume()
	wg.Wait()
	if n := db.Stats().Batches - before; n != 2 {
		tb.Errorf("%d batches, want the paused one and one more", n)
	}
	return told
}

func testPanicAlone(t *testing.T, open Opener) {
	db := open(t, store.Options{Migrations: Items()})
	panicking := put(2, "b")
	insert := panicking.Run
	panicking.Run = func(tx *store.Tx) error {
		if err := insert(tx); err != nil {
			return err
		}
		panic("broken")
	}
	got := inOneBatch(t, db, put(1, "a"), panicking, put(3, "c"))
	if got[0] != nil || got[2] != nil {
		t.Errorf("the neighbours were told %v and %v", got[0], got[2])
	}
	wantKind(t, got[1], fault.Internal)
	wantIDs(t, db, 1, 3)
}

func testConstraint(t *testing.T, open Opener) {
	db := open(t, store.Options{Migrations: Items()})
	mustWrite(t, db, put(1, "a"))
	wantKind(t, db.Write(t.Context(), put(2, "a")), fault.Conflict)
	mustWrite(t, db, put(3, "c"))
	wantIDs(t, db, 1, 3)
}

func testSeesEarlier(t *testing.T, open Opener) {
	db := open(t, store.Options{Migrations: Items()})
	seen := int64(-1)
	got := inOneBatch(t, db, put(1, "a"), store.Job{Run: func(tx *store.Tx) error {
		_, err := tx.Stmt(countItems).One(func(row *store.Stmt) { seen = row.IntAt(0) })
		return err
	}})
	if seen != 1 || got[1] != nil {
		t.Errorf("the second job saw %d rows, %v", seen, got[1])
	}
}

func testApplied(t *testing.T, open Opener) {
	db := open(t, store.Options{Migrations: Items()})
	var order []int64 // written on the writer's goroutine, read after the last job
	jobs := make([]store.Job, 20)
	for i := range jobs {
		id := int64(i)
		jobs[i] = put(id, fmt.Sprint(id))
		if i%5 == 3 {
			jobs[i].Run = func(*store.Tx) error { return errJob }
		}
		jobs[i].Applied = func(err error) {
			order = append(order, id)
			if failed := id%5 == 3; failed != errors.Is(err, errJob) {
				t.Errorf("job %d was applied with %v", id, err)
			}
		}
	}
	inOneBatch(t, db, jobs...)
	if len(order) != 20 || !slices.IsSorted(order) {
		t.Errorf("applied in the order %v", order)
	}
	applied := false
	job := put(100, "last")
	job.Applied = func(error) { applied = true }
	mustWrite(t, db, job)
	if !applied {
		t.Error("the caller was woken before Applied")
	}
}

func testOneBatch(t *testing.T, open Opener) {
	db := open(t, store.Options{Migrations: Items()})
	jobs := make([]store.Job, 50)
	for i := range jobs {
		jobs[i] = put(int64(i), fmt.Sprint(i))
	}
	inOneBatch(t, db, jobs...)
	if n := len(ids(t, db)); n != 50 {
		t.Errorf("%d items, want 50", n)
	}
}

func testRowCap(t *testing.T, open Opener) {
	db := open(t, store.Options{Migrations: Items(), BatchRows: 10})
	resume := Pause(t, db)
	before := db.Stats().Batches
	var wg sync.WaitGroup
	for i := range 6 {
		job := put(int64(i), fmt.Sprint(i))
		job.Rows = 5
		wg.Add(1)
		job.Applied = func(error) { wg.Done() }
		if err := db.Queue(job); err != nil {
			t.Fatal(err)
		}
	}
	resume()
	wg.Wait()
	if n := db.Stats().Batches - before; n != 3 {
		t.Errorf("30 rows at 10 a batch took %d batches", n)
	}
}

func testReadOneState(t *testing.T, open Opener) {
	db := open(t, store.Options{Migrations: Items()})
	mustWrite(t, db, put(1, "a"))
	err := db.Read(t.Context(), func(s *store.Snapshot) error {
		count := func() (n int64) {
			if _, err := s.Stmt(countItems).One(func(row *store.Stmt) { n = row.IntAt(0) }); err != nil {
				t.Error(err)
			}
			return n
		}
		before := count()
		mustWrite(t, db, put(2, "b"))
		if after := count(); before != 1 || after != 1 {
			t.Errorf("one read saw %d rows and then %d", before, after)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantIDs(t, db, 1, 2)
}

func testReadCannotWrite(t *testing.T, open Opener) {
	db := open(t, store.Options{Migrations: Items()})
	err := db.Read(t.Context(), func(s *store.Snapshot) error {
		_, err := s.Exec("INSERT INTO items (id) VALUES (?)", 1)
		return err
	})
	if err == nil {
		t.Error("a read wrote")
	}
	wantIDs(t, db)
	err = db.Read(t.Context(), func(*store.Snapshot) error { return errJob })
	if !errors.Is(err, errJob) {
		t.Errorf("the read's own error came back as %v", err)
	}
}

func testCallerLeaves(t *testing.T, open Opener) {
	db := open(t, store.Options{Migrations: Items()})
	resume := Pause(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	applied := make(chan error, 1)
	job := put(1, "a")
	job.Applied = func(err error) { applied <- err }
	returned := make(chan error)
	go func() { returned <- db.Write(ctx, job) }()
	for db.Depth() < 2 { // the paused job and this one
		select {
		case err := <-returned:
			t.Fatalf("returned early: %v", err)
		default:
			runtime.Gosched()
		}
	}
	cancel()
	err := <-returned
	wantKind(t, err, fault.Unavailable)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not hold the context's error", err)
	}
	resume()
	if err := <-applied; err != nil {
		t.Errorf("the job went on and failed: %v", err)
	}
	wantIDs(t, db, 1)
	wantKind(t, db.Write(ctx, put(2, "b")), fault.Unavailable)
	wantIDs(t, db, 1)
}

func testReadInterrupted(t *testing.T, open Opener) {
	db := open(t, store.Options{Migrations: Items(), Readers: 1})
	ctx, cancel := context.WithCancel(t.Context())
	err := db.Read(ctx, func(s *store.Snapshot) error {
		cancel()
		_, err := s.Stmt("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c").One(func(*store.Stmt) {})
		return err
	})
	wantKind(t, err, fault.Unavailable)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not hold the context's error", err)
	}
	wantIDs(t, db) // the only connection works again
	err = db.Read(t.Context(), func(*store.Snapshot) error {
		return db.Read(ctx, func(*store.Snapshot) error { t.Error("one connection was lent twice"); return nil })
	})
	wantKind(t, err, fault.Unavailable)
}

func testFullQueue(t *testing.T, open Opener) {
	db := open(t, store.Options{Migrations: Items(), Queue: 3})
	resume := Pause(t, db)
	settled := make(chan error, 2)
	for i := range 2 {
		job := put(int64(i), fmt.Sprint(i))
		job.Applied = func(err error) { settled <- err }
		if err := db.Queue(job); err != nil {
			t.Fatal(err)
		}
	}
	err := db.Queue(put(9, "x"))
	wantKind(t, err, fault.Unavailable)
	if fault.RetryAfter(err) <= 0 {
		t.Error("the refusal does not say when to come back")
	}
	wantKind(t, db.Write(t.Context(), put(9, "x")), fault.Unavailable)
	wantKind(t, db.Ready(), fault.Unavailable)
	resume()
	if err := errors.Join(<-settled, <-settled); err != nil {
		t.Error(err)
	}
	for db.Depth() > 0 {
		runtime.Gosched() // the last one is being settled
	}
	mustWrite(t, db, put(3, "c"))
	wantIDs(t, db, 0, 1, 3)
	if err := db.Ready(); err != nil {
		t.Errorf("not ready after the queue was written: %v", err)
	}
	if s := db.Stats(); s.Refused != 2 || s.Depth != 0 {
		t.Errorf("stats are %+v", s)
	}
}

func testCloseDrains(t *testing.T, open Opener) {
	db := open(t, store.Options{Migrations: Items()})
	resume := Pause(t, db)
	for i := range 10 {
		if err := db.Queue(put(int64(i), fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	wantKind(t, db.Close(gone), fault.Unavailable)
	resume()
	if err := db.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantKind(t, db.Queue(put(11, "x")), fault.Unavailable)
	wantKind(t, db.Read(t.Context(), func(*store.Snapshot) error { return nil }), fault.Unavailable)
	if n := len(ids(t, open(t, store.Options{Migrations: Items()}))); n != 10 {
		t.Errorf("%d items after closing, want 10", n)
	}
}

func testEqualRow(t *testing.T, open Opener) {
	db := open(t, store.Options{Migrations: Items()})
	text := db.Dialect().Upsert("items", []string{"id"}, []string{"name", "n", "body"})
	set := func(name any, body []byte) (changed int64) {
		mustWrite(t, db, store.Job{Run: func(tx *store.Tx) (err error) {
			changed, err = tx.Exec(text, 1, name, 7, body)
			return err
		}})
		return changed
	}
	if set("a", []byte("x")) != 1 {
		t.Error("a new row was not written")
	}
	before := db.Stats()
	if set("a", []byte("x")) != 0 {
		t.Error("an equal row was written")
	}
	if after := db.Stats(); after.Syncs != before.Syncs || after.Bytes != before.Bytes {
		t.Errorf("an equal row cost %d syncs and %d bytes", after.Syncs-before.Syncs, after.Bytes-before.Bytes)
	}
	if set("a", []byte("y")) != 1 || set(nil, []byte("y")) != 1 || set("b", nil) != 1 || set("b", nil) != 0 {
		t.Error("a changed row was not written, or an equal one was")
	}
}

func testOverlap(t *testing.T, open Opener) {
	db := open(t, store.Options{Migrations: Items()})
	for i := range 3 {
		mustWrite(t, db, put(int64(i), fmt.Sprint(i)))
	}
	var pairs []string
	err := db.Read(t.Context(), func(s *store.Snapshot) error {
		const text = "SELECT id FROM items ORDER BY id"
		outer := s.Query(text)
		for outer.Next() {
			inner := s.Query(text)
			for inner.Next() {
				pairs = append(pairs, fmt.Sprint(outer.IntAt(0), inner.IntAt(0)))
			}
			if inner.Err() != nil {
				return inner.Err()
			}
		}
		return outer.Err()
	})
	if got := strings.Join(pairs, ","); err != nil || got != "0 0,0 1,0 2,1 0,1 1,1 2,2 0,2 1,2 2" {
		t.Errorf("pairs are %s, %v", got, err)
	}
}

func testBadStatement(t *testing.T, open Opener) {
	db := open(t, store.Options{Migrations: Items()})
	for _, text := range []string{"SELEC 1", "", "SELECT 1; SELECT 2", "SELECT nothing FROM nowhere"} {
		err := db.Write(t.Context(), store.Job{Run: func(tx *store.Tx) error {
			s := tx.Query(text, 1)
			if s.Next() {
				t.Errorf("%q has a row", text)
			}
			return errors.Join(s.Err(), s.Close())
		}})
		wantKind(t, err, fault.Internal)
	}
	wantKind(t, db.Write(t.Context(), store.Job{Run: func(tx *store.Tx) error {
		_, err := tx.Exec(insertItem, 1, struct{}{}, 2)
		return err
	}}), fault.Internal)
	for _, args := range [][]any{{1, "b", 3, 4}, {1, "b"}, {}} { // too many, and values left from the last run
		wantKind(t, db.Write(t.Context(), store.Job{Run: func(tx *store.Tx) error {
			if _, err := tx.Exec(insertItem, 5, "b", 5); err != nil {
				t.Error(err)
			}
			_, err := tx.Exec(insertItem, args...)
			return err
		}}), fault.Internal)
	}
	wantKind(t, db.Read(t.Context(), func(s *store.Snapshot) error {
		rows := s.Query("SELECT id FROM items WHERE id = ?")
		if rows.Next() {
			t.Error("a statement ran without its parameter")
		}
		return rows.Err()
	}), fault.Internal)
	mustWrite(t, db, put(1, "a"))
	wantIDs(t, db, 1)
}

func testManyRows(t *testing.T, open Opener) {
	db := open(t, store.Options{Migrations: Items()})
	insert := store.NewInsert(db.Dialect(), "items", "id", "n")
	for _, rows := range []int{0, 1, 31, 32, 33, 100} {
		mustWrite(t, db, store.Job{Rows: rows, Run: func(tx *store.Tx) error {
			if _, err := tx.Exec("DELETE FROM items"); err != nil {
				return err
			}
			return insert.Rows(tx, rows, func(s *store.Stmt, i int) { s.Int(int64(i)).Int(int64(i * i)) })
		}})
		err := db.Read(t.Context(), func(s *store.Snapshot) error {
			_, err := s.Stmt("SELECT count(*), coalesce(sum(n = id * id), 0) FROM items").One(func(row *store.Stmt) {
				if row.IntAt(0) != int64(rows) || row.IntAt(1) != int64(rows) {
					t.Errorf("%d rows became %d, %d of them right", rows, row.IntAt(0), row.IntAt(1))
				}
			})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	err := db.Write(t.Context(), store.Job{Run: func(tx *store.Tx) error {
		return insert.Rows(tx, 40, func(s *store.Stmt, i int) { s.Int(1).Int(2) })
	}})
	wantKind(t, err, fault.Conflict)
}

func testManyCallers(t *testing.T, open Opener) {
	db := open(t, store.Options{Migrations: Items()})
	const callers, each = 32, 20
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				id := int64(c*each + i)
				if err := db.Write(t.Context(), put(id, fmt.Sprint(id))); err != nil {
					t.Errorf("write %d: %v", id, err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(ids(t, db)); n != callers*each {
		t.Errorf("%d items, want %d", n, callers*each)
	}
	s := db.Stats()
	if s.Jobs != callers*each || s.Failed != 0 || s.Depth != 0 {
		t.Errorf("stats are %+v", s)
	}
}
