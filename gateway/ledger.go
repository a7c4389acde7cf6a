package gateway

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of the ledger.
const (
	snapshotLife   = 30 * time.Minute // how long feedback finds its decision
	generationLife = 5 * time.Minute  // what is forgotten at once
	ledgerShards   = 8                // each with a lock that an eighth of the merchants share, held to append 150 bytes
	chunkRecords   = 512              // decisions of one row
	chunkWindow    = 2 * time.Millisecond
	ledgerMost     = 4 << 20  // decisions remembered; beyond that the oldest are forgotten early, and counted
	ledgerBytes    = 64 << 20 // of records kept in memory; older ones are read from the store
)

// Chunk is one row of decision snapshots: up to 512 records (record.go) in time order.
type Chunk struct {
	ID              int64
	FirstMS, LastMS int64
	Count           int
	Payload         []byte
}

// ledger remembers decisions until feedback comes for them: an index by payment in generations that are dropped whole, over
// chunks of records that are written behind. Its goroutine hands chunks over 2 ms after their first record.
type ledger struct {
	storage Storage
	log     *slog.Logger
	seed    maphash.Seed
	shards  [ledgerShards]shard
	next    atomic.Int64 // chunk ids
	wake    chan struct{}

	memory   sync.Mutex // guards resident
	resident []*chunk   // whose payload is in memory, oldest first
	bytes    atomic.Int64
	early    atomic.Int64 // decisions forgotten before their time
	unsaved  atomic.Int64 // decisions whose chunk the store refused
	failing  atomic.Bool
}

// shard is a part of the ledger.
type shard struct {
	mu          sync.Mutex    // guards all below
	generations []*generation // newest first
	open        *chunk        // takes records; nil when empty
}

// generation indexes the decisions of five minutes.
type generation struct {
	startMS int64
	index   map[uint64]location
	more    map[uint64][]mark // outcomes beyond a payment's first
	chunks  map[uint32]*chunk
}

// location says where a decision's record is and what became of its first attempt. It holds no pointer, so that the collector
// need not look at millions of them.
type location struct {
	chunk uint32
	at    uint32
	mark  mark
}

// mark is one attempt's outcome as it was counted.
type mark struct {
	gateway uint32 // hash of its name; 0 for no outcome
	number  uint64 // of the push in its window; 0 when no window was touched
	effect  effect
}

// chunk is a row of records in memory.
type chunk struct {
	id              uint32
	firstMS, lastMS int64
	count           int
	payload         atomic.Pointer[[]byte] // nil when it is in the store only
	stored          atomic.Bool
	size            int64
}

func (l *ledger) start(storage Storage, log *slog.Logger) {
	l.storage, l.log = storage, log
	l.seed = maphash.MakeSeed()
	l.wake = make(chan struct{}, 1)
}

// payment is the hash under which a decision is found.
func (l *ledger) payment(merchant int64, id string) uint64 {
	return maphash.String(l.seed, id) ^ uint64(merchant)*0x9e3779b97f4a7c15
}

// attempt is the hash of a gateway's name, never 0.
func (l *ledger) attempt(g Name) uint32 { return uint32(maphash.String(l.seed, string(g))) | 1 }

func (l *ledger) shard(merchant int64) *shard {
	return &l.shards[uint64(merchant)*0x9e3779b97f4a7c15>>61]
}

// remember appends one decision. It does no I/O.
func (l *ledger) remember(rec *record) {
	c, first, full := l.shard(rec.merchant).append(l, rec)
	switch {
	case full:
		l.hand(c)
	case first:
		select {
		case l.wake <- struct{}{}:
		default: // it is awake
		}
	}
}

// append puts a decision into the open chunk and the index; first says that it began the chunk, full that it ended it.
func (sh *shard) append(l *ledger, rec *record) (c *chunk, first, full bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if first = sh.open == nil; first {
		sh.open = &chunk{id: uint32(l.next.Add(1)), firstMS: rec.timeMS}
		room := make([]byte, 0, 4096)
		sh.open.payload.Store(&room)
	}
	c = sh.open
	payload := *c.payload.Load()
	at := len(payload)
	payload = rec.appendTo(payload)
	c.payload.Store(&payload)
	c.lastMS, c.count = rec.timeMS, c.count+1
	sh.put(l, l.payment(rec.merchant, rec.payment), location{chunk: c.id, at: uint32(at)}, c)
	if full = c.count >= chunkRecords; full {
		sh.open = nil
	}
	return c, first, full
}

// put indexes a decision in the newest generation, which it begins when it is time. The caller holds the shard.
func (sh *shard) put(l *ledger, hash uint64, p location, c *chunk) {
	if len(sh.generations) == 0 || c.lastMS-sh.generations[0].startMS >= generationLife.Milliseconds() {
		sh.generations = append([]*generation{{startMS: c.lastMS, index: map[uint64]location{}, chunks: map[uint32]*chunk{}}}, sh.generations...)
	}
	g := sh.generations[0]
	if p.chunk != 0 {
		g.chunks[c.id] = c
	}
	g.index[hash] = p
	delete(g.more, hash)
	total := 0
	for i, g := range sh.generations {
		expired := i > 0 && sh.generations[i-1].startMS < c.lastMS-snapshotLife.Milliseconds()
		over := i > 0 && total+len(g.index) > ledgerMost/ledgerShards
		if expired || over {
			for _, lost := range sh.generations[i:] {
				if over {
					l.early.Add(int64(len(lost.index)))
				}
				for _, c := range lost.chunks {
					if c.stored.Load() { // another one is open, or on its way
						l.forget(c)
					}
				}
			}
			clear(sh.generations[i:])
			sh.generations = sh.generations[:i]
			return
		}
		total += len(g.index)
	}
}

// hand gives a full or aged chunk to the store. What the store refuses stays in memory alone.
func (l *ledger) hand(c *chunk) {
	payload := *c.payload.Load()
	c.size = int64(len(payload))
	row := Chunk{ID: int64(c.id), FirstMS: c.firstMS, LastMS: c.lastMS, Count: c.count, Payload: payload}
	l.keep(c)
	failed := func(err error) {
		l.unsaved.Add(int64(row.Count))
		if !l.failing.Swap(true) {
			l.log.Warn("decisions are remembered in memory only: the store does not take them", "error", err)
		}
	}
	err := l.storage.Queue(Write{Rows: 1, Change: func(tx Tx) error { return tx.AppendChunk(row) }, Applied: func(err error) {
		if err != nil {
			failed(err)
			return
		}
		c.stored.Store(true)
		l.failing.Store(false)
	}})
	if err != nil {
		failed(err)
	}
}

// keep counts a chunk's bytes and lets go of the oldest that are in the store.
func (l *ledger) keep(c *chunk) {
	l.bytes.Add(c.size)
	l.memory.Lock()
	defer l.memory.Unlock()
	l.resident = append(l.resident, c)
	for len(l.resident) > 1 {
		oldest := l.resident[0]
		if oldest.payload.Load() != nil { // otherwise its generation has gone
			if l.bytes.Load() <= ledgerBytes || !oldest.stored.Load() {
				break
			}
			l.forget(oldest)
		}
		l.resident[0] = nil
		l.resident = l.resident[1:]
	}
}

// forget drops a chunk's payload.
func (l *ledger) forget(c *chunk) {
	if c.payload.Swap(nil) != nil {
		l.bytes.Add(-c.size)
	}
}

// run hands over the chunks that are open, 2 ms after the first of them began.
func (l *ledger) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-l.wake:
		case <-ctx.Done():
			l.flush()
			return
		}
		timer.Reset(chunkWindow)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		l.flush()
	}
}

// flush hands over every open chunk.
func (l *ledger) flush() {
	for i := range l.shards {
		sh := &l.shards[i]
		sh.mu.Lock()
		c := sh.open
		sh.open = nil
		sh.mu.Unlock()
		if c != nil {
			l.hand(c)
		}
	}
}

// find returns the decision of a payment, nil when there is none or it is older than its life.
func (l *ledger) find(ctx context.Context, merchant int64, id string, nowMS int64) (*record, error) {
	hash := l.payment(merchant, id)
	sh := l.shard(merchant)
	sh.mu.Lock()
	g := sh.holder(hash)
	if g == nil {
		sh.mu.Unlock()
		return nil, nil
	}
	p := g.index[hash]
	c := g.chunks[p.chunk]
	sh.mu.Unlock()
	if c == nil {
		return nil, nil
	}
	payload, err := l.payload(ctx, c)
	if err != nil || payload == nil {
		return nil, err
	}
	rec := &record{}
	if err := rec.readFrom(payload, int(p.at)); err != nil {
		return nil, err
	}
	if rec.merchant != merchant || rec.payment != id || rec.timeMS < nowMS-snapshotLife.Milliseconds() {
		return nil, nil
	}
	return rec, nil
}

// payload returns a chunk's records, from the store when memory has let go of them.
func (l *ledger) payload(ctx context.Context, c *chunk) (payload []byte, err error) {
	if there := c.payload.Load(); there != nil {
		return *there, nil
	}
	err = l.storage.Read(ctx, func(v View) error {
		row, err := v.Chunk(int64(c.id))
		payload = row.Payload
		return err
	})
	return payload, err
}

// holder returns the newest generation that knows the payment. The caller holds the shard.
func (sh *shard) holder(hash uint64) *generation {
	for _, g := range sh.generations {
		if _, there := g.index[hash]; there {
			return g
		}
	}
	return nil
}

// claim runs judge with the mark of a payment's attempt at a gateway, the zero mark when it has none, and stores what judge
// returns. It reports false when the payment is not remembered or has too many attempts.
func (l *ledger) claim(merchant int64, payment string, g Name, judge func(was mark) mark) bool {
	hash, gw := l.payment(merchant, payment), l.attempt(g)
	sh := l.shard(merchant)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	gen := sh.holder(hash)
	if gen == nil {
		return false
	}
	p := gen.index[hash]
	if p.mark.gateway == 0 || p.mark.gateway == gw {
		p.mark = judge(p.mark)
		p.mark.gateway = gw
		gen.index[hash] = p
		return true
	}
	more := gen.more[hash]
	for i := range more {
		if more[i].gateway == gw {
			more[i] = judge(more[i])
			more[i].gateway = gw
			return true
		}
	}
	if len(more) >= MaxEligible {
		return false
	}
	fresh := judge(mark{})
	fresh.gateway = gw
	if gen.more == nil {
		gen.more = map[uint64][]mark{}
	}
	gen.more[hash] = append(more, fresh)
	return true
}

// load indexes the records of a stored chunk; the payload is read again when somebody asks.
func (l *ledger) load(row Chunk) error {
	c := &chunk{id: uint32(row.ID), firstMS: row.FirstMS, lastMS: row.LastMS, count: row.Count, size: int64(len(row.Payload))}
	c.stored.Store(true)
	var rec record
	for at := 0; at < len(row.Payload); {
		here := at
		if err := rec.readFrom(row.Payload, at); err != nil {
			return err
		}
		at = rec.end
		sh := l.shard(rec.merchant)
		sh.mu.Lock()
		sh.put(l, l.payment(rec.merchant, rec.payment), location{chunk: c.id, at: uint32(here)}, c)
		sh.mu.Unlock()
	}
	if l.next.Load() < row.ID {
		l.next.Store(row.ID)
	}
	return nil
}
