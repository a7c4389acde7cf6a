package main

import (
	"net/http"

	"holdfast/admission"
	"holdfast/fault"
	"holdfast/ident"
	"holdfast/server"
	"holdfast/wire/reply"
)

// infraRoutes answer for the process as a whole; they have no rate and no version.
func infraRoutes(h *house, c Config, ready func() error) []server.Route {
	metrics := metricsRoute(h)
	if !c.MetricsPublic {
		metrics.Access = server.Admins
	}
	return []server.Route{
		{Method: "GET", Path: "/health", Label: "health", Class: admission.Critical, Access: server.Public, Infra: true, Handler: health},
		{Method: "GET", Path: "/ready", Label: "ready", Class: admission.Critical, Access: server.Public, Infra: true, Handler: readiness(ready)},
		metrics,
	}
}

// metricsRoute is the exposition for anybody.
func metricsRoute(h *house) server.Route {
	metrics := server.Exposition(h.registry)
	return server.Route{Method: "GET", Path: "/metrics", Label: "metrics", Class: admission.Critical, Access: server.Public, Infra: true,
		Handler: func(w http.ResponseWriter, r *http.Request, _ *ident.Call) { metrics.ServeHTTP(w, r) }}
}

// health carries the members that every dialect's clients look for.
func health(w http.ResponseWriter, _ *http.Request, _ *ident.Call) {
	reply.JSON(w, http.StatusOK, []byte(`{"ok":true,"service":"holdfast","message":"Health is good"}`))
}

func readiness(ready func() error) server.Handler {
	type answer struct {
		OK      bool   `json:"ok"`
		Service string `json:"service"`
		Reason  string `json:"reason,omitzero"`
	}
	return func(w http.ResponseWriter, _ *http.Request, _ *ident.Call) {
		a, status := answer{OK: true, Service: "holdfast"}, http.StatusOK
		if err := ready(); err != nil {
			a.OK, status = false, http.StatusServiceUnavailable
			a.Reason = fault.MessageOf(err)
			w.Header().Set("Retry-After", "1")
		}
		_ = reply.Value(w, status, a) // a struct of texts always encodes
	}
}
