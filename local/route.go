package local

import (
	"encoding/json/v2"
	"math"
	"strings"
	"unicode/utf8"

	"holdfast/decision"
	"holdfast/internal/strictjson"
)

// Model is a language model that a request may be routed to: one action of the capsule.
type Model struct {
	ID    string
	Tier  string  // such as small or large
	Price float64 // per million tokens, in any one currency
}

// RoutingSpec is a spec for choosing among models: their features, a range that leaves room for costs and failures, and a
// learning rate that noisy graders do not throw from one close model to the other.
func RoutingSpec(models []Model) []byte {
	text := []byte(`{"actions":[`)
	for i, m := range models {
		if i > 0 {
			text = append(text, ',')
		}
		text = strictjson.AppendString(append(text, `{"id":`...), m.ID)
		text = strictjson.AppendString(append(text, `,"features":{"tier":`...), m.Tier)
		text = append(strictjson.AppendFloat(append(text, `,"price":`...), m.Price), "}}"...)
	}
	return append(text, `],"reward":{"range":[-0.5,1]},"learner":{"learningRate":0.1}}`...)
}

// Message is one message of a prompt.
type Message struct {
	Role, Content string // Role is system, user, assistant or tool
}

// Prompt is what a language model is asked.
type Prompt struct {
	Messages         []Message
	Tools            int    // how many the model may call
	StructuredOutput bool   // the answer must follow a schema
	Extra            []byte // more context as JSON object text; its members win over those made here. nil when absent
}

// Context is the prompt as the context of a decision: promptTokens (a quarter of the characters, rounded), turns (messages of
// the user), hasSystem, looksLikeCode, tools, structuredOutput, and what Extra adds. Invalid when Extra is no JSON object.
func (p *Prompt) Context() ([]byte, error) {
	characters, turns, system, code := 0, 0, false, false
	for _, m := range p.Messages {
		characters += utf8.RuneCountInString(m.Content)
		switch m.Role {
		case "user":
			turns++
		case "system":
			system = true
		}
		code = code || looksLikeCode(m.Content)
	}
	text, err := json.Marshal(struct {
		Tokens     int  `json:"promptTokens"`
		Turns      int  `json:"turns"`
		System     bool `json:"hasSystem"`
		Code       bool `json:"looksLikeCode"`
		Tools      int  `json:"tools"`
		Structured bool `json:"structuredOutput"`
	}{int(math.Round(float64(characters) / 4)), turns, system, code, p.Tools, p.StructuredOutput})
	if err != nil || p.Extra == nil {
		return text, err
	}
	return decision.MergePatch(text, p.Extra)
}

// codeMarks rarely stand in prose.
var codeMarks = [...]string{"```", "();", ") {", "};", "</", "#include", "func ", "def ", "class ", "import ", "SELECT ", "=> ", "!= ", "== "}

// looksLikeCode reports whether a text holds a fence, or two marks of program text on different lines.
func looksLikeCode(text string) bool {
	if strings.Contains(text, codeMarks[0]) {
		return true
	}
	lines := 0
	for line := range strings.Lines(text) {
		for _, mark := range codeMarks[1:] {
			if strings.Contains(line, mark) {
				lines++
				break
			}
		}
		if lines == 2 {
			return true
		}
	}
	return false
}

// Outcome is how a routed request went.
type Outcome struct {
	Quality  float64 // of the answer, 0 to 1, as a grader sees it
	CostUSD  float64
	LatencyS float64
	Failed   bool
}

// Weights turn an Outcome into a reward.
type Weights struct {
	Cost    float64 // of one dollar
	Latency float64 // of one second
	Failure float64 // the reward of a failure, whatever it cost
}

// Reward is quality less what cost and latency weigh, or the fixed reward of a failure. While the quality is not known yet,
// report nothing: it can follow by decision id, and until then the spec's reward.default stands for it.
func (w Weights) Reward(o Outcome) float64 {
	if o.Failed {
		return w.Failure
	}
	return o.Quality - w.Cost*o.CostUSD - w.Latency*o.LatencyS
}
