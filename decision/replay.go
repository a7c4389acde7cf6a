package decision

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"holdfast/fault"
)

// flight is a load that several callers wait for.
type flight struct {
	done    chan struct{}
	capsule *Capsule
	err     error
}

// Capsule returns the capsule, loading it first when it is not in memory. It fails with NotFound when there is none, and
// with Internal when it cannot be loaded, which touches no other capsule.
func (s *Service) Capsule(ctx context.Context, id CapsuleID) (*Capsule, error) {
	if c := s.table.find(id); c != nil {
		return c, nil
	}
	s.loading.Lock()
	if c := s.table.find(id); c != nil {
		s.loading.Unlock()
		return c, nil
	}
	f, others := s.flights[id]
	if !others {
		f = &flight{done: make(chan struct{})}
		s.flights[id] = f
	}
	s.loading.Unlock()
	if others {
		select {
		case <-f.done:
			return f.capsule, f.err
		case <-ctx.Done():
			return nil, fault.Wrap("decision.Capsule", fault.Unavailable, ctx.Err(), "given up while the capsule was loaded")
		}
	}
	f.capsule, f.err = s.load(context.WithoutCancel(ctx), id) // for the others too
	s.loading.Lock()
	if f.err == nil {
		s.table.set(id, f.capsule)
	}
	delete(s.flights, id)
	s.loading.Unlock()
	close(f.done)
	return f.capsule, f.err
}

// evict takes a capsule out of memory: it was deleted, or its stored spec was repaired.
func (s *Service) evict(id CapsuleID) {
	s.loading.Lock()
	defer s.loading.Unlock()
	s.table.set(id, nil)
}

// load reads a capsule: its row, the newest snapshot, and the rewards after it in sequence order.
func (s *Service) load(ctx context.Context, id CapsuleID) (*Capsule, error) {
	c := &Capsule{service: s, id: id}
	var row CapsuleRow
	err := s.storage.Read(ctx, func(v View) (err error) {
		if row, err = v.Capsule(id); err != nil {
			return err
		}
		c.key, c.purges, c.stored = row.Key, row.Purges, rowStats(&row)
		return c.restore(v, &row)
	})
	if err != nil {
		if fault.KindOf(err) == fault.NotFound && row.Key == 0 {
			return nil, missing(id)
		}
		s.log.Error("a capsule cannot be loaded", "capsule", id.String(), "err", err)
		return nil, fault.Wrap("decision.load", fault.Internal, err, "capsule "+id.String()+" cannot be loaded")
	}
	return c, c.openDraws(ctx, &row)
}

// restore builds the engine from what is stored.
func (c *Capsule) restore(v View, row *CapsuleRow) error {
	spec, err := ParseSpec(row.Spec)
	if err != nil {
		return err
	}
	graph, info, err := storedProgram(row)
	if err != nil {
		return err
	}
	model := NewModel(spec.Learner.Bits)
	snapshot, err := v.NewestSnapshot(row.Key)
	switch {
	case err == nil:
		kept, _, err := DecodeSnapshot(snapshot.Bytes)
		if err != nil {
			return err
		}
		if kept.Bits() == spec.Learner.Bits {
			model, c.savedAt, c.savedSeq = kept, snapshot.Version, snapshot.Seq
		}
	case fault.KindOf(err) != fault.NotFound:
		return err
	}
	if c.appliedSeq, err = replay(v, row.Key, spec, model, c.savedSeq); err != nil {
		return err
	}
	e, err := newEngine(spec, model, graph, info)
	if err != nil {
		return err
	}
	c.engine.Store(e)
	return nil
}

// storedProgram compiles the graph in a row; all nil without one.
func storedProgram(row *CapsuleRow) (*Graph, *ProgramInfo, error) {
	if row.Program == nil {
		return nil, nil, nil
	}
	graph, err := CompileGraph(row.Program)
	if err != nil {
		return nil, nil, err
	}
	return graph, programInfo(row.Program, row.InstalledMS), nil
}

func programInfo(text []byte, installedMS int64) *ProgramInfo {
	sum := sha256.Sum256(text)
	return &ProgramInfo{SHA256: hex.EncodeToString(sum[:]), Bytes: len(text), InstalledMS: installedMS}
}

// replayPage is how many rewards are read before their decisions are looked up.
const replayPage = 1024

// replay teaches model the stored rewards after a sequence number, in order, as they were learned the first time, and
// returns the newest number. What was recorded without learning is skipped.
func replay(v View, capsule int64, spec *Spec, model *Model, after int64) (last int64, err error) {
	var page []Reward
	from := batchReader{view: v, capsule: capsule}
	for {
		page = page[:0]
		err := v.Rewards(capsule, after, func(r Reward) (bool, error) {
			page = append(page, r)
			return len(page) < replayPage, nil
		})
		if err != nil {
			return 0, err
		}
		if len(page) == 0 {
			return after, nil
		}
		for i := range page {
			after = page[i].Seq
			if !page[i].Learned {
				continue
			}
			d, err := from.find(page[i].DecisionID)
			if err != nil {
				return 0, fmt.Errorf("replay reward %d: %w", after, err)
			}
			terms, err := lesson(&d, spec.Learner.Bits)
			if err != nil {
				return 0, fmt.Errorf("replay reward %d: %w", after, err)
			}
			model.Update(terms, page[i].Normalized, spec.Learner.Weight(d.Probability), spec.Learner.Rate)
		}
	}
}

// rebuild returns a model of another size, trained on every reward that is still logged, with the newest sequence number.
// The caller holds admin for writing and has committed the queue. What an erase removed is not learned again.
func (c *Capsule) rebuild(ctx context.Context, spec *Spec) (model *Model, seq int64, err error) {
	model = NewModel(spec.Learner.Bits)
	err = c.service.storage.Read(ctx, func(v View) error {
		seq, err = replay(v, c.key, spec, model, 0)
		return err
	})
	c.apply.Lock()
	defer c.apply.Unlock()
	return model, max(seq, c.appliedSeq), err
}

// openDraws sets up the fixed seed and reserves draws before the first use.
func (c *Capsule) openDraws(ctx context.Context, row *CapsuleRow) error {
	spec := c.engine.Load().spec
	if spec.Seed == nil {
		return nil
	}
	d := draws{seeded: true, seed: *spec.Seed}
	if row.Seed == d.seed {
		d.next, d.reserved = row.Draws, row.Draws
	}
	c.draws = d
	d.reserved += 2 * uint64(c.service.queue.limit)
	err := c.service.storage.Write(ctx, Write{Change: func(tx Tx) error { return c.reserveAnew(tx, d) }})
	if err != nil && row.Seed != d.seed {
		return err
	}
	if err != nil {
		// Reads still work; a decide answers that no draw is reserved, and asks again.
		c.service.log.Warn("no draws could be reserved", "capsule", c.id.String(), "err", err)
		return nil
	}
	c.drawsReserved(d)
	return nil
}

func (c *Capsule) reserveAnew(tx Tx, d draws) error {
	row, err := tx.Capsule(c.id)
	if err != nil {
		return err
	}
	row.Seed, row.Draws = d.seed, d.reserved
	return tx.SaveCapsule(row)
}

// keepSnapshots is how many snapshots of a capsule are kept.
const keepSnapshots = 3

// capture copies the model together with the newest reward it has seen.
func (c *Capsule) capture() Snapshot {
	c.apply.Lock()
	defer c.apply.Unlock()
	e := c.engine.Load()
	return Snapshot{Capsule: c.key, Version: e.model.Updates(), Seq: c.appliedSeq, TimeMS: c.service.nowMS(),
		Bytes: e.model.AppendSnapshot(nil, e.spec.Learner.Rate)}
}

// noteSaved remembers that a snapshot is stored.
func (c *Capsule) noteSaved(s *Snapshot) {
	c.apply.Lock()
	defer c.apply.Unlock()
	c.savedAt, c.savedSeq, c.snapshotDue = s.Version, s.Seq, false
}

// saveSnapshot stores the model. The rewards it covers are committed: the model learns from nothing else. A change of the
// spec waits, so that a snapshot of the old model cannot land behind it.
func (c *Capsule) saveSnapshot(ctx context.Context) error {
	c.admin.RLock()
	defer c.admin.RUnlock()
	snapshot := c.capture()
	err := c.service.storage.Write(context.WithoutCancel(ctx), Write{Change: func(tx Tx) error {
		return tx.SaveSnapshot(snapshot, keepSnapshots)
	}})
	if err != nil {
		c.apply.Lock()
		c.snapshotDue = false // the next reward asks again
		c.apply.Unlock()
		return err
	}
	c.noteSaved(&snapshot)
	return nil
}

// requestSnapshot hands a capsule to the goroutine that saves models. When it has more than enough to do, a later reward
// asks again.
func (s *Service) requestSnapshot(c *Capsule) {
	select {
	case s.snapshot <- c:
	default:
		c.apply.Lock()
		c.snapshotDue = false
		c.apply.Unlock()
	}
}

// runSnapshots saves the models that are due, one at a time, until ctx ends.
func (s *Service) runSnapshots(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-s.snapshot:
			if err := c.saveSnapshot(ctx); err != nil && fault.KindOf(err) != fault.NotFound {
				s.log.Error("a model could not be saved", "capsule", c.id.String(), "err", err)
			}
		}
	}
}

// saveUnsaved stores the model if it has learned since it was stored last.
func (c *Capsule) saveUnsaved(ctx context.Context) error {
	c.apply.Lock()
	unsaved := c.engine.Load().model.Updates() != c.savedAt || c.appliedSeq != c.savedSeq
	c.apply.Unlock()
	if !unsaved {
		return nil
	}
	return c.saveSnapshot(ctx)
}

// saveAll stores what only memory knows at the end: the model, and the exact number of draws.
func (c *Capsule) saveAll(ctx context.Context) error {
	c.mu.Lock()
	d, gone := c.draws, c.gone
	c.mu.Unlock()
	if gone {
		return nil
	}
	if err := c.saveUnsaved(ctx); err != nil || !d.seeded {
		return err
	}
	d.reserved = d.next
	return c.service.storage.Write(ctx, Write{Change: func(tx Tx) error { return saveDraws(tx, c, d) }})
}
