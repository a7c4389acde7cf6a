package decision

import (
	"cmp"
	"math"
	"slices"
)

// Bounds on the terms that a decide may cost, counted before equal slots are merged; the bounds themselves are accepted.
const (
	MaxActionTerms   = 1 << 20
	MaxDecisionTerms = 1 << 22 // over all eligible actions
)

// Term is one coordinate of the vector that the model sees: a slot and its value.
type Term struct {
	Slot uint32
	X    float32
}

// Input is one action in its context, as features.
type Input struct{ Context, Derived, Action []Feature }

// Cost is the number of terms that count against MaxActionTerms.
func (in Input) Cost() int {
	return len(in.Action) * (1 + len(in.Context) + len(in.Derived))
}

// AppendTerms appends to dst the canonical vector that decides and learning use, for a model of the given bits: the bias,
// every action feature, and every context and derived feature crossed with every action feature. Context-only terms are
// left out because they cannot change a ranking.
func (in Input) AppendTerms(dst []Term, bits int) []Term {
	from := len(dst)
	dst = appendAction(dst, in.Action, bits)
	dst = appendCrossed(dst, in.Context, in.Action, bits)
	dst = appendCrossed(dst, in.Derived, in.Action, bits)
	return dst[:from+len(canonical(dst[from:]))]
}

// AppendRewardTerms is AppendTerms with the context-only terms, which the reward model of an evaluation needs.
func (in Input) AppendRewardTerms(dst []Term, bits int) []Term {
	from := len(dst)
	dst = appendAction(dst, in.Action, bits)
	dst = appendPlain(dst, in.Context, bits)
	dst = appendPlain(dst, in.Derived, bits)
	dst = appendCrossed(dst, in.Context, in.Action, bits)
	dst = appendCrossed(dst, in.Derived, in.Action, bits)
	return dst[:from+len(canonical(dst[from:]))]
}

// appendAction appends the bias and the action's own features.
func appendAction(dst []Term, action []Feature, bits int) []Term {
	dst = append(dst, Term{Slot: slotOf(biasHash(), bits), X: 1})
	return appendPlain(dst, action, bits)
}

func appendPlain(dst []Term, features []Feature, bits int) []Term {
	for _, f := range features {
		dst = append(dst, Term{Slot: slotOf(f.Hash, bits), X: f.Value})
	}
	return dst
}

func appendCrossed(dst []Term, outer, inner []Feature, bits int) []Term {
	for _, p := range outer {
		state := fnvWord(fnvBasis, p.Hash)
		for _, q := range inner {
			h := fnvWord(state, q.Hash)
			dst = append(dst, Term{Slot: slotOf(h, bits), X: saturate(float64(p.Value) * float64(q.Value))})
		}
	}
	return dst
}

func biasHash() uint64 { return fnvText(namespaceState(biasNamespace), "bias") }

// saturate narrows v to 32 bits, the largest finite ones standing for what is beyond.
func saturate(v float64) float32 {
	switch {
	case v > math.MaxFloat32:
		return math.MaxFloat32
	case v < -math.MaxFloat32:
		return -math.MaxFloat32
	}
	return float32(v)
}

// canonical sorts terms by slot and value, adds those of one slot in 64 bits and drops zeros, all in place.
func canonical(terms []Term) []Term {
	slices.SortFunc(terms, compareTerms)
	out := terms[:0]
	for i := 0; i < len(terms); {
		slot, sum := terms[i].Slot, 0.0
		for ; i < len(terms) && terms[i].Slot == slot; i++ {
			sum += float64(terms[i].X)
		}
		if x := saturate(sum); x != 0 {
			out = append(out, Term{Slot: slot, X: x})
		}
	}
	return out
}

func compareTerms(a, b Term) int {
	if a.Slot != b.Slot {
		return cmp.Compare(a.Slot, b.Slot)
	}
	return cmp.Compare(a.X, b.X)
}
