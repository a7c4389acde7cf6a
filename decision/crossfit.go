package decision

import (
	"context"
	"strings"

	"holdfast/fault"
)

// fitting is what the cross-fitted models of one evaluation share.
type fitting struct {
	q                  *EvaluateRequest
	lo, hi             float64 // raw rewards lo..hi are learned as 0..1
	current, candidate *Spec
}

// target is the spec whose learner and exploration the target policy uses.
func (f *fitting) target() *Spec {
	if f.candidate != nil {
		return f.candidate
	}
	return f.current
}

// needsTarget reports whether the policy's choice depends on a model of its own.
func (f *fitting) needsTarget() bool { return f.candidate != nil || f.q.Policy == "greedy" }

// The reward model is fitted in three passes at these shares of the default learning rate, unweighted.
func passes() []float64 { return []float64{1, 1.0 / 4, 1.0 / 16} }

// The reward model's settings: the defaults of a spec.
const (
	rewardModelBits = 18
	rewardModelRate = 0.5
)

// fitStride is how many rows pass between two looks at the context.
const fitStride = 1024

// foldOf assigns a decision to one of folds by its id alone.
func foldOf(id string, folds int) int { return int(Finalize(HashText(id)) % uint64(folds)) }

// fitted holds one model per fold, trained on the rows of all other folds.
type fitted struct {
	reward, target []*Model
	declared       map[string]Action // of the target spec: their features replace logged ones
	scratch        featureScratch
}

// featureScratch is memory reused from row to row.
type featureScratch struct {
	context, derived, action []Feature
	terms                    []Term
	pmf, predictions         []float64
}

// crossFit trains the models and returns every row as the estimators see it.
func crossFit(ctx context.Context, rows []*Row, f fitting) ([]outcome, weighing, error) {
	m := &fitted{declared: map[string]Action{}}
	if f.needsTarget() {
		for _, a := range f.target().Actions {
			m.declared[a.ID] = a
		}
	}
	if err := m.train(ctx, rows, &f); err != nil {
		return nil, weighing{}, err
	}
	outcomes := make([]outcome, len(rows))
	var w weighing
	for i, row := range rows {
		if i%fitStride == 0 && ctx.Err() != nil {
			return nil, w, ctx.Err()
		}
		o, err := m.judge(row, &f, &w)
		if err != nil {
			return nil, w, err
		}
		outcomes[i] = o
	}
	return outcomes, w, nil
}

// train fits the reward models in row order, pass after pass, and the target models in one pass.
func (m *fitted) train(ctx context.Context, rows []*Row, f *fitting) error {
	folds := f.q.Folds
	for range folds {
		m.reward = append(m.reward, NewModel(rewardModelBits))
		if f.needsTarget() {
			m.target = append(m.target, NewModel(f.target().Learner.Bits))
		}
	}
	for pass, share := range passes() {
		for i, row := range rows {
			if i%fitStride == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			fold, y := foldOf(row.ID, folds), Normalize(row.Reward, f.lo, f.hi)
			in, err := m.input(row, row.Actions[row.Chosen])
			if err != nil {
				return err
			}
			m.scratch.terms = in.AppendRewardTerms(m.scratch.terms[:0], rewardModelBits)
			for k, model := range m.reward {
				if k != fold {
					model.Update(m.scratch.terms, y, 1, rewardModelRate*share)
				}
			}
			if pass == 0 && f.needsTarget() {
				if err := m.trainTarget(row, f, fold, y); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// trainTarget updates the target models with one row, as the candidate's own learner would have.
func (m *fitted) trainTarget(row *Row, f *fitting, fold int, y float64) error {
	spec := f.target()
	in, err := m.input(row, m.declare(row.Actions[row.Chosen]))
	if err != nil {
		return err
	}
	m.scratch.terms = in.AppendTerms(m.scratch.terms[:0], spec.Learner.Bits)
	for k, model := range m.target {
		if k != fold {
			model.Update(m.scratch.terms, y, spec.Learner.Weight(row.Probability), spec.Learner.Rate)
		}
	}
	return nil
}

// declare returns the action with the features that the target spec declares for it, if it does.
func (m *fitted) declare(a Action) Action {
	if d, ok := m.declared[a.ID]; ok {
		return d
	}
	return a
}

// input flattens the row's context and one action. The slices are valid until the next call.
func (m *fitted) input(row *Row, a Action) (Input, error) {
	s := &m.scratch
	var err error
	if s.context, err = AppendFeatures(s.context[:0], ContextNamespace, row.Context); err != nil {
		return Input{}, rowFault(row, err)
	}
	if s.derived, err = AppendFeatures(s.derived[:0], DerivedNamespace, row.Derived); err != nil {
		return Input{}, rowFault(row, err)
	}
	if s.action, err = AppendActionFeatures(s.action[:0], a.ID, a.Features); err != nil {
		return Input{}, rowFault(row, err)
	}
	return Input{Context: s.context, Derived: s.derived, Action: s.action}, nil
}

func rowFault(row *Row, err error) error {
	return fault.Wrap("decision.Evaluate", fault.Invalid, err, "decision "+row.ID+": its features do not parse")
}

// judge computes the row's weight and model values, and adds to what all weights have in common.
func (m *fitted) judge(row *Row, f *fitting, w *weighing) (outcome, error) {
	pi, err := m.policy(row, f, w)
	if err != nil {
		return outcome{}, err
	}
	o := outcome{r: row.Reward}
	model, at := m.reward[foldOf(row.ID, f.q.Folds)], row.at()
	for i, a := range row.Eligible {
		in, err := m.input(row, row.Actions[a])
		if err != nil {
			return outcome{}, err
		}
		m.scratch.terms = in.AppendRewardTerms(m.scratch.terms[:0], rewardModelBits)
		value := f.lo + clampUnit(model.Predict(m.scratch.terms))*(f.hi-f.lo)
		o.direct += pi[i] * value
		if i == at {
			o.predicted = value
		}
		if mu := row.PMF[i]; mu > 0 {
			w.expected += mu * min(pi[i]/mu, f.q.WMax)
		} else {
			w.unsupported += pi[i]
		}
	}
	weight := pi[at] / row.PMF[at]
	if weight > f.q.WMax {
		w.clipped++
	}
	if weight > 0 {
		w.covered++
	}
	o.w = min(weight, f.q.WMax)
	return o, nil
}

// policy returns the target distribution over the row's eligible actions. The slice is valid until the next call.
func (m *fitted) policy(row *Row, f *fitting, w *weighing) ([]float64, error) {
	if f.q.Policy == "logged" {
		return row.PMF, nil
	}
	if f.q.Policy == targetColumn {
		if len(row.Target) != len(row.Eligible) {
			w.fallback++
			return row.PMF, nil
		}
		return row.Target, nil
	}
	pmf := append(m.scratch.pmf[:0], row.PMF...)
	m.scratch.pmf = pmf
	if id, ok := strings.CutPrefix(f.q.Policy, "constant:"); ok && f.candidate == nil {
		found := false
		for i, a := range row.Eligible {
			pmf[i] = 0
			if row.Actions[a].ID == id {
				pmf[i], found = 1, true
			}
		}
		if !found {
			w.fallback++
			return row.PMF, nil
		}
		return pmf, nil
	}
	return pmf, m.modelled(row, f, pmf)
}

// modelled writes the distribution of the fold's target model: the best action, or what the candidate would serve.
func (m *fitted) modelled(row *Row, f *fitting, pmf []float64) error {
	model, spec := m.target[foldOf(row.ID, f.q.Folds)], f.target()
	m.scratch.predictions = m.scratch.predictions[:0]
	for _, a := range row.Eligible {
		in, err := m.input(row, m.declare(row.Actions[a]))
		if err != nil {
			return err
		}
		m.scratch.terms = in.AppendTerms(m.scratch.terms[:0], spec.Learner.Bits)
		m.scratch.predictions = append(m.scratch.predictions, model.Predict(m.scratch.terms))
	}
	if f.candidate == nil { // greedy
		best := argmax(m.scratch.predictions)
		for i := range pmf {
			pmf[i] = 0
		}
		pmf[best] = 1
		return nil
	}
	spec.Exploration.Distribute(pmf, m.scratch.predictions, model.Updates())
	return nil
}
