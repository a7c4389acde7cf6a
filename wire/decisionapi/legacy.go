package decisionapi

import (
	"bytes"
	"crypto/sha256"
	"net/http"

	"holdfast/decision"
	"holdfast/ident"
	"holdfast/internal/strictjson"
	"holdfast/wire/reply"
)

// decodeLegacy reads the body of an older decide: any JSON object. Its member input is what to decide on, the whole body
// when there is none. Other members beside input, contextKey excepted, are of a time that this service has left behind.
func (d *decideBody) decodeLegacy(body []byte) error {
	if err := check(body); err != nil {
		return err
	}
	d.reset()
	var input []byte
	for c := members(body); c.More(); {
		switch key := c.Key(); string(key) {
		case "input":
			input = c.Skip()
		case "contextKey":
			if raw := c.Skip(); strictjson.KindOf(raw) == strictjson.String {
				d.key = raw
			} else if strictjson.KindOf(raw) != strictjson.Null {
				return wrongType("contextKey", "a string")
			}
		default:
			c.Skip()
		}
	}
	d.req.Context = body
	if input != nil {
		if err := d.context(input); err != nil {
			return err
		}
		if strictjson.KindOf(input) == strictjson.Null {
			d.req.Context = nil
		}
		if d.key != nil {
			d.merged = mergeContext(d.merged, d.req.Context, d.key, nil)
			d.req.Context = d.merged
		}
	}
	d.req.Digest = sha256.Sum256(body)
	return nil
}

// LegacyDecide answers POST /tenants/{tenant}/capsules/{capsule}/decide: a decide in the older form.
func (a *API) LegacyDecide(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	d := a.borrow()
	defer a.giveBack(d)
	if err := a.decide(d, r, c, (*decideBody).decodeLegacy); err != nil {
		a.refuse(w, r, err)
		return
	}
	learned, _ := governed(r, c) // it was read without an error before
	d.text = appendAnswer(d.text[:0], &d.answer)
	d.text = append(d.text, `,"ok":true`...)
	for i, member := range [...]string{"tenant", "job", "capsule"} {
		d.text = append(append(append(d.text, `,"`...), member...), `":`...)
		d.text = strictjson.AppendString(d.text, c.Params[i])
	}
	d.text = appendRaw(append(d.text, `,"contextKey":`...), d.body.key, "null")
	d.text = strictjson.AppendBool(append(d.text, `,"learned":`...), learned)
	d.text = appendStrategy(append(d.text, `,"decisions":[`...), &d.answer, d.capsule.Options())
	d.text = append(d.text, `],"result":`...)
	var result []byte
	if d.answer.Graph != nil {
		result = d.answer.Graph.Output
	}
	d.text = append(appendRaw(d.text, result, "null"), `,"stdout":[]}`...)
	reply.JSON(w, http.StatusOK, d.text)
}

// strategyID names the draw of a capsule whose graph has no strategy node, or that has no graph.
const strategyID = "strategy"

// appendStrategy appends the draw as older callers read it: the weights are the options' probabilities, in their order,
// 0 for an option that was not eligible.
func appendStrategy(dst []byte, a *decision.Answer, options []string) []byte {
	id := strategyID
	if a.Graph != nil && a.Graph.StrategyID != "" {
		id = a.Graph.StrategyID
	}
	dst = strictjson.AppendString(append(dst, `{"node_id":`...), id)
	dst = strictjson.AppendString(append(dst, `,"chosen_option":`...), a.Action)
	dst = strictjson.AppendFloat(append(dst, `,"confidence":`...), a.Probability)
	dst = append(dst, `,"weights":[`...)
	for i, option := range options {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strictjson.AppendFloat(dst, weight(a.Ranking, option))
	}
	return append(dst, "]}"...)
}

func weight(ranking []decision.Ranked, option string) float64 {
	for i := range ranking {
		if ranking[i].ID == option {
			return ranking[i].Probability
		}
	}
	return 0
}

// legacyFeedback is an outcome that names an option instead of a decision.
type legacyFeedback struct {
	Strategy   *string  `json:"strategyId"`
	Option     *string  `json:"option"`
	Reward     *float64 `json:"reward"`
	Value      *float64 `json:"value"`
	ContextKey *string  `json:"contextKey"`
}

// LegacyReward answers POST /tenants/{tenant}/capsules/{capsule}/feedback: a reward, or an outcome of the newest unrewarded
// decision of an option and a context key.
func (a *API) LegacyReward(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	answer, err := a.legacyReward(r, c)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	reply.JSON(w, http.StatusOK, appendRewardAnswer(nil, answer))
}

func (a *API) legacyReward(r *http.Request, c *ident.Call) (answer decision.RewardAnswer, err error) {
	if err := check(c.Body); err != nil {
		return answer, err
	}
	for m := members(c.Body); m.More(); m.Skip() {
		if bytes.Equal(m.Key(), []byte("decisionId")) {
			return a.reward(r, c)
		}
	}
	id, err := capsuleID(c)
	if err != nil {
		return answer, err
	}
	var body legacyFeedback
	if err := decode(c.Body, &body); err != nil {
		return answer, err
	}
	if body.Reward == nil {
		body.Reward = body.Value
	} else if body.Value != nil {
		return answer, invalid("give `reward` or `value`, not both")
	}
	switch {
	case body.Option == nil:
		return answer, missing("option")
	case body.Reward == nil:
		return answer, missing("reward")
	}
	capsule, err := a.service.Capsule(r.Context(), id)
	if err != nil {
		return answer, err
	}
	key := ""
	if body.ContextKey != nil {
		key = *body.ContextKey
	}
	found, err := a.service.NewestUnrewarded(r.Context(), id, *body.Option, key)
	if err != nil {
		return answer, err
	}
	return capsule.Reward(r.Context(), decision.RewardRequest{DecisionID: found, Value: *body.Reward})
}
