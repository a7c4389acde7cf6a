package decision

import (
	"cmp"
	"math"
	"slices"
)

// Candidates are the actions of one decide in their context, as features.
type Candidates struct {
	Context, Derived []Feature
	Actions          [][]Feature
}

// Scratch is working memory for Score, to be reused by one goroutine at a time. The zero value is ready.
type Scratch struct {
	outer []outerState
	terms []Term // of all actions, as hashed
	ends  []int  // where each action's terms end
	hits  []hit  // terms whose slot holds a weight
	marks []int  // where each action's hits end
}

// outerState is a context or derived feature with its hash already in the state of every cross.
type outerState struct {
	state uint64
	value float64
}

// hit is a term together with the word of its slot. The key holds slot and value so that keys sort like terms: comparing
// one number instead of two is a tenth of a decide.
type hit struct{ key, word uint64 }

func newHit(t Term, word uint64) hit {
	b := math.Float32bits(t.X)
	b ^= uint32(int32(b)>>31) | 1<<31 // below zero all bits turn, else the sign alone: the order of floats
	return hit{key: uint64(t.Slot)<<32 | uint64(b), word: word}
}

func (h hit) slot() uint32 { return uint32(h.key >> 32) }

func (h hit) value() float64 {
	b := uint32(h.key)
	b ^= uint32(int32(^b)>>31) | 1<<31
	return float64(math.Float32frombits(b))
}

// largeScratch is the number of terms above which working memory is given back instead of kept.
const largeScratch = 1 << 14

// Score writes the prediction of every action into out, which has the same length, and returns the number of updates of
// the model they were taken from; all come from the same moment. The values equal Predict of each action's AppendTerms, bit
// for bit. The caller has checked the bounds on terms.
func (m *Model) Score(s *Scratch, x Candidates, out []float64) (n uint64) {
	clear(out)
	if m.updates.Load() == 0 {
		return 0
	}
	s.hash(x, m.bits)
	n = m.gather(s)
	from := 0
	for i, end := range s.marks {
		out[i] = predictHits(s.hits[from:end])
		from = end
	}
	if cap(s.terms) > largeScratch || cap(s.hits) > largeScratch {
		*s = Scratch{}
	}
	return n
}

// hash fills terms. It is AppendTerms for all actions at once, each context feature hashed once, without the sorting.
func (s *Scratch) hash(x Candidates, bits int) {
	s.outer, s.terms, s.ends = s.outer[:0], s.terms[:0], s.ends[:0]
	for _, list := range [...][]Feature{x.Context, x.Derived} {
		for _, p := range list {
			s.outer = append(s.outer, outerState{state: fnvWord(fnvBasis, p.Hash), value: float64(p.Value)})
		}
	}
	for _, action := range x.Actions {
		s.terms = appendAction(s.terms, action, bits)
		for _, q := range action {
			for _, p := range s.outer {
				x := saturate(p.value * float64(q.Value))
				s.terms = append(s.terms, Term{Slot: slotOf(fnvWord(p.state, q.Hash), bits), X: x})
			}
		}
		s.ends = append(s.ends, len(s.terms))
	}
}

// gather fills hits from one moment of the model and returns its number of updates.
func (m *Model) gather(s *Scratch) uint64 {
	for range attempts {
		before := m.version.Load()
		if before%2 != 0 {
			continue
		}
		m.collect(s)
		n := m.updates.Load()
		if m.version.Load() == before {
			return n
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.collect(s)
	return m.updates.Load()
}

// collect keeps the terms whose slot holds a weight. The others would add zero, so that leaving them out here, before the
// sorting that decides the order of the sum, changes no bit of it.
func (m *Model) collect(s *Scratch) {
	s.hits, s.marks = s.hits[:0], s.marks[:0]
	from := 0
	for _, end := range s.ends {
		for _, t := range s.terms[from:end] {
			if word := m.load(t.Slot); word>>32 != 0 {
				s.hits = append(s.hits, newHit(t, word))
			}
		}
		s.marks = append(s.marks, len(s.hits))
		from = end
	}
}

// predictHits brings hits into canonical form and sums them.
func predictHits(hits []hit) (p float64) {
	sortHits(hits)
	for i := 0; i < len(hits); {
		first, sum := hits[i], hits[i].value()
		for i++; i < len(hits) && hits[i].slot() == first.slot(); i++ {
			sum += hits[i].value()
		}
		weight, scale := unpack(first.word)
		p += float64(float64(weight) * (float64(saturate(sum)) / float64(scale)))
	}
	return p
}

// sortHits sorts few hits by insertion, which beats the general sort up to about this many.
func sortHits(hits []hit) {
	if len(hits) > 48 {
		slices.SortFunc(hits, func(a, b hit) int { return cmp.Compare(a.key, b.key) })
		return
	}
	for i := 1; i < len(hits); i++ {
		h, j := hits[i], i
		for ; j > 0 && hits[j-1].key > h.key; j-- {
			hits[j] = hits[j-1]
		}
		hits[j] = h
	}
}
