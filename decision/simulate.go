package decision

import (
	"context"
	"fmt"
	"math"

	"holdfast/internal/strictjson"
)

// Simulation is one cell of the learning bench: a policy that plays a problem, with the real features, learner,
// exploration and draws of a capsule at the spec's defaults. Equal simulations give equal results on every machine.
type Simulation struct {
	Problem Problem
	Policy  BenchPolicy
	Rounds  int // at least 10
	Seed    uint64
}

// Problem is a simulated world.
type Problem uint8

// The problems.
const (
	Segments Problem = iota // three actions, the best one depends on the user's segment
	Drift                   // the same, and the means change places at half time
	Catalog                 // twenty of two hundred items each round, known only by their features
)

// BenchPolicy is who plays.
type BenchPolicy uint8

// The policies.
const (
	BenchSquareCB      BenchPolicy = iota // the default exploration
	BenchEpsilonGreedy                    // epsilon 0.1
	BenchUniform                          // draws evenly and learns nothing
)

var (
	problemNames = [...]string{"segments", "drift", "catalog"}
	policyNames  = [...]string{"squarecb", "epsilonGreedy", "uniform"}
)

// String is the problem's name in the table.
func (p Problem) String() string { return problemNames[p] }

// String is the policy's name in the table.
func (p BenchPolicy) String() string { return policyNames[p] }

// Outcome is how well a simulation went.
type Outcome struct {
	Share  float64 // mean of the chosen actions over mean of the best ones, in the last tenth of the rounds
	Regret float64 // mean gap to the best action per round, over all rounds
}

// String is the outcome as the published table prints it. Its shares have three digits that were rounded from four: the
// 0.59648 of catalog with uniform stands there as 0.597.
func (o Outcome) String() string {
	const half = 1e-9 // lifts what was rounded to four digits over the binary error of a half
	return fmt.Sprintf("%.3f / %.4f", math.Round(o.Share*1e4)/1e4+half, o.Regret)
}

// The learner settings of the bench are those of a new capsule.
const (
	benchBits = 18
	benchRate = 0.5
)

func (p BenchPolicy) exploration() Exploration {
	e := Exploration{Kind: SquareCB, GammaScale: 10, GammaExponent: 0.5, Floor: 0.05}
	switch p {
	case BenchEpsilonGreedy:
		e.Kind, e.Epsilon = EpsilonGreedy, 0.1
	case BenchUniform:
		e.Kind, e.Epsilon = EpsilonGreedy, 1
	}
	return e
}

// Run plays all rounds. It fails only with ctx's error.
func (s Simulation) Run(ctx context.Context) (Outcome, error) {
	p := player{model: NewModel(benchBits), exploration: s.Policy.exploration(), learns: s.Policy != BenchUniform,
		draws: SplitMix64(s.Seed ^ 0xD1CE)}
	w := world{Simulation: s, random: SplitMix64(s.Seed)}
	var regret, chosen, best float64
	for t := range s.Rounds {
		if t%1024 == 0 && ctx.Err() != nil {
			return Outcome{}, ctx.Err()
		}
		if err := w.turn(t); err != nil {
			return Outcome{}, err
		}
		pick := p.choose(w.view)
		top := w.means[0]
		for _, mean := range w.means {
			top = math.Max(top, mean)
		}
		reward := 0.0
		if w.random.Unit() < w.means[pick] {
			reward = 1
		}
		p.learn(w.view, pick, reward)
		regret += top - w.means[pick]
		if t >= s.Rounds-s.Rounds/10 {
			chosen, best = chosen+w.means[pick], best+top
		}
	}
	return Outcome{Share: chosen / best, Regret: regret / float64(s.Rounds)}, nil
}

// Mean averages runs with the seeds s.Seed, s.Seed+1 and so on. It fails only with ctx's error.
func (s Simulation) Mean(ctx context.Context, runs int) (Outcome, error) {
	var sum Outcome
	for range runs {
		o, err := s.Run(ctx)
		if err != nil {
			return Outcome{}, err
		}
		sum.Share += o.Share
		sum.Regret += o.Regret
		s.Seed++
	}
	return Outcome{Share: sum.Share / float64(runs), Regret: sum.Regret / float64(runs)}, nil
}

// player is a capsule without its log.
type player struct {
	model            *Model
	exploration      Exploration
	learns           bool
	draws            SplitMix64
	scratch          Scratch
	predictions, pmf []float64
	terms            []Term
}

// choose draws the index of an action as a capsule would.
func (p *player) choose(x Candidates) int {
	for len(p.pmf) < len(x.Actions) {
		p.pmf, p.predictions = append(p.pmf, 0), append(p.predictions, 0)
	}
	pmf, predictions := p.pmf[:len(x.Actions)], p.predictions[:len(x.Actions)]
	n := p.model.Score(&p.scratch, x, predictions)
	p.exploration.Distribute(pmf, predictions, n)
	return Draw(pmf, p.draws.Next())
}

func (p *player) learn(x Candidates, pick int, reward float64) {
	if !p.learns {
		return
	}
	in := Input{Context: x.Context, Derived: x.Derived, Action: x.Actions[pick]}
	p.terms = in.AppendTerms(p.terms[:0], p.model.bits)
	p.model.Update(p.terms, reward, 1, benchRate)
}

// world makes the rounds of a problem.
type world struct {
	Simulation
	random SplitMix64
	view   Candidates
	means  []float64
	text   []byte
	sizes  [][]Feature    // the three fixed actions
	items  [200][]Feature // the catalog's, made at first sight
}

// segmentMeans are the chances of small, medium and large for each segment.
var segmentMeans = [...][3]float64{{.7, .5, .4}, {.4, .7, .5}, {.3, .5, .6}, {.5, .6, .9}}

var segmentNames = [...]string{"free", "pro", "team", "enterprise"}

// turn sets view and means for round t.
func (w *world) turn(t int) error {
	w.means = w.means[:0]
	if w.Problem == Catalog {
		return w.offer()
	}
	s := w.random.Next() % uint64(len(segmentNames))
	means := segmentMeans[s]
	if w.Problem == Drift && t >= w.Rounds/2 {
		means = [3]float64{means[1], means[2], means[0]}
	}
	w.means = append(w.means, means[:]...)
	if w.sizes == nil {
		for _, id := range [...]string{"small", "medium", "large"} {
			features, err := AppendActionFeatures(nil, id, nil)
			if err != nil {
				return err
			}
			w.sizes = append(w.sizes, features)
		}
	}
	w.view.Actions = w.sizes
	w.text = append(w.text[:0], `{"segment":`...)
	w.text = strictjson.AppendString(w.text, segmentNames[s])
	w.text = append(w.text, `,"hour":`...)
	w.text = strictjson.AppendUint(w.text, uint64(t/97%24))
	return w.see(append(w.text, '}'))
}

// offer shows a user somewhere in the unit square twenty items, of which the near ones are liked.
func (w *world) offer() error {
	const shown = 20
	x, y := w.random.Unit(), w.random.Unit()
	w.view.Actions = w.view.Actions[:0]
	var taken [len(w.items)]bool
	for len(w.view.Actions) < shown {
		n := w.random.Next() % uint64(len(w.items))
		if taken[n] {
			continue
		}
		taken[n] = true
		itemX, itemY := itemPlace(n)
		if w.items[n] == nil {
			id := strictjson.AppendUint([]byte("item"), n)
			features, err := AppendActionFeatures(nil, string(id), appendPlace(nil, itemX, itemY))
			if err != nil {
				return err
			}
			w.items[n] = features
		}
		distance := math.Sqrt(float64((x-itemX)*(x-itemX)) + float64((y-itemY)*(y-itemY)))
		w.means = append(w.means, math.Min(math.Max(0.9-float64(0.8*distance), 0.05), 0.95))
		w.view.Actions = append(w.view.Actions, w.items[n])
	}
	return w.see(appendPlace(w.text[:0], x, y))
}

// see makes the context's text the features of the round.
func (w *world) see(text []byte) (err error) {
	w.text = text
	w.view.Context, err = AppendFeatures(w.view.Context[:0], ContextNamespace, text)
	return err
}

// itemPlace is where item n of the catalog lies in the unit square, the same in every simulation.
func itemPlace(n uint64) (x, y float64) {
	r := SplitMix64(n*0x9E3779B9 + 1)
	x = r.Unit()
	return x, r.Unit()
}

func appendPlace(dst []byte, x, y float64) []byte {
	dst = strictjson.AppendFloat(append(dst, `{"x":`...), x)
	dst = strictjson.AppendFloat(append(dst, `,"y":`...), y)
	return append(dst, '}')
}
