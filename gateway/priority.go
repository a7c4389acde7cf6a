package gateway

import "slices"

// PriorityLogic is what the priority step of a decision answers. It may be used again: prioritise empties it first.
type PriorityLogic struct {
	Enforcement bool // only listed gateways may be chosen
	Gateways    []Name
	Tag         string // name of the rule that matched; empty when none did
	References  []Reference
	Primary     *LogicRun // nil when no algorithm was run
	Fallback    *LogicRun // nil unless the primary failed

	primary, fallback LogicRun
	connectors        []Connector
	values            []value
}

// Reference is the account that a rule names at a gateway.
type Reference struct {
	Gateway Name
	ID      string
}

// LogicRun says how one algorithm went.
type LogicRun struct {
	Name   string
	Status string // SUCCESS or FAILURE
	Reason string // failure_reason: NO_ERROR on success
}

// prioritise answers the priority step of a decision: the merchant's active payment algorithm over what is known of the
// payment, else the merchant's list of gateways, else the eligible gateways in their order. It fails nothing: an algorithm
// that cannot be run is reported in Primary, and the list of gateways takes its place. It allocates nothing once out has
// been used, unless a rule compares metadata.
func (set *settings) prioritise(r *Request, draw uint64, out *PriorityLogic) {
	out.reset()
	if a := set.active[ForPayment]; a != nil && a.Kind != KindExperiment {
		if a.prioritise(r, draw, out) {
			return
		}
		out.fallback = LogicRun{Name: "gateway_priority", Status: "SUCCESS", Reason: "NO_ERROR"}
		out.Fallback = &out.fallback
	}
	if len(set.priority) > 0 {
		out.Gateways = append(out.Gateways, set.priority...)
		return
	}
	out.Gateways = append(out.Gateways, r.Eligible...)
}

func (out *PriorityLogic) reset() {
	clear(out.values)
	*out = PriorityLogic{Gateways: out.Gateways[:0], References: out.References[:0], connectors: out.connectors[:0], values: out.values}
}

// prioritise puts the algorithm's connectors into out; false when it could not be run.
func (a *Algorithm) prioritise(r *Request, draw uint64, out *PriorityLogic) bool {
	out.primary = LogicRun{Name: a.Name, Status: "SUCCESS", Reason: "NO_ERROR"}
	out.Primary = &out.primary
	if a.broken != nil {
		out.primary.Status, out.primary.Reason = "FAILURE", "COMPILATION_ERROR"
		return false
	}
	output := a.output
	if p := a.program; p != nil {
		out.values = slots(out.values, len(p.names))
		p.derive(&r.Payment, out.values)
		went := p.run(out.values)
		if went.wrong != nil {
			out.primary.Status, out.primary.Reason = "FAILURE", "PL_EVALUATION_FAILED"
			return false
		}
		output = went.output
		if went.rule != nil {
			out.Tag = went.rule.name
		}
	}
	out.connectors = output.appendConnectors(out.connectors, draw)
	for _, c := range out.connectors {
		out.Gateways = append(out.Gateways, c.Gateway)
		if c.ID != "" && !out.refers(c.Gateway) {
			out.References = append(out.References, Reference(c))
		}
	}
	return true
}

// refers reports whether an account at the gateway is named already: the first one counts, on the wire they are members of
// one object.
func (out *PriorityLogic) refers(g Name) bool {
	return slices.ContainsFunc(out.References, func(r Reference) bool { return r.Gateway == g })
}

// slots is room for n values, all of them nothing.
func slots(old []value, n int) []value {
	if cap(old) < n {
		return make([]value, n)
	}
	old = old[:n]
	clear(old)
	return old
}
