// Package gatewayapi speaks the gateway service's HTTP dialect: decide and feedback, accounts, keys and users, rules,
// configuration, outages, analytics, and health.
//
// It turns a request that the server has already limited, authenticated, admitted and matched into calls of package
// gateway, and the outcome into JSON. Invariants: members of a body that the dialect does not know are ignored; nothing that
// outlives a call refers to the call's body; a handler that names a merchant asks whether the caller's credential covers it.
// It refuses to hold rules beyond the shape of a message. It starts no goroutines.
package gatewayapi

import (
	"log/slog"
	"net/http"
	"sync"

	"holdfast/gateway"
	"holdfast/ident"
	"holdfast/wire/reply"
)

// Handler answers one admitted request.
type Handler = func(w http.ResponseWriter, r *http.Request, c *ident.Call)

// Options are what an API needs; all of them are required.
type Options struct {
	Service *gateway.Service
	Log     *slog.Logger
	Ready   func() error // why new work should not be sent here, nil when it should
}

// API answers every route of the dialect.
type API struct {
	service         *gateway.Service
	log             *slog.Logger
	refuse          reply.Refusal // {"code","message","data"} with the code of accounts, rules and configs
	decline         reply.Refusal // the shape of decide and feedback
	refuseAnalytics reply.Refusal // like refuse, with the code of analytics and of the tenant header
	refuseDebit     reply.Refusal // like refuse, with the code of debit routing

	decides   sync.Pool // *decideCall
	feedbacks sync.Pool // *feedbackCall
	ready     func() error
	probing   probing

	evaluations sync.Pool // *evaluateCall
}

// New returns an API over a service.
func New(o Options) *API {
	return &API{service: o.Service, log: o.Log, ready: o.Ready, decline: reply.GatewayDecision(o.Log), refuse: reply.Gateway(o.Log, reply.CodeAccounts),
		refuseAnalytics: reply.Gateway(o.Log, reply.CodeAnalytics), refuseDebit: reply.Gateway(o.Log, reply.CodeDebit)}
}

// send answers with v as compact JSON.
func (a *API) send(w http.ResponseWriter, r *http.Request, status int, v any) {
	if err := reply.Value(w, status, v); err != nil {
		a.refuse(w, r, err)
	}
}
