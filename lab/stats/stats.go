// Package stats turns noisy measurements into ratios that can be defended.
//
// Two servers are compared in blocks of four segments, A B B A, so that a drift of the machine falls on both alike. Each
// block gives one ratio; the answer is their median with a bootstrap interval. The package keeps no state, reads no clock
// and starts no goroutine; the same numbers give the same interval every time.
package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Side is one of two things compared.
type Side uint8

// The sides: A is the yardstick, B is what is measured.
const (
	A Side = iota
	B
)

// Schedule returns the sides of the given number of ABBA blocks, in the order they are to be run.
func Schedule(blocks int) []Side {
	var order []Side
	for range blocks {
		order = append(order, A, B, B, A)
	}
	return order
}

// Quantile returns the q-quantile (0..1) of values by linear interpolation between the neighbours (type 7), NaN for none.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	place := q * float64(len(sorted)-1)
	low := int(math.Floor(place))
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (place-float64(low))*(sorted[high]-sorted[low])
}

// Median returns the middle value, NaN for none.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Mean returns the arithmetic mean, NaN for none.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// Interval is an estimate with the bounds of its 95 % interval.
type Interval struct {
	Estimate float64 `json:"estimate"`
	Lower    float64 `json:"lower"`
	Upper    float64 `json:"upper"`
}

// resamples is how many bootstrap resamples an interval is made from: enough that the last printed digit does not move.
const resamples = 4000

// Bootstrap returns the median of values with the percentile interval of its resampled medians. The resampling is seeded
// by nothing but the number of values, so a report can be recomputed.
func Bootstrap(values []float64) Interval {
	if len(values) == 0 {
		return Interval{Estimate: math.NaN(), Lower: math.NaN(), Upper: math.NaN()}
	}
	random := rand.New(rand.NewPCG(uint64(len(values)), 0x5EED))
	medians := make([]float64, resamples)
	sample := make([]float64, len(values))
	for i := range medians {
		for j := range sample {
			sample[j] = values[random.IntN(len(values))]
		}
		medians[i] = Median(sample)
	}
	return Interval{Estimate: Median(values), Lower: Quantile(medians, 0.025), Upper: Quantile(medians, 0.975)}
}

// Ratios returns one B/A ratio per complete ABBA block of values measured in Schedule's order; a block whose yardstick is
// not positive is left out. For costs per request pass the costs: the mean of a block's two segments is what is compared.
func Ratios(values []float64) []float64 {
	var ratios []float64
	for i := 0; i+4 <= len(values); i += 4 {
		yardstick := values[i] + values[i+3]
		if yardstick > 0 {
			ratios = append(ratios, (values[i+1]+values[i+2])/yardstick)
		}
	}
	return ratios
}
