package gateway

// has reports whether a feature is on for this request: a uniform draw of 1 to 100 must not exceed the rollout.
func (set *settings) has(f Feature, draw uint64) bool {
	s := set.features[f]
	return s.On && int(draw%100)+1 <= s.Rollout
}
