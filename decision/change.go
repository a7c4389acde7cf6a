package decision

import (
	"context"
	"time"

	"holdfast/fault"
)

// changeWait is how long an administrative change waits for the queue before it gives up.
const changeWait = 5 * time.Second

// reform is a change of what a capsule runs: its spec, its program, or both.
type reform struct {
	spec        *Spec
	program     []byte // JSON text of the graph, nil without one
	installedMS int64
	audit       AuditRow // what the trail says; TimeMS is filled in
}

var errUnsaved = unavailable("decision.PutSpec", "the model could not be saved, so nothing was changed; try again later")

// reform makes a change take effect, or changes nothing. The model is saved together with the spec and the audit event in
// one transaction, so that a restart replays every reward under the spec that trained it. A changed number of bits rebuilds
// the model from the rewards in the log.
func (c *Capsule) reform(ctx context.Context, r reform) error {
	c.admin.Lock() // every reward that was accepted under the old spec has been applied
	defer c.admin.Unlock()
	if c.isGone() {
		return c.missing()
	}
	if !c.settle(ctx, changeWait) {
		return errUnsaved
	}
	old := c.engine.Load()
	graph, info, err := storedProgram(&CapsuleRow{Program: r.program, InstalledMS: r.installedMS})
	if err != nil {
		return err
	}
	snapshots, model := []Snapshot{c.capture()}, old.model
	if r.spec.Learner.Bits != model.Bits() {
		rebuilt, seq, err := c.rebuild(ctx, r.spec)
		if err != nil {
			return fault.Wrap("decision.PutSpec", fault.Unavailable, err, errUnsaved.Msg)
		}
		model = rebuilt
		snapshots = append(snapshots, Snapshot{Capsule: c.key, Version: model.Updates(), Seq: seq,
			TimeMS: c.service.nowMS(), Bytes: model.AppendSnapshot(nil, r.spec.Learner.Rate)})
	}
	next, err := newEngine(r.spec, model, graph, info)
	if err != nil {
		return err
	}
	return c.commitReform(ctx, &r, snapshots, next)
}

// commitReform writes a change and swaps the engine once it is on disk. The caller holds admin.
func (c *Capsule) commitReform(ctx context.Context, r *reform, snapshots []Snapshot, next *engine) error {
	var seeds *draws
	r.audit.TimeMS = c.service.nowMS()
	change := func(tx Tx) error {
		row, err := tx.Capsule(c.id)
		if err != nil {
			return err
		}
		row.Spec, row.Program, row.InstalledMS = r.spec.Text, r.program, r.installedMS
		seeds = c.service.seedChange(&row, c.engine.Load().spec, r.spec)
		if err := tx.SaveCapsule(row); err != nil {
			return err
		}
		for _, s := range snapshots {
			if err := tx.SaveSnapshot(s, keepSnapshots); err != nil {
				return err
			}
		}
		return tx.AppendAudit(c.id, r.audit)
	}
	err := c.service.storage.Write(context.WithoutCancel(ctx), Write{Change: change, Applied: func(err error) {
		if err == nil {
			c.noteSaved(&snapshots[len(snapshots)-1])
			c.swap(next, seeds)
		}
	}})
	if err != nil {
		return err
	}
	c.service.sweepBy(c.id, r.spec)
	return nil
}

// create makes a capsule with its tenant and job, and the events of its trail. Conflict when there is one.
func (s *Service) create(ctx context.Context, id CapsuleID, r reform, events ...AuditRow) error {
	now := s.nowMS()
	row := CapsuleRow{ID: id, CreatedMS: now, Spec: r.spec.Text, Program: r.program, InstalledMS: r.installedMS}
	if r.spec.Seed != nil {
		row.Seed = *r.spec.Seed // no draw is used yet: loading reserves the first
	}
	err := s.storage.Write(context.WithoutCancel(ctx), Write{Change: func(tx Tx) error {
		if _, err := tx.CreateCapsule(row); err != nil {
			return err
		}
		for _, e := range events {
			e.TimeMS = now
			if err := tx.AppendAudit(id, e); err != nil {
				return err
			}
		}
		return nil
	}})
	if err == nil {
		s.sweepBy(id, r.spec)
	}
	return err
}

// purge removes the capsule's decisions and rewards and keeps its model, which the erased rewards could not rebuild: it is
// saved in the same transaction.
func (c *Capsule) purge(ctx context.Context, audit AuditRow) (Removed, error) {
	c.admin.Lock()
	defer c.admin.Unlock()
	if c.isGone() {
		return Removed{}, c.missing()
	}
	if !c.settle(ctx, changeWait) {
		return Removed{}, unavailable("decision.PurgeLogs", "the queue is not on disk yet; try again later")
	}
	snapshot := c.capture()
	audit.TimeMS = c.service.nowMS()
	var removed Removed
	var row CapsuleRow
	err := c.service.storage.Write(context.WithoutCancel(ctx), Write{Change: func(tx Tx) (err error) {
		if err := tx.SaveSnapshot(snapshot, keepSnapshots); err != nil {
			return err
		}
		if removed.Decisions, removed.Rewards, err = tx.PurgeLogs(c.key); err != nil {
			return err
		}
		if err := tx.AppendAudit(c.id, audit); err != nil {
			return err
		}
		row, err = tx.Capsule(c.id)
		return err
	}, Applied: func(err error) {
		if err == nil {
			c.purges = row.Purges
			c.erased(&row)
			c.noteSaved(&snapshot)
		}
	}})
	if err != nil {
		return Removed{}, err
	}
	return removed, nil
}

// remove deletes a capsule. What is decided or rewarded afterwards gets NotFound, and nothing of it comes back.
func (s *Service) remove(ctx context.Context, id CapsuleID, audit AuditRow) (rows int64, err error) {
	c, err := s.Capsule(ctx, id)
	if err != nil && fault.KindOf(err) == fault.NotFound {
		return 0, err
	}
	if err != nil {
		return s.removeRow(ctx, id, audit) // it cannot be loaded, which is no reason to keep it
	}
	c.admin.Lock()
	defer c.admin.Unlock()
	if c.isGone() {
		return 0, c.missing()
	}
	c.retire()
	if c.settle(ctx, changeWait) {
		rows, err = s.removeRow(ctx, id, audit)
	} else {
		err = unavailable("decision.Delete", "the queue is not on disk yet; try again later")
	}
	if err != nil {
		c.unretire()
		return 0, err
	}
	s.evict(id)
	return rows, nil
}

func (s *Service) removeRow(ctx context.Context, id CapsuleID, audit AuditRow) (rows int64, err error) {
	audit.TimeMS = s.nowMS()
	err = s.storage.Write(context.WithoutCancel(ctx), Write{Change: func(tx Tx) error {
		row, err := tx.Capsule(id)
		if err != nil {
			return err
		}
		if rows, err = tx.DeleteCapsule(row.Key); err != nil {
			return err
		}
		return tx.AppendAudit(id, audit)
	}})
	if err == nil {
		s.sweepBy(id, nil)
	}
	return rows, err
}

func (c *Capsule) isGone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}
