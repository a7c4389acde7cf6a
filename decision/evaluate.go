package decision

import (
	"context"
	"fmt"
	"math"
	"strings"

	"holdfast/fault"
)

// EvaluateRequest asks what a policy would have earned on logged decisions. Zero values of Folds, Bootstrap, Seed and WMax
// are taken as given: DefaultEvaluation holds the defaults.
type EvaluateRequest struct {
	Policy    string // logged, greedy or constant:<id>; empty when Spec is given
	Spec      []byte // merge patch of a candidate; nil when Policy is given
	Gates     []string
	Span      Span
	Folds     int // 2..100
	Bootstrap int // 0, or 100..100,000
	Seed      uint64
	WMax      float64 // >= 1
	Range     *[2]float64
}

// DefaultEvaluation is what an empty request means.
func DefaultEvaluation() EvaluateRequest {
	return EvaluateRequest{Folds: 5, Bootstrap: 1000, Seed: 7, WMax: 100}
}

// MaxEvaluationRows bounds the rows of one evaluation.
const MaxEvaluationRows = 2_000_000

// Row is one logged decision as evaluation sees it.
type Row struct {
	ID          string
	TimeMS      int64
	Context     []byte
	Derived     []byte
	Actions     []Action
	Eligible    []int     // ascending indices into Actions
	PMF         []float64 // aligned with Eligible; nil: the row is skipped and counted
	Chosen      int       // index into Actions
	Probability float64
	Reward      float64 // raw units
	Rewards     int     // how many were added up; 0: none
	Unverified  bool
	Target      []float64 // PMF of the policy column, offline only
}

// at is the position of the chosen action among the eligible ones.
func (r *Row) at() int {
	for i, a := range r.Eligible {
		if a == r.Chosen {
			return i
		}
	}
	return -1
}

// Report says what a policy would have earned. Undefined members are null.
type Report struct {
	Policy      string       `json:"policy"`
	Data        ReportData   `json:"data"`
	Logged      Logged       `json:"logged"`
	Estimators  Estimators   `json:"estimators"`
	Lift        Lifts        `json:"lift"`
	Diagnostics Diagnostics  `json:"diagnostics"`
	Settings    Settings     `json:"settings"`
	Warnings    []string     `json:"warnings"`
	Gates       []GateResult `json:"gates"`
	GatesPassed bool         `json:"gatesPassed"`
	Verdict     string       `json:"verdict"` // pass, fail, or none without gates
}

// ReportData counts the rows a report stands on.
type ReportData struct {
	Rows                int        `json:"rows"`
	RowsWithoutPMF      int        `json:"rowsWithoutPmf"`
	RowsUnverified      int        `json:"rowsUnverified"`
	RowsWithoutReward   int        `json:"rowsWithoutReward"`
	RewardAggregation   string     `json:"rewardAggregation"`
	AggregatedRewards   int        `json:"aggregatedRewards"`
	Folds               int        `json:"folds"`
	RewardRange         [2]float64 `json:"rewardRange"`
	RewardRangeSource   string     `json:"rewardRangeSource"` // given or observed
	RewardsOutsideRange int        `json:"rewardsOutsideRange"`
}

// Diagnostics say how far the rows can be trusted to speak for the policy.
type Diagnostics struct {
	N               int      `json:"n"`
	ESS             *float64 `json:"ess"`
	Coverage        *float64 `json:"coverage"` // share of rows whose logged action the policy might choose
	ClipRate        *float64 `json:"clipRate"`
	ClippedRows     int      `json:"clippedRows"`
	MaxWeight       *float64 `json:"maxWeight"` // after clipping
	MeanWeight      *float64 `json:"meanWeight"`
	FallbackRows    int      `json:"fallbackRows"`
	FallbackRate    *float64 `json:"fallbackRate"`
	UnsupportedMass *float64 `json:"unsupportedMass"` // the policy's mean probability of actions that could not be drawn
}

// Settings repeats how the report was made.
type Settings struct {
	Bootstrap   int     `json:"bootstrap"`
	Seed        uint64  `json:"seed"`
	WMax        float64 `json:"wMax"`
	Confidence  float64 `json:"confidence"`
	Interval    string  `json:"interval"` // bootstrapPercentile or normal
	RewardModel string  `json:"rewardModel"`
}

const rewardModelName = "crossFittedLinear"

// Validate checks the request's own bounds.
func (q *EvaluateRequest) Validate() error {
	bad := func(format string, args ...any) error {
		return fault.New("decision.Evaluate", fault.Invalid, format, args...)
	}
	switch id, constant := strings.CutPrefix(q.Policy, "constant:"); {
	case (q.Policy == "") == (q.Spec == nil):
		return bad("give policy or spec, one of them")
	case q.Policy != "" && q.Policy != "logged" && q.Policy != "greedy" && q.Policy != targetColumn && !constant:
		return bad("unknown policy %q: use logged, greedy or constant:<id>", q.Policy)
	case constant && id == "":
		return bad("policy constant: names no action")
	case q.Folds < 2 || q.Folds > 100:
		return bad("folds must be 2 to 100")
	case q.Bootstrap != 0 && (q.Bootstrap < 100 || q.Bootstrap > 100_000):
		return bad("bootstrap must be 0 or 100 to 100000")
	case !(q.WMax >= 1) || math.IsInf(q.WMax, 0):
		return bad("wMax must be at least 1")
	case q.Range != nil && !(q.Range[0] < q.Range[1] && !math.IsInf(q.Range[0], 0) && !math.IsInf(q.Range[1], 0)):
		return bad("rewardRange must be two finite numbers, the lower first")
	case len(q.Gates) > MaxGates:
		return bad("at most %d gates", MaxGates)
	case q.Span.Until != 0 && q.Span.Until < q.Span.Since:
		return bad("until lies before since")
	}
	return nil
}

// targetColumn is the offline policy whose PMF stands in the rows.
const targetColumn = "target-column"

// Evidence is what an evaluation stands on.
type Evidence struct {
	Rows       []Row
	Unrewarded int // decisions without a reward that are not among Rows
}

// EvaluateRows computes the report. current is the spec in force; candidate is the spec to judge, nil for a named policy.
// Rows without a reward or a PMF and unverified rows are counted and left out.
func EvaluateRows(ctx context.Context, log Evidence, q EvaluateRequest, current, candidate *Spec) (*Report, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	gates := make([]Gate, len(q.Gates))
	for i, text := range q.Gates {
		g, err := ParseGate(text)
		if err != nil {
			return nil, err
		}
		gates[i] = g
	}
	if candidate != nil && candidate.Mode == BaselineExplore {
		return nil, fault.New("decision.Evaluate", fault.Invalid, "a baselineExplore candidate cannot be evaluated: baselines are not logged")
	}
	r := &Report{Policy: q.Policy, Warnings: []string{}, Gates: []GateResult{}}
	if candidate != nil {
		r.Policy = "spec"
	}
	used := r.Data.take(log.Rows)
	r.Data.RowsWithoutReward += log.Unrewarded
	r.Data.RewardAggregation = current.aggregation()
	if len(used) < 2 {
		return nil, fault.New("decision.Evaluate", fault.Conflict, "no logged decisions to evaluate: %d with a reward, at least 2 are needed", len(used))
	}
	lo, hi := r.Data.scale(used, &q)
	outcomes, weights, err := crossFit(ctx, used, fitting{q: &q, lo: lo, hi: hi, current: current, candidate: candidate})
	if err != nil {
		return nil, err
	}
	var boot *bootstrapped
	r.Settings = Settings{q.Bootstrap, q.Seed, q.WMax, 0.95, "normal", rewardModelName}
	if q.Bootstrap > 0 {
		r.Settings.Interval = "bootstrapPercentile"
		if boot, err = bootstrap(ctx, outcomes, q.Bootstrap, q.Seed); err != nil {
			return nil, err
		}
	}
	e := estimate(outcomes, boot)
	r.Logged, r.Estimators, r.Lift = e.Logged, e.Estimators, e.Lift
	r.diagnose(outcomes, weights)
	r.warn(weights)
	r.judge(gates)
	return r, nil
}

// take picks the rows that count and says how many were left out, and why.
func (d *ReportData) take(rows []Row) []*Row {
	used := make([]*Row, 0, len(rows))
	for i := range rows {
		switch row := &rows[i]; {
		case row.Unverified:
			d.RowsUnverified++
		case row.Rewards == 0:
			d.RowsWithoutReward++
		case row.PMF == nil:
			d.RowsWithoutPMF++
		default:
			d.AggregatedRewards += row.Rewards
			used = append(used, row)
		}
	}
	d.Rows = len(used)
	return used
}

// scale returns the range that rewards are learned in: the one given, or the one observed, widened when it is a point.
func (d *ReportData) scale(rows []*Row, q *EvaluateRequest) (lo, hi float64) {
	lo, hi = rows[0].Reward, rows[0].Reward
	for _, row := range rows {
		lo, hi = min(lo, row.Reward), max(hi, row.Reward)
	}
	d.Folds, d.RewardRangeSource = q.Folds, "observed"
	if lo == hi {
		wide := max(0.5, 1e-6*math.Abs(lo))
		lo, hi = lo-wide, hi+wide
	}
	if q.Range != nil {
		lo, hi, d.RewardRangeSource = q.Range[0], q.Range[1], "given"
		for _, row := range rows {
			if row.Reward < lo || row.Reward > hi {
				d.RewardsOutsideRange++
			}
		}
	}
	d.RewardRange = [2]float64{lo, hi}
	return lo, hi
}

// weighing is what the importance weights of all rows have in common.
type weighing struct {
	clipped, fallback, covered int
	expected                   float64 // sum over rows of the expected clipped weight
	unsupported                float64 // sum over rows of target mass that could not be drawn
}

func (r *Report) diagnose(rows []outcome, w weighing) {
	var s sums
	most := 0.0
	for _, o := range rows {
		s.add(o)
		most = max(most, o.w)
	}
	n := float64(len(rows))
	r.Diagnostics = Diagnostics{
		N: len(rows), ESS: defined(s.w * s.w / s.wSqr), Coverage: defined(float64(w.covered) / n),
		ClipRate: defined(float64(w.clipped) / n), ClippedRows: w.clipped,
		MaxWeight: defined(most), MeanWeight: defined(s.w / n),
		FallbackRows: w.fallback, FallbackRate: defined(float64(w.fallback) / n), UnsupportedMass: defined(w.unsupported / n),
	}
	weight := func(o outcome) float64 { return o.w }
	expected := w.expected / n
	if se := standardError(rows, weight); len(rows) >= 100 && math.Abs(s.w/n-expected) > 4*se && math.Abs(s.w/n-expected) > 1e-9 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the mean weight is %.4g where %.4g is expected: the logged probabilities may be wrong", s.w/n, expected))
	}
}

// warn says in words what a reader must not overlook.
func (r *Report) warn(w weighing) {
	say := func(on bool, format string, args ...any) {
		if on {
			r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
		}
	}
	d := &r.Diagnostics
	say(r.Data.RowsUnverified > 0, "%d unverified rows were left out", r.Data.RowsUnverified)
	say(20*w.fallback > d.N, "the policy could not choose in %d rows (%.1f %%); their logged distribution stands in", w.fallback, 100**d.FallbackRate)
	say(*d.UnsupportedMass > 0, "the policy puts %.3g of its probability on actions that were never drawn", *d.UnsupportedMass)
	say(w.clipped > 0, "%d weights were clipped: the estimates are biased towards the log", w.clipped)
	say(d.ESS == nil || *d.ESS < 100, "the effective sample size is below 100")
	say(r.Data.RewardsOutsideRange > 0, "%d rewards lie outside the given range", r.Data.RewardsOutsideRange)
}

// judge checks the gates. Without gates the report passes nothing and fails nothing.
func (r *Report) judge(gates []Gate) {
	r.Verdict, r.GatesPassed = "none", true
	for _, g := range gates {
		result := g.Check(r.metric)
		r.Gates = append(r.Gates, result)
		r.GatesPassed = r.GatesPassed && result.Pass
	}
	if len(gates) > 0 {
		r.Verdict = "pass"
		if !r.GatesPassed {
			r.Verdict = "fail"
		}
	}
}

// metric returns the report's value of a gate metric, nil when undefined.
func (r *Report) metric(name string) *float64 {
	n := float64(r.Diagnostics.N)
	switch name {
	case "n":
		return &n
	case "ess":
		return r.Diagnostics.ESS
	case "coverage":
		return r.Diagnostics.Coverage
	case "clip_rate":
		return r.Diagnostics.ClipRate
	case "max_weight":
		return r.Diagnostics.MaxWeight
	case "dm.estimate":
		return r.Estimators.DM.Estimate
	case "lift.dm.mean":
		return r.Lift.DM.Mean
	case "logged.mean":
		return r.Logged.Mean
	case "logged.lower":
		return r.Logged.Lower
	case "logged.upper":
		return r.Logged.Upper
	}
	rest, lift := strings.CutPrefix(name, "lift.")
	which, field, _ := strings.Cut(rest, ".")
	v := map[string]Interval{"ips": r.Estimators.IPS, "snips": r.Estimators.SNIPS, "dr": r.Estimators.DR}[which]
	if lift {
		l := map[string]Lift{"ips": r.Lift.IPS, "snips": r.Lift.SNIPS, "dr": r.Lift.DR}[which]
		v = Interval{l.Mean, l.SE, l.Lower, l.Upper}
	}
	return map[string]*float64{"estimate": v.Estimate, "mean": v.Estimate, "se": v.SE, "lower": v.Lower, "upper": v.Upper}[field]
}
