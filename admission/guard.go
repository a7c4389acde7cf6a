package admission

import (
	"sync"
	"sync/atomic"
	"time"
)

// GuardOptions bounds how many requests run at once. Zero values take the defaults named.
type GuardOptions struct {
	Min     int           // 256: the limit never falls below; work that shares a disk sync needs company to be fast
	Max     int           // 4,096: where the limit starts, and never rises above
	Target  time.Duration // 1 s: a mean latency above it says that too much runs at once
	Waiting int           // 1,024: requests that may wait for a place, of all principals together
}

// window is how long latencies are gathered before the limit moves; fewWork is too few of them to judge by.
const (
	window  = 100 * time.Millisecond
	fewWork = 8
)

// guard keeps the number of requests in flight under a limit that follows measured latency: an eighth less after a window
// whose mean was over the target, a sixteenth more after one that was not and in which somebody found no place.
type guard struct {
	min, max, target int64
	limit            atomic.Int64
	inFlight         atomic.Int64
	waiting          atomic.Int64 // requests in queue; whoever frees a place looks here first
	crowded          atomic.Bool  // somebody found no place in this window

	sum, done, until atomic.Int64 // the window: nanoseconds, requests, and its end
	mean             atomic.Int64 // nanoseconds of one request, from the last window

	mu    sync.Mutex // guards queue
	queue queue
}

func newGuard(o GuardOptions) *guard {
	or := func(value, usual int) int {
		if value <= 0 {
			return usual
		}
		return value
	}
	g := &guard{min: int64(or(o.Min, 256)), max: int64(or(o.Max, 4096)), target: int64(o.Target)}
	g.max = max(g.max, g.min)
	if g.target <= 0 {
		g.target = int64(time.Second)
	}
	g.limit.Store(g.max)
	g.queue.init(or(o.Waiting, 1024))
	return g
}

// share returns how many may be in flight before a class finds no place: what lower classes leave free is there for
// higher ones at once.
func (g *guard) share(c Class) int64 {
	limit := g.limit.Load()
	switch c {
	case Critical:
		return limit
	case Normal:
		return limit - limit/16
	}
	return limit - limit/4
}

// occupy takes a place if the class has one free.
func (g *guard) occupy(c Class) bool {
	for {
		n := g.inFlight.Load()
		if n >= g.share(c) {
			return false
		}
		if g.inFlight.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// enter takes a place for the visit, waiting for its turn if need be.
func (g *guard) enter(v *visit) (verdict, error) {
	if g.waiting.Load() == 0 && g.occupy(v.request.Class) {
		return admitted, nil
	}
	g.crowded.Store(true)
	w, err := g.join(v)
	if err != nil {
		return refused, err
	}
	v.waited = true
	select {
	case <-w.called:
	case <-v.ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !w.settled {
		g.drop(w)
		return gaveUp, left(v.ctx)
	}
	if w.err != nil {
		return refused, w.err
	}
	if v.ctx.Err() != nil {
		g.vacate() // called and gone in the same moment: the place goes to the next
		return gaveUp, left(v.ctx)
	}
	return admitted, nil
}

// join puts the visit into the queue, or says why it may not wait. When the queue is full, someone who matters less, or a
// principal that has more waiting, makes room.
func (g *guard) join(v *visit) (*waiter, error) {
	now := v.request.Now
	if v.waited {
		now = time.Now()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	predicted := g.predict(v.request)
	if predicted > v.patience(now) || v.request.Patience == 0 {
		if g.waiting.Load() == 0 && g.occupy(v.request.Class) { // a place came free since it was refused one
			return settledWaiter(), nil
		}
		return nil, full(max(1, predicted))
	}
	if g.queue.full() {
		victim := g.queue.victim(v.request)
		if victim == nil {
			return nil, full(max(1, predicted))
		}
		g.drop(victim)
		victim.settle(full(max(1, predicted)))
	}
	w := &waiter{called: make(chan struct{}), class: v.request.Class}
	g.queue.push(w, v.request.Principal)
	g.waiting.Add(1)
	g.call() // a place may have come free between being refused one and standing in the queue
	return w, nil
}

// predict estimates how long a newcomer would wait: its turns and those of all who come before it, at the pace of late.
func (g *guard) predict(r Request) time.Duration {
	ahead := g.queue.ahead(r)
	return time.Duration(g.mean.Load() * int64(ahead+1) / max(1, g.share(r.Class)))
}

// drop takes w out of the queue. The caller holds mu.
func (g *guard) drop(w *waiter) {
	g.queue.remove(w)
	g.waiting.Add(-1)
}

// call gives free places to those who wait, in the queue's order. The caller holds mu.
func (g *guard) call() {
	for {
		w := g.queue.next()
		if w == nil || !g.occupy(w.class) {
			return
		}
		g.queue.turn(w)
		g.waiting.Add(-1)
		w.settle(nil)
	}
}

// vacate frees a place and calls the next. The caller holds mu.
func (g *guard) vacate() {
	g.inFlight.Add(-1)
	g.call()
}

// release ends one request that took as long as latency says. A place freed while nobody waits takes no lock.
func (g *guard) release(now int64, latency time.Duration) {
	g.inFlight.Add(-1)
	g.sum.Add(int64(latency))
	g.done.Add(1)
	if until := g.until.Load(); now >= until && g.until.CompareAndSwap(until, now+int64(window)) {
		g.adapt()
	}
	if g.waiting.Load() > 0 {
		g.mu.Lock()
		g.call()
		g.mu.Unlock()
	}
}

// adapt ends a window: one caller at a time, by the swap of its end.
func (g *guard) adapt() {
	done := g.done.Load()
	if done < fewWork {
		return // the window goes on
	}
	mean := g.sum.Swap(0) / done
	g.done.Add(-done)
	g.mean.Store(mean)
	limit := g.limit.Load()
	switch crowded := g.crowded.Swap(false); {
	case mean > g.target:
		g.limit.Store(max(g.min, limit-max(1, limit/8)))
	case crowded:
		g.limit.Store(min(g.max, limit+max(1, limit/16)))
	}
}
