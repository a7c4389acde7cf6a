// Package store is the floor every service stands on: one embedded SQLite database file, one writer with group commit,
// many readers, forward-only migrations, and the data folder around it (lock, key, backup, restore, check).
//
// What it promises:
//   - Write returns nil only after the job's rows are in the write-ahead log and the log is synced.
//   - One goroutine writes. It takes what is queued, runs every job under a savepoint inside one transaction, commits and
//     syncs once, calls Applied in commit order, and only then wakes the callers.
//   - A job that fails or panics is undone alone; the rest of its batch is not touched.
//   - A failed commit, sync or checkpoint is final: the store turns read-only, everything queued and everything later
//     fails, and OnFatal is called once. A failed sync is never tried again, because a second one may report success for
//     pages the kernel has already dropped.
//   - A full disk is not final: writes are refused before the limit (MinFree) and again when the file system says so, and
//     are accepted as soon as there is room.
//
// What it refuses to do: hold rules (a job decides, the store persists), retry, queue without a bound, or open a file
// that a newer program has written.
//
// Rows that would not change are not to be written: every changed page costs bytes and a sync even when it ends up the
// same. Upsert in dialect.go builds the statement that leaves an equal row alone, and a batch that changed no row is
// committed without a sync.
//
// Goroutines: Open starts one, the writer; Close stops it and waits. Nothing else runs in the background: checkpoints are
// made by the writer between batches, after the callers have been answered.
//
// Lock order: DB.mu guards the queue and nothing is called under it.
package store

import (
	"context"
	"io/fs"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3/vfs"

	"holdfast/fault"
)

// Options says which database to open and how. Path is required; the zero value of the rest is the default.
type Options struct {
	Path       string        // the database file; its folder must exist
	Migrations fs.FS         // goose files NNN_name.sql at the root; nil for none
	Queue      int           // most jobs accepted and not yet durable; default 8,192
	BatchRows  int           // a batch closes at this many rows; default 4,096
	Linger     time.Duration // how long to wait for callers that were just answered; default 100 µs, negative for never
	Readers    int           // most connections that read at once; default 4 per processor, 8 at least
	MinFree    int64         // bytes that must stay free on the disk; default 64 MiB, negative for no floor
	Checkpoint int           // pages the log grows by between two checkpoints; default 4,000 (16 MB)
	Patience   time.Duration // how long to wait for another program that writes to the file; default 5 s
	ReadOnly   bool          // open an existing file without a writer and without changing it
	Log        *slog.Logger  // default: discard
	OnFatal    func(error)   // called once, on the writer's goroutine, after a final error; must not block or call Close
	// Files replaces the operating system's files, to count or to fail them; nil for the real ones.
	Files vfs.VFS
	// Free replaces the question how many bytes the disk has left; nil for the real one.
	Free func() (int64, error)
}

func (o Options) withDefaults() Options {
	o.Queue = orDefault(o.Queue, 8192)
	o.BatchRows = orDefault(o.BatchRows, 4096)
	o.Linger = orDefault(o.Linger, 100*time.Microsecond)
	o.Readers = orDefault(o.Readers, max(8, 4*runtime.GOMAXPROCS(0)))
	o.MinFree = orDefault(o.MinFree, 64<<20)
	o.Checkpoint = orDefault(o.Checkpoint, 4000)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Free == nil {
		folder := filepath.Dir(o.Path)
		o.Free = func() (int64, error) { return freeBytes(folder) }
	}
	return o
}

func orDefault[T int | int64 | time.Duration](v, standard T) T {
	if v == 0 {
		return standard
	}
	return v
}

// Job is one unit of work for the writer.
type Job struct {
	// Rows is how many rows Run is about to write, for the batch's cap; less than 1 counts as 1.
	Rows int
	// Run does the work inside the batch's transaction. Its error, or its panic, undoes this job alone. It may look at
	// the database through tx, must not keep tx, and runs once at most.
	Run func(tx *Tx) error
	// Applied, when set, is called exactly once for every accepted job: with nil after the sync and before the caller is
	// woken, in commit order, or with the error that kept the job out of the database. It must not block; a panic in it is
	// final, since memory and disk would disagree.
	Applied func(err error)
}

// DB is an open database. Its methods may be called from any goroutine.
type DB struct {
	opts    Options
	vfsName string
	meter   *meter
	metrics *metrics
	readers *pool

	mu     sync.Mutex // guards queue and closed
	queue  []*entry
	closed bool

	wake    chan struct{} // 1 deep: there is something in the queue, or closed was set
	stopped chan struct{} // closed when the writer has returned
	depth   atomic.Int64  // accepted and not yet settled
	failed  atomic.Pointer[fault.Error]
	full    atomic.Bool // the floor was reached; asked again by the next caller
	once    sync.Once   // closes a store without a writer

	closeErr error // how closing went; read after stopped is closed
}

// entry is a job in the queue and the way back to its caller.
type entry struct {
	job  Job
	err  error
	done chan error // 1 deep; nil when nobody waits
}

var doneChannels = sync.Pool{New: func() any { return make(chan error, 1) }}

// Write hands job to the writer and waits until it is durable. It returns nil after the sync, the job's own error, or
// fault.Unavailable when the job was refused (queue full, disk full, store read-only or closed). When ctx ends first,
// Write returns fault.Unavailable around ctx's error at once and the job goes on: its outcome is unknown to the caller.
func (db *DB) Write(ctx context.Context, job Job) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap("store.Write", fault.Unavailable, err, "the caller left before the write was queued")
	}
	e := &entry{job: job, done: doneChannels.Get().(chan error)}
	if err := db.enqueue(e); err != nil {
		doneChannels.Put(e.done)
		return err
	}
	select {
	case err := <-e.done:
		doneChannels.Put(e.done)
		return err
	case <-ctx.Done():
		// The writer may still send on the channel, so it is not reused.
		return &fault.Error{Op: "store.Write", Kind: fault.Unavailable, Err: ctx.Err(), RetryAfter: time.Second,
			Msg: "the write was not confirmed in time; it may still happen"}
	}
}

// Queue hands job to the writer and returns at once: nil when it was accepted, fault.Unavailable when it was refused
// (queue full, disk full, store read-only or closed). Applied tells the outcome.
func (db *DB) Queue(job Job) error { return db.enqueue(&entry{job: job}) }

func (db *DB) enqueue(e *entry) error {
	if err := db.refusal(); err != nil {
		db.metrics.refused.Add(1)
		return err
	}
	db.mu.Lock()
	if db.closed || int(db.depth.Load()) >= db.opts.Queue {
		closed := db.closed
		db.mu.Unlock()
		db.metrics.refused.Add(1)
		if closed {
			return unavailable("the store is closed", 0)
		}
		return unavailable("the store's queue is full", time.Second)
	}
	db.depth.Add(1)
	db.queue = append(db.queue, e)
	first := len(db.queue) == 1
	db.mu.Unlock()
	if first {
		select {
		case db.wake <- struct{}{}:
		default:
		}
	}
	return nil
}

// refusal says why nothing can be written now, nil when it can.
func (db *DB) refusal() error {
	if err := db.failed.Load(); err != nil {
		return err
	}
	if db.opts.ReadOnly {
		return unavailable("the store was opened read-only", 0)
	}
	if db.full.Load() {
		return db.checkFloor()
	}
	return nil
}

// checkFloor compares what the disk has left with the floor and remembers the answer.
func (db *DB) checkFloor() error {
	if db.opts.MinFree < 0 {
		return nil
	}
	free, err := db.opts.Free()
	if err != nil {
		// A disk that cannot say how full it is will answer the write itself.
		return nil
	}
	if full := free < db.opts.MinFree; full != db.full.Swap(full) {
		db.opts.Log.Warn("store: disk floor", "full", full, "free_bytes", free, "floor_bytes", db.opts.MinFree,
			"path", db.opts.Path)
	}
	if free < db.opts.MinFree {
		return fullError(nil)
	}
	return nil
}

// Err returns the final error that turned the store read-only, nil while it writes.
func (db *DB) Err() error {
	if err := db.failed.Load(); err != nil {
		return err
	}
	return nil
}

// Ready returns nil when a write would be accepted now, and otherwise the reason it would not.
func (db *DB) Ready() error {
	if err := db.refusal(); err != nil {
		return err
	}
	if int(db.depth.Load()) >= db.opts.Queue {
		return unavailable("the store's queue is full", time.Second)
	}
	return nil
}

// Depth returns how many jobs are accepted and not yet settled.
func (db *DB) Depth() int { return int(db.depth.Load()) }

// Dialect returns the words of SQL that this database wants.
func (db *DB) Dialect() Dialect { return SQLite() }

// Path returns the database file's path as it was given to Open.
func (db *DB) Path() string { return db.opts.Path }

// Read runs fn on one consistent state of the database that includes everything acknowledged before the call. It waits
// for a free connection and stops with fault.Unavailable when ctx ends, also in the middle of a statement. fn must not
// keep snap. An error of fn is returned as it is.
func (db *DB) Read(ctx context.Context, fn func(snap *Snapshot) error) error {
	c, err := db.readers.take(ctx)
	if err != nil {
		return err
	}
	defer db.readers.put(c)
	db.metrics.reads.Add(1)
	return c.snapshot(ctx, fn)
}

// Close refuses further work, writes what was accepted, checkpoints and closes the file. When ctx ends before the queue
// is written, Close returns fault.Unavailable at once and the writer goes on in the background until it is done. Close
// may be called more than once. It waits for the reads that are running.
func (db *DB) Close(ctx context.Context) error {
	db.mu.Lock()
	db.closed = true
	db.mu.Unlock()
	if db.opts.ReadOnly {
		db.once.Do(func() {
			db.closeErr = db.readers.close()
			db.release()
			close(db.stopped)
		})
	}
	select {
	case db.wake <- struct{}{}:
	default:
	}
	select {
	case <-db.stopped:
	case <-ctx.Done():
		return fault.Wrap("store.Close", fault.Unavailable, ctx.Err(), "the queue was not written in time")
	}
	if err := db.Err(); err != nil {
		return err
	}
	return db.closeErr
}

func unavailable(msg string, after time.Duration) *fault.Error {
	return &fault.Error{Op: "store", Kind: fault.Unavailable, Msg: msg, RetryAfter: after}
}

func fullError(cause error) *fault.Error {
	return &fault.Error{Op: "store", Kind: fault.Unavailable, Err: cause, RetryAfter: 5 * time.Second,
		Msg: "the disk is full; free some space and writes are accepted again"}
}
