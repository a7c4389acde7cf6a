package decision

// SplitMix64 is the generator of every draw in this package: its value is the state, so that a seed is a generator.
type SplitMix64 uint64

// golden is the increment of SplitMix64; multiplied by a counter it also tells the seeds of one capsule apart.
const golden = 0x9E3779B97F4A7C15

// Next returns the next 64 bits.
func (r *SplitMix64) Next() uint64 {
	*r += golden
	z := uint64(*r)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// Unit returns the next number in [0,1): the top 53 bits of Next over 2^53.
func (r *SplitMix64) Unit() float64 { return float64(r.Next()>>11) / (1 << 53) }

// DecisionSeed returns the seed of the k-th draw, counted from 0, of a capsule whose spec fixes the seed.
func DecisionSeed(spec, k uint64) uint64 {
	r := SplitMix64(spec ^ k*golden)
	return r.Next()
}
