package decision

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/fault"
)

// The write-behind queue. Decides append to their capsule's open batch; a batch goes to the storage when it is full, when
// it is as old as the batch window, or when somebody waits for it. One goroutine (run) closes the batches of all capsules
// whose window has passed as one write, so that quiet capsules share a sync.

// chargeBytes is the payload that counts as one record of the queue: larger records count more, so that the queue is
// bounded in memory as well.
const chargeBytes = 4096

// fullBytes is the payload at which a batch is closed whatever its number of records.
const fullBytes = 1 << 20

// batch is part of the decision log on its way to the disk. Its capsule's mu guards it.
type batch struct {
	capsule         *Capsule
	payload         []byte
	frame           *frame   // the newest in payload
	keys            []uint64 // of its records, in order: see recordKey
	events          []string // client-made ids
	firstMS, lastMS int64
	charge          int64
	queued          bool // handed to the storage; the payload is sealed and nobody changes it
	fate            *fate
}

// fate is what becomes of a batch. It outlives the batch, whose buffers are used again.
type fate struct {
	stored  atomic.Bool   // the storage's change took it; read by later changes of the same writer
	settled chan struct{} // closed once durable or lost; made when somebody waits, under the capsule's mu
	err     error         // why it was lost, set before settled is closed
}

// recordKey is a word to look for before an id is compared.
func recordKey(id string) uint64 {
	if ms, random, ok := parseID(id); ok {
		return serverKey(ms, random)
	}
	return HashText(id)
}

func serverKey(ms int64, random uint64) uint64 { return random | uint64(ms)<<48 }

// add appends a record. The caller holds the capsule's mu.
func (b *batch) add(d *draft) {
	if len(b.keys) == 0 {
		b.payload = append(b.payload[:0], payloadVersion)
		b.firstMS, b.lastMS = d.ms, d.ms
	}
	if b.frame != d.frame {
		b.payload = append(b.payload, d.frame.item...)
		b.frame = d.frame
	}
	b.payload = appendRecord(b.payload, d)
	if d.id != "" {
		b.events = append(b.events, d.id)
		b.keys = append(b.keys, recordKey(d.id))
	} else {
		b.keys = append(b.keys, serverKey(d.ms, d.random))
	}
	b.firstMS, b.lastMS = min(b.firstMS, d.ms), max(b.lastMS, d.ms)
	b.charge += d.charge
}

// find decodes the record of an id. The caller holds the capsule's mu.
func (b *batch) find(id string, key uint64) (Decision, bool, error) {
	for i, k := range b.keys {
		if k != key {
			continue
		}
		it := items{rest: b.items()}
		var body []byte
		var err error
		for range i + 1 {
			if body, err = it.next(); err != nil {
				return Decision{}, false, err
			}
		}
		h, err := readHead(body)
		if err != nil {
			return Decision{}, false, err
		}
		if w := want(id); h.is(&w) {
			d, err := decodeRecord(h, it.frame)
			return d, err == nil, err
		}
	}
	return Decision{}, false, nil
}

// items returns the payload's items, without the trailer once there is one.
func (b *batch) items() []byte {
	if b.queued {
		return b.payload[1 : len(b.payload)-trailerBytes]
	}
	return b.payload[1:]
}

// wait returns a channel that is closed once the batch is settled. The caller holds the capsule's mu.
func (b *batch) wait() <-chan struct{} {
	if b.fate.settled == nil {
		b.fate.settled = make(chan struct{})
	}
	return b.fate.settled
}

// queue is the service's side of the write-behind queue.
type queue struct {
	service *Service
	limit   int64
	charge  atomic.Int64                // of all records that are not settled
	refusal atomic.Pointer[fault.Error] // set once the service is closing or the storage has failed
	stall   stall                       // the storage takes nothing for now
	dirty   atomic.Pointer[Capsule]     // stack of capsules with something to hand over
	wake    chan struct{}               // the stack is no longer empty
	urgent  chan struct{}               // a batch is full: do not wait for the window
	idle    chan struct{}               // the charge has become 0 while closing
	later   atomic.Bool                 // the storage could not take a batch: come back after retryAfter

	recent  recent     // batches on disk that are still looked up in memory
	handing sync.Mutex // held from taking batches to their place in the storage's queue, so that a reward comes after its batch
	spare   sync.Pool  // of *batch
}

func (q *queue) open(s *Service) {
	q.service, q.limit = s, int64(s.options.QueueRecords)
	q.wake, q.urgent, q.idle = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
}

func (q *queue) backlog() int64 { return q.charge.Load() }

// errQueueFull is shared: a refusal under overload should cost nothing.
var errQueueFull = unavailable("decision.Decide", "the event queue is full; try again later")

// reserve takes room for a record, or says why there is none.
func (q *queue) reserve(charge int64) *fault.Error {
	if q.charge.Add(charge) > q.limit {
		q.release(charge)
		q.service.metrics.refused.Inc()
		return errQueueFull
	}
	if refusal := q.refusal.Load(); refusal != nil {
		q.release(charge)
		return refusal
	}
	if refusal := q.stall.refusal.Load(); refusal != nil {
		q.release(charge)
		q.service.metrics.refused.Inc()
		return refusal
	}
	return nil
}

// admits says whether a reward may go on.
func (q *queue) admits() *fault.Error {
	if refusal := q.refusal.Load(); refusal != nil {
		return refusal
	}
	if q.charge.Load() >= q.limit {
		return errQueueFull
	}
	return nil
}

func (q *queue) release(charge int64) {
	if q.charge.Add(-charge) == 0 && q.refusal.Load() != nil {
		signal(q.idle)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// push puts a capsule on the dirty stack. The caller holds its mu and has found that it was not there.
func (q *queue) push(c *Capsule) {
	for {
		top := q.dirty.Load()
		c.below = top
		if q.dirty.CompareAndSwap(top, c) {
			if top == nil {
				signal(q.wake)
			}
			return
		}
	}
}

// run hands over what the window has passed for, until ctx ends.
func (q *queue) run(ctx context.Context) {
	window := time.NewTimer(time.Hour)
	window.Stop()
	defer window.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.wake:
		case <-q.urgent:
			q.flush()
			continue
		}
		pause := q.service.options.BatchWindow
		if q.later.Swap(false) {
			pause = retryAfter
		}
		window.Reset(pause)
		select {
		case <-ctx.Done():
			return
		case <-window.C:
		case <-q.urgent:
			window.Stop()
		}
		q.flush()
	}
}

// flush hands over the batches of every dirty capsule as one write.
func (q *queue) flush() {
	q.handing.Lock()
	defer q.handing.Unlock()
	var batches []*batch
	for c := q.dirty.Swap(nil); c != nil; {
		c.mu.Lock()
		below := c.below
		c.below, c.dirty = nil, false
		batches = c.take(batches)
		c.mu.Unlock()
		c = below
	}
	q.hand(batches)
}

// flushCapsule hands over the batches of one capsule at once.
func (q *queue) flushCapsule(c *Capsule) {
	q.handing.Lock()
	defer q.handing.Unlock()
	c.mu.Lock()
	batches := c.take(nil)
	c.mu.Unlock()
	q.hand(batches)
}

// hand gives batches to the storage. What the storage cannot take now stays with its capsule and is tried again. The caller
// holds handing.
func (q *queue) hand(batches []*batch) {
	if len(batches) == 0 {
		return
	}
	w := &handover{queue: q, batches: batches}
	rows := 0
	for _, b := range batches {
		rows += 1 + len(b.events)
	}
	if err := q.service.storage.Queue(Write{Change: w.change, Applied: w.applied, Rows: rows}); err != nil {
		w.applied(err)
	}
}

// handover is one write of several batches.
type handover struct {
	queue   *queue
	batches []*batch
	draws   []*Capsule // whose reserved draws the change moves on
	ahead   []draws    // to what
}

// change stores the batches. Of one that fails nothing is kept, and no later reward may take its decisions for stored.
func (w *handover) change(tx Tx) error {
	w.draws, w.ahead = w.draws[:0], w.ahead[:0]
	err := w.store(tx)
	if err != nil {
		for _, b := range w.batches {
			b.fate.stored.Store(false)
		}
	}
	return err
}

// store appends every batch. That of a capsule which is gone is dropped: it was deleted after the decide.
func (w *handover) store(tx Tx) error {
	for _, b := range w.batches {
		c := b.capsule
		err := tx.AppendBatch(Batch{Capsule: c.key, FirstMS: b.firstMS, LastMS: b.lastMS, Count: len(b.keys),
			Payload: b.payload, Events: b.events})
		switch {
		case err != nil && fault.KindOf(err) == fault.NotFound:
			continue
		case err != nil:
			return err
		}
		b.fate.stored.Store(true)
		if err := w.moveDraws(tx, c); err != nil {
			return err
		}
	}
	return nil
}

// moveDraws reserves more draws of a capsule when its decides have come close to the end of those reserved.
func (w *handover) moveDraws(tx Tx, c *Capsule) error {
	d, due := c.drawsDue()
	if !due {
		return nil
	}
	w.draws, w.ahead = append(w.draws, c), append(w.ahead, d)
	return saveDraws(tx, c, d)
}

// applied settles the batches: durable, to be tried again, or lost for good.
func (w *handover) applied(err error) {
	q := w.queue
	if err != nil && fault.KindOf(err) == fault.Unavailable && fault.RetryAfter(err) > 0 {
		q.stall.seen(err)
		q.postpone(w.batches)
		return
	}
	if err != nil {
		q.fail(err)
	} else {
		q.stall.over()
	}
	for i, c := range w.draws {
		if err == nil {
			c.drawsReserved(w.ahead[i])
		}
	}
	for _, b := range w.batches {
		q.settle(b, err)
	}
}

// retryAfter is how long a batch waits when the storage cannot take it: its disk is full, or its own queue.
const retryAfter = 50 * time.Millisecond

// postpone gives batches back to their capsules.
func (q *queue) postpone(batches []*batch) {
	q.later.Store(true)
	for _, b := range batches {
		b.capsule.mu.Lock()
		b.fate.stored.Store(false)
		b.payload = b.payload[:len(b.payload)-trailerBytes]
		b.queued = false
		b.capsule.touch()
		b.capsule.mu.Unlock()
	}
}

// settle takes a batch out of its capsule and tells whoever waits, once everything that they may look at is in place.
func (q *queue) settle(b *batch, err error) {
	c, m, count := b.capsule, q.service.metrics, len(b.keys)
	stored := err == nil && b.fate.stored.Load()
	switch {
	case err != nil:
		m.lost.Add(float64(count))
	case stored:
		m.decisions.Add(float64(count))
		m.batches.Inc()
	}
	c.mu.Lock()
	c.forget(b)
	if stored {
		c.stored.addDecisions(int64(count), b.firstMS, b.lastMS)
	}
	if stored {
		c.recent = append(c.recent, b)
	}
	q.release(b.charge)
	b.fate.err = err
	if b.fate.settled != nil {
		close(b.fate.settled)
	}
	c.mu.Unlock()
	if !stored {
		q.recycle(b)
		return
	}
	q.giveUp(q.recent.keep(b))
}

// fail makes a storage error final: nothing is acknowledged after it.
func (q *queue) fail(err error) {
	refusal := &fault.Error{Op: "decision", Kind: fault.Unavailable, Err: err,
		Msg: "the decision log cannot be written; the server must be restarted"}
	if q.refusal.CompareAndSwap(nil, refusal) {
		q.service.log.Error("the decision log cannot be written, decides are refused from now on", "err", err)
	}
}

// drain refuses new records and waits until every accepted one is settled.
func (q *queue) drain(ctx context.Context) error {
	q.refusal.CompareAndSwap(nil, errClosing)
	q.flush()
	for q.charge.Load() > 0 {
		select {
		case <-q.idle:
		case <-ctx.Done():
			return fault.Wrap("decision.Close", fault.Unavailable, ctx.Err(), "the queue could not be committed in time")
		}
	}
	if refusal := q.refusal.Load(); refusal != errClosing {
		return refusal
	}
	return nil
}

// abandon counts what is still queued as lost. What the storage commits after all is then counted twice, on the safe side.
func (q *queue) abandon() {
	q.service.table.all(func(c *Capsule) {
		c.mu.Lock()
		defer c.mu.Unlock()
		lost := 0
		for _, b := range c.waiting {
			lost += len(b.keys)
		}
		if c.open != nil {
			lost += len(c.open.keys)
		}
		q.service.metrics.lost.Add(float64(lost))
	})
}

// spareBytes bounds the buffers that are kept for reuse.
const spareBytes = 256 << 10

// fresh returns an empty batch.
func (q *queue) fresh(c *Capsule) *batch {
	b, ok := q.spare.Get().(*batch)
	if !ok {
		b = new(batch)
	}
	b.capsule, b.fate = c, new(fate)
	return b
}

// recycle keeps a settled batch's buffers. Nobody refers to it any more: it has left its capsule.
func (q *queue) recycle(b *batch) {
	if cap(b.payload) > spareBytes {
		return
	}
	clear(b.events)
	*b = batch{payload: b.payload[:0], keys: b.keys[:0], events: b.events[:0]}
	q.spare.Put(b)
}

// chargeOf is what a record of about that many bytes counts in the queue.
func chargeOf(size int) int64 { return 1 + int64(size)/chargeBytes }
