package store

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"holdfast/fault"
)

// writer owns the one connection that changes the database. Everything below runs on its goroutine.
type writer struct {
	db       *DB
	conn     *conn
	backlog  []*entry // taken from the queue, not yet in a batch
	batch    []*entry
	answered int // callers woken after the last batch: the ones worth waiting for
	timer    *time.Timer
	copied   int // pages in the log at the last checkpoint, 0 since the log was started anew
	nextBig  int // pages in the log at which its readers are next waited for
}

// errPanic marks a job or a callback that panicked.
var errPanic = errors.New("panic")

func (w *writer) run() {
	defer close(w.db.stopped)
	defer w.close()
	for w.fill() {
		w.settle(w.commit())
		if w.db.failed.Load() == nil {
			w.checkpoint()
		}
		if w.db.failed.Load() != nil {
			w.refuseForever()
			return
		}
	}
}

// fill waits for work and closes the next batch: at the row cap, or when nothing more is to be had. It returns false
// when the store is closed and the queue is written.
func (w *writer) fill() bool {
	w.batch = w.batch[:0]
	for len(w.backlog) == 0 {
		closed := w.take()
		if len(w.backlog) > 0 {
			break
		}
		if closed {
			return false
		}
		<-w.db.wake
	}
	w.linger()
	rows := 0
	taken := 0
	for _, e := range w.backlog {
		if rows >= w.db.opts.BatchRows {
			break
		}
		rows += max(1, e.job.Rows)
		w.batch = append(w.batch, e)
		taken++
	}
	rest := copy(w.backlog, w.backlog[taken:])
	clear(w.backlog[rest:])
	w.backlog = w.backlog[:rest]
	w.db.metrics.observeBatch(len(w.batch), rows)
	return true
}

// take moves the whole queue into the backlog under one lock and reports whether the store was closed.
func (w *writer) take() bool {
	db := w.db
	db.mu.Lock()
	if len(w.backlog) == 0 {
		w.backlog, db.queue = db.queue, w.backlog[:0]
	} else {
		w.backlog = append(w.backlog, db.queue...)
		clear(db.queue)
		db.queue = db.queue[:0]
	}
	closed := db.closed
	db.mu.Unlock()
	return closed
}

// linger gives the callers answered after the last batch a moment to come back, so that closed-loop callers share one
// sync instead of alternating between two. With one caller or none there is nobody to wait for.
func (w *writer) linger() {
	w.take()
	want := min(w.answered, w.db.opts.BatchRows)
	w.answered = 0
	if want <= 1 || w.db.opts.Linger < 0 || len(w.backlog) >= want {
		return
	}
	w.timer.Reset(w.db.opts.Linger)
	defer w.timer.Stop()
	for len(w.backlog) < want {
		select {
		case <-w.db.wake:
			if w.take() {
				return
			}
		case <-w.timer.C:
			w.take()
			return
		}
	}
}

// commit runs the batch in one transaction. A nil return means that every entry without an error of its own is durable;
// any other error is the outcome of the whole batch.
func (w *writer) commit() error {
	db := w.db
	if err := db.failed.Load(); err != nil {
		return err
	}
	if err := db.checkFloor(); err != nil {
		return err
	}
	began := time.Now()
	if err := w.conn.begin(); err != nil {
		return w.grave(err)
	}
	tx := &Tx{session{conn: w.conn}}
	for _, e := range w.batch {
		if err := w.runJob(tx, e); err != nil {
			w.conn.rollback()
			return w.grave(err)
		}
	}
	if err := w.conn.commit(); err != nil {
		w.conn.rollback()
		return w.grave(err)
	}
	db.metrics.observeCommit(time.Since(began))
	return nil
}

// runJob runs one job under a savepoint. The returned error concerns the whole batch; the job's own is kept in e.
func (w *writer) runJob(tx *Tx, e *entry) error {
	if err := w.conn.savepoint(); err != nil {
		return err
	}
	e.err = w.guard(func() error { return e.job.Run(tx) })
	w.conn.resetOpen()
	if broken := w.conn.takeBroken(); broken != nil {
		return broken
	}
	if w.conn.autocommit() {
		// SQLite ended the transaction by itself, and with it the jobs before this one.
		return errors.Join(errLostTransaction, e.err)
	}
	if e.err != nil {
		if err := w.conn.rollbackTo(); err != nil {
			return err
		}
	}
	return w.conn.release()
}

var errLostTransaction = errors.New("the database ended the transaction by itself")

// guard turns a panic of fn into an error that keeps the stack for the log.
func (w *writer) guard(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.Wrap("store.Write", fault.Internal, fmt.Errorf("%w: %v\n%s", errPanic, r, debug.Stack()), "")
			w.db.opts.Log.Error("store: a job panicked", "err", err)
		}
	}()
	return fn()
}

// grave decides what an error of the whole batch means: a full or busy disk or a lack of memory refuses this batch,
// anything else is final.
func (w *writer) grave(err error) error {
	switch diskKind(err) {
	case diskFull:
		w.db.metrics.diskFull.Add(1)
		return fullError(err)
	case diskBusy:
		return &fault.Error{Op: "store", Kind: fault.Unavailable, Err: err, RetryAfter: time.Second,
			Msg: "another program is writing to the database"}
	case diskMemory:
		return &fault.Error{Op: "store", Kind: fault.Unavailable, Err: err, RetryAfter: time.Second,
			Msg: "the database ran out of memory"}
	}
	return w.db.fail(err)
}

// fail makes err final and returns what callers are told from now on. OnFatal is called by the writer once the batch
// has been settled.
func (db *DB) fail(err error) error {
	final := &fault.Error{Op: "store", Kind: fault.Unavailable, Err: err,
		Msg: "the store is read-only after a storage error; the server must be restarted"}
	if db.failed.CompareAndSwap(nil, final) {
		db.opts.Log.Error("store: final storage error, read-only from now on", "err", err, "path", db.opts.Path)
	}
	return db.failed.Load()
}

// settle tells every job of the batch its outcome, in commit order: first all callbacks, then all callers.
func (w *writer) settle(batchErr error) {
	w.apply(w.batch, batchErr)
	w.wakeCallers(w.batch)
}

func (w *writer) apply(batch []*entry, batchErr error) {
	for _, e := range batch {
		if batchErr != nil {
			e.err = batchErr
		}
		if e.job.Applied == nil {
			continue
		}
		if err := w.guard(func() error { e.job.Applied(e.err); return nil }); err != nil {
			_ = w.db.fail(err)
		}
	}
}

func (w *writer) wakeCallers(batch []*entry) {
	failed := 0
	for i, e := range batch {
		if e.err != nil {
			failed++
		}
		w.db.depth.Add(-1)
		if e.done != nil {
			e.done <- e.err
			w.answered++
		}
		batch[i] = nil
	}
	w.db.metrics.settled(len(batch)-failed, failed)
}

// refuseForever is the writer after a final error: it refuses what was accepted before, says so once, and goes on
// refusing what still slips in until the store is closed.
func (w *writer) refuseForever() {
	final := w.db.failed.Load()
	for told := false; ; told = true {
		closed := w.take()
		w.apply(w.backlog, final)
		w.wakeCallers(w.backlog)
		w.backlog = w.backlog[:0]
		if !told && w.db.opts.OnFatal != nil {
			w.db.opts.OnFatal(final)
		}
		if closed {
			return
		}
		<-w.db.wake
	}
}

// checkpoint moves the log into the database file each time it has grown by the given number of pages. It runs after the
// callers were answered, so only the next batch waits for it. SQLite's own automatic checkpoint would run inside the
// commit, swallow its errors, and under readers that keep the log from starting anew run again with every commit.
func (w *writer) checkpoint() {
	pages, every := w.conn.logPages, w.db.opts.Checkpoint
	if pages < w.copied {
		w.copied, w.nextBig = 0, 8*every
	}
	if pages-w.copied < every {
		return
	}
	began := time.Now()
	w.copied = pages
	err := w.conn.checkpointPassive()
	if err == nil && pages >= max(w.nextBig, 8*every) {
		// Long readers keep the log growing. Wait a little for them, and not again before it has doubled.
		w.nextBig = 2 * pages
		err = w.conn.checkpointRestart()
	}
	w.db.metrics.observeCheckpoint(time.Since(began))
	// On a full disk the rows stay in the log; the floor or the next write tells the callers.
	if diskKind(err) != diskFine && diskKind(err) != diskFull {
		_ = w.db.fail(err)
	}
}

// close leaves the file checkpointed, unless the store has failed: then nothing touches the disk again.
func (w *writer) close() {
	w.timer.Stop()
	err := w.db.readers.close()
	if w.db.failed.Load() == nil {
		if ckpt := w.conn.checkpointTruncate(); diskKind(ckpt) == diskBroken {
			_ = w.db.fail(ckpt)
		}
	}
	if err = errors.Join(err, w.conn.close()); err != nil {
		w.db.closeErr = fault.Wrap("store.Close", fault.Internal, err, "the database could not be closed")
	}
	w.db.release()
}
