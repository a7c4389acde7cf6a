package decision

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast/fault"
)

func TestEligibility(t *testing.T) {
	own := []Action{{ID: "x"}, {ID: "y"}, {ID: "z"}}
	const baselineMode = `{"mode":"baselineExplore","actions":[{"id":"small"},{"id":"medium"},{"id":"large"}]}`
	for _, tc := range []struct {
		name, spec string
		req        Request
		want       string // eligible ids in action order, or the error's text
	}{
		{"all of the spec", threeModels, Request{}, "small medium large"},
		{"all of the request", threeModels, Request{Actions: own}, "x y z"},
		{"an empty list is a list", threeModels, Request{Actions: []Action{}}, "no actions"},
		{"neither", `{}`, Request{}, "no actions"},
		{"excluded", threeModels, Request{Excluded: []string{"medium"}}, "small large"},
		{"excluded twice", threeModels, Request{Excluded: []string{"medium", "medium"}}, "small large"},
		{"excluded of the request", threeModels, Request{Actions: own, Excluded: []string{"x", "z"}}, "y"},
		{"all excluded", threeModels, Request{Excluded: []string{"medium", "small", "large"}}, "no eligible actions"},
		{"unknown excluded", threeModels, Request{Excluded: []string{"huge"}}, `unknown action "huge"`},
		{"ids refer to the request's list only", threeModels, Request{Actions: own, Excluded: []string{"small"}}, `unknown action "small"`},
		{"unknown baseline", threeModels, Request{Baseline: "huge"}, `unknown action "huge"`},
		{"baseline is checked in every mode", threeModels, Request{Actions: own, Baseline: "small"}, `unknown action "small"`},
		{"an excluded baseline hurts nobody in learner mode", threeModels, Request{Baseline: "small", Excluded: []string{"small"}}, "medium large"},
		{"baseline required", baselineMode, Request{}, "baselineAction is required"},
		{"baseline not eligible", baselineMode, Request{Baseline: "small", Excluded: []string{"small"}}, "not eligible"},
		{"baseline", baselineMode, Request{Baseline: "large"}, "small medium large"},
		{"duplicate ids", threeModels, Request{Actions: []Action{{ID: "x"}, {ID: "x"}}}, "duplicates"},
		{"empty id", threeModels, Request{Actions: []Action{{ID: ""}}}, "must not be empty"},
		{"id of 256 characters", `{}`, Request{Actions: []Action{{ID: strings.Repeat("ä", 256)}}}, strings.Repeat("ä", 256)},
		{"id of 257 characters", `{}`, Request{Actions: []Action{{ID: strings.Repeat("ä", 257)}}}, "longer than 256"},
		{"features that are no object", `{}`, Request{Actions: []Action{{ID: "x", Features: []byte(`[1]`)}}}, "must be a JSON object"},
		{"context that is no object", threeModels, Request{Context: []byte(`[1]`)}, "context must be a JSON object"},
		{"bad event id", threeModels, Request{EventID: "a b"}, "eventId must be"},
		{"long event id", threeModels, Request{EventID: strings.Repeat("a", 129)}, "eventId must be"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, Options{})
			c := b.install(northHero, tc.spec)
			var out Answer
			err := c.Decide(context.Background(), &tc.req, &out)
			if err != nil {
				f, ok := errors.AsType[*fault.Error](err)
				if !ok || f.Kind != fault.Invalid || !strings.Contains(f.Msg, tc.want) {
					t.Errorf("error %v, want one that says %q", err, tc.want)
				}
				if s := c.Stats(context.Background()); s.Decisions != 0 {
					t.Error("a refused request was logged")
				}
				return
			}
			d, _, err := c.Decision(context.Background(), out.ID)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, i := range d.Eligible {
				ids = append(ids, d.Actions[i].ID)
			}
			if got := strings.Join(ids, " "); got != tc.want {
				t.Errorf("eligible %q, want %q", got, tc.want)
			}
			if out.Action != d.Actions[out.ActionIndex].ID || len(out.Ranking) != len(ids) {
				t.Errorf("answer %+v does not fit the record", out)
			}
		})
	}
}

func TestManyActions(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, "{}")
	var actions []Action
	for i := range MaxActions {
		actions = append(actions, Action{ID: fmt.Sprintf("a%04d", i)})
	}
	req := &Request{Actions: actions, Excluded: []string{"a0000", "a1023"}}
	a := b.decide(c, req)
	if len(a.Ranking) != MaxActions-2 || a.Ranking[0].ID != "a0001" || a.Ranking[len(a.Ranking)-1].ID != "a1022" {
		t.Errorf("ranking of %d from %v: ties must stay in action order", len(a.Ranking), a.Ranking[0])
	}
	var out Answer
	b.kind(fault.Invalid, c.Decide(context.Background(), &Request{Actions: append(actions, Action{ID: "one more"})}, &out))
	actions[7].ID = "a0900"
	b.kind(fault.Invalid, c.Decide(context.Background(), &Request{Actions: actions}, &out))
}

// objectOf is an object of n numbers.
func objectOf(n int) []byte {
	text := []byte{'{'}
	for i := range n {
		if i > 0 {
			text = append(text, ',')
		}
		text = fmt.Appendf(text, `"f%d":1`, i)
	}
	return append(text, '}')
}

func TestCostBounds(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, `{"learner":{"bits":10}}`)
	decide := func(context []byte, actions ...Action) error {
		var out Answer
		return c.Decide(t.Context(), &Request{Context: context, Actions: actions}, &out)
	}
	// An action of k features costs k+1 with its id, times one plus the context's.
	atBound := Action{ID: "a", Features: objectOf(1023)} // 1024 x 1024 = 2^20
	if err := decide(objectOf(1023), atBound); err != nil {
		t.Errorf("an action at the bound: %v", err)
	}
	if err := decide(objectOf(1024), atBound); err == nil || !strings.Contains(err.Error(), "1048576") {
		t.Errorf("an action beyond the bound: %v", err)
	}
	four := make([]Action, 4)
	for i := range four {
		four[i] = Action{ID: fmt.Sprint(i), Features: atBound.Features}
	}
	if err := decide(objectOf(1023), four...); err != nil {
		t.Errorf("a decide at the bound: %v", err)
	}
	// One feature with one of 1023 context features costs 1024 more.
	if err := decide(objectOf(1023), append(four, Action{ID: "tiny"})...); err == nil || !strings.Contains(err.Error(), "4194304") {
		t.Errorf("a decide beyond the bound: %v", err)
	}
	var out Answer
	err := c.Decide(t.Context(), &Request{Context: objectOf(1023), Actions: append(four, Action{ID: "tiny"}), Excluded: []string{"tiny"}}, &out)
	if err != nil {
		t.Errorf("only eligible actions count: %v", err)
	}
}

func TestAnswerFollowsTheDistribution(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	for i := range 300 {
		a := b.decide(c, request(`{"plan":"pro"}`, ""))
		value := 0.0
		if a.Action == "large" {
			value = 1
		}
		b.reward(c, a.ID, value)
		sum := 0.0
		for j, r := range a.Ranking {
			sum += r.Probability
			if r.Probability < 0.05/3 || j > 0 && r.Probability > a.Ranking[j-1].Probability {
				t.Fatalf("round %d: ranking %v", i, a.Ranking)
			}
			if r.ID == a.Action && r.Probability != a.Probability {
				t.Fatalf("round %d: probability %v but ranked with %v", i, a.Probability, r.Probability)
			}
		}
		if math.Abs(sum-1) > 1e-12 || a.ModelVersion != uint64(i) {
			t.Fatalf("round %d: sum %v version %d", i, sum, a.ModelVersion)
		}
	}
	a := b.decide(c, request(`{"plan":"pro"}`, ""))
	if a.Ranking[0].ID != "large" || a.Ranking[0].Probability < 0.8 {
		t.Errorf("after 300 rewards the ranking is %v", a.Ranking)
	}
}

func TestRecordReplaysTheDraw(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	for i := range 40 {
		a := b.decide(c, request(fmt.Sprintf(`{"x":%d}`, i), ""))
		b.reward(c, a.ID, float64(i%2))
		d, _, err := c.Decision(t.Context(), a.ID)
		if err != nil {
			t.Fatal(err)
		}
		if at := Draw(d.PMF, d.Seed); d.Eligible[at] != d.Chosen || d.PMF[at] != d.Probability {
			t.Fatalf("seed %d draws %d from %v, logged %d", d.Seed, at, d.PMF, d.Chosen)
		}
	}
}

func TestModes(t *testing.T) {
	b := newBench(t, Options{})
	baseline := b.install(CapsuleID{"n", "j", "b"}, `{"mode":"baselineExplore","baselineEpsilon":0.3,"actions":[{"id":"a"},{"id":"b"},{"id":"c"}]}`)
	a := b.decide(baseline, &Request{Baseline: "b"})
	if a.Mode != BaselineExplore || a.Ranking[0].ID != "b" || math.Abs(a.Ranking[0].Probability-0.8) > 1e-12 {
		t.Errorf("answer %+v", a)
	}
	if r := b.reward(baseline, a.ID, 1); !r.Learned || r.ModelVersion != 1 {
		t.Errorf("baselineExplore does not learn: %+v", r)
	}
	frozen := b.install(CapsuleID{"n", "j", "f"}, `{"mode":"frozen","actions":[{"id":"a"}]}`)
	a = b.decide(frozen, &Request{})
	if a.Mode != Frozen || a.Probability != 1 {
		t.Errorf("answer %+v", a)
	}
	if r := b.reward(frozen, a.ID, 1); !r.Applied || r.Learned || r.ModelVersion != 0 {
		t.Errorf("frozen: %+v", r)
	}
	_, rewards, _ := frozen.Decision(t.Context(), a.ID)
	if len(rewards) != 1 || rewards[0].Learned || string(rewards[0].Detail) != `{"learned":false}` {
		t.Errorf("rewards %+v", rewards)
	}
}

const sixNodes = `{"graph":[{"id":"series","op":"input","path":"latencies"},{"id":"default","op":"const","value":[20,25,30]},
{"id":"used","op":"coalesce","of":["series","default"]},{"id":"avg","op":"mean","of":"used"},
{"id":"route","op":"strategy","options":["fast","balanced","safe"]},{"id":"out","op":"output","of":["avg","route"]}]}`

func (b *bench) installProgram(c *Capsule, text string) {
	b.Helper()
	if err := c.reform(b.Context(), reform{spec: c.engine.Load().spec, program: []byte(text), audit: AuditRow{Event: "program_installed"}}); err != nil {
		b.Fatal(err)
	}
}

func TestGraphGivesActionsAndOutput(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, "{}")
	b.installProgram(c, sixNodes)
	a := b.decide(c, request(`{"latencies":[10,20]}`, "once"))
	if a.Graph == nil || a.Graph.StrategyID != "route" || !slices.Contains([]string{"fast", "balanced", "safe"}, a.Action) {
		t.Fatalf("answer %+v graph %+v", a, a.Graph)
	}
	if out := string(a.Graph.Output); !strings.Contains(out, "15") || !strings.Contains(out, a.Action) {
		t.Errorf("output %s", out)
	}
	again := b.decide(c, request(`{"latencies":[10,20]}`, "once"))
	if !again.Replayed || string(again.Graph.Output) != string(a.Graph.Output) {
		t.Errorf("replayed %+v", again)
	}
	d, _, err := c.Decision(t.Context(), a.ID)
	if err != nil || string(d.Derived) != "{}" || d.Program != c.engine.Load().program.SHA256 {
		t.Errorf("record %+v, %v", d, err)
	}
}

func TestGraphRestrictsAndExplains(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	b.installProgram(c, `{"graph":[{"id":"p","op":"input","path":"premium"},{"id":"no","op":"input","path":"noMedium"},
{"id":"why","op":"input","path":"why"},{"id":"n","op":"input","path":"n"},
{"id":"o","op":"publish","as":"only.large","of":"p"},{"id":"o2","op":"publish","as":"only.medium","of":"p"},
{"id":"x","op":"publish","as":"exclude.medium","of":"no"},{"id":"r","op":"publish","as":"reason","of":"why"},
{"id":"f","op":"publish","as":"features.n","of":"n"}]}`)
	eligible := func(context string) string {
		a := b.decide(c, request(context, ""))
		var ids []string
		for _, r := range a.Ranking {
			ids = append(ids, r.ID)
		}
		return strings.Join(ids, " ") + a.Reason
	}
	for context, want := range map[string]string{
		`{}`:                               "small medium large",
		`{"premium":true}`:                 "medium large",
		`{"premium":true,"noMedium":true}`: "large",
		`{"noMedium":true,"why":" slow"}`:  "small large slow",
		`{"n":3}`:                          "small medium large",
	} {
		if got := eligible(context); got != want {
			t.Errorf("%s: %q, want %q", context, got, want)
		}
	}
	a := b.decide(c, request(`{"n":3}`, ""))
	if d, _, _ := c.Decision(t.Context(), a.ID); string(d.Derived) != `{"n":3}` {
		t.Errorf("derived %s", d.Derived)
	}
	var out Answer
	b.kind(fault.Invalid, c.Decide(t.Context(), &Request{Context: []byte(`{"premium":true}`), Actions: []Action{{ID: "other"}}}, &out))
}

func TestDecideAllocates(t *testing.T) {
	if raced {
		t.Skip("the race detector empties pools")
	}
	c := trainedCapsule(t, threeModels)
	req := Request{Context: []byte(`{"plan":"p1","load":2}`)}
	own := Request{Context: req.Context, Actions: []Action{{ID: "small"}, {ID: "large", Features: []byte(`{"cost":1}`)}}}
	for name, r := range map[string]*Request{"spec actions": &req, "own actions": &own} {
		var out Answer
		if n := testing.AllocsPerRun(2000, func() { _ = c.Decide(context.Background(), r, &out) }); n > 1 {
			t.Errorf("%s: %v allocations per decide, want 1: the id", name, n)
		}
	}
}

func TestConcurrentDecidesAndRewards(t *testing.T) {
	b := newBench(t, Options{BatchRecords: 16})
	c := b.install(northHero, threeModels)
	var wg sync.WaitGroup
	const workers, rounds = 6, 60
	ids := make([][]string, workers)
	for w := range workers {
		wg.Go(func() {
			var out Answer
			for i := range rounds {
				if err := c.Decide(context.Background(), request(fmt.Sprintf(`{"w":%d}`, i%4), ""), &out); err != nil {
					t.Error(err)
					return
				}
				ids[w] = append(ids[w], out.ID)
				if _, err := c.Reward(context.Background(), RewardRequest{DecisionID: out.ID, Value: float64(i % 2)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, list := range ids {
		for _, id := range list {
			if seen[id] {
				t.Errorf("the id %s was given twice", id)
			}
			seen[id] = true
		}
	}
	if s := c.Stats(t.Context()); s.Decisions != workers*rounds || s.Rewards != workers*rounds || c.Version() != workers*rounds {
		t.Errorf("stats %+v version %d", s, c.Version())
	}
	want := c.capture()
	b.crash(Options{})
	if got := b.capsule(northHero).capture(); string(got.Bytes) != string(want.Bytes) {
		t.Error("replay gives another model")
	}
}
