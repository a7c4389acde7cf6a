package decision

import (
	"bytes"
	"maps"
	"slices"

	"holdfast/fault"
)

// memoryTx changes a Memory. Each method notes how to take its change back.
type memoryTx struct {
	memoryView
	undo []func()
}

// save remembers a whole capsule before it is changed. The pieces are replaced or appended to, so that shallow copies do.
func (t *memoryTx) save(c *memoryCapsule) {
	old := *c
	old.events, old.taken, old.held = maps.Clone(c.events), maps.Clone(c.taken), maps.Clone(c.held)
	old.byDecision = maps.Clone(c.byDecision)
	t.undo = append(t.undo, func() { *c = old })
}

// note remembers how to take one small change back, which is cheaper than save.
func (t *memoryTx) note(undo func()) { t.undo = append(t.undo, undo) }

func (t *memoryTx) capsule(key int64) (*memoryCapsule, error) {
	if c := t.data.keys[key]; c != nil {
		return c, nil
	}
	return nil, absent("the capsule")
}

func (t *memoryTx) SaveJob(row JobRow) (bool, error) {
	k := [2]string{row.Tenant, row.ID}
	if _, there := t.data.jobs[k]; there {
		return false, nil
	}
	t.data.jobs[k] = row
	t.note(func() { delete(t.data.jobs, k) })
	return true, nil
}

func (t *memoryTx) CreateCapsule(row CapsuleRow) (int64, error) {
	id := row.ID
	if t.data.capsules[id] != nil {
		return 0, fault.New("decision.Memory", fault.Conflict, "capsule %s exists already", id)
	}
	if _, err := t.SaveJob(JobRow{Tenant: id.Tenant, ID: id.Job, Name: id.Job, CreatedMS: row.CreatedMS}); err != nil {
		return 0, err
	}
	t.data.lastKey++
	key := t.data.lastKey
	c := newMemoryCapsule(CapsuleRow{Key: key, ID: id, CreatedMS: row.CreatedMS, Spec: bytes.Clone(row.Spec),
		Program: bytes.Clone(row.Program), InstalledMS: row.InstalledMS, Seed: row.Seed, Draws: row.Draws})
	t.data.capsules[id], t.data.keys[key] = c, c
	t.note(func() {
		delete(t.data.capsules, id)
		delete(t.data.keys, key)
	})
	return key, nil
}

func (t *memoryTx) SaveCapsule(row CapsuleRow) error {
	c, err := t.capsule(row.Key)
	if err != nil {
		return err
	}
	old := c.row
	t.note(func() { c.row = old })
	c.row.Spec, c.row.Program, c.row.InstalledMS = bytes.Clone(row.Spec), bytes.Clone(row.Program), row.InstalledMS
	c.row.Seed, c.row.Draws = row.Seed, row.Draws
	return nil
}

func (t *memoryTx) DeleteCapsule(key int64) (int64, error) {
	c, err := t.capsule(key)
	if err != nil {
		return 0, err
	}
	delete(t.data.capsules, c.row.ID)
	delete(t.data.keys, key)
	t.note(func() { t.data.capsules[c.row.ID], t.data.keys[key] = c, c })
	return 1 + c.row.Decisions + int64(len(c.rewards)+len(c.snapshots)+len(c.publications)+len(c.held)), nil
}

func (t *memoryTx) DeleteJob(tenant, job string) (int64, error) {
	if ids, _ := t.Capsules(tenant, job); len(ids) > 0 {
		return 0, fault.New("decision.Memory", fault.Conflict, "job %s/%s still has capsules", tenant, job)
	}
	k := [2]string{tenant, job}
	row, there := t.data.jobs[k]
	if !there {
		return 0, absent("job " + tenant + "/" + job)
	}
	delete(t.data.jobs, k)
	t.note(func() { t.data.jobs[k] = row })
	return 1, nil
}

func (t *memoryTx) AppendBatch(b Batch) error {
	c, err := t.capsule(b.Capsule)
	if err != nil {
		return err
	}
	row, n := c.row, len(c.batches)
	b = cloneBatch(b)
	t.note(func() { c.row, c.batches = row, c.batches[:n] })
	c.batches = append(c.batches, b)
	s := rowStats(&c.row)
	s.addDecisions(int64(b.Count), b.FirstMS, b.LastMS)
	c.row.Decisions, c.row.FirstMS, c.row.LastMS = s.Decisions, s.FirstMS, s.LastMS
	for _, id := range b.Events {
		if _, there := c.events[id]; !there {
			c.events[id] = b.FirstMS
			t.note(func() { delete(c.events, id) })
		}
	}
	return nil
}

func (t *memoryTx) AppendReward(capsule, purges int64, r Reward) (int64, error) {
	c, err := t.capsule(capsule)
	if err != nil {
		return 0, err
	}
	if c.row.Purges != purges {
		return 0, absent("the log")
	}
	if c.taken[r.Key] {
		return 0, nil
	}
	n, row, list := len(c.rewards), c.row, c.byDecision[r.DecisionID]
	t.note(func() {
		c.rewards, c.row, c.byDecision[r.DecisionID] = c.rewards[:n], row, list
		delete(c.taken, r.Key)
	})
	c.row.LastSeq++
	c.row.Rewards++
	r.Seq, r.Detail = c.row.LastSeq, bytes.Clone(r.Detail)
	c.rewards = append(c.rewards, r)
	c.taken[r.Key] = true
	c.byDecision[r.DecisionID] = append(list[:len(list):len(list)], n)
	return r.Seq, nil
}

func (t *memoryTx) PurgeLogs(capsule int64) (decisions, rewards int64, err error) {
	c, err := t.capsule(capsule)
	if err != nil {
		return 0, 0, err
	}
	t.save(c)
	decisions, rewards = c.row.Decisions, c.row.Rewards
	row := c.row
	row.Purges++
	row.Decisions, row.Rewards, row.FirstMS, row.LastMS = 0, 0, 0, 0
	*c = memoryCapsule{row: row, events: map[string]int64{}, taken: map[string]bool{}, byDecision: map[string][]int{},
		snapshots: c.snapshots, publications: c.publications, held: c.held}
	return decisions, rewards, nil
}

func (t *memoryTx) DropBatches(capsule int64, r Retention) (decisions, rewards int64, err error) {
	c, err := t.capsule(capsule)
	if err != nil {
		return 0, 0, err
	}
	t.save(c)
	left := int64(0)
	for _, b := range c.batches {
		left += int64(len(b.Payload))
	}
	gone := map[string]bool{}
	dropped := map[int]bool{}
	for n, at := range byEnd(c.batches) {
		b := &c.batches[at]
		old, much := b.LastMS < r.BeforeMS, r.KeepBytes > 0 && left > r.KeepBytes
		if !old && !much || r.Batches > 0 && n >= r.Batches {
			break
		}
		left -= int64(len(b.Payload))
		var ids []string
		if err := r.IDs(b.Payload, func(id string) { ids = append(ids, id) }); err != nil {
			return 0, 0, err
		}
		if c.pinned(ids, r.Watermark) {
			continue
		}
		dropped[at] = true
		decisions += int64(b.Count)
		for _, id := range ids {
			gone[id] = true
		}
	}
	return decisions, c.drop(dropped, gone), nil
}

// byEnd returns the places of batches, those that end first first.
func byEnd(batches []Batch) []int {
	places := make([]int, len(batches))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return int(batches[a].LastMS - batches[b].LastMS) })
	return places
}

// pinned reports whether a reward after the watermark names one of the decisions.
func (c *memoryCapsule) pinned(ids []string, watermark int64) bool {
	for _, id := range ids {
		for _, at := range c.byDecision[id] {
			if c.rewards[at].Seq > watermark {
				return true
			}
		}
	}
	return false
}

// drop removes batches by place and what belongs to the decisions in them; it returns how many rewards went.
func (c *memoryCapsule) drop(places map[int]bool, gone map[string]bool) (rewards int64) {
	var batches []Batch
	stats := Stats{}
	for i, b := range c.batches {
		if !places[i] {
			batches = append(batches, b)
			stats.addDecisions(int64(b.Count), b.FirstMS, b.LastMS)
		}
	}
	var kept []Reward
	taken, byDecision := map[string]bool{}, map[string][]int{}
	for _, r := range c.rewards {
		if gone[r.DecisionID] {
			rewards++
			continue
		}
		byDecision[r.DecisionID] = append(byDecision[r.DecisionID], len(kept))
		kept = append(kept, r)
		taken[r.Key] = true
	}
	for id := range gone {
		delete(c.events, id)
	}
	c.batches, c.rewards, c.taken, c.byDecision = batches, kept, taken, byDecision
	c.row.Decisions, c.row.FirstMS, c.row.LastMS = stats.Decisions, stats.FirstMS, stats.LastMS
	c.row.Rewards -= rewards
	return rewards
}

func (t *memoryTx) SaveSnapshot(s Snapshot, keep int) error {
	c, err := t.capsule(s.Capsule)
	if err != nil {
		return err
	}
	old := c.snapshots
	t.note(func() { c.snapshots = old })
	list := slices.Clone(old)
	if n := len(list); n == 0 || list[n-1].Version != s.Version || list[n-1].Seq != s.Seq || !bytes.Equal(list[n-1].Bytes, s.Bytes) {
		s.Bytes = bytes.Clone(s.Bytes)
		list = append(list, s)
	}
	c.snapshots = list[max(0, len(list)-keep):]
	return nil
}

func (t *memoryTx) SavePublication(p Publication, keep int) error {
	c, err := t.capsule(p.Capsule)
	if err != nil {
		return err
	}
	old := c.publications
	t.note(func() { c.publications = old })
	list := slices.Clone(old)
	if n := len(list); n == 0 || !samePublication(&list[n-1], &p) {
		list = slices.DeleteFunc(list, func(o Publication) bool { return o.Tag == p.Tag })
		p.Section, p.Bytes = bytes.Clone(p.Section), bytes.Clone(p.Bytes)
		list = append(list, p)
	}
	c.publications = list[max(0, len(list)-keep):]
	return nil
}

func samePublication(a, b *Publication) bool {
	return a.Tag == b.Tag && a.Version == b.Version && a.Seq == b.Seq && bytes.Equal(a.Section, b.Section) && bytes.Equal(a.Bytes, b.Bytes)
}

func (t *memoryTx) SaveHeld(h Held) error {
	c, err := t.capsule(h.Capsule)
	if err != nil {
		return err
	}
	old, there := c.held[h.EventID]
	t.note(func() {
		if delete(c.held, h.EventID); there {
			c.held[h.EventID] = old
		}
	})
	h.Record, h.Rewards = bytes.Clone(h.Record), bytes.Clone(h.Rewards)
	c.held[h.EventID] = h
	return nil
}

func (t *memoryTx) DropHeld(capsule int64, event string) error {
	c := t.data.keys[capsule]
	if c == nil {
		return nil
	}
	if old, there := c.held[event]; there {
		delete(c.held, event)
		t.note(func() { c.held[event] = old })
	}
	return nil
}

func (t *memoryTx) AppendAudit(id CapsuleID, row AuditRow) error {
	trail := t.data.trails[id]
	row.Seq, row.Detail = int64(len(trail)+1), bytes.Clone(row.Detail)
	t.data.trails[id] = append(trail[:len(trail):len(trail)], row)
	t.note(func() { t.data.trails[id] = trail })
	return nil
}
