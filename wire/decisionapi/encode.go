package decisionapi

import (
	"encoding/hex"
	"encoding/json/jsontext"

	"holdfast/decision"
	"holdfast/internal/strictjson"
)

// appendAnswer appends what a decide answers, without the closing brace: older paths go on from there.
func appendAnswer(dst []byte, a *decision.Answer) []byte {
	dst = append(dst, `{"decisionId":`...)
	dst = strictjson.AppendString(dst, a.ID)
	dst = append(dst, `,"action":`...)
	dst = strictjson.AppendString(dst, a.Action)
	dst = append(dst, `,"actionIndex":`...)
	dst = strictjson.AppendInt(dst, int64(a.ActionIndex))
	dst = append(dst, `,"probability":`...)
	dst = strictjson.AppendFloat(dst, a.Probability)
	dst = append(dst, `,"ranking":[`...)
	for i := range a.Ranking {
		dst = appendRanked(dst, i, &a.Ranking[i])
	}
	dst = append(dst, `],"mode":"`...)
	dst = append(dst, a.Mode.String()...)
	dst = append(dst, `","modelVersion":`...)
	dst = strictjson.AppendUint(dst, a.ModelVersion)
	if a.Reason != "" {
		dst = append(dst, `,"reason":`...)
		dst = strictjson.AppendString(dst, a.Reason)
	}
	if a.Replayed {
		dst = append(dst, `,"replayed":true`...)
	}
	return dst
}

// appendRanked appends one element of a ranking, with a comma unless it is the first.
func appendRanked(dst []byte, i int, r *decision.Ranked) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	dst = append(dst, `{"id":`...)
	dst = strictjson.AppendString(dst, r.ID)
	dst = append(dst, `,"probability":`...)
	dst = strictjson.AppendFloat(dst, r.Probability)
	return append(dst, '}')
}

// appendRewardAnswer appends what a reward answers.
func appendRewardAnswer(dst []byte, a decision.RewardAnswer) []byte {
	dst = append(dst, `{"ok":true,"applied":`...)
	dst = strictjson.AppendBool(dst, a.Applied)
	switch {
	case a.Applied:
		dst = append(dst, `,"learned":`...)
		dst = strictjson.AppendBool(dst, a.Learned)
	case a.Held:
		dst = append(dst, `,"held":true`...)
	case a.Duplicate:
		dst = append(dst, `,"duplicate":true`...)
	}
	dst = append(dst, `,"modelVersion":`...)
	return append(strictjson.AppendUint(dst, a.ModelVersion), '}')
}

// appendDecision appends one logged decision, without the closing brace.
func appendDecision(dst []byte, d *decision.Decision) []byte {
	dst = append(dst, `{"decisionId":`...)
	dst = strictjson.AppendString(dst, d.ID)
	dst = append(dst, `,"tsMs":`...)
	dst = strictjson.AppendInt(dst, d.TimeMS)
	dst = append(dst, `,"modelVersion":`...)
	dst = strictjson.AppendUint(dst, d.ModelVersion)
	dst = append(dst, `,"mode":"`...)
	dst = append(dst, d.Mode.String()...)
	dst = append(dst, `","context":`...)
	dst = appendRaw(dst, d.Context, "{}")
	dst = append(dst, `,"derived":`...)
	dst = appendRaw(dst, d.Derived, "null")
	dst = appendActions(append(dst, `,"actions":`...), d.Actions)
	dst = append(dst, `,"eligible":[`...)
	for i, n := range d.Eligible {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strictjson.AppendInt(dst, int64(n))
	}
	dst = append(dst, `],"pmf":[`...)
	for i, p := range d.PMF {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strictjson.AppendFloat(dst, p)
	}
	dst = append(dst, `],"chosenIndex":`...)
	dst = strictjson.AppendInt(dst, int64(d.Chosen))
	dst = append(dst, `,"action":`...)
	if d.Chosen >= 0 && d.Chosen < len(d.Actions) {
		dst = strictjson.AppendString(dst, d.Actions[d.Chosen].ID)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"probability":`...)
	dst = strictjson.AppendFloat(dst, d.Probability)
	dst = append(dst, `,"seed":"`...)
	dst = strictjson.AppendUint(dst, d.Seed)
	dst = appendNullable(append(dst, `","reason":`...), d.Reason)
	dst = append(dst, `,"requestSha256":"`...)
	dst = hex.AppendEncode(dst, d.Digest[:])
	return appendNullable(append(dst, `","programSha256":`...), d.Program)
}

// appendActions appends the array of actions as they were given.
func appendActions(dst []byte, actions []decision.Action) []byte {
	dst = append(dst, '[')
	for i := range actions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"id":`...)
		dst = strictjson.AppendString(dst, actions[i].ID)
		if len(actions[i].Features) > 0 {
			dst = append(dst, `,"features":`...)
			dst = append(dst, actions[i].Features...)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// appendReward appends one reward of a decision.
func appendReward(dst []byte, r *decision.Reward) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strictjson.AppendInt(dst, r.Seq)
	dst = append(dst, `,"tsMs":`...)
	dst = strictjson.AppendInt(dst, r.TimeMS)
	dst = append(dst, `,"reward":`...)
	dst = strictjson.AppendFloat(dst, r.Value)
	dst = append(dst, `,"rewardNormalized":`...)
	dst = strictjson.AppendFloat(dst, r.Normalized)
	dst = append(dst, `,"idempotencyKey":`...)
	dst = strictjson.AppendString(dst, r.Key)
	dst = append(dst, `,"detail":`...)
	return append(appendRaw(dst, r.Detail, "null"), '}')
}

// appendRaw appends stored JSON text, or what stands for none.
func appendRaw(dst, raw []byte, none string) []byte {
	if len(raw) == 0 {
		return append(dst, none...)
	}
	return append(dst, raw...)
}

// appendNullable appends a string, null when it is empty.
func appendNullable(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return strictjson.AppendString(dst, s)
}

// rawOr is stored JSON text as a value, none when there is no text.
func rawOr(raw []byte, none string) jsontext.Value {
	if len(raw) == 0 {
		return jsontext.Value(none)
	}
	return jsontext.Value(raw)
}

// orNull is a pointer to v, nil for a zero v: null on the wire.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
