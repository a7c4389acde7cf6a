package decisionapi

import (
	"net/http"

	"holdfast/ident"
)

// whoJSON is what GET /v1/auth/whoami answers.
type whoJSON struct {
	OK    bool        `json:"ok"`
	Kind  string      `json:"kind"`
	ID    *string     `json:"principalId"`
	Scope ident.Scope `json:"scope"`
}

// Whoami answers GET /v1/auth/whoami: what the caller's credential is and covers.
func (a *API) Whoami(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	who := whoJSON{OK: true, Kind: "scoped_token", ID: orNull(c.Principal.ID), Scope: c.Principal.Scope}
	switch c.Principal.Kind {
	case ident.DevMode:
		who.Kind, who.ID, who.Scope = "dev_mode", nil, ident.Scope{Role: ident.Admin}
	case ident.Operator:
		who.Kind, who.Scope = "legacy_admin", ident.Scope{Role: ident.Admin}
	}
	a.send(w, r, http.StatusOK, who)
}

// capsuleName names a capsule in the list of all.
type capsuleName struct {
	Tenant  string `json:"tenant"`
	Job     string `json:"job"`
	Capsule string `json:"capsule"`
}

// AllCapsules answers GET /v1/admin/capsules.
func (a *API) AllCapsules(w http.ResponseWriter, r *http.Request, _ *ident.Call) {
	ids, err := a.service.Capsules(r.Context(), "", "")
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	shown := make([]capsuleName, 0, len(ids))
	for _, id := range ids {
		shown = append(shown, capsuleName(id))
	}
	a.send(w, r, http.StatusOK, struct {
		Capsules []capsuleName `json:"capsules"`
	}{shown})
}
