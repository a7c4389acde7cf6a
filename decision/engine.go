package decision

import (
	"cmp"
	"context"
	"slices"
	"time"

	"holdfast/fault"
)

// engine is what a decide reads of its capsule: one immutable snapshot behind one pointer. Only the model inside changes,
// and its readers see it between two updates.
type engine struct {
	spec    *Spec
	model   *Model
	graph   *Graph // nil without one
	program *ProgramInfo
	actions []Action       // the spec's, or the strategy's options when it declares none
	index   map[string]int // of actions by id
	sets    [][]Feature    // of actions
	frame   *frame         // actions and program as the log holds them
}

// newEngine compiles what decides need. program and info are nil without a graph.
func newEngine(spec *Spec, model *Model, graph *Graph, info *ProgramInfo) (*engine, error) {
	e := &engine{spec: spec, model: model, graph: graph, program: info, actions: spec.Actions}
	if len(e.actions) == 0 && graph != nil {
		for _, option := range graph.Options() {
			e.actions = append(e.actions, Action{ID: option})
		}
	}
	e.index = make(map[string]int, len(e.actions))
	for i, a := range e.actions {
		e.index[a.ID] = i
		set, err := AppendActionFeatures(nil, a.ID, a.Features)
		if err != nil {
			return nil, err
		}
		e.sets = append(e.sets, set)
	}
	name := ""
	if info != nil {
		name = info.SHA256
	}
	e.frame = newFrame(name, e.actions)
	return e, nil
}

// scratch is the working memory of one decide.
type scratch struct {
	score       Scratch
	entropy     entropy
	context     []Feature
	derived     []Feature
	action      []Feature // of all actions of the request
	ends        []int     // where each action's features end
	sets        [][]Feature
	all         [][]Feature // of the request's actions
	state       []eligibility
	eligible    []int
	pmf         []float64
	predictions []float64
	draft       draft
}

// keptFeatures bounds the features that a scratch keeps room for between decides.
const keptFeatures = 1 << 14

func (s *Service) takeScratch() *scratch { return s.scratch.Get().(*scratch) }

func (s *Service) putScratch(x *scratch) {
	x.forget()
	s.scratch.Put(x)
}

// forget drops what belongs to the last request, and memory that only a large one needed.
func (x *scratch) forget() {
	if cap(x.context)+cap(x.derived)+cap(x.action) > keptFeatures {
		x.context, x.derived, x.action, x.sets, x.all = nil, nil, nil, nil, nil
	}
	clear(x.sets)
	clear(x.all)
	x.draft = draft{}
}

func invalid(format string, args ...any) *fault.Error {
	return fault.New("decision.Decide", fault.Invalid, format, args...)
}

// Decide draws one action for req and fills out. It returns once the decision is queued, with req.Durable once it is on
// disk. It fails with Invalid for a request that cannot be decided, Conflict for an EventID that belongs to another request,
// NotFound when the capsule has been deleted, Internal when the graph fails, and Unavailable when the queue is full or a
// durable decision was not on disk in time, in which case the same request may be sent again.
func (c *Capsule) Decide(ctx context.Context, req *Request, out *Answer) error {
	x := c.service.takeScratch()
	defer c.service.putScratch(x)
	if req.EventID == "" {
		f, err := c.decide(x, req, out)
		if err != nil || !req.Durable {
			return err
		}
		return c.await(ctx, f)
	}
	if !ValidDecisionID(req.EventID) {
		return invalid("eventId must be 1 to 128 characters of A-Z a-z 0-9 _ . : -")
	}
	f, err := c.decideOnce(ctx, x, req, out)
	if err != nil || !req.Durable || f == nil {
		return err
	}
	return c.await(ctx, f)
}

// decideOnce is decide for a client-made id. The id's stripe is held from the look-up to the queue, so that two requests
// with one id make one decision. The fate is nil when the decision is on disk already.
func (c *Capsule) decideOnce(ctx context.Context, x *scratch, req *Request, out *Answer) (*fate, error) {
	stripe := &c.stripes[HashText(req.EventID)%uint64(len(c.stripes))]
	stripe.Lock()
	defer stripe.Unlock()
	if c.service.remembers(c, req.EventID) {
		d, f, err := c.find(ctx, req.EventID)
		switch {
		case err == nil && d.Digest != req.Digest:
			return nil, fault.New("decision.Decide", fault.Conflict, "eventId %q is already used for a different request", req.EventID)
		case err == nil:
			return f, c.replay(req, &d, out)
		case fault.KindOf(err) != fault.NotFound:
			return nil, err
		}
		if err := c.refuseHeld(ctx, req.EventID); err != nil {
			return nil, err
		}
	}
	return c.decide(x, req, out)
}

// decide makes a fresh decision and puts it in the queue.
func (c *Capsule) decide(x *scratch, req *Request, out *Answer) (*fate, error) {
	for {
		e := c.engine.Load()
		r, err := e.plan(x, req, c.service.options.Now)
		if err != nil {
			if fault.KindOf(err) == fault.Internal {
				c.denied(req, err)
			}
			return nil, err
		}
		d := &x.draft
		if refusal := c.service.queue.reserve(d.charge); refusal != nil {
			return nil, refusal
		}
		f, err := c.enqueue(e, x)
		if err != nil {
			c.service.queue.release(d.charge)
			switch err {
			case errStale:
				continue // the spec changed meanwhile: decide by the new one
			case errDraws:
				c.requestDraws()
			}
			return nil, err
		}
		d.answer(e, out)
		if r == nil {
			return f, nil
		}
		if out.Graph, err = e.graph.finish(r, out.Action); err != nil {
			c.denied(req, err)
		}
		return f, err
	}
}

// plan fills x.draft up to the draw: the eligible actions, their probabilities and the model they came from.
func (e *engine) plan(x *scratch, req *Request, now func() time.Time) (*run, error) {
	d := &x.draft
	*d = draft{frame: e.frame, id: req.EventID, mode: e.spec.Mode, context: req.Context, digest: req.Digest,
		eligible: x.eligible[:0], pmf: x.pmf[:0]}
	if len(d.context) == 0 {
		d.context = emptyObject
	}
	d.actions, x.sets = e.actions, append(x.sets[:0], e.sets...)
	if req.Actions != nil {
		if err := x.requestActions(req.Actions); err != nil {
			return nil, err
		}
		d.actions, d.own = req.Actions, true
	}
	if len(d.actions) == 0 {
		return nil, errNoActions
	}
	var err error
	if x.context, err = AppendFeatures(x.context[:0], ContextNamespace, req.Context); err != nil {
		return nil, err
	}
	var r *run
	x.derived = x.derived[:0]
	if e.graph != nil {
		if r, err = e.graph.start(d.context, now); err != nil {
			return nil, err
		}
		d.derived, d.reason = r.result.Derived, r.result.Reason
		if x.derived, err = AppendFeatures(x.derived, DerivedNamespace, d.derived); err != nil {
			return nil, err
		}
	}
	baseline, err := e.restrict(x, req, r)
	if err != nil {
		return nil, err
	}
	d.count = len(d.actions)
	if err := e.distribute(x, baseline); err != nil {
		return nil, err
	}
	d.charge = chargeOf(d.size())
	return r, nil
}

var (
	emptyObject  = []byte("{}")
	errNoActions = fault.New("decision.Decide", fault.Invalid, "no actions: neither the request nor the spec names one")
)

// distribute checks the cost and fills d.pmf and d.version.
func (e *engine) distribute(x *scratch, baseline int) error {
	d, total := &x.draft, 0
	for i, set := range x.sets {
		cost := Input{Context: x.context, Derived: x.derived, Action: set}.Cost()
		if cost > MaxActionTerms {
			return invalid("action %q costs %d terms, more than the %d allowed", d.actions[d.eligible[i]].ID, cost, MaxActionTerms)
		}
		total += cost
	}
	if total > MaxDecisionTerms {
		return invalid("the eligible actions cost %d terms, more than the %d allowed", total, MaxDecisionTerms)
	}
	k := len(d.eligible)
	d.pmf = slices.Grow(x.pmf[:0], k)[:k]
	x.pmf = d.pmf
	if baseline >= 0 {
		d.version = e.model.Updates()
		DistributeBaseline(d.pmf, baseline, e.spec.BaselineEpsilon)
		return nil
	}
	x.predictions = slices.Grow(x.predictions[:0], k)[:k]
	d.version = e.model.Score(&x.score, Candidates{Context: x.context, Derived: x.derived, Actions: x.sets}, x.predictions)
	e.spec.Exploration.Distribute(d.pmf, x.predictions, d.version)
	return nil
}

// size is about how long the record will be.
func (d *draft) size() int {
	n := 64 + len(d.id) + len(d.context) + len(d.derived) + len(d.reason) + 10*len(d.pmf)
	if d.own {
		for i := range d.actions {
			n += 4 + len(d.actions[i].ID) + len(d.actions[i].Features)
		}
	}
	return n
}

// errStale says that the engine was replaced between the plan and the queue.
var errStale = fault.New("decision.Decide", fault.Internal, "the spec changed")

// enqueue stamps and draws the planned decision and appends its record to the open batch, all under the capsule's mu: so
// batches are in time order and no draw is used by a decision that is not logged.
func (c *Capsule) enqueue(e *engine, x *scratch) (*fate, error) {
	d, s := &x.draft, c.service
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.gone:
		return nil, c.missing()
	case c.engine.Load() != e:
		return nil, errStale
	}
	if !c.draws.seeded {
		d.seed = s.fresh(&x.entropy)
	} else if seed, ok := c.draws.take(); ok {
		d.seed = seed
	} else {
		return nil, errDraws
	}
	d.chosen = Draw(d.pmf, d.seed)
	d.ms = s.nowMS()
	if d.id == "" {
		d.random = s.names.random()
	} else {
		c.events.add(d.id)
	}
	b := c.open
	if b == nil {
		b = s.queue.fresh(c)
		c.open = b
		c.touch()
	}
	b.add(d)
	if len(b.keys) >= s.options.BatchRecords || len(b.payload) >= fullBytes {
		c.waiting, c.open = append(c.waiting, b), nil
		signal(s.queue.urgent)
	}
	return b.fate, nil
}

// answer fills out from a decision that was just drawn.
func (d *draft) answer(e *engine, out *Answer) {
	out.ID = d.id
	if d.id == "" {
		var room [idLength]byte
		out.ID = string(appendID(room[:0], d.ms, d.random))
	}
	out.ActionIndex = d.eligible[d.chosen]
	out.Action, out.Probability = d.actions[out.ActionIndex].ID, d.pmf[d.chosen]
	out.Mode, out.ModelVersion, out.Reason, out.Replayed, out.Graph = d.mode, d.version, d.reason, false, nil
	out.rank(d.actions, d.eligible, d.pmf)
}

// rank fills the ranking: by descending probability, ties in action order.
func (out *Answer) rank(actions []Action, eligible []int, pmf []float64) {
	list := out.Ranking[:0]
	for i, index := range eligible {
		list = append(list, Ranked{ID: actions[index].ID, Probability: pmf[i]})
	}
	if len(list) > fewActions {
		slices.SortStableFunc(list, func(a, b Ranked) int { return cmp.Compare(b.Probability, a.Probability) })
		out.Ranking = list
		return
	}
	for i := 1; i < len(list); i++ {
		r, j := list[i], i
		for ; j > 0 && list[j-1].Probability < r.Probability; j-- {
			list[j] = list[j-1]
		}
		list[j] = r
	}
	out.Ranking = list
}

// replay answers a repeated request from the decision that was made for it.
func (c *Capsule) replay(req *Request, d *Decision, out *Answer) error {
	out.ID, out.ActionIndex, out.Probability = d.ID, d.Chosen, d.Probability
	out.Action = d.Actions[d.Chosen].ID
	out.Mode, out.ModelVersion, out.Reason, out.Replayed, out.Graph = d.Mode, d.ModelVersion, d.Reason, true, nil
	out.rank(d.Actions, d.Eligible, d.PMF)
	e := c.engine.Load()
	if e.graph == nil || d.Program != e.program.SHA256 {
		return nil // the graph that shaped the first answer is gone; what it decided is in the record
	}
	r, err := e.graph.start(d.Context, c.service.options.Now)
	if err == nil {
		out.Graph, err = e.graph.finish(r, out.Action)
	}
	return err
}
