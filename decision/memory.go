package decision

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"

	"holdfast/fault"
)

// Memory is a Storage that forgets everything with the process: for tests, and for servers that shall leave nothing behind.
// It keeps the contract of Storage but for the disk. Its one goroutine lives while there is something to write.
type Memory struct {
	mu      sync.Mutex // guards what is handed over
	queue   []*memoryJob
	writing bool

	state sync.RWMutex // held for writing while a batch of changes runs
	data  memoryData
}

// NewMemory returns an empty storage.
func NewMemory() *Memory {
	return &Memory{data: memoryData{
		jobs: map[[2]string]JobRow{}, capsules: map[CapsuleID]*memoryCapsule{}, keys: map[int64]*memoryCapsule{},
		trails: map[CapsuleID][]AuditRow{},
	}}
}

var _ Storage = (*Memory)(nil)

// memoryJob is one write; done is nil when nobody waits.
type memoryJob struct {
	write Write
	err   error
	done  chan struct{}
}

// Write runs the change and waits until it has been applied.
func (m *Memory) Write(ctx context.Context, w Write) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap("decision.Memory", fault.Unavailable, err, "the write was given up")
	}
	j := &memoryJob{write: w, done: make(chan struct{})}
	m.hand(j)
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		return fault.Wrap("decision.Memory", fault.Unavailable, ctx.Err(), "the waiting was given up")
	}
}

// Queue hands the change over.
func (m *Memory) Queue(w Write) error {
	m.hand(&memoryJob{write: w})
	return nil
}

func (m *Memory) hand(j *memoryJob) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue = append(m.queue, j)
	if !m.writing {
		m.writing = true
		go m.run()
	}
}

// run writes batch after batch until nothing is left.
func (m *Memory) run() {
	for {
		m.mu.Lock()
		batch := m.queue
		m.queue = nil
		m.writing = len(batch) > 0
		m.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		m.state.Lock()
		for _, j := range batch {
			m.change(j)
		}
		m.state.Unlock()
		for _, j := range batch {
			if j.write.Applied != nil {
				j.write.Applied(j.err)
			}
		}
		for _, j := range batch {
			if j.done != nil {
				close(j.done)
			}
		}
	}
}

// change runs one job and takes back all of it when it fails.
func (m *Memory) change(j *memoryJob) {
	tx := &memoryTx{memoryView{&m.data}, nil}
	if j.err = j.write.Change(tx); j.err == nil {
		return
	}
	for i := len(tx.undo) - 1; i >= 0; i-- {
		tx.undo[i]()
	}
}

// Read shows the state between two batches.
func (m *Memory) Read(ctx context.Context, look func(View) error) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap("decision.Memory", fault.Unavailable, err, "the read was given up")
	}
	m.state.RLock()
	defer m.state.RUnlock()
	return look(memoryView{&m.data})
}

// memoryData is everything that is kept. Rows are replaced, never edited, so that what was read stays.
type memoryData struct {
	lastKey  int64
	jobs     map[[2]string]JobRow
	capsules map[CapsuleID]*memoryCapsule
	keys     map[int64]*memoryCapsule
	trails   map[CapsuleID][]AuditRow
}

type memoryCapsule struct {
	row          CapsuleRow
	batches      []Batch // in the order of arrival
	events       map[string]int64
	rewards      []Reward // by sequence
	taken        map[string]bool
	byDecision   map[string][]int // places in rewards
	snapshots    []Snapshot       // newest last
	publications []Publication    // newest last
	held         map[string]Held
}

func newMemoryCapsule(row CapsuleRow) *memoryCapsule {
	return &memoryCapsule{row: row, events: map[string]int64{}, taken: map[string]bool{}, byDecision: map[string][]int{}, held: map[string]Held{}}
}

func absent(what string) error {
	return fault.New("decision.Memory", fault.NotFound, "%s not found", what)
}

// memoryView reads.
type memoryView struct{ data *memoryData }

func (v memoryView) Tenants() ([]string, error) {
	var names []string
	for k := range v.data.jobs {
		names = append(names, k[0])
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (v memoryView) Jobs(tenant string) ([]JobRow, error) {
	var rows []JobRow
	for k, row := range v.data.jobs {
		if k[0] == tenant {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b JobRow) int { return cmp.Compare(a.ID, b.ID) })
	return rows, nil
}

func (v memoryView) Capsules(tenant, job string) ([]CapsuleID, error) {
	var ids []CapsuleID
	for id := range v.data.capsules {
		if (tenant == "" || id.Tenant == tenant) && (job == "" || id.Job == job) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b CapsuleID) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Capsule, b.Capsule))
	})
	return ids, nil
}

func (v memoryView) Capsule(id CapsuleID) (CapsuleRow, error) {
	c := v.data.capsules[id]
	if c == nil {
		return CapsuleRow{}, absent("capsule " + id.String())
	}
	return c.row, nil
}

// of returns the capsule of a key, an empty one when it is gone.
func (v memoryView) of(key int64) *memoryCapsule {
	if c := v.data.keys[key]; c != nil {
		return c
	}
	return &memoryCapsule{}
}

func (v memoryView) Batches(capsule int64, q BatchQuery, visit func(Batch) (bool, error)) error {
	var list []Batch
	for _, b := range v.of(capsule).batches {
		if b.LastMS >= q.Since && (q.Until == 0 || b.FirstMS < q.Until) {
			list = append(list, b)
		}
	}
	if q.Newest {
		slices.Reverse(list)
	}
	slices.SortStableFunc(list, func(a, b Batch) int {
		if q.Newest {
			return cmp.Compare(b.LastMS, a.LastMS)
		}
		return cmp.Compare(a.FirstMS, b.FirstMS)
	})
	for _, b := range list {
		if more, err := visit(b); err != nil || !more {
			return err
		}
	}
	return nil
}

func (v memoryView) EventTime(capsule int64, id string) (int64, error) {
	ms, ok := v.of(capsule).events[id]
	if !ok {
		return 0, absent("the id")
	}
	return ms, nil
}

func (v memoryView) EventIDs(capsule int64, visit func(id string)) error {
	for id := range v.of(capsule).events {
		visit(id)
	}
	return nil
}

func (v memoryView) RewardsOf(capsule int64, decision string) ([]Reward, error) {
	c := v.of(capsule)
	var list []Reward
	for _, at := range c.byDecision[decision] {
		list = append(list, c.rewards[at])
	}
	return list, nil
}

func (v memoryView) Rewards(capsule, after int64, visit func(Reward) (bool, error)) error {
	list := v.of(capsule).rewards
	from, _ := slices.BinarySearchFunc(list, after+1, func(r Reward, seq int64) int { return cmp.Compare(r.Seq, seq) })
	for _, r := range list[from:] {
		if more, err := visit(r); err != nil || !more {
			return err
		}
	}
	return nil
}

func (v memoryView) NewestSnapshot(capsule int64) (Snapshot, error) {
	list := v.of(capsule).snapshots
	if len(list) == 0 {
		return Snapshot{}, absent("snapshot")
	}
	return list[len(list)-1], nil
}

func (v memoryView) Snapshots(capsule int64) ([]Snapshot, error) {
	list := slices.Clone(v.of(capsule).snapshots)
	slices.Reverse(list)
	return list, nil
}

func (v memoryView) Publication(capsule int64, tag string) (Publication, error) {
	for _, p := range v.of(capsule).publications {
		if p.Tag == tag {
			return p, nil
		}
	}
	return Publication{}, absent("publication " + tag)
}

func (v memoryView) Publications(capsule int64) ([]Publication, error) {
	list := slices.Clone(v.of(capsule).publications)
	slices.Reverse(list)
	for i := range list {
		list[i].Bytes = nil
	}
	return list, nil
}

func (v memoryView) Audits(id CapsuleID, limit int) ([]AuditRow, error) {
	trail := v.data.trails[id]
	return slices.Clone(trail[max(0, len(trail)-max(0, limit)):]), nil
}

func (v memoryView) Held(capsule int64, event string) (Held, error) {
	h, ok := v.of(capsule).held[event]
	if !ok {
		return Held{}, absent("the deferred event")
	}
	return h, nil
}

func (v memoryView) HeldBefore(ms int64) ([]Held, error) {
	var list []Held
	for _, c := range v.data.keys {
		for _, h := range c.held {
			if h.TimeMS < ms {
				list = append(list, h)
			}
		}
	}
	slices.SortFunc(list, func(a, b Held) int {
		return cmp.Or(cmp.Compare(a.TimeMS, b.TimeMS), cmp.Compare(a.Capsule, b.Capsule), cmp.Compare(a.EventID, b.EventID))
	})
	return list, nil
}

func cloneBatch(b Batch) Batch {
	b.Payload, b.Events = bytes.Clone(b.Payload), slices.Clone(b.Events)
	return b
}
