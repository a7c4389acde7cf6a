package main

import (
	"log/slog"
	"net/http"
	"slices"
	"time"

	"holdfast/admission"
	"holdfast/fault"
	"holdfast/ident"
	"holdfast/server"
	"holdfast/wire/decisionapi"
	"holdfast/wire/gatewayapi"
	"holdfast/wire/reply"
)

// tables is what the listeners answer.
type tables struct {
	main    server.Table // every service and the process itself; the console comes later
	gateway server.Table // the gateway API alone
	metrics server.Table // what the gateway API's scrapers find on a port of their own
}

// openTables makes the tables of everything that is served. draining is closed when the end has been asked for.
func openTables(c Config, h *house, draining <-chan struct{}, log *slog.Logger) (t tables, err error) {
	ready := func() error {
		select {
		case <-draining:
			return fault.New("serve.ready", fault.Unavailable, "the server is about to stop")
		default:
			return h.ready()
		}
	}
	options := admission.Options{Guard: &admission.GuardOptions{}}
	if !c.Dev {
		options.Rate = &admission.Rate{PerSecond: c.RateLimit, Burst: c.RateBurst}
	}
	t.main.Gate, err = openGate(h, "main", options)
	if err != nil {
		return t, err
	}
	refuse, decline := reply.Decision(log), reply.Personalizer(log)
	t.main.Refuse, t.main.Twins = server.Refusal(refuse), "/v1"
	t.main.Routes = infraRoutes(h, c, ready)
	if slices.Contains(c.Services, "decision") {
		api := decisionapi.New(decisionapi.Options{Service: h.decision, Tokens: h.keys, Log: log})
		t.main.Routes = append(t.main.Routes, decisionRoutes(api, refuse, decline)...)
	}
	if h.gateway == nil {
		return t, nil
	}
	// No rate unless one is configured: this dialect's clients queue, and never expect to be refused.
	gate, err := openGate(h, "gateway", admission.Options{Guard: &admission.GuardOptions{}, Rate: c.gatewayRate()})
	if err != nil {
		return t, err
	}
	front := gatewayFront{
		api: gatewayapi.New(gatewayapi.Options{Service: h.gateway, Log: log, Ready: ready}), gate: gate,
		endpoints: server.NewEndpoints(h.registry), refuse: server.Refusal(reply.Gateway(log, reply.CodeAccounts)),
		decline: server.Refusal(reply.GatewayDecision(log)),
	}
	routes, health := front.routes(), front.health()
	t.main.Routes = append(append(t.main.Routes, routes...), health[1:]...)
	missing := server.Refusal(reply.Gateway(log, reply.CodeNotFound))
	t.gateway = server.Table{Routes: append(health, routes...), Refuse: missing, Gate: gate, Identify: anybody, UUIDs: true}
	t.metrics = server.Table{Routes: []server.Route{metricsRoute(h)}, Refuse: missing, Identify: anybody}
	return t, nil
}

// gatewayRate is how many requests a credential of the gateway API may make; nil when nothing was said.
func (c *Config) gatewayRate() *admission.Rate {
	if c.Dev {
		return nil
	}
	return c.gateway.rate
}

// openGate makes a gate whose counts are shown under a name.
func openGate(h *house, name string, o admission.Options) (*admission.Gate, error) {
	gate, err := admission.New(o)
	if err == nil {
		h.registry.MustRegister(admission.NewCollector(gate, name))
	}
	return gate, err
}

// anybody asks nobody who they are.
func anybody(*http.Request, time.Time) (ident.Principal, error) { return ident.Principal{}, nil }
