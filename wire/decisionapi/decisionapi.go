// Package decisionapi speaks the decision service's HTTP dialect: the routes under /v1/tenants, tokens and jobs, the
// Personalizer-compatible paths and the older paths without a job.
//
// It turns a request that the server has already limited, authenticated, admitted, matched and scoped into calls of
// package decision, and the outcome into JSON. Invariants: bodies are strict (one value, no unknown or duplicate members,
// no wrong types); nothing that outlives a call refers to the call's body; numbers are written in their shortest form that
// reads back equal. It refuses to hold rules of its own beyond the shape of a message: bounds, eligibility and idempotency
// are the service's. It starts no goroutines.
package decisionapi

import (
	"log/slog"
	"net/http"
	"sync"

	"holdfast/decision"
	"holdfast/ident"
	"holdfast/wire/reply"
)

// Handler answers one admitted request.
type Handler = func(w http.ResponseWriter, r *http.Request, c *ident.Call)

// Options are what an API needs; all of them are required.
type Options struct {
	Service *decision.Service
	Tokens  *ident.Keyring
	Log     *slog.Logger
}

// API answers every route of the dialect.
type API struct {
	service *decision.Service
	tokens  *ident.Keyring
	refuse  reply.Refusal // {"error":"text"}
	decline reply.Refusal // {"error":{"code","message"}}, on Personalizer paths

	decides sync.Pool // *decideCall
}

// New returns an API over a service and its tokens.
func New(o Options) *API {
	return &API{service: o.Service, tokens: o.Tokens, refuse: reply.Decision(o.Log), decline: reply.Personalizer(o.Log)}
}

// send answers with v as JSON.
func (a *API) send(w http.ResponseWriter, r *http.Request, status int, v any) {
	if err := reply.Value(w, status, v); err != nil {
		a.refuse(w, r, err)
	}
}

// DefaultJob is the job that paths without one mean.
const DefaultJob = "default"

// WithDefaultJob serves a path that names no job: next sees the tenant, DefaultJob and whatever follows.
func WithDefaultJob(next Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request, c *ident.Call) {
		params := append(make([]string, 0, len(c.Params)+1), c.Params[0], DefaultJob)
		c.Params = append(params, c.Params[1:]...)
		next(w, r, c)
	}
}

// name is the tenant, job or capsule that parameter i names.
func name(c *ident.Call, i int, what string) (string, error) {
	if !decision.ValidName(c.Params[i]) {
		return "", badName(what)
	}
	return c.Params[i], nil
}

func badName(what string) error {
	return invalid("bad %s name: use 1 to %d of A-Z a-z 0-9 _ - and . where the first is not a dot", what, decision.MaxName)
}

// capsuleID is the capsule that the first three parameters name.
func capsuleID(c *ident.Call) (id decision.CapsuleID, err error) {
	if id.Tenant, err = name(c, 0, "tenant"); err != nil {
		return id, err
	}
	if id.Job, err = name(c, 1, "job"); err != nil {
		return id, err
	}
	id.Capsule, err = name(c, 2, "capsule")
	return id, err
}

// capsule looks the named capsule up.
func (a *API) capsule(r *http.Request, c *ident.Call) (*decision.Capsule, error) {
	id, err := capsuleID(c)
	if err != nil {
		return nil, err
	}
	return a.service.Capsule(r.Context(), id)
}
