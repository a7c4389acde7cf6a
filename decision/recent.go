package decision

import "sync"

// recentBytes bounds the batches that are kept in memory after they are on disk. Most rewards come soon, and finding their
// decision here costs a twentieth of reading its batch.
const recentBytes = 32 << 20

// recentNamed is how many of a capsule's newest batches are searched for a client-made id, which does not say when it was
// made.
const recentNamed = 16

// recent is the kept batches of all capsules, oldest first. Each is also in its capsule's list, which is where it is found.
type recent struct {
	mu      sync.Mutex // guards what follows
	batches []*batch
	first   int // the oldest in batches; those before are gone
	bytes   int
}

// keep adds a batch and returns those to give up for it.
func (r *recent) keep(b *batch) (old []*batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches = append(r.batches, b)
	r.bytes += b.footprint()
	for r.bytes > recentBytes {
		gone := r.batches[r.first]
		r.batches[r.first] = nil
		r.first++
		r.bytes -= gone.footprint()
		old = append(old, gone)
	}
	if r.first > len(r.batches)/2 {
		n := copy(r.batches, r.batches[r.first:])
		clear(r.batches[n:])
		r.batches, r.first = r.batches[:n], 0
	}
	return old
}

// footprint is about the memory that a batch holds on to.
func (b *batch) footprint() int {
	n := 256 + cap(b.payload) + 8*cap(b.keys) + 16*cap(b.events)
	for _, id := range b.events {
		n += len(id)
	}
	return n
}

// readBatch tells a batch that was read from the log from another.
type readBatch struct {
	firstMS, lastMS int64
	size            int
}

func (b *batch) identity() readBatch { return readBatch{b.firstMS, b.lastMS, len(b.payload)} }

// keepRead keeps a batch that two rewards in a row had to read: when they come in about the order of their decisions, the
// rest of it is wanted too. The caller holds admin, without which an erase could come between the reading and the keeping.
func (c *Capsule) keepRead(b Batch) {
	id := readBatch{b.FirstMS, b.LastMS, len(b.Payload)}
	c.mu.Lock()
	again := c.read == id
	c.read = id
	c.mu.Unlock()
	if !again {
		return
	}
	one := c.service.queue.fresh(c)
	one.payload = append(one.payload[:0], b.Payload...)
	one.queued, one.firstMS, one.lastMS = true, b.FirstMS, b.LastMS
	one.addKeys()
	c.mu.Lock()
	for _, r := range c.recent {
		if r.identity() == id {
			c.mu.Unlock()
			c.service.queue.recycle(one)
			return
		}
	}
	c.recent = append(c.recent, one)
	c.mu.Unlock()
	c.service.queue.giveUp(c.service.queue.recent.keep(one))
}

// addKeys fills in the keys of a payload that a look-up has read through before, so that there is no error to meet.
func (b *batch) addKeys() {
	for it := (items{rest: b.items()}); ; {
		body, err := it.next()
		if body == nil || err != nil {
			return
		}
		h, err := readHead(body)
		if err != nil {
			return
		}
		key := serverKey(h.ms, h.random)
		if h.client != nil {
			key = recordKey(string(h.client))
		}
		b.keys = append(b.keys, key)
	}
}

// giveUp takes batches out of memory.
func (q *queue) giveUp(batches []*batch) {
	for _, b := range batches {
		b.capsule.drop(b)
		q.recycle(b)
	}
}

// drop takes a batch out of the capsule's list; it may have left it before.
func (c *Capsule) drop(b *batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, r := range c.recent {
		if r == b {
			copy(c.recent[i:], c.recent[i+1:])
			c.recent[len(c.recent)-1] = nil
			c.recent = c.recent[:len(c.recent)-1]
			return
		}
	}
}

// findRecent looks an id up among the batches that are on disk and still in memory. The caller holds mu.
func (c *Capsule) findRecent(id string, key uint64) (Decision, bool, error) {
	w := want(id)
	for i := len(c.recent) - 1; i >= 0; i-- {
		b := c.recent[i]
		switch {
		case w.server && (w.ms < b.firstMS || w.ms > b.lastMS):
			continue
		case !w.server && len(c.recent)-i > recentNamed:
			return Decision{}, false, nil
		}
		if d, ok, err := b.find(id, key); ok || err != nil {
			return d, ok, err
		}
	}
	return Decision{}, false, nil
}
