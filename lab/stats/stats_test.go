package stats

import (
	"math"
	"slices"
	"testing"
)

func TestSchedule(t *testing.T) {
	t.Parallel()
	if got, want := Schedule(2), []Side{A, B, B, A, A, B, B, A}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		values []float64
		q      float64
		want   float64
	}{
		{[]float64{3}, 0.9, 3},
		{[]float64{4, 1, 3, 2}, 0.5, 2.5},
		{[]float64{1, 2, 3, 4, 5}, 0.25, 2},
		{[]float64{10, 0}, 0.975, 9.75},
		{[]float64{10, 0}, 1, 10},
	} {
		if got := Quantile(tc.values, tc.q); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("quantile %v of %v: %v, want %v", tc.q, tc.values, got, tc.want)
		}
	}
	if !math.IsNaN(Quantile(nil, 0.5)) || !math.IsNaN(Mean(nil)) {
		t.Error("no values have a quantile or a mean")
	}
}

func TestRatiosCancelALinearDrift(t *testing.T) {
	t.Parallel()
	var values []float64
	for i, side := range Schedule(5) {
		v := 100.0 + float64(i) // the machine gets steadily faster
		if side == B {
			v -= 20
		}
		values = append(values, v)
	}
	for i, r := range Ratios(values) {
		middle := 100 + 4*float64(i) + 1.5
		if want := (middle - 20) / middle; math.Abs(r-want) > 1e-12 {
			t.Errorf("block %d: ratio %v, want %v", i, r, want)
		}
	}
	if got := Ratios([]float64{0, 1, 1, 0, 2, 1}); got != nil {
		t.Errorf("a dead yardstick and half a block gave %v", got)
	}
}

func TestBootstrap(t *testing.T) {
	t.Parallel()
	values := []float64{0.70, 0.72, 0.74, 0.75, 0.76, 0.90}
	got := Bootstrap(values)
	if got != Bootstrap(slices.Clone(values)) {
		t.Error("the same values gave two intervals")
	}
	if math.Abs(got.Estimate-0.745) > 1e-12 {
		t.Errorf("estimate %v, want the median 0.745", got.Estimate)
	}
	if !(got.Lower >= 0.70 && got.Lower < got.Estimate && got.Estimate < got.Upper && got.Upper <= 0.90) {
		t.Errorf("interval %+v does not lie around its estimate within the values", got)
	}
	if one := Bootstrap([]float64{2}); one.Lower != 2 || one.Upper != 2 {
		t.Errorf("one value: %+v, want no width", one)
	}
	if none := Bootstrap(nil); !math.IsNaN(none.Estimate) {
		t.Errorf("no values: %+v, want NaN", none)
	}
}
