package decision

import (
	"context"
	"encoding/json/v2"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/fault"
)

// Capsule is one decision point, loaded. Lock order: changing, admin, a stripe, apply, mu.
type Capsule struct {
	service *Service
	id      CapsuleID
	key     int64
	engine  atomic.Pointer[engine]

	// changing is held while a new spec or program is worked out from the one in force and made to take effect.
	changing sync.Mutex

	// admin is held for reading by what learns or saves the model (rewards, uploads, snapshots) until its change is applied,
	// and for writing by a change of the spec, the program or the logs, which thus never crosses one of them.
	admin  sync.RWMutex
	purges int64 // of the capsule's row; guarded by admin

	// stripes are held from the look-up of a client-made id to its place in the queue.
	stripes [64]sync.Mutex

	apply       sync.Mutex // held while the model learns and while it is copied; guards what follows
	appliedSeq  int64      // newest reward the model has seen
	savedAt     uint64     // version of the newest stored snapshot
	savedSeq    int64      // newest reward that it covers
	snapshotDue bool       // handed to the goroutine that saves

	mu      sync.Mutex // guards what follows, and replacing engine
	open    *batch     // takes records
	waiting []*batch   // closed, not settled, oldest first
	recent  []*batch   // on disk, still looked up here, those that came last at the end
	read    readBatch  // the batch that was read last
	dirty   bool       // on the queue's stack
	below   *Capsule   // next on that stack
	gone    bool       // deleted
	draws   draws
	stored  Stats // what is on disk

	events    filter // client-made ids
	publisher publisher
}

// draws counts the seeds of a capsule whose spec fixes them. Their number on disk is ahead of those used by at least the
// queue's bound whenever a batch is committed. A decision is acknowledged only once it is in that queue, so that a crash
// cannot lose more draws than that: after it the count skips ahead and never goes back, and no decide waits for the disk.
type draws struct {
	seeded   bool
	seed     uint64
	next     uint64 // k of the next draw
	reserved uint64 // on disk: a restart begins here
	asked    bool   // a first reservation is on its way
}

// take returns the next seed; ok is false when none is reserved.
func (d *draws) take() (seed uint64, ok bool) {
	if d.next >= d.reserved {
		return 0, false
	}
	seed = DecisionSeed(d.seed, d.next)
	d.next++
	return seed, true
}

var errDraws = unavailable("decision.Decide", "no draw of the fixed seed could be reserved on disk yet; try again later")

// drawsDue says whether more draws must be reserved, and which count to write.
func (c *Capsule) drawsDue() (draws, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, limit := c.draws, uint64(c.service.queue.limit)
	if !d.seeded || d.next+limit <= d.reserved {
		return d, false
	}
	d.reserved = d.next + 2*limit
	return d, true
}

// drawsReserved takes over a count that is on disk now.
func (c *Capsule) drawsReserved(d draws) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draws.seeded && c.draws.seed == d.seed {
		c.draws.reserved = max(c.draws.reserved, d.reserved)
	}
}

// requestDraws asks for a reservation when there is none, which is so only when loading could not make one.
func (c *Capsule) requestDraws() {
	c.mu.Lock()
	asked := c.draws.asked
	c.draws.asked = true
	d := c.draws
	c.mu.Unlock()
	if asked {
		return
	}
	d.reserved = d.next + 2*uint64(c.service.queue.limit)
	settled := func(err error) {
		c.mu.Lock()
		c.draws.asked = false
		c.mu.Unlock()
		if err == nil {
			c.drawsReserved(d)
		}
	}
	if err := c.service.storage.Queue(Write{Change: func(tx Tx) error { return saveDraws(tx, c, d) }, Applied: settled}); err != nil {
		settled(err)
	}
}

// saveDraws writes the reserved count unless the capsule's seed was changed meanwhile.
func saveDraws(tx Tx, c *Capsule, d draws) error {
	row, err := tx.Capsule(c.id)
	if fault.KindOf(err) == fault.NotFound && err != nil {
		return nil
	}
	if err != nil || row.Key != c.key || row.Seed != d.seed {
		return err
	}
	row.Draws = d.reserved
	return tx.SaveCapsule(row)
}

// ID names the capsule.
func (c *Capsule) ID() CapsuleID { return c.id }

// missing is the answer to whoever asks for a capsule that is not there.
func (c *Capsule) missing() error { return missing(c.id) }

func missing(id CapsuleID) error {
	return fault.New("decision.Capsule", fault.NotFound, "capsule %s not found", id)
}

// Spec is the stored text of the spec; it must not be changed.
func (c *Capsule) Spec() []byte { return c.engine.Load().spec.Text }

// Mode is the mode in force.
func (c *Capsule) Mode() Mode { return c.engine.Load().spec.Mode }

// Options are the ids of the actions that the spec declares, or else the graph, in order.
func (c *Capsule) Options() []string {
	actions := c.engine.Load().actions
	ids := make([]string, len(actions))
	for i := range actions {
		ids[i] = actions[i].ID
	}
	return ids
}

// Version is the number of rewards the model has learned from.
func (c *Capsule) Version() uint64 { return c.engine.Load().model.Updates() }

// Info describes the capsule.
func (c *Capsule) Info(ctx context.Context) (Info, error) {
	if c.isGone() {
		return Info{}, c.missing()
	}
	e := c.engine.Load()
	return Info{ID: c.id, Spec: e.spec.Text, ModelVersion: e.model.Updates(), Program: e.program, Stats: c.Stats(ctx)}, nil
}

// Stats counts what the capsule has, acknowledged but queued records included.
func (c *Capsule) Stats(context.Context) Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stored
	for _, b := range c.waiting {
		s.addDecisions(int64(len(b.keys)), b.firstMS, b.lastMS)
	}
	if c.open != nil && len(c.open.keys) > 0 {
		s.addDecisions(int64(len(c.open.keys)), c.open.firstMS, c.open.lastMS)
	}
	return s
}

func (s *Stats) addDecisions(n, firstMS, lastMS int64) {
	if s.Decisions == 0 {
		s.FirstMS, s.LastMS = firstMS, lastMS
	}
	s.Decisions += n
	s.FirstMS, s.LastMS = min(s.FirstMS, firstMS), max(s.LastMS, lastMS)
}

func rowStats(row *CapsuleRow) Stats {
	return Stats{Decisions: row.Decisions, Rewards: row.Rewards, FirstMS: row.FirstMS, LastMS: row.LastMS, LastRewardSeq: row.LastSeq}
}

// recount takes the counters from the capsule's row as a change left it. It belongs in that change's Applied: what is
// settled then is exactly what the row counts.
func (c *Capsule) recount(row *CapsuleRow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stored = rowStats(row)
}

// erased takes over the capsule's row as a change that removed records left it, and forgets what memory still knows of
// them. It belongs in that change's Applied, as recount does.
func (c *Capsule) erased(row *CapsuleRow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stored = rowStats(row)
	clear(c.recent)
	c.recent = c.recent[:0]
}

// touch puts the capsule on the queue's stack. The caller holds mu.
func (c *Capsule) touch() {
	if !c.dirty {
		c.dirty = true
		c.service.queue.push(c)
	}
}

// take appends to into the batches that the storage does not have yet, oldest first, and closes them. The caller holds mu
// and the queue's handing.
func (c *Capsule) take(into []*batch) []*batch {
	if c.open != nil {
		c.waiting, c.open = append(c.waiting, c.open), nil
	}
	for _, b := range c.waiting {
		if !b.queued {
			b.payload, b.queued = seal(b.payload), true
			into = append(into, b)
		}
	}
	return into
}

// forget takes a settled batch out. The caller holds mu.
func (c *Capsule) forget(b *batch) {
	for i, w := range c.waiting {
		if w == b {
			c.waiting = append(c.waiting[:i], c.waiting[i+1:]...)
			c.waiting[:len(c.waiting)+1][len(c.waiting)] = nil
			return
		}
	}
}

// await hands over the batch of a durable decision and waits until it is on disk.
func (c *Capsule) await(ctx context.Context, f *fate) error {
	if err := c.commit(ctx, f, c.service.options.DurableWait); err != nil {
		return err
	}
	switch {
	case f.err != nil:
		return unavailable("decision.Decide", "the decision could not be written; the same request may be sent again")
	case !f.stored.Load():
		return c.missing()
	}
	return nil
}

// commit hands over what the capsule has queued and waits for one batch, at most for the time given.
func (c *Capsule) commit(ctx context.Context, f *fate, most time.Duration) error {
	settled := c.settled(f)
	if settled == nil {
		return nil
	}
	if refusal := c.service.queue.stall.refusal.Load(); refusal != nil {
		return refusal // to wait for a full disk would only keep the caller from hearing of it
	}
	c.service.queue.flushCapsule(c)
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-settled:
		return nil
	case <-timer.C:
		return unavailable("decision.Decide", "not on disk in time; the same request may be sent again")
	case <-ctx.Done():
		return fault.Wrap("decision.Decide", fault.Unavailable, ctx.Err(), "given up before it was on disk; the same request may be sent again")
	}
}

// settled returns the channel that tells when a batch is settled, nil when it is already.
func (c *Capsule) settled(f *fate) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open != nil && c.open.fate == f {
		return c.open.wait()
	}
	for _, b := range c.waiting {
		if b.fate == f {
			return b.wait()
		}
	}
	return nil
}

// newest returns the fate of the newest batch in the queue, nil when there is none.
func (c *Capsule) newest() *fate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open != nil {
		return c.open.fate
	}
	if n := len(c.waiting); n > 0 {
		return c.waiting[n-1].fate
	}
	return nil
}

// settle waits until what the capsule had queued is on disk, at most for the time given. It reports whether it is.
func (c *Capsule) settle(ctx context.Context, most time.Duration) bool {
	f := c.newest()
	return f == nil || c.commit(ctx, f, most) == nil
}

// swap makes e the engine. It belongs in the Applied of the change that e comes from. seeds is nil when the fixed seed
// stays; otherwise it is the state that the change wrote.
func (c *Capsule) swap(e *engine, seeds *draws) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.engine.Store(e)
	if seeds != nil {
		c.draws = *seeds
	}
}

// seedChange prepares the draws for a new spec in the capsule's row: nil when the seed stays, else what to swap in once the
// row is saved. A changed seed starts again at 0.
func (s *Service) seedChange(row *CapsuleRow, old, next *Spec) *draws {
	if old != nil && sameSeed(old.Seed, next.Seed) {
		return nil
	}
	d := &draws{}
	if next.Seed != nil {
		*d = draws{seeded: true, seed: *next.Seed, reserved: 2 * uint64(s.queue.limit)}
	}
	row.Seed, row.Draws = d.seed, d.reserved
	return d
}

func sameSeed(a, b *uint64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// retire marks a capsule as deleted: nothing enters its queue any more. unretire takes it back after a failed delete.
func (c *Capsule) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
}

func (c *Capsule) unretire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = false
}

// denied writes the audit event of a graph that failed. It is not waited for: the caller gets its error either way.
func (c *Capsule) denied(req *Request, cause error) {
	detail, err := json.Marshal(struct {
		RequestID string `json:"requestId"`
		Error     string `json:"error"`
	}{req.RequestID, cause.Error()})
	row := AuditRow{TimeMS: c.service.nowMS(), Event: "execution_denied", Detail: detail}
	if err == nil {
		err = c.service.storage.Queue(Write{Change: func(tx Tx) error { return tx.AppendAudit(c.id, row) }})
	}
	if err != nil {
		c.service.log.Error("the failure of a graph could not be audited", "capsule", c.id.String(), "err", err)
	}
}
