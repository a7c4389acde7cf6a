package decision

import (
	"context"
	"math"
	"math/bits"
	"slices"
)

// bootstrapped holds the percentile intervals of one bootstrap.
type bootstrapped struct {
	logged, ips, snips, dr     bounds
	liftIPS, liftSNIPS, liftDR bounds
}

// resampleStride is how many resampled rows pass between two looks at the context.
const resampleStride = 1 << 20

// bootstrap draws times resamples of the rows and returns percentile intervals at 95 %. Resample b is drawn by a generator
// seeded with the b-th output of one seeded with seed; every estimator and lift comes from the same resample.
func bootstrap(ctx context.Context, rows []outcome, times int, seed uint64) (*bootstrapped, error) {
	const series = 7
	var all [series][]float64
	for i := range all {
		all[i] = make([]float64, 0, times)
	}
	seeds := SplitMix64(seed)
	n, left := uint64(len(rows)), resampleStride
	for range times {
		draw := SplitMix64(seeds.Next())
		var s sums
		for range rows {
			i, _ := bits.Mul64(draw.Next(), n)
			s.add(rows[i])
		}
		if left -= len(rows); left <= 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			left = resampleStride
		}
		p := s.points()
		for i, v := range [series]float64{p.logged, p.ips, p.snips, p.dr, p.ips - p.logged, p.snips - p.logged, p.dr - p.logged} {
			if !math.IsNaN(v) { // a resample without weight has no SNIPS
				all[i] = append(all[i], v)
			}
		}
	}
	var b bootstrapped
	for i, into := range [series]*bounds{&b.logged, &b.ips, &b.snips, &b.dr, &b.liftIPS, &b.liftSNIPS, &b.liftDR} {
		slices.Sort(all[i])
		*into = bounds{quantile(all[i], 0.025), quantile(all[i], 0.975)}
	}
	return &b, nil
}

// quantile interpolates linearly between order statistics (type 7 of Hyndman and Fan, 1996); NaN for an empty sample.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	h := q * float64(len(sorted)-1)
	i := int(h)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (h-float64(i))*(sorted[i+1]-sorted[i])
}
