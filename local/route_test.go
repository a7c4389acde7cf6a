package local

import (
	"math"
	"strings"
	"testing"

	"holdfast/decision"
	"holdfast/fault"
)

func TestRoutingSpec(t *testing.T) {
	text := RoutingSpec([]Model{{"tiny", "small", 0.15}, {"huge \"x\"", "large", 12}})
	spec, err := decision.ParseSpec(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(spec.Actions) != 2 || spec.Actions[1].ID != `huge "x"` || string(spec.Actions[0].Features) != `{"tier":"small","price":0.15}` {
		t.Errorf("actions %q", spec.Actions)
	}
	if spec.Lo != -0.5 || spec.Hi != 1 || spec.Learner.Rate != 0.1 {
		t.Errorf("range %v..%v, rate %v", spec.Lo, spec.Hi, spec.Learner.Rate)
	}
}

func TestPromptContext(t *testing.T) {
	for _, tc := range []struct {
		name   string
		prompt Prompt
		want   string
	}{
		{"empty", Prompt{}, `{"promptTokens":0,"turns":0,"hasSystem":false,"looksLikeCode":false,"tools":0,"structuredOutput":false}`},
		{"a talk", Prompt{Messages: []Message{{"system", "Be brief."}, {"user", "Hi"}, {"assistant", "Hello"}, {"user", "Ünïcode?"}}, Tools: 2, StructuredOutput: true},
			`{"promptTokens":6,"turns":2,"hasSystem":true,"looksLikeCode":false,"tools":2,"structuredOutput":true}`},
		{"rounded", Prompt{Messages: []Message{{"user", "123456"}}}, `{"promptTokens":2,"turns":1,"hasSystem":false,"looksLikeCode":false,"tools":0,"structuredOutput":false}`},
		{"extra", Prompt{Extra: []byte(`{"tools":null,"plan":"pro","turns":9}`)},
			`{"promptTokens":0,"turns":9,"hasSystem":false,"looksLikeCode":false,"structuredOutput":false,"plan":"pro"}`},
	} {
		got, err := tc.prompt.Context()
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: %s, %v\nwant %s", tc.name, got, err, tc.want)
		}
	}
	if _, err := (&Prompt{Extra: []byte(`[1]`)}).Context(); err == nil || fault.KindOf(err) != fault.Invalid {
		t.Errorf("an extra that is no object: %v", err)
	}
}

func TestLooksLikeCode(t *testing.T) {
	for text, want := range map[string]bool{
		"Please import the class of 1999 into our hearts.": false,
		"```\nx\n```": true,
		"func add(a, b int) int {\n\treturn a + b\n}\nfunc main() {\n}": true,
		"def f(x):\n    return x\nclass A:":                             true,
		"What is the capital of France?":                                false,
		"SELECT name FROM users\nWHERE id != 7":                         true,
		strings.Repeat("prose ", 1000):                                  false,
	} {
		if got := looksLikeCode(text); got != want {
			t.Errorf("%.40q: %v", text, got)
		}
	}
}

func TestRoutingReward(t *testing.T) {
	w := Weights{Cost: 10, Latency: 0.1, Failure: -0.5}
	if got := w.Reward(Outcome{Quality: 0.9, CostUSD: 0.02, LatencyS: 2}); math.Abs(got-0.5) > 1e-12 {
		t.Errorf("reward %v", got)
	}
	if got := w.Reward(Outcome{Quality: 1, CostUSD: 5, Failed: true}); got != -0.5 {
		t.Errorf("reward of a failure %v", got)
	}
}
