package decision

import (
	"context"
	"time"

	"holdfast/fault"
)

// maxEvaluations is how many evaluations run at once: each may use a whole processor for a while.
const maxEvaluations = 2

// startEvaluation takes one of the places, or refuses with Exhausted.
func (s *Service) startEvaluation() (end func(), err error) {
	if s.evaluating.Add(1) > maxEvaluations {
		s.evaluating.Add(-1)
		return nil, &fault.Error{Op: "decision.Evaluate", Kind: fault.Exhausted, RetryAfter: time.Second,
			Msg: "two evaluations are running already; try again later"}
	}
	return func() { s.evaluating.Add(-1) }, nil
}

// Evaluate says what a policy or a candidate spec would have earned on the capsule's log. Exhausted while two others run,
// Conflict with fewer than two rewarded decisions, TooLarge with more than MaxEvaluationRows.
func (c *Capsule) Evaluate(ctx context.Context, q EvaluateRequest) (*Report, error) {
	report, _, err := c.evaluate(ctx, q)
	return report, err
}

// evaluate also returns the spec that the report was made against.
func (c *Capsule) evaluate(ctx context.Context, q EvaluateRequest) (*Report, *Spec, error) {
	if err := q.Validate(); err != nil {
		return nil, nil, err
	}
	if q.Policy == targetColumn { // for rows from a file
		return nil, nil, fault.New("decision.Evaluate", fault.Invalid, "unknown policy %q: use logged, greedy or constant:<id>", q.Policy)
	}
	if c.isGone() {
		return nil, nil, c.missing()
	}
	current := c.engine.Load().spec
	var candidate *Spec
	if q.Spec != nil {
		var err error
		if candidate, err = patched(current.Text, q.Spec); err != nil {
			return nil, nil, err
		}
	}
	end, err := c.service.startEvaluation()
	if err != nil {
		return nil, nil, err
	}
	defer end()
	log, err := c.evidence(ctx, q.Span, current.Rewards)
	if err != nil {
		return nil, nil, err
	}
	report, err := EvaluateRows(ctx, log, q, current, candidate)
	return report, current, err
}

// earned adds up the rewards of one decision.
type earned struct {
	value float64
	count int
}

// evidence reads the rewarded decisions of a span once the queue is on disk.
func (c *Capsule) evidence(ctx context.Context, span Span, by Aggregation) (log Evidence, err error) {
	c.settle(ctx, readWait)
	err = c.service.storage.Read(ctx, func(v View) (err error) {
		log, err = ReadEvidence(ctx, v, c.key, span, by)
		return err
	})
	return log, err
}

// ReadEvidence reads the rewarded decisions of a capsule, given by its key, in the order of the log. TooLarge with more
// than MaxEvaluationRows.
func ReadEvidence(ctx context.Context, v View, capsule int64, span Span, by Aggregation) (log Evidence, err error) {
	rewards := map[string]earned{}
	err = v.Rewards(capsule, 0, func(r Reward) (bool, error) {
		e := rewards[r.DecisionID]
		if e.count == 0 || by == Sum {
			e.value, e.count = e.value+r.Value, e.count+1
		}
		rewards[r.DecisionID] = e
		return ctx.Err() == nil, ctx.Err()
	})
	if err != nil {
		return log, err
	}
	err = v.Batches(capsule, BatchQuery{Span: span}, func(b Batch) (bool, error) {
		return ctx.Err() == nil, log.add(b.Payload, span, rewards)
	})
	return log, err
}

// add takes the records of one batch.
func (l *Evidence) add(payload []byte, span Span, rewards map[string]earned) error {
	return eachRecord(payload, func(h head, frame []byte) (bool, error) {
		if h.ms < span.Since || span.Until != 0 && h.ms >= span.Until {
			return true, nil
		}
		if len(l.Rows)+l.Unrewarded == MaxEvaluationRows {
			return false, fault.New("decision.Evaluate", fault.TooLarge, "more than %d decisions, payload too large; choose a shorter span", MaxEvaluationRows)
		}
		given := rewards[h.id()]
		if given.count == 0 {
			l.Unrewarded++
			return true, nil
		}
		d, err := decodeRecord(h, frame)
		l.Rows = append(l.Rows, Row{ID: d.ID, TimeMS: d.TimeMS, Context: d.Context, Derived: d.Derived, Actions: d.Actions,
			Eligible: d.Eligible, PMF: d.PMF, Chosen: d.Chosen, Probability: d.Probability, Reward: given.value,
			Rewards: given.count, Unverified: d.Mode == Unverified})
		return true, err
	})
}

// PromoteRequest asks for a spec change that depends on gates: Spec is the patch, Policy must be empty, and there is at
// least one gate.
type PromoteRequest = EvaluateRequest

// Promotion is the outcome of a PromoteRequest that could be judged.
type Promotion struct {
	Promoted bool   // false: a gate failed
	Spec     []byte // the spec now in force
	Report   *Report
}

// Promote evaluates a candidate and makes it the spec if every gate passes. Conflict when the spec was changed meanwhile.
// Both outcomes are audited.
func (c *Capsule) Promote(ctx context.Context, q PromoteRequest) (*Promotion, error) {
	switch {
	case q.Policy != "" || q.Spec == nil:
		return nil, fault.New("decision.Promote", fault.Invalid, "a promotion takes spec, not policy")
	case len(q.Gates) == 0:
		return nil, fault.New("decision.Promote", fault.Invalid, "a promotion needs at least one gate")
	}
	report, judged, err := c.evaluate(ctx, q)
	if err != nil {
		return nil, err
	}
	if !report.GatesPassed {
		return &Promotion{Spec: judged.Text, Report: report}, c.refuse(ctx, q, judged)
	}
	next, _, err := c.changeSpec(ctx, specChange{id: c.id, patch: q.Spec, event: specEvent{Patch: q.Spec, Gates: q.Gates},
		name: "spec_promoted", onto: onExisting, expect: judged.Text})
	if err != nil {
		return nil, err
	}
	return &Promotion{Promoted: true, Spec: next.Text, Report: report}, nil
}

// refuse audits a promotion whose gates failed.
func (c *Capsule) refuse(ctx context.Context, q PromoteRequest, judged *Spec) error {
	row, err := specEvent{Patch: q.Spec, Gates: q.Gates, Error: "a gate failed"}.row("promotion_refused", judged)
	if err != nil {
		return err
	}
	row.TimeMS = c.service.nowMS()
	return c.service.storage.Write(ctx, Write{Change: func(tx Tx) error { return tx.AppendAudit(c.id, row) }})
}
