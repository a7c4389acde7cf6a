package decisionapi

import (
	"bytes"
	"errors"
	"net/http"

	"holdfast/decision"
	"holdfast/fault"
	"holdfast/ident"
	"holdfast/internal/strictjson"
	"holdfast/wire/reply"
)

// Reward answers POST C/reward and its older name C/feedback: one outcome.
func (a *API) Reward(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	answer, err := a.reward(r, c)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	var room [160]byte
	reply.JSON(w, http.StatusOK, appendRewardAnswer(room[:0], answer))
}

func (a *API) reward(r *http.Request, c *ident.Call) (answer decision.RewardAnswer, err error) {
	id, err := capsuleID(c)
	if err != nil {
		return answer, err
	}
	if err := check(c.Body); err != nil {
		return answer, err
	}
	body, err := decodeReward(c.Body, wholeReward)
	if err != nil {
		return answer, err
	}
	body.Detail = bytes.Clone(body.Detail) // a change that is under way outlives a caller who leaves
	capsule, err := a.service.Capsule(r.Context(), id)
	if err != nil {
		return answer, err
	}
	return capsule.Reward(r.Context(), body)
}

// rewardFields says which members a reward may have.
type rewardFields uint8

const (
	batchReward rewardFields = iota
	wholeReward              // and durable, which changes nothing: a reward is always on disk before its answer
)

// decodeReward reads a validated reward object. The request's detail refers to it.
func decodeReward(object []byte, allowed rewardFields) (q decision.RewardRequest, err error) {
	values := 0
	for c := members(object); c.More(); {
		switch key := c.Key(); string(key) {
		case "decisionId":
			q.DecisionID, err = someText("decisionId", c.Skip())
		case "reward", "value":
			values++
			q.Value, err = number("reward", c.Skip())
		case "idempotencyKey":
			raw := c.Skip()
			q.HasKey = strictjson.KindOf(raw) != strictjson.Null
			q.Key, err = text("idempotencyKey", raw)
		case "detail":
			if q.Detail = c.Skip(); strictjson.KindOf(q.Detail) == strictjson.Null {
				q.Detail = nil
			}
		default:
			if allowed != wholeReward || string(key) != "durable" {
				return q, unknownField(string(key))
			}
			_, err = boolean("durable", c.Skip())
		}
		if err != nil {
			return q, err
		}
	}
	switch {
	case q.DecisionID == "":
		return q, missing("decisionId")
	case values == 0:
		return q, missing("reward")
	case values > 1:
		return q, invalid("give `reward` or `value`, not both")
	}
	return q, nil
}

// Rewards answers POST C/rewards:batch: many outcomes, each with a result of its own.
func (a *API) Rewards(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := capsuleID(c)
	var items []decision.RewardRequest
	if err == nil {
		items, err = decodeRewards(bytes.Clone(c.Body))
	}
	var capsule *decision.Capsule
	if err == nil {
		capsule, err = a.service.Capsule(r.Context(), id)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	results := capsule.Rewards(r.Context(), items)
	text := append(make([]byte, 0, 32+80*len(results)), `{"results":[`...)
	for i := range results {
		if i > 0 {
			text = append(text, ',')
		}
		if results[i].Err == nil {
			text = appendRewardAnswer(text, results[i].Answer)
		} else {
			text = appendRefusedReward(text, items[i].DecisionID, results[i].Err)
		}
	}
	reply.JSON(w, http.StatusOK, append(text, "]}"...))
}

func appendRefusedReward(dst []byte, id string, err error) []byte {
	status, message := reply.Problem(err)
	dst = append(dst, `{"ok":false,"decisionId":`...)
	dst = strictjson.AppendString(dst, id)
	dst = append(dst, `,"status":`...)
	dst = strictjson.AppendInt(dst, int64(status))
	dst = append(dst, `,"error":`...)
	return append(strictjson.AppendString(dst, message), '}')
}

// decodeRewards reads the body of a batch. The requests refer to it.
func decodeRewards(body []byte) (items []decision.RewardRequest, err error) {
	err = batch(body, "rewards", func(raw []byte) error {
		item, err := decodeReward(raw, batchReward)
		items = append(items, item)
		return err
	})
	return items, err
}

// batch reads a body with one member, an array of at most maxItems objects, and calls each for every one of them.
func batch(body []byte, name string, each func(raw []byte) error) error {
	if err := check(body); err != nil {
		return err
	}
	given := false
	for c := members(body); c.More(); {
		if key := c.Key(); string(key) != name {
			return unknownField(string(key))
		}
		if given = c.Kind() == strictjson.Array; !given {
			return wrongType(name, "an array")
		}
		c.Enter()
		for count := 0; c.More(); count++ {
			if count == maxItems {
				return fault.New("decisionapi.batch", fault.TooLarge, "payload too large: at most %d items at once", maxItems)
			}
			if c.Kind() != strictjson.Object {
				return wrongType(name, "an array of objects")
			}
			if err := each(c.Skip()); err != nil {
				return at(err, name, count)
			}
		}
	}
	if !given {
		return missing(name)
	}
	return nil
}

// at says which item of a batch an error is about.
func at(err error, name string, i int) error {
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Kind == fault.Invalid {
		return invalid("%s[%d]: %s", name, i, e.Message())
	}
	return err
}
