package decision

import (
	"context"
	"time"

	"holdfast/fault"
)

// holdTime is how long a deferred event may wait for its activation.
const holdTime = 24 * time.Hour

// Hold draws like Decide but keeps the decision aside, on disk, until Activate: it is neither in the log nor learned from
// before. An empty req.EventID gets a fresh id. The errors are those of Decide.
func (c *Capsule) Hold(ctx context.Context, req *Request, out *Answer) error {
	held := *req
	if held.EventID == "" {
		held.EventID = string(appendID(nil, c.service.nowMS(), c.service.names.random()))
	}
	if !ValidDecisionID(held.EventID) {
		return invalid("eventId must be 1 to 128 characters of A-Z a-z 0-9 _ . : -")
	}
	stripe := &c.stripes[HashText(held.EventID)%uint64(len(c.stripes))]
	stripe.Lock()
	defer stripe.Unlock()
	if c.service.remembers(c, held.EventID) {
		if d, _, err := c.find(ctx, held.EventID); err == nil || fault.KindOf(err) != fault.NotFound {
			return c.again(&held, &d, out, err)
		}
		if d, err := c.heldDecision(ctx, held.EventID); err == nil || fault.KindOf(err) != fault.NotFound {
			return c.again(&held, &d, out, err)
		}
	}
	if refusal := c.service.queue.admits(); refusal != nil {
		return refusal
	}
	return c.hold(ctx, &held, out)
}

// again answers a repeated rank from the decision that was made for it.
func (c *Capsule) again(req *Request, d *Decision, out *Answer, err error) error {
	if err != nil {
		return err
	}
	if d.Digest != req.Digest {
		return fault.New("decision.Hold", fault.Conflict, "eventId %q is already used for a different request", req.EventID)
	}
	return c.replay(req, d, out)
}

// heldDecision reads a deferred event, NotFound when there is none.
func (c *Capsule) heldDecision(ctx context.Context, event string) (d Decision, err error) {
	err = c.service.storage.Read(ctx, func(v View) error {
		held, err := v.Held(c.key, event)
		if err != nil {
			return err
		}
		d, err = soleRecord(held.Record)
		return err
	})
	return d, err
}

// soleRecord decodes a payload of one record.
func soleRecord(payload []byte) (d Decision, err error) {
	found := false
	err = DecodePayload(payload, func(only Decision) bool {
		d, found = only, true
		return false
	})
	if err == nil && !found {
		err = errRecord
	}
	return d, err
}

// hold makes a fresh decision and stores it aside. The caller holds the id's stripe.
func (c *Capsule) hold(ctx context.Context, req *Request, out *Answer) error {
	x := c.service.takeScratch()
	defer c.service.putScratch(x)
	e := c.engine.Load()
	r, err := e.plan(x, req, c.service.options.Now)
	if err != nil {
		if fault.KindOf(err) == fault.Internal {
			c.denied(req, err)
		}
		return err
	}
	d := &x.draft
	if err := c.stamp(x); err != nil {
		return err
	}
	b := &batch{capsule: c, fate: new(fate)}
	b.add(d)
	held := Held{Capsule: c.key, EventID: d.id, TimeMS: d.ms, Record: seal(b.payload)}
	ahead, due := c.drawsDue()
	err = c.service.storage.Write(context.WithoutCancel(ctx), Write{Change: func(tx Tx) error {
		if _, err := c.own(tx); err != nil {
			return err
		}
		if due {
			if err := saveDraws(tx, c, ahead); err != nil {
				return err
			}
		}
		return tx.SaveHeld(held)
	}, Applied: func(err error) {
		if err == nil && due {
			c.drawsReserved(ahead)
		}
	}})
	if err != nil {
		return err
	}
	d.answer(e, out)
	out.Replayed = false
	if r != nil {
		out.Graph, err = e.graph.finish(r, out.Action)
	}
	return err
}

// stamp draws and stamps a planned decision that does not go through the queue.
func (c *Capsule) stamp(x *scratch) error {
	d := &x.draft
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return c.missing()
	}
	if !c.draws.seeded {
		d.seed = c.service.fresh(&x.entropy)
	} else if seed, ok := c.draws.take(); ok {
		d.seed = seed
	} else {
		return errDraws
	}
	d.chosen, d.ms = Draw(d.pmf, d.seed), c.service.nowMS()
	c.events.add(d.id)
	return nil
}

// Activate makes a held decision count, with the rewards that came early. An event that counts already is no error;
// NotFound when there is none.
func (c *Capsule) Activate(ctx context.Context, event string) error {
	c.admin.RLock()
	defer c.admin.RUnlock()
	stripe := &c.stripes[HashText(event)%uint64(len(c.stripes))]
	stripe.Lock()
	defer stripe.Unlock()
	if _, _, err := c.find(ctx, event); err == nil || fault.KindOf(err) != fault.NotFound {
		return err
	}
	a := &activation{capsule: c, event: event, rewards: verdicts{capsule: c, engine: c.engine.Load(), purges: c.purges}}
	err := c.service.storage.Write(context.WithoutCancel(ctx), Write{Rows: 4, Change: a.change, Applied: a.applied})
	if err != nil && fault.KindOf(err) == fault.NotFound {
		return fault.New("decision.Activate", fault.NotFound, "event %q not found", event)
	}
	if err == nil {
		c.service.sweepFrom(c.id, a.decision.TimeMS)
	}
	return err
}

// activation moves one deferred event into the log.
type activation struct {
	capsule  *Capsule
	event    string
	decision Decision
	rewards  verdicts
	row      CapsuleRow
}

func (a *activation) change(tx Tx) error {
	c := a.capsule
	held, err := tx.Held(c.key, a.event)
	if err != nil {
		return err
	}
	if a.decision, err = soleRecord(held.Record); err != nil {
		return err
	}
	ms := a.decision.TimeMS
	err = tx.AppendBatch(Batch{Capsule: c.key, FirstMS: ms, LastMS: ms, Count: 1, Payload: held.Record, Events: []string{a.event}})
	if err != nil {
		return err
	}
	if err := tx.DropHeld(c.key, a.event); err != nil {
		return err
	}
	early, err := heldRewards(held.Rewards)
	if err != nil {
		return err
	}
	a.rewards.all = make([]verdict, len(early))
	for i := range early {
		early[i].DecisionID = a.event
		o := &a.rewards.all[i]
		o.err = c.judge(a.rewards.engine, &early[i], &a.decision, o) // one that no longer fits is dropped
	}
	if err := a.rewards.change(tx); err != nil {
		return err
	}
	a.row, err = tx.Capsule(c.id)
	return err
}

func (a *activation) applied(err error) {
	a.rewards.applied(err)
	if err == nil {
		a.capsule.service.metrics.decisions.Inc()
		a.capsule.recount(&a.row)
	}
}

// dropHeld forgets the deferred events that nobody activated in time.
func (s *Service) dropHeld(ctx context.Context) error {
	var old []Held
	err := s.storage.Read(ctx, func(v View) (err error) {
		old, err = v.HeldBefore(s.nowMS() - holdTime.Milliseconds())
		return err
	})
	if err != nil || len(old) == 0 {
		return err
	}
	return s.storage.Write(ctx, Write{Rows: len(old), Change: func(tx Tx) error {
		for _, h := range old {
			if err := tx.DropHeld(h.Capsule, h.EventID); err != nil && fault.KindOf(err) != fault.NotFound {
				return err
			}
		}
		return nil
	}})
}
