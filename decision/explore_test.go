package decision

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestDistributionsHoldTheirPromises(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	for range 5000 {
		k := 1 + r.IntN(20)
		pmf, predictions := make([]float64, k), make([]float64, k)
		for i := range predictions {
			predictions[i] = r.NormFloat64()
		}
		e := Exploration{Kind: ExplorationKind(r.IntN(2)), GammaScale: r.Float64() * 1e6, GammaExponent: r.Float64(), Epsilon: r.Float64(), Floor: 1 - r.Float64()}
		e.Distribute(pmf, predictions, r.Uint64N(1e6))
		sum := 0.0
		for i, p := range pmf {
			sum += p
			if p < e.Floor/float64(k) || p > 1 {
				t.Fatalf("%+v: entry %d of %v is outside [%v, 1]", e, i, pmf, e.Floor/float64(k))
			}
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Fatalf("%+v: %v adds up to %v", e, pmf, sum)
		}
		if best := argmax(predictions); pmf[best] < slices.Max(pmf)-1e-12 {
			t.Fatalf("%+v: the best of %v has not the most of %v", e, predictions, pmf)
		}
	}
}

func TestColdStartIsUniform(t *testing.T) {
	pmf := make([]float64, 4)
	defaultExploration.Distribute(pmf, make([]float64, 4), 0)
	for _, p := range pmf {
		if math.Abs(p-0.25) > 1e-15 {
			t.Errorf("got %v", pmf)
		}
	}
}

func TestSingleActionIsCertain(t *testing.T) {
	for _, kind := range []ExplorationKind{SquareCB, EpsilonGreedy} {
		pmf := []float64{0}
		Exploration{Kind: kind, Epsilon: 0.3, Floor: 0.7}.Distribute(pmf, []float64{-3}, 9)
		if pmf[0] != 1 {
			t.Errorf("kind %d: %v", kind, pmf)
		}
	}
	pmf := []float64{0}
	if DistributeBaseline(pmf, 0, 0.5); pmf[0] != 1 {
		t.Errorf("baseline: %v", pmf)
	}
}

func TestPredictionsAreClamped(t *testing.T) {
	one, two := make([]float64, 3), make([]float64, 3)
	defaultExploration.Distribute(one, []float64{5, -2, 0.5}, 100)
	defaultExploration.Distribute(two, []float64{1, 0, 0.5}, 100)
	if !slices.Equal(one, two) {
		t.Errorf("%v and %v", one, two)
	}
	if got := argmax([]float64{0.3, 1.5, 2}); got != 1 {
		t.Errorf("the best is %d: values beyond 1 are equal and the lowest index wins", got)
	}
	if got := argmax([]float64{-3, -1}); got != 0 {
		t.Errorf("the best is %d: values below 0 are equal", got)
	}
}

func TestBaselineKeepsTheRest(t *testing.T) {
	pmf := make([]float64, 4)
	DistributeBaseline(pmf, 2, 0.1)
	near(t, "baseline", pmf, []float64{0.025, 0.025, 0.925, 0.025})
	DistributeBaseline(pmf, 0, 1)
	near(t, "baseline without a preference", pmf, []float64{0.25, 0.25, 0.25, 0.25})
}

func TestDrawSkipsZerosAndFallsBack(t *testing.T) {
	for seed := range uint64(2000) {
		if got := Draw([]float64{0, 0.5, 0, 0.5, 0}, seed); got != 1 && got != 3 {
			t.Fatalf("seed %d draws %d", seed, got)
		}
		if got := Draw([]float64{1e-300, 1e-300, 0}, seed); got != 1 {
			t.Fatalf("seed %d draws %d instead of the last positive one", seed, got)
		}
	}
}

func TestDrawFollowsTheDistribution(t *testing.T) {
	pmf, counts := []float64{0.2, 0.5, 0.3}, [3]float64{}
	const n = 200_000
	for seed := range uint64(n) {
		counts[Draw(pmf, seed*golden)]++
	}
	for i, p := range pmf {
		if share := counts[i] / n; math.Abs(share-p) > 5*math.Sqrt(p*(1-p)/n) {
			t.Errorf("index %d drawn with %v instead of %v", i, share, p)
		}
	}
}

func TestUnitStaysBelowOne(t *testing.T) {
	r := SplitMix64(0)
	for range 100_000 {
		if u := r.Unit(); u < 0 || u >= 1 {
			t.Fatalf("%v", u)
		}
	}
}

// The first outputs of the generator for seed 0, as its authors publish them.
func TestSplitMix64(t *testing.T) {
	r := SplitMix64(0)
	for _, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f} {
		if got := r.Next(); got != want {
			t.Errorf("%016x, want %016x", got, want)
		}
	}
}
