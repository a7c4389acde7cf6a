package decisionapi

import (
	"encoding/json/jsontext"
	"net/http"

	"holdfast/decision"
	"holdfast/ident"
)

// programJSON describes an installed graph.
type programJSON struct {
	SHA256        string `json:"programSha256"`
	Bytes         int    `json:"programBytes"`
	InstalledAtMS int64  `json:"installedAtMs"`
}

// statsJSON counts what a capsule holds; the times are null while there is no decision.
type statsJSON struct {
	Decisions     int64  `json:"decisions"`
	Rewards       int64  `json:"rewards"`
	FirstMS       *int64 `json:"firstDecisionMs"`
	LastMS        *int64 `json:"lastDecisionMs"`
	LastRewardSeq int64  `json:"lastRewardSeq"`
}

// capsuleJSON is what GET C answers.
type capsuleJSON struct {
	Tenant       string         `json:"tenant"`
	Job          string         `json:"job"`
	Capsule      string         `json:"capsule"`
	Spec         jsontext.Value `json:"spec"`
	ModelVersion uint64         `json:"modelVersion"`
	Program      *programJSON   `json:"program"`
	PolicyError  *string        `json:"policyError"` // no policy without a graph that does I/O: always null
	Stats        statsJSON      `json:"stats"`
}

func showCapsule(info decision.Info) capsuleJSON {
	shown := capsuleJSON{
		Tenant: info.ID.Tenant, Job: info.ID.Job, Capsule: info.ID.Capsule,
		Spec: info.Spec, ModelVersion: info.ModelVersion,
		Stats: statsJSON{
			Decisions: info.Stats.Decisions, Rewards: info.Stats.Rewards, FirstMS: orNull(info.Stats.FirstMS),
			LastMS: orNull(info.Stats.LastMS), LastRewardSeq: info.Stats.LastRewardSeq,
		},
	}
	if p := info.Program; p != nil {
		shown.Program = &programJSON{SHA256: p.SHA256, Bytes: p.Bytes, InstalledAtMS: p.InstalledMS}
	}
	return shown
}

// Capsule answers GET C: spec, model version, graph and counts.
func (a *API) Capsule(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	capsule, err := a.capsule(r, c)
	var info decision.Info
	if err == nil {
		info, err = capsule.Info(r.Context())
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, showCapsule(info))
}

// DeleteCapsule answers DELETE C: everything but the audit trail goes.
func (a *API) DeleteCapsule(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := capsuleID(c)
	var rows int64
	if err == nil {
		rows, err = a.service.DeleteCapsule(r.Context(), id)
	}
	a.erased(w, r, rows, err)
}
