package load

import (
	"context"
	"sync/atomic"
	"time"
)

// worker is one connection's share of a run.
type worker struct {
	plan    Plan
	index   int
	begin   time.Time
	traffic Traffic
	tally   *Tally
	conn    *Conn
	open    atomic.Pointer[Conn] // the same, for the watcher that ends a cancelled run
	request []byte
	sent    int // requests so far, the place in the schedule
}

func newWorker(plan Plan, index int, begin time.Time) *worker {
	return &worker{plan: plan, index: index, begin: begin, traffic: plan.Traffic(index), tally: NewTally(plan.Kinds)}
}

// run sends until the duration is over, the traffic ends or ctx is done; an answer that is awaited then is still awaited,
// unless ctx is done.
func (w *worker) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		if c := w.open.Load(); c != nil {
			_ = c.net.SetDeadline(time.Unix(1, 0)) // wakes the reader; it then sees its error
		}
	})
	defer stop()
	defer w.hangUp()
	free := w.begin
	for ctx.Err() == nil {
		intended, ok := w.wait(ctx, free)
		if !ok {
			return
		}
		request, kind := w.traffic.Next()
		if request == nil {
			return
		}
		w.request = request
		free = w.one(ctx, kind, intended)
	}
}

// wait returns when the next request should go out, having waited for it; false when the run is over.
func (w *worker) wait(ctx context.Context, free time.Time) (time.Time, bool) {
	if w.plan.Rate <= 0 {
		if w.plan.Think > 0 && w.sent > 0 {
			if !w.sleep(ctx, w.plan.Think) {
				return time.Time{}, false
			}
			free = time.Now()
		}
		return free, w.plan.Duration == 0 || free.Sub(w.begin) < w.plan.Duration
	}
	place := float64(w.sent*w.plan.Workers+w.index) / w.plan.Rate
	after := time.Duration(place * float64(time.Second))
	if w.plan.Duration > 0 && after >= w.plan.Duration {
		return time.Time{}, false
	}
	intended := w.begin.Add(after)
	if early := intended.Sub(free); early > 0 {
		if !w.sleep(ctx, early) {
			return time.Time{}, false
		}
	}
	return intended, true
}

// sleep waits; false when the run was cancelled meanwhile.
func (w *worker) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// one sends the prepared request and returns when the worker became free again.
func (w *worker) one(ctx context.Context, kind int, intended time.Time) time.Time {
	w.sent++
	sent := intended
	if w.conn == nil || w.plan.Rate > 0 {
		if err := w.dial(ctx); err != nil {
			w.tally.fail(kind, err)
			return w.pause(ctx)
		}
		sent = time.Now()
	}
	answer, err := w.conn.Do(w.request, sent)
	done := time.Now()
	if err != nil {
		w.hangUp()
		if ctx.Err() == nil {
			w.tally.fail(kind, err)
			return done
		}
		w.tally.cancelled(kind)
		return done
	}
	w.tally.record(kind, answer, stamps{intended: intended, sent: sent, done: done, server: answer.Server})
	w.traffic.Seen(kind, answer)
	if answer.Close || w.plan.Shape == Churn {
		w.hangUp()
	}
	return done
}

func (w *worker) dial(ctx context.Context) error {
	if w.conn != nil {
		return nil
	}
	c, err := w.plan.Dial(ctx)
	if err != nil {
		return err
	}
	w.conn = NewConn(c, w.plan.Timeout)
	w.open.Store(w.conn)
	return nil
}

// pause keeps a worker that cannot connect from spinning.
func (w *worker) pause(ctx context.Context) time.Time {
	timer := time.NewTimer(10 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return time.Now()
}

func (w *worker) hangUp() {
	if w.conn != nil {
		w.open.Store(nil)
		_ = w.conn.Close() // nothing is buffered: an error here loses nothing
		w.conn = nil
	}
}
