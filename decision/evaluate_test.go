package decision

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/fault"
)

// nearly fails when got is undefined or differs from want by more than 1e-12.
func nearly(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > 1e-12 {
		t.Errorf("%s: got %v, want %v", what, deref(got), want)
	}
}

func deref(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

func TestEstimatorsByHand(t *testing.T) {
	rows := []outcome{
		{w: 2, r: 1, direct: 0.5, predicted: 0.75},
		{w: 0, r: 0, direct: 0.25, predicted: 0.25},
		{w: 1, r: 0.5, direct: 0.5, predicted: 0.25},
	}
	e := estimate(rows, nil)
	nearly(t, "logged", e.Logged.Mean, 0.5)
	nearly(t, "dm", e.Estimators.DM.Estimate, 1.25/3)
	nearly(t, "ips", e.Estimators.IPS.Estimate, 2.5/3)
	nearly(t, "snips", e.Estimators.SNIPS.Estimate, 2.5/3)
	// Robust terms: 0.5+2*(1-0.75) = 1, 0.25, 0.5+1*(0.5-0.25) = 0.75.
	nearly(t, "dr", e.Estimators.DR.Estimate, 2.0/3)
	nearly(t, "dr lift", e.Lift.DR.Mean, 2.0/3-0.5)
	nearly(t, "logged se", e.Logged.SE, math.Sqrt(0.5/2/3))
	// IPS terms 2, 0, 0.5 around 5/6.
	ipsSE := math.Sqrt((7.0/6*7/6 + 5.0/6*5/6 + 1.0/3*1/3) / 2 / 3)
	nearly(t, "ips se", e.Estimators.IPS.SE, ipsSE)
	nearly(t, "ips lower", e.Estimators.IPS.Lower, 2.5/3-z95*ipsSE)
	// SNIPS terms w(r - 5/6): 1/3, 0, -1/3; the mean weight is 1.
	nearly(t, "snips se", e.Estimators.SNIPS.SE, math.Sqrt((1.0/9+1.0/9)/2/3))
	// SNIPS lift terms minus (r - 0.5): 1/3-1/2, 1/2, -1/3.
	nearly(t, "snips lift se", e.Lift.SNIPS.SE, math.Sqrt((1.0/36+1.0/4+1.0/9)/2/3))
	if e.Logged.NormalLower == nil || *e.Logged.NormalLower != *e.Logged.Lower {
		t.Errorf("without a bootstrap the interval is the normal one: %v, %v", deref(e.Logged.NormalLower), deref(e.Logged.Lower))
	}
}

func TestUndefinedEstimatesAreNull(t *testing.T) {
	e := estimate([]outcome{{w: 0, r: 1}, {w: 0, r: 0}}, nil)
	if e.Estimators.SNIPS.Estimate != nil || e.Lift.SNIPS.Lower != nil {
		t.Errorf("SNIPS of no weight: %v", deref(e.Estimators.SNIPS.Estimate))
	}
	text, err := json.Marshal(e.Estimators)
	if err != nil || !strings.Contains(string(text), `"snips":{"estimate":null,"se":null,"lower":null,"upper":null}`) {
		t.Errorf("got %s (%v)", text, err)
	}
}

func TestQuantileType7(t *testing.T) {
	sample := []float64{1, 2, 4, 8}
	for q, want := range map[float64]float64{0: 1, 1: 8, 0.5: 3, 0.25: 1.75, 0.025: 1.075, 0.975: 7.7} {
		if got := quantile(sample, q); math.Abs(got-want) > 1e-12 {
			t.Errorf("quantile %v: got %v, want %v", q, got, want)
		}
	}
	if !math.IsNaN(quantile(nil, 0.5)) {
		t.Error("a quantile of nothing is defined")
	}
}

func TestBootstrapIsDeterministicAndFromOneResample(t *testing.T) {
	rows := []outcome{{w: 1, r: 1}, {w: 1, r: 0}, {w: 1, r: 0.5}, {w: 1, r: 0.25}}
	a, err := bootstrap(context.Background(), rows, 500, 7)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := bootstrap(context.Background(), rows, 500, 7)
	if *a != *b {
		t.Errorf("equal seeds differ: %+v, %+v", a, b)
	}
	if c, _ := bootstrap(context.Background(), rows, 500, 8); *a == *c {
		t.Error("another seed gives the same intervals")
	}
	if a.ips != a.logged || a.liftIPS != (bounds{}) {
		t.Errorf("with weights of 1 IPS is the log in every resample: %+v", a)
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := bootstrap(stopped, make([]outcome, resampleStride), 3, 1); err == nil {
		t.Error("a bootstrap nobody waits for went on")
	}
}

// simulatedLog holds logged decisions of two actions whose rewards depend on the context.
func simulatedLog(n int, seed uint64) []Row {
	draw := SplitMix64(seed)
	actions := []Action{{ID: "a"}, {ID: "b"}}
	rows := make([]Row, n)
	for i := range rows {
		side := draw.Next() % 2
		pmf := []float64{0.3, 0.7}
		chosen, reward := 0, 0.0
		if draw.Unit() >= pmf[0] {
			chosen = 1
		}
		if draw.Unit() < meanOf(int(side), chosen) {
			reward = 1
		}
		rows[i] = Row{ID: fmt.Sprintf("dec_%d_%d", seed, i), TimeMS: int64(i), Context: fmt.Appendf(nil, `{"side":"s%d"}`, side), Actions: actions,
			Eligible: []int{0, 1}, PMF: pmf, Chosen: chosen, Probability: pmf[chosen], Reward: reward, Rewards: 1}
	}
	return rows
}

func meanOf(side, action int) float64 {
	if side == action {
		return 0.8
	}
	return 0.2
}

func evaluated(t testing.TB, rows []Row, edit func(*EvaluateRequest), candidate string) *Report {
	t.Helper()
	current, err := ParseSpec([]byte(`{"actions":[{"id":"a"},{"id":"b"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var spec *Spec
	q := DefaultEvaluation()
	if candidate != "" {
		if spec, err = ParseSpec([]byte(candidate)); err != nil {
			t.Fatal(err)
		}
		q.Spec = []byte(candidate)
	}
	q.Bootstrap = 200
	if edit != nil {
		edit(&q)
	}
	r, err := EvaluateRows(context.Background(), Evidence{Rows: rows}, q, current, spec)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLoggedPolicyGivesTheLoggedMeanExactly(t *testing.T) {
	r := evaluated(t, simulatedLog(777, 3), func(q *EvaluateRequest) { q.Policy = "logged" }, "")
	if *r.Estimators.IPS.Estimate != *r.Logged.Mean || *r.Estimators.SNIPS.Estimate != *r.Logged.Mean || *r.Lift.IPS.Mean != 0 {
		t.Errorf("ips %v snips %v logged %v", *r.Estimators.IPS.Estimate, *r.Estimators.SNIPS.Estimate, *r.Logged.Mean)
	}
	if *r.Diagnostics.ESS != 777 || *r.Diagnostics.Coverage != 1 || r.Diagnostics.ClippedRows != 0 {
		t.Errorf("diagnostics %+v", r.Diagnostics)
	}
}

func TestEstimatesFindTheTruth(t *testing.T) {
	rows := simulatedLog(4000, 11)
	for _, tc := range []struct {
		policy, candidate string
		truth, slack      float64
	}{
		{"constant:a", "", 0.5, 0.05},
		{"constant:b", "", 0.5, 0.04},
		{"greedy", "", 0.8, 0.04},
		{"", `{"actions":[{"id":"a"},{"id":"b"}],"exploration":{"floor":0.2}}`, 0.8*0.9 + 0.2*0.1, 0.05},
	} {
		r := evaluated(t, rows, func(q *EvaluateRequest) { q.Policy = tc.policy }, tc.candidate)
		for name, got := range map[string]*float64{"dm": r.Estimators.DM.Estimate, "ips": r.Estimators.IPS.Estimate,
			"snips": r.Estimators.SNIPS.Estimate, "dr": r.Estimators.DR.Estimate} {
			if got == nil || math.Abs(*got-tc.truth) > tc.slack {
				t.Errorf("%s%s: %s says %v, the truth is %v", tc.policy, tc.candidate, name, deref(got), tc.truth)
			}
		}
		if e := r.Estimators.DR; *e.Lower > *e.Estimate || *e.Upper < *e.Estimate || *e.SE <= 0 {
			t.Errorf("%s: interval %v..%v around %v", tc.policy, *e.Lower, *e.Upper, *e.Estimate)
		}
	}
}

func TestRowsThatDoNotCount(t *testing.T) {
	rows := simulatedLog(50, 5)
	rows[0].Unverified, rows[1].Rewards, rows[2].PMF = true, 0, nil
	r := evaluated(t, rows, func(q *EvaluateRequest) { q.Policy = "logged" }, "")
	d := r.Data
	if d.Rows != 47 || d.RowsUnverified != 1 || d.RowsWithoutReward != 1 || d.RowsWithoutPMF != 1 {
		t.Errorf("data %+v", d)
	}
	if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "unverified") }) ||
		!slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "effective sample size") }) {
		t.Errorf("warnings %q", r.Warnings)
	}
}

func TestConstantPolicyFallsBackWhereItIsNotEligible(t *testing.T) {
	rows := simulatedLog(200, 5)
	for i := range 20 {
		rows[i].Eligible, rows[i].PMF, rows[i].Chosen, rows[i].Probability = []int{1}, []float64{1}, 1, 1
	}
	r := evaluated(t, rows, func(q *EvaluateRequest) { q.Policy = "constant:a" }, "")
	if r.Diagnostics.FallbackRows != 20 || *r.Diagnostics.FallbackRate != 0.1 {
		t.Errorf("diagnostics %+v", r.Diagnostics)
	}
	if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "could not choose in 20 rows") }) {
		t.Errorf("warnings %q", r.Warnings)
	}
}

func TestClippingAndRanges(t *testing.T) {
	rows := simulatedLog(300, 9)
	r := evaluated(t, rows, func(q *EvaluateRequest) { q.Policy, q.WMax, q.Range = "constant:a", 2, &[2]float64{0.25, 1} }, "")
	if r.Diagnostics.ClippedRows == 0 || *r.Diagnostics.MaxWeight != 2 {
		t.Errorf("diagnostics %+v", r.Diagnostics)
	}
	if r.Data.RewardRangeSource != "given" || r.Data.RewardsOutsideRange == 0 || r.Data.RewardRange != [2]float64{0.25, 1} {
		t.Errorf("data %+v", r.Data)
	}
	for i := range rows {
		rows[i].Reward = 3
	}
	r = evaluated(t, rows, func(q *EvaluateRequest) { q.Policy = "greedy" }, "")
	if r.Data.RewardRange != [2]float64{2.5, 3.5} || r.Data.RewardRangeSource != "observed" {
		t.Errorf("constant rewards: %+v", r.Data)
	}
}

func TestGatesJudgeTheReport(t *testing.T) {
	rows := simulatedLog(500, 2)
	r := evaluated(t, rows, func(q *EvaluateRequest) {
		q.Policy, q.Gates = "greedy", []string{"lift.dr.lower >= 0", "n == 500", "logged.mean < dr.estimate"}
	}, "")
	if r.Verdict != "pass" || !r.GatesPassed || len(r.Gates) != 3 {
		t.Errorf("verdict %s of %+v", r.Verdict, r.Gates)
	}
	r = evaluated(t, rows, func(q *EvaluateRequest) { q.Policy, q.Gates = "greedy", []string{"n > 500", "ess > 0"} }, "")
	if r.Verdict != "fail" || r.GatesPassed || r.Gates[0].Pass || !r.Gates[1].Pass {
		t.Errorf("verdict %s of %+v", r.Verdict, r.Gates)
	}
	if r = evaluated(t, rows, func(q *EvaluateRequest) { q.Policy = "greedy" }, ""); r.Verdict != "none" {
		t.Errorf("verdict without gates: %s", r.Verdict)
	}
}

func TestWrongProbabilitiesAreNoticed(t *testing.T) {
	rows := simulatedLog(2000, 4)
	for i := range rows {
		rows[i].PMF, rows[i].Probability = []float64{0.5, 0.5}, 0.5 // in truth 0.3 and 0.7
	}
	r := evaluated(t, rows, func(q *EvaluateRequest) { q.Policy = "constant:a" }, "")
	if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "mean weight") }) {
		t.Errorf("warnings %q", r.Warnings)
	}
}

func TestEvaluationRefusals(t *testing.T) {
	spec, _ := ParseSpec([]byte(`{}`))
	baseline, _ := ParseSpec([]byte(`{"mode":"baselineExplore"}`))
	rows := simulatedLog(10, 1)
	for name, tc := range map[string]struct {
		edit func(*EvaluateRequest)
		kind fault.Kind
		want string
	}{
		"neither":       {func(q *EvaluateRequest) { q.Policy = "" }, fault.Invalid, "policy or spec"},
		"both":          {func(q *EvaluateRequest) { q.Spec = []byte(`{}`) }, fault.Invalid, "policy or spec"},
		"unknown":       {func(q *EvaluateRequest) { q.Policy = "best" }, fault.Invalid, "unknown policy"},
		"no constant":   {func(q *EvaluateRequest) { q.Policy = "constant:" }, fault.Invalid, "names no action"},
		"folds low":     {func(q *EvaluateRequest) { q.Folds = 1 }, fault.Invalid, "folds"},
		"folds high":    {func(q *EvaluateRequest) { q.Folds = 101 }, fault.Invalid, "folds"},
		"bootstrap low": {func(q *EvaluateRequest) { q.Bootstrap = 99 }, fault.Invalid, "bootstrap"},
		"wMax":          {func(q *EvaluateRequest) { q.WMax = 0.5 }, fault.Invalid, "wMax"},
		"wMax NaN":      {func(q *EvaluateRequest) { q.WMax = math.NaN() }, fault.Invalid, "wMax"},
		"range":         {func(q *EvaluateRequest) { q.Range = &[2]float64{1, 1} }, fault.Invalid, "rewardRange"},
		"gate":          {func(q *EvaluateRequest) { q.Gates = []string{"dm.lower > 0"} }, fault.Invalid, "gate"},
		"few rows":      {func(q *EvaluateRequest) { rows = rows[:1] }, fault.Conflict, "no logged decisions to evaluate"},
	} {
		q := DefaultEvaluation()
		q.Policy = "logged"
		kept := rows
		tc.edit(&q)
		_, err := EvaluateRows(context.Background(), Evidence{Rows: rows}, q, spec, nil)
		rows = kept
		if fault.KindOf(err) != tc.kind || err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %v with %q", name, err, tc.kind, tc.want)
		}
	}
	q := DefaultEvaluation()
	q.Spec = []byte(`{}`)
	if _, err := EvaluateRows(context.Background(), Evidence{Rows: rows}, q, spec, baseline); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a baselineExplore candidate: %v", err)
	}
}

func TestDoublyRobustEqualsItsFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) outcome {
			u := rapid.Float64Range(0, 1)
			return outcome{w: rapid.Float64Range(0, 10).Draw(t, "w"), r: u.Draw(t, "r"), direct: u.Draw(t, "direct"), predicted: u.Draw(t, "predicted")}
		}), 2, 40).Draw(t, "rows")
		var dr, w, wr float64
		for _, o := range rows {
			dr += o.direct + o.w*(o.r-o.predicted)
			w += o.w
			wr += o.w * o.r
		}
		e := estimate(rows, nil)
		if got := *e.Estimators.DR.Estimate; math.Abs(got-dr/float64(len(rows))) > 1e-9 {
			t.Fatalf("dr %v, want %v", got, dr/float64(len(rows)))
		}
		if w > 0 {
			if got := *e.Estimators.SNIPS.Estimate; math.Abs(got-wr/w) > 1e-9 || got < 0 || got > 1+1e-9 {
				t.Fatalf("snips %v, want %v and inside the rewards' range", got, wr/w)
			}
		}
	})
}
