package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"holdfast/fault"
	"holdfast/store"
	"holdfast/store/storetest"
)

// bench is a store on a disk that fails on demand.
type bench struct {
	*store.DB
	tb    testing.TB
	disk  *storetest.Disk
	path  string
	fatal atomic.Int64 // calls of OnFatal
}

func newBench(tb testing.TB, o store.Options) *bench {
	tb.Helper()
	b := &bench{tb: tb, disk: storetest.NewDisk(), path: filepath.Join(tb.TempDir(), "items.db")}
	o.Path, o.Migrations, o.Files = b.path, storetest.Items(), b.disk
	o.OnFatal = func(err error) {
		if err == nil {
			tb.Error("OnFatal was called without an error")
		}
		b.fatal.Add(1)
	}
	b.DB = openStore(tb, o)
	return b
}

func item(id int) store.Job {
	return store.Job{Rows: 1, Run: func(tx *store.Tx) error {
		_, err := tx.Stmt("INSERT INTO items (id, name) VALUES (?, ?)").Int(int64(id)).Text(fmt.Sprint(id)).Exec()
		return err
	}}
}

// stored opens the file anew, on a sound disk, and returns the ids in it.
func stored(tb testing.TB, path string) map[int]bool {
	tb.Helper()
	db := openStore(tb, store.Options{Path: path, Migrations: storetest.Items()})
	got := storedIn(tb, db)
	if err := db.Close(context.Background()); err != nil {
		tb.Error(err)
	}
	return got
}

func storedIn(tb testing.TB, db *store.DB) map[int]bool {
	tb.Helper()
	got := map[int]bool{}
	err := db.Read(context.Background(), func(s *store.Snapshot) error {
		rows := s.Query("SELECT id FROM items")
		for rows.Next() {
			got[int(rows.IntAt(0))] = true
		}
		return rows.Err()
	})
	if err != nil {
		tb.Error(err)
	}
	return got
}

func wantUnavailable(tb testing.TB, err error) {
	tb.Helper()
	if fault.KindOf(err) != fault.Unavailable {
		tb.Errorf("error is %v, want one of kind unavailable", err)
	}
}

func TestFailedSyncIsFinal(t *testing.T) {
	b := newBench(t, store.Options{})
	if err := b.Write(t.Context(), item(1)); err != nil {
		t.Fatal(err)
	}
	resume := storetest.Pause(t, b.DB)
	told := make(chan error, 20)
	for i := range 20 {
		job := item(10 + i)
		job.Applied = func(err error) { told <- err }
		if err := b.Queue(job); err != nil {
			t.Fatal(err)
		}
	}
	b.disk.FailOnce(storetest.SyncLog, 1, syscall.EIO)
	resume()
	for range 20 {
		wantUnavailable(t, <-told)
	}
	err := b.Write(t.Context(), item(2)) // the disk would work again, and is not asked
	wantUnavailable(t, err)
	if fault.RetryAfter(err) != 0 {
		t.Error("a final refusal says when to come back")
	}
	wantUnavailable(t, b.Queue(item(3)))
	wantUnavailable(t, b.Ready())
	if b.Err() == nil {
		t.Error("the store does not tell its final error")
	}
	if got := storedIn(t, b.DB); len(got) != 1 || !got[1] {
		t.Errorf("readers see %v, want the acknowledged row alone", got)
	}
	syncs, writes := b.disk.Count(storetest.SyncLog)+b.disk.Count(storetest.SyncData), b.disk.Count(storetest.WriteData)
	if err := b.Close(t.Context()); err == nil {
		t.Error("closing a failed store succeeded")
	}
	if got := b.disk.Count(storetest.SyncLog) + b.disk.Count(storetest.SyncData); got != syncs {
		t.Errorf("%d syncs were tried after the failed one", got-syncs)
	}
	if got := b.disk.Count(storetest.WriteData); got != writes {
		t.Errorf("%d pages were written after the failed sync", got-writes)
	}
	if n := b.fatal.Load(); n != 1 {
		t.Errorf("OnFatal was called %d times", n)
	}
	if got := stored(t, b.path); !got[1] || got[2] || got[3] {
		t.Errorf("stored is %v", got)
	}
}

func TestFailedCheckpointIsFinal(t *testing.T) {
	b := newBench(t, store.Options{Checkpoint: 1})
	b.disk.Fail(storetest.SyncData, 1, syscall.EIO)
	if err := b.Write(t.Context(), item(1)); err != nil {
		t.Fatalf("the row was synced in the log, and its caller told %v", err)
	}
	var err error
	for i := 2; err == nil && i < 100; i++ { // the checkpoint runs after the answer
		err = b.Write(t.Context(), item(i))
	}
	wantUnavailable(t, err)
	if b.Err() == nil {
		t.Error("a checkpoint that cannot be synced is not final")
	}
	_ = b.Close(t.Context())
	if n := b.fatal.Load(); n != 1 {
		t.Errorf("OnFatal was called %d times", n)
	}
	if !stored(t, b.path)[1] {
		t.Error("the acknowledged row is gone")
	}
}

func TestPanicInAppliedIsFinal(t *testing.T) {
	b := newBench(t, store.Options{})
	job := item(1)
	job.Applied = func(error) { panic("memory and disk disagree") }
	if err := b.Write(t.Context(), job); err != nil {
		t.Errorf("the row is durable, and its caller was told %v", err)
	}
	wantUnavailable(t, b.Write(t.Context(), item(2)))
	_ = b.Close(t.Context())
	if n := b.fatal.Load(); n != 1 {
		t.Errorf("OnFatal was called %d times", n)
	}
	if got := stored(t, b.path); len(got) != 1 {
		t.Errorf("stored is %v", got)
	}
}

// TestEveryFault fails each operation in turn and holds the store to one rule: what was acknowledged is stored, and what
// is stored was asked for.
func TestEveryFault(t *testing.T) {
	ops := []storetest.Op{storetest.WriteLog, storetest.SyncLog, storetest.WriteData, storetest.SyncData, storetest.Truncate}
	errs := map[string]error{"EIO": syscall.EIO, "ENOSPC": sqlite3.FULL}
	for _, op := range ops {
		for name, err := range errs {
			for n := 1; n <= 6; n++ {
				t.Run(fmt.Sprintf("%s %d %s", op, n, name), func(t *testing.T) {
					oneFault(t, func(d *storetest.Disk) { d.FailOnce(op, n, err) })
				})
			}
		}
	}
}

func oneFault(t *testing.T, arm func(*storetest.Disk)) {
	b := newBench(t, store.Options{Checkpoint: 8})
	arm(b.disk)
	acked := map[int]bool{}
	for i := range 24 {
		final := b.fatal.Load() > 0
		switch err := b.Write(t.Context(), item(i)); {
		case err == nil && final:
			t.Errorf("write %d was acknowledged after a final error", i)
		case err == nil:
			acked[i] = true
		default:
			wantUnavailable(t, err)
		}
	}
	if closed := b.Close(t.Context()); (closed != nil) != (b.Err() != nil) {
		t.Errorf("closing says %v, the store %v", closed, b.Err())
	}
	got := stored(t, b.path)
	for id := range acked {
		if !got[id] {
			t.Errorf("%d was acknowledged and is not stored", id)
		}
	}
	for id := range got {
		if id < 0 || id >= 24 {
			t.Errorf("%d was never asked for", id)
		}
	}
	if b.Err() == nil && len(acked) < 23 {
		t.Errorf("only %d of 24 were acknowledged though the fault was not final", len(acked))
	}
}

func TestFullDiskRefusesAndRecovers(t *testing.T) {
	b := newBench(t, store.Options{Checkpoint: 1 << 20})
	if err := b.Write(t.Context(), item(1)); err != nil {
		t.Fatal(err)
	}
	b.disk.Limit(10_000)
	acked := []int{1}
	var err error
	for i := 2; err == nil; i++ {
		if err = b.Write(t.Context(), item(i)); err == nil {
			acked = append(acked, i)
		}
		if i > 50 {
			t.Fatal("a disk of 10,000 bytes takes 50 writes")
		}
	}
	wantUnavailable(t, err)
	if fault.RetryAfter(err) <= 0 {
		t.Error("the refusal does not say when to come back")
	}
	if err := b.Write(t.Context(), store.Job{Run: func(tx *store.Tx) error {
		_, err := tx.Exec("INSERT INTO items (id, body) VALUES (?, zeroblob(200000))", 777)
		return err
	}}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a large row on a full disk gave %v", err)
	}
	b.disk.Heal()
	if err := b.Write(t.Context(), item(1000)); err != nil {
		t.Fatalf("there is room again: %v", err)
	}
	acked = append(acked, 1000)
	if b.Stats().DiskFull == 0 {
		t.Error("the full disk was not counted")
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	got := stored(t, b.path)
	for _, id := range acked {
		if !got[id] {
			t.Errorf("%d was acknowledged and is not stored", id)
		}
	}
	if len(got) != len(acked) {
		t.Errorf("stored is %v, acknowledged were %v", got, acked)
	}
}

// What a disk says decides less than when it says it: without room a write is refused, and a sync is final.
func TestNoRoomIsFinalOnlyForASync(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO} {
		for op, final := range map[storetest.Op]bool{storetest.WriteLog: errno == syscall.EIO, storetest.SyncLog: true} {
			t.Run(fmt.Sprint(op, " ", errno), func(t *testing.T) {
				b := newBench(t, store.Options{})
				b.disk.FailOnce(op, 1, errno)
				wantUnavailable(t, b.Write(t.Context(), item(1)))
				if got := b.Err() != nil; got != final {
					t.Errorf("final is %v, want %v: %v", got, final, b.Err())
				}
				if err := b.Write(t.Context(), item(2)); (err != nil) != final {
					t.Errorf("the next write gave %v", err)
				}
			})
		}
	}
}

// A transaction larger than the page cache reaches the disk before its commit; the jobs before it in the batch are lost
// with it and must be told so.
func TestFullDiskInTheMiddleOfABatch(t *testing.T) {
	b := newBench(t, store.Options{})
	resume := storetest.Pause(t, b.DB)
	told := make(chan error, 2)
	first := item(1)
	first.Applied = func(err error) { told <- err }
	huge := store.Job{Applied: first.Applied, Run: func(tx *store.Tx) error {
		for i := range 200 {
			_, err := tx.Exec("INSERT INTO items (id, body) VALUES (?, zeroblob(1000000))", 100+i)
			if err != nil {
				return nil // a job that hides the error
			}
		}
		return nil
	}}
	for _, job := range []store.Job{first, huge} {
		if err := b.Queue(job); err != nil {
			t.Fatal(err)
		}
	}
	b.disk.Limit(1 << 20)
	resume()
	wantUnavailable(t, <-told)
	wantUnavailable(t, <-told)
	b.disk.Heal()
	if err := b.Write(t.Context(), item(2)); err != nil {
		t.Fatal(err)
	}
	if got := storedIn(t, b.DB); len(got) != 1 || !got[2] {
		t.Errorf("stored is %v", got)
	}
}

func TestFloorRefusesBeforeTheDiskIsFull(t *testing.T) {
	var free atomic.Int64
	free.Store(1 << 30)
	b := newBench(t, store.Options{MinFree: 1 << 20, Free: func() (int64, error) { return free.Load(), nil }})
	if err := b.Write(t.Context(), item(1)); err != nil {
		t.Fatal(err)
	}
	free.Store(1<<20 - 1)
	before := b.disk.Count(storetest.WriteLog)
	wantUnavailable(t, b.Write(t.Context(), item(2)))
	wantUnavailable(t, b.Queue(item(3))) // refused at the door from now on
	wantUnavailable(t, b.Ready())
	if n := b.disk.Count(storetest.WriteLog) - before; n != 0 {
		t.Errorf("%d writes below the floor", n)
	}
	free.Store(1 << 20)
	if err := b.Ready(); err != nil {
		t.Errorf("there is room again: %v", err)
	}
	if err := b.Write(t.Context(), item(4)); err != nil {
		t.Error(err)
	}
	if got := storedIn(t, b.DB); len(got) != 2 || !got[1] || !got[4] {
		t.Errorf("stored is %v", got)
	}
}

// A reader that stays keeps the log from starting anew; once it has left, the log stops growing.
func TestLongReaderDoesNotGrowTheLogForEver(t *testing.T) {
	b := newBench(t, store.Options{Checkpoint: 4})
	write := func(from, n int) {
		for i := range n {
			if err := b.Write(t.Context(), item(from+i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	logBytes := func() int64 {
		info, err := os.Stat(b.path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	write(0, 50)
	quiet := logBytes()
	err := b.Read(t.Context(), func(s *store.Snapshot) error {
		if _, err := s.Stmt("SELECT count(*) FROM items").One(func(*store.Stmt) {}); err != nil {
			return err
		}
		write(100, 50)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	grown := logBytes()
	if grown <= quiet {
		t.Errorf("the log has %d bytes under a reader and %d without: the reader did not hold it", grown, quiet)
	}
	write(200, 100)
	if now := logBytes(); now > grown+20*4200 {
		t.Errorf("the log went on growing from %d to %d bytes after the reader had left", grown, now)
	}
	if n := len(storedIn(t, b.DB)); n != 200 {
		t.Errorf("%d rows, want 200", n)
	}
}

// Another program that holds the file for writing is waited for and then named; nothing is final.
func TestAnotherWriterIsARefusal(t *testing.T) {
	b := newBench(t, store.Options{Patience: time.Millisecond})
	other, err := sqlite3.Open(b.path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	err = b.Write(t.Context(), item(1))
	wantUnavailable(t, err)
	if fault.RetryAfter(err) <= 0 {
		t.Error("the refusal does not say when to come back")
	}
	if err := other.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := b.Write(t.Context(), item(2)); err != nil {
		t.Error(err)
	}
	if got := storedIn(t, b.DB); len(got) != 1 || !got[2] {
		t.Errorf("stored is %v", got)
	}
}

func TestFloorUnknownIsNoFloor(t *testing.T) {
	b := newBench(t, store.Options{Free: func() (int64, error) { return 0, errors.New("no such call") }})
	if err := b.Write(t.Context(), item(1)); err != nil {
		t.Error(err)
	}
}

func TestAnswerComesAfterTheSync(t *testing.T) {
	b := newBench(t, store.Options{})
	release := b.disk.Hold(storetest.SyncLog)
	defer release()
	before := b.disk.Count(storetest.SyncLog)
	var applied atomic.Bool
	done := make(chan error, 1)
	job := item(1)
	job.Applied = func(error) { applied.Store(true) }
	go func() { done <- b.Write(context.Background(), job) }()
	for b.disk.Count(storetest.SyncLog) == before {
		select {
		case err := <-done:
			t.Fatalf("answered without a sync: %v", err)
		default:
		}
	}
	select {
	case err := <-done:
		t.Fatalf("answered before the sync had ended: %v", err)
	default:
	}
	if applied.Load() {
		t.Error("applied before the sync had ended")
	}
	if got := storedIn(t, b.DB); len(got) != 0 {
		t.Errorf("readers see %v before it is durable", got)
	}
	release()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestOneSyncPerBatch(t *testing.T) {
	b := newBench(t, store.Options{})
	for _, jobs := range []int{1, 10, 100} {
		resume := storetest.Pause(t, b.DB)
		var wg sync.WaitGroup
		for i := range jobs {
			job := item(jobs*1000 + i)
			wg.Add(1)
			job.Applied = func(error) { wg.Done() }
			if err := b.Queue(job); err != nil {
				t.Fatal(err)
			}
		}
		syncs, data := b.disk.Count(storetest.SyncLog), b.disk.Count(storetest.SyncData)
		before := b.Stats().Syncs
		resume()
		wg.Wait()
		if n := b.disk.Count(storetest.SyncLog) - syncs; n != 1 {
			t.Errorf("%d jobs in one batch cost %d syncs of the log", jobs, n)
		}
		if n := b.disk.Count(storetest.SyncData) - data; n != 0 {
			t.Errorf("%d jobs in one batch cost %d syncs of the database", jobs, n)
		}
		if n := b.Stats().Syncs - before; n != 1 {
			t.Errorf("the store's own count is %d", n)
		}
	}
}

// TestPowerCut cuts the power again and again under load: what was acknowledged before the cut is there after it, and
// the file is sound.
func TestPowerCut(t *testing.T) {
	b := newBench(t, store.Options{Checkpoint: 16})
	var mu sync.Mutex // guards acked
	acked := map[int]bool{}
	var next atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				id := int(next.Add(1))
				if err := b.Write(context.Background(), item(id)); err != nil {
					t.Errorf("write %d: %v", id, err)
					return
				}
				mu.Lock()
				acked[id] = true
				mu.Unlock()
			}
		})
	}
	folder := t.TempDir()
	for cut := range 20 {
		for before := next.Load(); next.Load() < before+7; {
			if t.Failed() {
				break
			}
			runtime.Gosched()
		}
		mu.Lock()
		known := make([]int, 0, len(acked))
		for id := range acked {
			known = append(known, id)
		}
		mu.Unlock()
		to := filepath.Join(folder, fmt.Sprint(cut))
		if err := b.disk.PowerCut(filepath.Dir(b.path), to, uint64(cut)); err != nil {
			t.Fatal(err)
		}
		got := stored(t, filepath.Join(to, "items.db"))
		for _, id := range known {
			if !got[id] {
				t.Errorf("cut %d: %d was acknowledged and is gone", cut, id)
			}
		}
		report, err := store.Check(t.Context(), to)
		if err != nil || len(report.Findings) > 0 {
			t.Errorf("cut %d: %v %v", cut, report.Findings, err)
		}
	}
	stop()
	wg.Wait()
}

// TestPowerCutCuts proves that the cut above is one: a row that is written and not yet synced may be lost.
func TestPowerCutCuts(t *testing.T) {
	b := newBench(t, store.Options{})
	release := b.disk.Hold(storetest.SyncLog)
	defer release()
	before := b.disk.Count(storetest.SyncLog)
	done := make(chan error, 1)
	go func() { done <- b.Write(context.Background(), item(1)) }()
	for b.disk.Count(storetest.SyncLog) == before {
		runtime.Gosched()
	}
	lost := 0
	folder := t.TempDir()
	for seed := range 10 {
		to := filepath.Join(folder, fmt.Sprint(seed))
		if err := b.disk.PowerCut(filepath.Dir(b.path), to, uint64(seed)); err != nil {
			t.Fatal(err)
		}
		if !stored(t, filepath.Join(to, "items.db"))[1] {
			lost++
		}
	}
	if lost == 0 {
		t.Error("no cut lost an unsynced row")
	}
	release()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
