package decision

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// naiveTerms is the definition of the vector, with a map and whole byte strings.
func naiveTerms(in Input, bits int, contextTerms string) []Term {
	values := map[uint32][]float32{}
	put := func(hash uint64, x float32) {
		slot := uint32(Finalize(hash) % (1 << bits))
		values[slot] = append(values[slot], x)
	}
	word := func(h uint64) string {
		b := make([]byte, 8)
		for i := range b {
			b[i] = byte(h >> (8 * i))
		}
		return string(b)
	}
	put(HashText("b\x00bias"), 1)
	outer := slices.Concat(in.Context, in.Derived)
	for _, q := range in.Action {
		put(q.Hash, q.Value)
		for _, p := range outer {
			x := float64(p.Value) * float64(q.Value)
			put(HashText(word(p.Hash)+word(q.Hash)), float32(math.Max(-math.MaxFloat32, math.Min(math.MaxFloat32, x))))
		}
	}
	if contextTerms == "with" {
		for _, p := range outer {
			put(p.Hash, p.Value)
		}
	}
	var out []Term
	for slot, list := range values {
		slices.Sort(list)
		sum := 0.0
		for _, x := range list {
			sum += float64(x)
		}
		if x := float32(math.Max(-math.MaxFloat32, math.Min(math.MaxFloat32, sum))); x != 0 {
			out = append(out, Term{slot, x})
		}
	}
	slices.SortFunc(out, compareTerms)
	return out
}

// randomInput has few bits of hash, so that slots collide, and values of every size.
func randomInput(r *rand.Rand) Input {
	list := func(most int) (out []Feature) {
		for range r.IntN(most + 1) {
			out = append(out, Feature{Hash: r.Uint64N(40), Value: randomValue(r)})
		}
		return out
	}
	return Input{Context: list(6), Derived: list(3), Action: list(5)}
}

func randomValue(r *rand.Rand) float32 {
	switch r.IntN(8) {
	case 0:
		return 0
	case 1:
		return float32(math.Copysign(math.MaxFloat32, r.Float64()-0.5))
	case 2:
		return math.SmallestNonzeroFloat32
	case 3:
		return float32(r.IntN(5) - 2)
	default:
		return float32(r.NormFloat64() * math.Pow(10, float64(r.IntN(9)-4)))
	}
}

func TestTermsEqualTheirDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		in, bits := randomInput(r), 10+r.IntN(15)
		prefix := []Term{{7, 7}}
		if got, want := in.AppendTerms(slices.Clone(prefix), bits), naiveTerms(in, bits, "without"); !slices.Equal(got[1:], want) || got[0] != prefix[0] {
			t.Fatalf("%+v\ngot  %v\nwant %v", in, got, want)
		}
		if got, want := in.AppendRewardTerms(nil, bits), naiveTerms(in, bits, "with"); !slices.Equal(got, want) {
			t.Fatalf("%+v with context terms\ngot  %v\nwant %v", in, got, want)
		}
	}
}

func TestCanonicalForm(t *testing.T) {
	const most = math.MaxFloat32
	got := canonical([]Term{{5, 1}, {2, 3}, {5, -1}, {9, most}, {9, most}, {2, 0.5}, {7, 0}, {8, -most}, {8, -1e38}})
	if want := []Term{{2, 3.5}, {8, -most}, {9, most}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// Sorting by value fixes the order of the sum: any order of equal slots gives the same bits.
	values := []Term{{1, 1e8}, {1, 3e-8}, {1, -1e8}, {1, 0.1}, {1, 7}}
	want := canonical(slices.Clone(values))
	for range 50 {
		rand.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		if got := canonical(slices.Clone(values)); !slices.Equal(got, want) {
			t.Fatalf("order %v gives %v, another %v", values, got, want)
		}
	}
}

func TestCost(t *testing.T) {
	in := Input{Context: make([]Feature, 3), Derived: make([]Feature, 2), Action: make([]Feature, 4)}
	if got := in.Cost(); got != 24 {
		t.Errorf("got %d", got)
	}
	if got := (Input{Action: make([]Feature, 1)}).Cost(); got != 1 {
		t.Errorf("an id alone costs %d", got)
	}
}
