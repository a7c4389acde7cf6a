package decisionapi

import (
	"encoding/json/jsontext"
	"net/http"
	"strings"

	"holdfast/decision"
	"holdfast/ident"
	"holdfast/wire/reply"
)

// modelJSON is what GET C/model answers; the pointers are there with a snapshot only.
type modelJSON struct {
	Spec      jsontext.Value `json:"spec"`
	Version   uint64         `json:"modelVersion"`
	Watermark int64          `json:"rewardWatermark"`
	Program   *string        `json:"programSha256"`
	Decide    jsontext.Value `json:"decide,omitzero"`
	Tag       string         `json:"modelTag,omitzero"`
	Bytes     int            `json:"snapshotBytes,omitzero"`
	Snapshot  []byte         `json:"snapshot,omitzero"` // base64
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
	a.send(w, r, http.StatusOK, showModel(info))
}

func showModel(info decision.ModelInfo) modelJSON {
	return modelJSON{Spec: info.Spec, Version: info.Version, Watermark: info.Watermark, Program: orNull(info.Program)}
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
	shown := showModel(info)
	shown.Version, shown.Decide, shown.Tag = p.Version, p.Section, p.Tag
	shown.Bytes, shown.Snapshot = len(p.Bytes), p.Bytes
	a.send(w, r, http.StatusOK, shown)
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
