package gateway

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"holdfast/fault"
)

// The bounds of the queue of events: what comes on top is dropped and counted.
const (
	trailEvents = 5_000    // events that wait
	trailBytes  = 64 << 20 // bytes that wait
	trailParts  = 16       // queues, by merchant: the events of one stay in order, and no lock is everybody's
	trailHigh   = 2_048    // events that are not waited with any longer
	trailLooks  = 4        // questions answered at once: each may hold tens of MB and a connection that reads
	trailSpare  = 1 << 20  // bytes of a queue that are kept for the next events
)

// trail takes events off the hot path: post copies them into a queue, and one goroutine of the service stores them.
type trail struct {
	seed    maphash.Seed
	parts   [trailParts]trailPart
	waiting atomic.Int64       // events in the parts
	held    atomic.Int64       // their bytes
	dropped atomic.Uint64      // since the start: the queue was full
	wake    chan struct{}      // 1 deep: something waits
	high    chan struct{}      // 1 deep: enough waits
	asks    chan chan struct{} // closed by the goroutine when everything posted before is stored
	looks   chan struct{}      // as deep as questions about the past may run at once
}

// trailPart is one of the queues.
type trailPart struct {
	mu      sync.Mutex // guards records; held to copy one event
	records []byte     // encoded one after the other, each after its merchant; see event_code.go
	spare   []byte     // what records will be next; touched by the goroutine that takes, under mu
	_       [64]byte   // keeps the locks of two parts on different cache lines
}

func newTrail() *trail {
	return &trail{seed: maphash.MakeSeed(), wake: make(chan struct{}, 1), high: make(chan struct{}, 1), asks: make(chan chan struct{}),
		looks: make(chan struct{}, trailLooks)}
}

// post hands a copy of e over and returns at once. It keeps nothing of e. When 5,000 events wait, e is dropped and counted.
func (t *trail) post(e *Event) {
	n := t.waiting.Add(1)
	if n > trailEvents || t.held.Load() > trailBytes {
		t.waiting.Add(-1)
		t.dropped.Add(1)
		return
	}
	p := &t.parts[maphash.String(t.seed, string(e.Merchant))%trailParts]
	p.mu.Lock()
	before := len(p.records)
	p.records = appendPosted(p.records, e)
	size := len(p.records) - before
	p.mu.Unlock()
	t.held.Add(int64(size))
	switch n {
	case 1:
		signal(t.wake)
	case trailHigh:
		signal(t.high)
	}
}

// take empties the queues: it calls visit with the records of each, which are good until visit returns. One goroutine calls it.
func (t *trail) take(visit func(records []byte)) {
	for i := range t.parts {
		p := &t.parts[i]
		p.mu.Lock()
		full := p.records
		p.records, p.spare = p.spare[:0], nil
		p.mu.Unlock()
		if len(full) > 0 {
			visit(full)
		}
		if cap(full) <= trailSpare {
			p.mu.Lock()
			p.spare = full
			p.mu.Unlock()
		}
	}
}

// settle notes that events have left the queue. Whoever was posted meanwhile did not see an empty queue, so the goroutine is
// woken for it here.
func (t *trail) settle(events, bytes int) {
	t.held.Add(-int64(bytes))
	if t.waiting.Add(-int64(events)) > 0 {
		signal(t.wake)
	}
}

// signal wakes whoever waits on c, now or next time.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// look waits for its turn to ask about the past; release gives it to the next. Unavailable when ctx ends first.
func (t *trail) look(ctx context.Context) (release func(), err error) {
	select {
	case t.looks <- struct{}{}:
		return func() { <-t.looks }, nil
	case <-ctx.Done():
		return nil, fault.Wrap("gateway.look", fault.Unavailable, ctx.Err(), "too many questions about the past wait")
	}
}
