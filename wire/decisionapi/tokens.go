package decisionapi

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"net/http"
	"time"

	"holdfast/fault"
	"holdfast/ident"
	"holdfast/wire/reply"
)

// tokenJSON is one issued token in the list. Times are Unix seconds, null for never.
type tokenJSON struct {
	Hash       string      `json:"hash"`
	Scope      ident.Scope `json:"scope"`
	CreatedAt  int64       `json:"createdAt"`
	ExpiresAt  *int64      `json:"expiresAt"`
	LastUsedAt *int64      `json:"lastUsedAt"`
	Label      *string     `json:"label"`
}

// Issue answers POST /v1/admin/tokens: the only time that the token itself is shown.
func (a *API) Issue(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	issued, err := a.issue(r, c)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	w.Header()["Cache-Control"] = []string{"no-store"}
	a.send(w, r, http.StatusOK, struct {
		Token     string      `json:"token"`
		Hash      string      `json:"hash"`
		Scope     ident.Scope `json:"scope"`
		ExpiresAt *int64      `json:"expiresAt"`
	}{issued.Secret, issued.Hash, issued.Scope, seconds(issued.ExpiresAt)})
}

func (a *API) issue(r *http.Request, c *ident.Call) (issued ident.Issued, err error) {
	var body struct {
		Scope jsontext.Value `json:"scope"`
		TTL   *int64         `json:"ttlSeconds"`
		Label string         `json:"label"`
	}
	if err := decode(c.Body, &body); err != nil {
		return issued, err
	}
	if body.Scope == nil {
		return issued, missing("scope")
	}
	var scope ident.Scope
	if err := json.Unmarshal(body.Scope, &scope); err != nil {
		return issued, scopeError(err)
	}
	var ttl time.Duration
	if body.TTL != nil {
		if *body.TTL < 1 || *body.TTL > int64(ident.MaxTTL/time.Second) {
			return issued, invalid("%s", ident.ErrTTL.Error())
		}
		ttl = time.Duration(*body.TTL) * time.Second
	}
	issued, err = a.tokens.Issue(r.Context(), scope, ttl, body.Label)
	if errors.Is(err, ident.ErrTTL) || errors.Is(err, ident.ErrLabel) || errors.Is(err, ident.ErrScope) {
		return issued, fault.Wrap("decisionapi.Issue", fault.Invalid, err, err.Error())
	}
	return issued, err
}

// scopeError words what is wrong with a scope for the caller.
func scopeError(err error) error {
	outer, ok := errors.AsType[*json.SemanticError](err)
	if !ok || outer.Err == nil {
		return wrongType("scope", "an object")
	}
	inner, ok := errors.AsType[*json.SemanticError](outer.Err)
	switch {
	case !ok:
		return invalid("%s", outer.Err.Error()) // our own words
	case inner.JSONPointer == "":
		return wrongType("scope", "an object")
	}
	return explain(inner)
}

// List answers GET /v1/admin/tokens: the unexpired ones, oldest first.
func (a *API) List(w http.ResponseWriter, r *http.Request, _ *ident.Call) {
	all := a.tokens.List()
	shown := make([]tokenJSON, 0, len(all))
	for i := range all {
		shown = append(shown, tokenJSON{
			Hash: all[i].Hash, Scope: all[i].Scope, CreatedAt: all[i].CreatedAt.Unix(),
			ExpiresAt: seconds(all[i].ExpiresAt), LastUsedAt: seconds(all[i].LastUsedAt), Label: orNull(all[i].Label),
		})
	}
	a.send(w, r, http.StatusOK, struct {
		Tokens []tokenJSON `json:"tokens"`
	}{shown})
}

// Revoke answers DELETE /v1/admin/tokens/{hash}.
func (a *API) Revoke(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	found, err := a.tokens.Revoke(r.Context(), c.Params[0])
	if err == nil && !found {
		err = fault.New("decisionapi.Revoke", fault.NotFound, "token not found")
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	reply.JSON(w, http.StatusOK, []byte(`{"ok":true,"revoked":true}`))
}

// seconds is a time in Unix seconds, nil for the zero time.
func seconds(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	n := t.Unix()
	return &n
}
