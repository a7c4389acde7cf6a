package decision

import (
	"fmt"
	"slices"
	"sync"

	"holdfast/fault"
	"holdfast/internal/strictjson"
)

// sectionVersion is the newest form of a decide section that this code reads.
const sectionVersion = 1

// Policy decides as a capsule did when it published: the same input and seed give the same draw, bit for bit, wherever it
// runs. It learns nothing, does no I/O and is safe for concurrent use.
type Policy struct {
	tag     string
	engine  *engine
	scratch sync.Pool // of *scratch
}

// OpenPolicy opens a publication from the two texts that a capsule publishes. Invalid for a section of a newer version, or
// for one that is no section, and for a damaged snapshot. Unknown members of the section are ignored.
func OpenPolicy(section, snapshot []byte) (*Policy, error) {
	spec, err := sectionSpec(section)
	if err != nil {
		return nil, err
	}
	model, _, err := DecodeSnapshot(snapshot)
	if err != nil {
		return nil, err
	}
	if model.Bits() != spec.Learner.Bits {
		return nil, fault.New("decision.OpenPolicy", fault.Invalid, "the section is of %d bits and the snapshot of %d", spec.Learner.Bits, model.Bits())
	}
	e, err := newEngine(spec, model, nil, nil)
	if err != nil {
		return nil, err
	}
	p := &Policy{tag: ModelTag(section, snapshot), engine: e}
	p.scratch.New = func() any { return new(scratch) }
	return p, nil
}

// sectionSpec is the spec that a section says of; what it does not say is at its default.
func sectionSpec(section []byte) (*Spec, error) {
	if err := strictjson.Validate(section, maxDocumentDepth); err != nil {
		return nil, fault.New("decision.OpenPolicy", fault.Invalid, "the decide section is no JSON: %v", err)
	}
	version, ok := strictjson.Uint(memberOf(section, "version"))
	if !ok || version > sectionVersion {
		return nil, fault.New("decision.OpenPolicy", fault.Invalid, "a decide section of version %s, newer than the %d that is understood",
			memberOf(section, "version"), sectionVersion)
	}
	known := []string{"actions", "baselineEpsilon", "exploration", "mode", "rewards", "seed"}
	bits := memberOf(section, "bits")
	if bits == nil {
		return nil, fault.New("decision.OpenPolicy", fault.Invalid, "the decide section lacks bits")
	}
	text := fmt.Appendf(nil, `{"learner":{"bits":%s}`, bits)
	for _, m := range members(section) {
		if slices.Contains(known, m.name) {
			text = append(append(append(append(text, ','), m.raw...), ':'), m.value...)
		}
	}
	return ParseSpec(append(text, '}'))
}

// Tag names the publication.
func (p *Policy) Tag() string { return p.tag }

// Version is the number of rewards that the published model had learned from.
func (p *Policy) Version() uint64 { return p.engine.model.Updates() }

// Seed is the capsule's fixed seed, nil without one.
func (p *Policy) Seed() *uint64 { return p.engine.spec.Seed }

// Aggregation says which rewards of one decision count.
func (p *Policy) Aggregation() Aggregation { return p.engine.spec.Rewards }

// Decide draws one action for req with a seed. The id of the decision is req.EventID; its time is left to the caller, and it
// shares the memory of req. Invalid for a request that cannot be decided.
func (p *Policy) Decide(req *Request, seed uint64) (Decision, error) {
	x := p.scratch.Get().(*scratch)
	defer func() {
		x.forget()
		p.scratch.Put(x)
	}()
	if _, err := p.engine.plan(x, req, nil); err != nil {
		return Decision{}, err
	}
	d := &x.draft
	place := Draw(d.pmf, seed)
	made := Decision{ID: d.id, ModelVersion: d.version, Mode: d.mode, Context: d.context, Actions: d.actions,
		Eligible: slices.Clone(d.eligible), PMF: slices.Clone(d.pmf), Seed: seed, Digest: d.digest,
		Chosen: d.eligible[place], Probability: d.pmf[place]}
	return made, nil
}
