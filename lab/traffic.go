package lab

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"
)

// Traffic plays simulated users of an LLM router against a running server: every request is decided, answered by a made-up
// model and rewarded. Which model is best depends on the request, so a policy that ignores the context cannot win.
type Traffic struct {
	URL, Key string
	Capsule  string // path of the capsule, such as /v1/tenants/demo/jobs/llm/capsules/router
	Rate     int    // decisions per second
	Seed     uint64

	decisions, failures atomic.Int64
	earned, best        atomic.Int64 // millionths of reward: expected of what was chosen, and of the best choice
}

// Spec is the capsule that Traffic plays: three models, a reward that may be negative, and a learning rate for noisy graders.
func (t *Traffic) Spec() []byte {
	return []byte(`{"actions":[{"id":"small","features":{"price":0.1}},{"id":"medium","features":{"price":0.4}},` +
		`{"id":"large","features":{"price":1}}],"reward":{"range":[-0.5,1]},"learner":{"learningRate":0.1},` +
		`"exploration":{"floor":0.03}}`)
}

// task is a kind of request: how often each model answers it well.
type task struct {
	name    string
	tokens  int
	quality map[string]float64
}

// tasks differ in which model pays off once its price is subtracted.
func tasks() []task {
	return []task{
		{"chat", 120, map[string]float64{"small": 0.90, "medium": 0.93, "large": 0.95}},
		{"code", 900, map[string]float64{"small": 0.25, "medium": 0.80, "large": 0.90}},
		{"proof", 500, map[string]float64{"small": 0.05, "medium": 0.30, "large": 0.95}},
	}
}

// price is what one answer costs, in units of reward.
func price(model string) float64 {
	return map[string]float64{"small": 0.02, "medium": 0.10, "large": 0.30}[model]
}

func (k task) value(model string) float64 { return k.quality[model] - price(model) }

func (k task) best() float64 {
	best := k.value("small")
	for model := range k.quality {
		best = max(best, k.value(model))
	}
	return best
}

// Progress is what happened so far.
type Progress struct {
	Decisions, Failures int64
	Earned, Best        float64 // expected reward of what was chosen, and of the best choice
}

// Progress returns the counts so far.
func (t *Traffic) Progress() Progress {
	return Progress{t.decisions.Load(), t.failures.Load(), float64(t.earned.Load()) / 1e6, float64(t.best.Load()) / 1e6}
}

// Run creates the capsule and plays until ctx ends. It returns the first error that kept it from starting; later failures
// are counted.
func (t *Traffic) Run(ctx context.Context) error {
	client := &http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	if _, err := t.call(ctx, client, http.MethodPut, "/spec", t.Spec()); err != nil {
		return fmt.Errorf("creating the demo capsule: %w", err)
	}
	draw := rand.New(rand.NewPCG(t.Seed, 1))
	kinds := tasks()
	tick := time.NewTicker(time.Second / time.Duration(max(t.Rate, 1)))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := t.round(ctx, client, kinds[draw.IntN(len(kinds))], draw); err != nil && ctx.Err() == nil {
			t.failures.Add(1)
		}
	}
}

// round is one request: decide, answer, reward.
func (t *Traffic) round(ctx context.Context, client *http.Client, k task, draw *rand.Rand) error {
	tokens := k.tokens/2 + draw.IntN(k.tokens)
	body := fmt.Appendf(nil, `{"context":{"kind":%q,"promptTokens":%.2f,"looksLikeCode":%t}}`, k.name, float64(tokens)/1000, k.name == "code")
	text, err := t.call(ctx, client, http.MethodPost, "/decide", body)
	if err != nil {
		return err
	}
	var answer struct {
		ID     string `json:"decisionId"`
		Action string `json:"action"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return err
	}
	if _, ok := k.quality[answer.Action]; !ok {
		return fmt.Errorf("the server chose %q, which is no model of the demo", answer.Action)
	}
	reward := -price(answer.Action)
	if draw.Float64() < k.quality[answer.Action] {
		reward++
	}
	t.decisions.Add(1)
	t.earned.Add(int64(k.value(answer.Action) * 1e6))
	t.best.Add(int64(k.best() * 1e6))
	_, err = t.call(ctx, client, http.MethodPost, "/reward", fmt.Appendf(nil, `{"decisionId":%q,"reward":%.4f}`, answer.ID, reward))
	return err
}

// call sends one request to the capsule and returns the body of a 2xx answer.
func (t *Traffic) call(ctx context.Context, client *http.Client, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, t.URL+t.Capsule+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+t.Key)
	return answerOf(client, req)
}
