package decision

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// naiveModel is the learner as it is defined: a map, no pages, no packing.
type naiveModel struct {
	slots map[uint32]*struct{ u, s, a float32 }
	t, n  float64
}

func newNaiveModel() *naiveModel { return &naiveModel{slots: map[uint32]*struct{ u, s, a float32 }{}} }

func narrow(v float64) float32 {
	return float32(math.Max(-math.MaxFloat32, math.Min(math.MaxFloat32, v)))
}

func (m *naiveModel) predict(terms []Term) (p float64) {
	for _, term := range terms {
		if c := m.slots[term.Slot]; c != nil && c.s > 0 {
			ratio := float64(term.X) / float64(c.s)
			product := float64(c.u) * ratio
			p += product
		}
	}
	return p
}

func (m *naiveModel) update(terms []Term, y, h, learningRate float64) {
	for _, term := range terms {
		c := m.slots[term.Slot]
		if c == nil {
			c = &struct{ u, s, a float32 }{}
			m.slots[term.Slot] = c
		}
		size := float32(math.Abs(float64(term.X)))
		if size > c.s {
			if c.s > 0 {
				r := float64(c.s) / float64(size)
				c.a = narrow(float64(c.a) * r * r)
			}
			c.s = size
		}
	}
	p, squares := m.predict(terms), 0.0
	for _, term := range terms {
		ratio := float64(term.X) / float64(m.slots[term.Slot].s)
		square := ratio * ratio
		squares += square
	}
	m.t += h
	m.n += h * squares
	d := p - y
	if d == 0 || m.n <= 0 {
		return
	}
	rate := learningRate * math.Sqrt(m.t/m.n)
	for _, term := range terms {
		c := m.slots[term.Slot]
		g := h * d * (float64(term.X) / float64(c.s))
		square := g * g
		sum := float64(c.a) + square
		if c.a = narrow(sum); c.a == 0 {
			continue
		}
		c.u = narrow(float64(c.u) - rate*g/math.Sqrt(sum))
	}
}

func TestModelEqualsItsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, bits := range []int{10, 18, 24} {
		m, want, scratch := NewModel(bits), newNaiveModel(), new(Scratch)
		for step := range 600 {
			x := Candidates{Context: randomInput(r).Context, Derived: randomInput(r).Derived}
			for range 1 + r.IntN(4) {
				x.Actions = append(x.Actions, randomInput(r).Action)
			}
			out := make([]float64, len(x.Actions))
			n := m.Score(scratch, x, out)
			for i, action := range x.Actions {
				terms := Input{x.Context, x.Derived, action}.AppendTerms(nil, bits)
				p := want.predict(terms)
				if n != uint64(step) || math.Float64bits(out[i]) != math.Float64bits(p) || m.Predict(terms) != p {
					t.Fatalf("%d bits, step %d (n %d): score %v, predict %v, want %v", bits, step, n, out[i], m.Predict(terms), p)
				}
			}
			terms := Input{x.Context, x.Derived, x.Actions[0]}.AppendTerms(nil, bits)
			y, h, rate := r.Float64(), []float64{1, 1, 7.25, 100}[r.IntN(4)], []float64{0.5, 0.1, 10}[r.IntN(3)]
			m.Update(terms, y, h, rate)
			want.update(terms, y, h, rate)
		}
		if m.total != want.t || m.norm != want.n {
			t.Errorf("%d bits: t %v N %v, want %v %v", bits, m.total, m.norm, want.t, want.n)
		}
		for slot, c := range want.slots {
			p := m.pages[slot>>pageShift].Load()
			if u, s := unpack(p.words[slot%pageSlots].Load()); u != c.u || s != c.s || p.sums[slot%pageSlots] != c.a {
				t.Errorf("%d bits, slot %d: %v %v %v, want %v", bits, slot, u, s, p.sums[slot%pageSlots], *c)
			}
		}
	}
}

// Many crosses take the general sort instead of the insertion.
func TestScoreOfManyTerms(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var x Candidates
	for range 60 {
		x.Context = append(x.Context, Feature{r.Uint64(), float32(r.NormFloat64())})
	}
	for range 3 {
		x.Actions = append(x.Actions, []Feature{{r.Uint64(), 1}, {r.Uint64(), float32(r.NormFloat64())}, {r.Uint64(), 2}})
	}
	m, out := NewModel(10), make([]float64, 3)
	for i := range 50 {
		terms := Input{Context: x.Context, Action: x.Actions[i%3]}.AppendTerms(nil, 10)
		m.Update(terms, float64(i%2), 1, 0.5)
	}
	m.Score(new(Scratch), x, out)
	for i, action := range x.Actions {
		if want := m.Predict(Input{Context: x.Context, Action: action}.AppendTerms(nil, 10)); out[i] != want || want == 0 {
			t.Errorf("action %d: %v, want %v", i, out[i], want)
		}
	}
}

func TestUntrainedPredictsZero(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	m, out := NewModel(18), []float64{1, 2}
	x := Candidates{Context: randomInput(r).Context, Actions: [][]Feature{randomInput(r).Action, randomInput(r).Action}}
	if n := m.Score(new(Scratch), x, out); n != 0 || out[0] != 0 || out[1] != 0 {
		t.Errorf("got %v after %d", out, n)
	}
}

func TestUnknownSlotsPredictZero(t *testing.T) {
	m := NewModel(18)
	m.Update([]Term{{1, 1}, {70, 2}}, 1, 1, 0.5)
	if p := m.Predict([]Term{{2, 1}, {71, 1}, {100_000, 5}}); p != 0 {
		t.Errorf("unknown slots predict %v", p)
	}
	if p := m.Predict([]Term{{1, 1}, {70, 2}, {100_000, 5}}); p == 0 || p != m.Predict([]Term{{1, 1}, {70, 2}}) {
		t.Errorf("an unknown slot changes the prediction: %v", p)
	}
}

// Multiplying a feature by a power of two, always the same one, changes no prediction at all.
func TestPowersOfTwoChangeNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, factor := range []float32{0.25, 2, 1024, 1.0 / 65536} {
		plain, scaled := NewModel(18), NewModel(18)
		for range 300 {
			price, load := float32(r.Float64()*20), float32(r.NormFloat64())
			terms := func(factor float32) []Term {
				in := Input{Context: []Feature{{11, load * factor}, {12, 1}}, Action: []Feature{{21, 1}, {30, price * factor}}}
				return in.AppendTerms(nil, 18)
			}
			a, b, y := terms(1), terms(factor), r.Float64()
			if p, q := plain.Predict(a), scaled.Predict(b); p != q {
				t.Fatalf("times %v: %v, before %v", factor, q, p)
			}
			plain.Update(a, y, 1, 0.5)
			scaled.Update(b, y, 1, 0.5)
		}
	}
}

func TestExtremesStayFinite(t *testing.T) {
	m := NewModel(10)
	for i := range 200 {
		x := []float32{math.MaxFloat32, math.SmallestNonzeroFloat32, -math.MaxFloat32, 1}[i%4]
		m.Update([]Term{{3, x}, {4, -x}}, float64(i%2), 1e6, 10)
		if p := m.Predict([]Term{{3, math.MaxFloat32}, {4, 1}}); !finite(p) {
			t.Fatalf("step %d predicts %v", i, p)
		}
	}
	if !finite(m.norm) || !finite(m.total) {
		t.Errorf("t %v, N %v", m.total, m.norm)
	}
}

func TestEmptyAndExactUpdatesCount(t *testing.T) {
	m := NewModel(10)
	if n := m.Update(nil, 1, 1, 0.5); n != 1 || m.norm != 0 {
		t.Errorf("an update without terms: n %d, N %v", n, m.norm)
	}
	m.Update([]Term{{1, 1}}, 0, 1, 0.5) // predicts 0 exactly: no step, but the scale and the sums move
	if m.Updates() != 2 || m.norm != 1 || m.total != 2 || m.load(1) != pack(0, 1) {
		t.Errorf("n %d, N %v, t %v, word %x", m.Updates(), m.norm, m.total, m.load(1))
	}
}

func TestModelBitsAreChecked(t *testing.T) {
	for _, bits := range []int{-1, 9, 25} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d bits made a model", bits)
				}
			}()
			NewModel(bits)
		}()
	}
}

// Readers beside a busy writer must see whole updates only: each pair of predictions must be one that the model had after
// exactly the reported number of updates.
func TestReadersSeeWholeUpdates(t *testing.T) {
	const bits, steps, readers = 12, 4000, 4
	context := features(t, ContextNamespace, `{"region":"eu","load":2,"hour":7}`)
	actions := [][]Feature{actionFeatures(t, "tiny", `{"cost":0.25}`), actionFeatures(t, "huge", `{"cost":1}`)}
	x := Candidates{Context: context, Actions: actions}
	step := func(m *Model, i int) {
		terms := Input{Context: context, Action: actions[i%2]}.AppendTerms(nil, bits)
		m.Update(terms, float64(i*7%11)/10, 1, 0.5)
	}
	known := make([][2]float64, steps+1)
	reference, scratch := NewModel(bits), new(Scratch)
	for i := range steps {
		step(reference, i)
		reference.Score(scratch, x, known[i+1][:])
	}
	m, done := NewModel(bits), make(chan struct{})
	var group sync.WaitGroup
	for range readers {
		group.Go(func() {
			scratch, out, last := new(Scratch), make([]float64, 2), uint64(0)
			terms := Input{Context: context, Action: actions[0]}.AppendTerms(nil, bits)
			for {
				n := m.Score(scratch, x, out)
				if n < last || [2]float64(out) != known[n] {
					t.Errorf("after %d updates (%d before): %v, want %v", n, last, out, known[n])
					return
				}
				last = n
				low := m.Updates()
				p := m.Predict(terms)
				high := m.Updates()
				if !slices.ContainsFunc(known[low:high+1], func(k [2]float64) bool { return k[0] == p }) {
					t.Errorf("%v was never predicted between %d and %d", p, low, high)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range steps {
		step(m, i)
		if i%500 == 0 {
			m.AppendSnapshot(nil, 0.5)
		}
	}
	close(done)
	group.Wait()
}

// A reader that always loses the race is served under the lock.
func TestReaderFallsBackToTheLock(t *testing.T) {
	m := NewModel(10)
	terms := []Term{{1, 1}}
	m.Update(terms, 1, 1, 0.5)
	want := m.Predict(terms)
	m.version.Add(1) // as if an update were stored for ever
	x := Candidates{Actions: [][]Feature{nil}}
	out := make([]float64, 1)
	if p := m.Predict(terms); p != want || want == 0 {
		t.Errorf("predicts %v, want %v", p, want)
	}
	if n := m.Score(new(Scratch), x, out); n != 1 {
		t.Errorf("scored after %d updates", n)
	}
}

func TestIdleModelIsSmall(t *testing.T) {
	for bits, most := range map[int]uint64{10: 16 << 10, 18: 40 << 10, 24: 3 << 20} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m := NewModel(bits)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > most {
			t.Errorf("an untouched model of %d bits takes %d bytes", m.Bits(), got)
		}
	}
}

// trained returns the hot case: three spec actions with two features each, a small context, and a model that has seen
// all of it.
func trained(tb testing.TB) (*Model, Candidates) {
	tb.Helper()
	m := NewModel(18)
	x := Candidates{Context: features(tb, ContextNamespace, smallContext)}
	for i, id := range []string{"express", "standard", "pickup"} {
		x.Actions = append(x.Actions, actionFeatures(tb, id, smallAction))
		m.Update(Input{Context: x.Context, Action: x.Actions[i]}.AppendTerms(nil, 18), float64(i)/2, 1, 0.5)
	}
	return m, x
}

func TestModelAllocations(t *testing.T) {
	m, x := trained(t)
	scratch, out, pmf := new(Scratch), make([]float64, 3), make([]float64, 3)
	if n := testing.AllocsPerRun(100, func() {
		n := m.Score(scratch, x, out)
		defaultExploration.Distribute(pmf, out, n)
		Draw(pmf, n)
	}); n != 0 {
		t.Errorf("score, distribute and draw allocate %v times", n)
	}
	terms := make([]Term, 0, 64)
	if n := testing.AllocsPerRun(100, func() {
		terms = Input{Context: x.Context, Action: x.Actions[0]}.AppendTerms(terms[:0], 18)
		m.Update(terms, 1, 1, 0.5)
		m.Predict(terms)
	}); n != 0 {
		t.Errorf("an update allocates %v times", n)
	}
}

func TestLargeScratchIsGivenBack(t *testing.T) {
	m, x := trained(t)
	for i := range 3000 {
		x.Context = append(x.Context, Feature{uint64(i), 1})
	}
	scratch := new(Scratch)
	m.Score(scratch, x, make([]float64, 3))
	if cap(scratch.terms) != 0 {
		t.Errorf("%d terms are kept", cap(scratch.terms))
	}
	m.Update(make([]Term, 2*largeScratch), 1, 1, 0.5)
	if cap(m.cells) != 0 {
		t.Errorf("%d cells are kept", cap(m.cells))
	}
}

func BenchmarkScore(b *testing.B) {
	m, x := trained(b)
	scratch, out := new(Scratch), make([]float64, 3)
	b.ReportAllocs()
	for b.Loop() {
		m.Score(scratch, x, out)
	}
}

// BenchmarkChoose is all the arithmetic of one decide: features of the context, scores, probabilities, draw.
func BenchmarkChoose(b *testing.B) {
	m, x := trained(b)
	scratch, out, pmf, raw := new(Scratch), make([]float64, 3), make([]float64, 3), []byte(smallContext)
	seed := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		x.Context, _ = AppendFeatures(x.Context[:0], ContextNamespace, raw)
		n := m.Score(scratch, x, out)
		defaultExploration.Distribute(pmf, out, n)
		seed += uint64(Draw(pmf, seed)) + 1
	}
}

func BenchmarkUpdate(b *testing.B) {
	m, x := trained(b)
	terms := Input{Context: x.Context, Action: x.Actions[0]}.AppendTerms(nil, 18)
	b.ReportAllocs()
	for b.Loop() {
		m.Update(terms, 1, 1, 0.5)
	}
}

func BenchmarkTerms(b *testing.B) {
	_, x := trained(b)
	terms := make([]Term, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		terms = Input{Context: x.Context, Action: x.Actions[0]}.AppendTerms(terms[:0], 18)
	}
}
