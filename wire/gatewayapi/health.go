package gatewayapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"holdfast/fault"
	"holdfast/gateway"
	"holdfast/ident"
	"holdfast/wire/reply"
)

// probeEvery is how often strangers can make the store probe itself: the answer in between is the last one.
const probeEvery = time.Second

// probeTime bounds one probe; a store that takes longer counts as failing.
const probeTime = 5 * time.Second

// probing keeps the newest probe.
type probing struct {
	mu   sync.Mutex // guards the rest; held across the probe, so that those who ask together get one
	at   time.Time
	last gateway.Probe
}

// Health answers GET /health: the process answers.
func (a *API) Health(w http.ResponseWriter, _ *http.Request, _ *ident.Call) {
	reply.JSON(w, http.StatusOK, []byte(`{"message":"Health is good"}`))
}

// Ready answers GET /health/ready: whether new work should be sent here. Clients know the refusal by its 400.
func (a *API) Ready(w http.ResponseWriter, _ *http.Request, _ *ident.Call) {
	if a.ready() != nil {
		reply.JSON(w, http.StatusBadRequest, []byte(`{"message":"Down"}`))
		return
	}
	reply.JSON(w, http.StatusOK, []byte(`{"message":"Up"}`))
}

// Diagnostics answers GET /health/diagnostics: what the store does when it is asked to work.
func (a *API) Diagnostics(w http.ResponseWriter, r *http.Request, _ *ident.Call) {
	p := a.probe(r)
	a.send(w, r, http.StatusOK, diagnosticsJSON{Database: databaseJSON{
		Connection: works(p.Connection), Read: works(p.Read), Write: works(p.Write), Delete: works(p.Delete),
	}})
}

// probe returns a probe that is not older than probeEvery.
func (a *API) probe(r *http.Request) gateway.Probe {
	a.probing.mu.Lock()
	defer a.probing.mu.Unlock()
	if now := time.Now(); a.probing.at.IsZero() || now.Sub(a.probing.at) >= probeEvery {
		// Not the caller's patience: one that hangs up would make the store look broken to the next.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), probeTime)
		defer cancel()
		a.probing.last, a.probing.at = a.service.Probe(ctx), now
	}
	return a.probing.last
}

// diagnosticsJSON is the answer of the diagnostics. There is no custodian of keys here, so it is never locked.
type diagnosticsJSON struct {
	CustodianLocked bool         `json:"key_custodian_locked"`
	Database        databaseJSON `json:"database"`
}

type databaseJSON struct {
	Connection string `json:"database_connection"`
	Read       string `json:"database_read"`
	Write      string `json:"database_write"`
	Delete     string `json:"database_delete"`
}

func works(ok bool) string {
	if ok {
		return "Working"
	}
	return "Failing"
}

// onlyTenant is the one value that the header of tenants may have; there is nothing behind it.
const onlyTenant = "public"

// Tenanted lets next answer only what names the only tenant. An empty header counts as none.
func (a *API) Tenanted(next Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request, c *ident.Call) {
		if r.Header.Get("X-Tenant-Id") != onlyTenant {
			a.refuseAnalytics(w, r, fault.New("gatewayapi.Tenanted", fault.Invalid, "the header x-tenant-id is required and must be %s", onlyTenant))
			return
		}
		next(w, r, c)
	}
}
