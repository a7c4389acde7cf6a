package decision

import "math"

// ExplorationKind is a way to turn predictions into probabilities.
type ExplorationKind uint8

// The kinds.
const (
	SquareCB      ExplorationKind = iota // less probability the further behind the best a prediction is
	EpsilonGreedy                        // a fixed share spread evenly, the rest on the best
)

// Exploration says how a capsule explores. Every action keeps at least Floor/K of K actions.
type Exploration struct {
	Kind          ExplorationKind
	GammaScale    float64 // squarecb: 0 .. 1e6
	GammaExponent float64 // squarecb: 0 .. 1
	Epsilon       float64 // epsilonGreedy: 0 .. 1
	Floor         float64 // (0, 1]
}

// Distribute writes the probability of each prediction into pmf, which has the same length. The predictions are those of
// a model after n updates and are taken as clamped to [0,1]. A single action gets exactly 1.
func (e Exploration) Distribute(pmf, predictions []float64, n uint64) {
	if single(pmf) {
		return
	}
	best := argmax(predictions)
	switch e.Kind {
	case EpsilonGreedy:
		spread(pmf, best, e.Epsilon)
	default:
		squareCB(pmf, predictions, best, e.GammaScale*math.Pow(float64(n), e.GammaExponent))
	}
	liftToFloor(pmf, e.Floor)
}

// DistributeBaseline writes the probabilities of the mode baselineExplore into pmf: epsilon/K each and the rest on the
// action at baseline. No floor applies.
func DistributeBaseline(pmf []float64, baseline int, epsilon float64) {
	if !single(pmf) {
		spread(pmf, baseline, epsilon)
	}
}

// Draw returns the index that seed draws from pmf: never an entry of zero. The pmf must have a positive entry.
func Draw(pmf []float64, seed uint64) int {
	r := SplitMix64(seed)
	u, sum, last := r.Unit(), 0.0, 0
	for i, p := range pmf {
		if p <= 0 {
			continue
		}
		if sum += p; u < sum {
			return i
		}
		last = i
	}
	return last // rounding left the sum below u
}

// single settles the case of at most one action.
func single(pmf []float64) bool {
	if len(pmf) > 1 {
		return false
	}
	for i := range pmf {
		pmf[i] = 1
	}
	return true
}

func clampUnit(v float64) float64 { return math.Min(math.Max(v, 0), 1) }

// argmax returns the index of the largest clamped prediction, the lowest one of equals.
func argmax(predictions []float64) int {
	best, top := 0, -1.0
	for i, v := range predictions {
		if v = clampUnit(v); v > top {
			best, top = i, v
		}
	}
	return best
}

func squareCB(pmf, predictions []float64, best int, gamma float64) {
	k, top, others := float64(len(pmf)), clampUnit(predictions[best]), 0.0
	for i := range pmf {
		if i == best {
			continue
		}
		pmf[i] = 1 / (k + float64(gamma*(top-clampUnit(predictions[i]))))
		others += pmf[i]
	}
	pmf[best] = 1 - others
}

// spread puts epsilon/K on each entry and the rest on the one at best.
func spread(pmf []float64, best int, epsilon float64) {
	each, others := epsilon/float64(len(pmf)), 0.0
	for i := range pmf {
		if i == best {
			continue
		}
		pmf[i] = each
		others += each
	}
	pmf[best] = 1 - others
}

// liftToFloor mixes pmf with the uniform distribution so that no entry is below floor/K.
func liftToFloor(pmf []float64, floor float64) {
	least, sum := floor/float64(len(pmf)), 0.0
	for i, p := range pmf {
		pmf[i] = float64((1-floor)*p) + least
		sum += pmf[i]
	}
	for i, p := range pmf {
		pmf[i] = math.Max(p/sum, least)
	}
}
