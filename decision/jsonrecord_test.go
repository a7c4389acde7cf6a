package decision

import (
	"encoding/hex"

	"holdfast/internal/strictjson"
)

type withActions = bool

// appendJSONRecord is the encoder that the binary record is measured against.
func appendJSONRecord(dst []byte, d *draft, actions withActions) []byte {
	dst = append(dst, `{"decisionId":"`...)
	dst = appendID(dst, d.ms, d.random)
	dst = strictjson.AppendInt(append(dst, `","tsMs":`...), d.ms)
	dst = strictjson.AppendUint(append(dst, `,"modelVersion":`...), d.version)
	dst = strictjson.AppendString(append(dst, `,"mode":`...), d.mode.String())
	dst = append(append(dst, `,"context":`...), d.context...)
	if actions {
		dst = append(dst, `,"actions":[`...)
		for i, a := range sampleActions {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strictjson.AppendString(append(dst, `{"id":`...), a.ID)
			if a.Features != nil {
				dst = append(append(dst, `,"features":`...), a.Features...)
			}
			dst = append(dst, '}')
		}
		dst = append(dst, ']')
	}
	dst = append(dst, `,"eligible":[`...)
	for i, at := range d.eligible {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strictjson.AppendInt(dst, int64(at))
	}
	dst = append(dst, `],"pmf":[`...)
	for i, p := range d.pmf {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strictjson.AppendFloat(dst, p)
	}
	dst = strictjson.AppendInt(append(dst, `],"chosenIndex":`...), int64(d.eligible[d.chosen]))
	dst = strictjson.AppendUint(append(dst, `,"seed":"`...), d.seed)
	dst = append(dst, `","requestSha256":"`...)
	dst = hex.AppendEncode(dst, d.digest[:])
	return append(dst, `"}`...)
}
