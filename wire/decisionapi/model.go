package decisionapi

import (
	"encoding/base64"
	"net/http"
	"strings"

	"holdfast/decision"
	"holdfast/ident"
	"holdfast/internal/strictjson"
	"holdfast/wire/reply"
)

// appendModel appends what GET C/model answers, without the closing brace. It is written by hand because clients check the
// published section by the bytes that they get.
func appendModel(dst []byte, info decision.ModelInfo) []byte {
	dst = append(append(dst, `{"spec":`...), info.Spec...)
	dst = strictjson.AppendUint(append(dst, `,"modelVersion":`...), info.Version)
	dst = strictjson.AppendInt(append(dst, `,"rewardWatermark":`...), info.Watermark)
	return appendNullable(append(dst, `,"programSha256":`...), info.Program)
}

// Model answers GET C/model: the version, or with ?snapshot=true the published model for deciding elsewhere.
func (a *API) Model(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	q, err := query(r)
	var snapshot bool
	if err == nil {
		snapshot, err = q.flag("snapshot")
	}
	var capsule *decision.Capsule
	if err == nil {
		capsule, err = a.capsule(r, c)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	if snapshot {
		a.published(w, r, capsule)
		return
	}
	info, err := capsule.Model(r.Context())
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	reply.JSON(w, http.StatusOK, append(appendModel(nil, info), '}'))
}

func (a *API) published(w http.ResponseWriter, r *http.Request, capsule *decision.Capsule) {
	p, info, err := capsule.Published(r.Context())
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	tag := `"` + p.Tag + `"`
	w.Header()["Etag"] = []string{tag}
	if current(r.Header.Values("If-None-Match"), tag) {
		reply.Empty(w, http.StatusNotModified)
		return
	}
	info.Version = p.Version // of what is sent, not of the model that has gone on since
	text := make([]byte, 0, 512+len(info.Spec)+len(p.Section)+base64.StdEncoding.EncodedLen(len(p.Bytes)))
	text = append(append(appendModel(text, info), `,"decide":`...), p.Section...)
	text = strictjson.AppendString(append(text, `,"modelTag":`...), p.Tag)
	text = strictjson.AppendInt(append(text, `,"snapshotBytes":`...), int64(len(p.Bytes)))
	text = base64.StdEncoding.AppendEncode(append(text, `,"snapshot":"`...), p.Bytes)
	reply.JSON(w, http.StatusOK, append(text, `"}`...))
}

// current reports whether one of the tags of If-None-Match is tag. The comparison is the weak one, as the header asks.
func current(headers []string, tag string) bool {
	for _, header := range headers {
		for candidate := range strings.SplitSeq(header, ",") {
			candidate = strings.TrimSpace(candidate)
			if candidate == "*" || strings.TrimPrefix(candidate, "W/") == tag {
				return true
			}
		}
	}
	return false
}
