package local

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"math"
	"strings"

	"holdfast/decision"
	"holdfast/fault"
	"holdfast/internal/strictjson"
)

// The bounds of what can be sent.
const (
	maxBody  = 4<<20 - 1 // a body, which must stay below 4 MiB
	maxEvent = 1 << 20   // one event
	maxDepth = 58        // container levels; the server allows 64, and up to six are around a value
)

func invalid(format string, args ...any) *fault.Error {
	return fault.New("local.Decide", fault.Invalid, format, args...)
}

// object returns a JSON object text without the white space around it.
func object(name string, text []byte) ([]byte, error) {
	if err := strictjson.Validate(text, maxDepth); err != nil {
		return nil, invalid("%s: %v", name, err)
	}
	text = bytes.TrimSpace(text)
	if strictjson.KindOf(text) != strictjson.Object {
		return nil, invalid("%s must be a JSON object", name)
	}
	return text, nil
}

// appendInput appends what a decision is made from.
func appendInput(dst []byte, r *Request) ([]byte, error) {
	context, err := []byte("{}"), error(nil)
	if len(r.Context) > 0 {
		if context, err = object("context", r.Context); err != nil {
			return nil, err
		}
	}
	dst = append(append(dst, `{"context":`...), context...)
	if r.Actions != nil {
		dst = append(dst, `,"actions":[`...)
		for i, a := range r.Actions {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strictjson.AppendString(append(dst, `{"id":`...), a.ID)
			if a.Features != nil {
				features, err := object("features of the action "+a.ID, a.Features)
				if err != nil {
					return nil, err
				}
				dst = append(append(dst, `,"features":`...), features...)
			}
			dst = append(dst, '}')
		}
		dst = append(dst, ']')
	}
	if len(r.Excluded) > 0 {
		dst = append(dst, `,"excludedActions":[`...)
		for i, id := range r.Excluded {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strictjson.AppendString(dst, id)
		}
		dst = append(dst, ']')
	}
	if r.Baseline != "" {
		dst = strictjson.AppendString(append(dst, `,"baselineAction":`...), r.Baseline)
	}
	if len(dst) > maxEvent {
		return nil, invalid("the request is longer than the %d bytes that can be reported", maxEvent)
	}
	return append(dst, '}'), nil
}

// appendUpload appends a decision as the server takes it.
func appendUpload(dst []byte, d *decision.Decision, tag string, input []byte) []byte {
	dst = strictjson.AppendString(append(dst, `{"decisionId":`...), d.ID)
	dst = strictjson.AppendInt(append(dst, `,"tsMs":`...), d.TimeMS)
	dst = strictjson.AppendString(append(dst, `,"modelTag":`...), tag)
	dst = strictjson.AppendUint(append(dst, `,"modelVersion":`...), d.ModelVersion)
	dst = strictjson.AppendUint(append(dst, `,"seed":`...), d.Seed)
	dst = append(append(dst, `,"input":`...), input...)
	dst = strictjson.AppendInt(append(dst, `,"chosenIndex":`...), int64(d.Chosen))
	dst = strictjson.AppendString(append(dst, `,"chosenId":`...), d.Actions[d.Chosen].ID)
	dst = strictjson.AppendFloat(append(dst, `,"probability":`...), d.Probability)
	dst = append(dst, `,"pmf":[`...)
	for i, p := range d.PMF {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strictjson.AppendFloat(dst, p)
	}
	dst = append(dst, `],"eligible":[`...)
	for i, at := range d.Eligible {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strictjson.AppendInt(dst, int64(at))
	}
	return append(dst, "]}"...)
}

// appendReward appends a reward as the server takes it.
func appendReward(dst []byte, r *Reward) ([]byte, error) {
	switch {
	case !decision.ValidDecisionID(r.DecisionID):
		return nil, invalid("%q is no decision id", r.DecisionID)
	case math.IsNaN(r.Value) || math.IsInf(r.Value, 0):
		return nil, invalid("the reward must be a finite number")
	case len(r.Key) > decision.MaxIdempotencyKey || strings.IndexByte(r.Key, 0) >= 0:
		return nil, invalid("the key must be at most %d bytes without NUL", decision.MaxIdempotencyKey)
	}
	dst = strictjson.AppendString(append(dst, `{"decisionId":`...), r.DecisionID)
	dst = strictjson.AppendFloat(append(dst, `,"reward":`...), r.Value)
	dst = strictjson.AppendString(append(dst, `,"idempotencyKey":`...), r.Key)
	if r.Detail != nil {
		if err := strictjson.Validate(r.Detail, maxDepth); err != nil {
			return nil, invalid("detail: %v", err)
		}
		dst = append(append(dst, `,"detail":`...), r.Detail...)
	}
	if len(dst) > maxEvent {
		return nil, invalid("the reward is longer than the %d bytes that can be sent", maxEvent)
	}
	return append(dst, '}'), nil
}

// freshKey is a key that no other reward has.
func freshKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return "rwd_" + hex.EncodeToString(b[:])
}
