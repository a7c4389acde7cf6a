package decision

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/fault"
)

// Options are what a Service needs; zero values take the defaults named.
type Options struct {
	Storage      Storage
	Log          *slog.Logger     // discards
	Now          func() time.Time // time.Now
	Entropy      func() uint64    // OS randomness; called by many goroutines
	QueueRecords int              // 65,536: decisions that may wait for the disk
	BatchRecords int              // 512: decisions of one log row
	BatchWindow  time.Duration    // 2 ms after the first record of a batch
	DurableWait  time.Duration    // 5 s
}

func (o *Options) fill() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.QueueRecords == 0 {
		o.QueueRecords = 65536
	}
	if o.BatchRecords == 0 {
		o.BatchRecords = 512
	}
	if o.BatchWindow == 0 {
		o.BatchWindow = 2 * time.Millisecond
	}
	if o.DurableWait == 0 {
		o.DurableWait = 5 * time.Second
	}
}

// Service answers for every capsule of one store.
type Service struct {
	options Options
	storage Storage
	log     *slog.Logger
	metrics *metrics

	table   table     // the loaded capsules
	queue   queue     // what waits for the disk
	scratch sync.Pool // of *scratch
	names   names     // of server-made ids

	loading  sync.Mutex // guards flights
	flights  map[CapsuleID]*flight
	sweeps   sweeps
	snapshot chan *Capsule // models due for a snapshot

	evaluating atomic.Int32 // evaluations that run
	closing    atomic.Bool
	spawns     sync.Mutex      // held to start a goroutine, and to end context, after which none starts
	context    context.Context // of the goroutines; ends in Close
	stop       context.CancelFunc
	running    sync.WaitGroup
}

// shards is how many parts the table of loaded capsules has: loading one copies a part, finding one takes no lock.
const shards = 64

type table struct {
	parts [shards]struct {
		mu       sync.Mutex // held to replace capsules
		capsules atomic.Pointer[map[CapsuleID]*Capsule]
	}
}

func shardOf(id CapsuleID) int {
	h := fnvText(fnvText(fnvText(uint64(fnvBasis), id.Capsule), id.Job), id.Tenant)
	return int(Finalize(h) % shards)
}

func (t *table) find(id CapsuleID) *Capsule {
	if m := t.parts[shardOf(id)].capsules.Load(); m != nil {
		return (*m)[id]
	}
	return nil
}

// set puts c in, or takes the id out when c is nil.
func (t *table) set(id CapsuleID, c *Capsule) {
	part := &t.parts[shardOf(id)]
	part.mu.Lock()
	defer part.mu.Unlock()
	next := map[CapsuleID]*Capsule{}
	if old := part.capsules.Load(); old != nil {
		for k, v := range *old {
			next[k] = v
		}
	}
	if c == nil {
		delete(next, id)
	} else {
		next[id] = c
	}
	part.capsules.Store(&next)
}

// all calls visit for every loaded capsule.
func (t *table) all(visit func(*Capsule)) {
	for i := range t.parts {
		if m := t.parts[i].capsules.Load(); m != nil {
			for _, c := range *m {
				visit(c)
			}
		}
	}
}

// names makes the random part of server-made ids. A counter goes through a secret bijection of 48 bits, so that no id
// of one process is made twice, however many fall into one millisecond.
type names struct {
	next     atomic.Uint64
	key, mul uint64
}

const mask48 = 1<<48 - 1

func (n *names) fill() {
	var b [24]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	n.next.Store(binary.LittleEndian.Uint64(b[:]))
	n.key = binary.LittleEndian.Uint64(b[8:]) & mask48
	n.mul = binary.LittleEndian.Uint64(b[16:]) | 1
}

func (n *names) random() uint64 {
	x := (n.next.Add(1) ^ n.key) & mask48
	x = x * n.mul & mask48
	x ^= x >> 25
	x = x * golden & mask48
	return x ^ x>>23
}

// Open starts the service on its storage. Its goroutines stop in Close.
func Open(ctx context.Context, o Options) (*Service, error) {
	o.fill()
	s := &Service{options: o, storage: o.Storage, log: o.Log, flights: map[CapsuleID]*flight{}, snapshot: make(chan *Capsule, 1024)}
	s.metrics = newMetrics(s)
	s.names.fill()
	s.scratch.New = func() any { return new(scratch) }
	s.queue.open(s)
	if err := s.sweeps.open(ctx, s); err != nil {
		return nil, err
	}
	s.context, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	for _, run := range []func(context.Context){s.queue.run, s.runSnapshots, s.runSweeps} {
		s.running.Go(func() { run(s.context) })
	}
	return s, nil
}

// Close refuses new work, commits what is queued, stops the goroutines and snapshots the models that learned since their
// last snapshot. When ctx ends before the queue is on disk, what is left in it is lost and the error says so.
func (s *Service) Close(ctx context.Context) error {
	if s.closing.Swap(true) {
		return nil
	}
	drained := s.queue.drain(ctx)
	s.spawns.Lock()
	s.stop()
	s.spawns.Unlock()
	s.running.Wait()
	if drained != nil {
		s.queue.abandon()
		return drained
	}
	var first error
	s.table.all(func(c *Capsule) {
		if err := c.saveAll(ctx); err != nil && first == nil {
			first = err
		}
	})
	return first
}

// fresh is a source of 64 random bits for one decision.
func (s *Service) fresh(from *entropy) uint64 {
	if s.options.Entropy != nil {
		return s.options.Entropy()
	}
	return from.next()
}

// entropy hands out OS randomness bought in blocks: one system call for 64 seeds.
type entropy struct {
	block [64]uint64
	left  int
}

func (e *entropy) next() uint64 {
	if e.left == 0 {
		var raw [8 * len(e.block)]byte
		_, _ = rand.Read(raw[:]) // documented never to fail
		for i := range e.block {
			e.block[i] = binary.LittleEndian.Uint64(raw[8*i:])
		}
		e.left = len(e.block)
	}
	e.left--
	return e.block[e.left]
}

func (s *Service) nowMS() int64 { return s.options.Now().UnixMilli() }

// unavailable is the refusal that a caller may repeat after a second.
func unavailable(op, msg string) *fault.Error {
	return &fault.Error{Op: op, Kind: fault.Unavailable, Msg: msg, RetryAfter: time.Second}
}

var errClosing = unavailable("decision", "the server is shutting down")

// spawn runs work on a goroutine that Close waits for; a closing service starts none.
func (s *Service) spawn(work func(ctx context.Context)) {
	s.spawns.Lock()
	defer s.spawns.Unlock()
	if s.context.Err() == nil {
		s.running.Go(func() { work(s.context) })
	}
}
