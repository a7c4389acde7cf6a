package main

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"holdfast/ident"
	"holdfast/server"
)

// rig is the whole program without its listener: the real store in a folder of its own, every service, the route table of
// the main listener with its limits and checks.
type rig struct {
	testing.TB
	config       Config
	house        *house
	table        server.Table // of the main listener
	gatewayTable server.Table // of the drop-in listener
	handler      http.Handler
	keys         map[string]string // credentials by name: operator, tenant, reader
}

// The capsule that the rig's reader may use, and the same without the job of older paths.
const (
	heroPath   = "/v1/tenants/north/jobs/web/capsules/hero"
	legacyHero = "/v1/tenants/north/capsules/hero"
)

func newRig(t testing.TB) *rig {
	t.Helper()
	c := defaults()
	c.Data, c.AdminKey = t.TempDir(), "operator-key"
	c.RateLimit, c.RateBurst = 1e6, 1e6
	r := &rig{TB: t, config: c, keys: map[string]string{"operator": c.AdminKey}}
	r.open()
	t.Cleanup(func() { r.close() })
	for name, scope := range map[string]ident.Scope{
		"admin":  {Role: ident.Admin},
		"tenant": {Role: ident.TenantAdmin, Tenant: "north"},
		"reader": {Role: ident.Reader, Tenant: "north", Job: "web", Capsule: "hero"},
		"south":  {Role: ident.TenantAdmin, Tenant: "south"},
		"old":    {Role: ident.Reader, Tenant: "north", Job: "default", Capsule: "hero"},
	} {
		issued, err := r.house.keys.Issue(t.Context(), scope, 0, name)
		if err != nil {
			t.Fatal(err)
		}
		r.keys[name] = issued.Secret
	}
	return r
}

func (r *rig) open() {
	r.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	var err error
	if r.house, err = openHouse(r.Context(), r.config, log); err != nil {
		r.Fatal(err)
	}
	s, err := server.New(server.Options{Keys: r.house.keys, Metrics: server.NewMetrics(r.house.registry), Log: log})
	if err != nil {
		r.Fatal(err)
	}
	t, err := openTables(r.config, r.house, s.Draining(), log)
	if err != nil {
		r.Fatal(err)
	}
	r.table, r.gatewayTable = t.main, t.gateway
	handler, err := s.Handler(r.table)
	if err != nil {
		r.Fatal(err)
	}
	r.handler = judged{r, handler}
}

// judged shows every answer to the description of the API, and every body that was taken.
type judged struct {
	rig     *rig
	handler http.Handler
}

func (j judged) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		j.rig.Error(err)
	}
	q.Body = io.NopCloser(bytes.NewReader(body))
	j.handler.ServeHTTP(w, q)
	if recorder, ok := w.(*httptest.ResponseRecorder); ok {
		judge(j.rig, q.Method, q.URL.Path, recorder)
		if recorder.Code < 300 {
			judgeRequest(j.rig, q.Method, q.URL.Path, body)
		}
	}
}

func (r *rig) close() {
	r.Helper()
	if err := r.house.close(context.Background()); err != nil {
		r.Error(err)
	}
}

// restart stops the program in order and starts it again on the same folder.
func (r *rig) restart() {
	r.Helper()
	r.close()
	r.open()
}

// ask sends one request with the credential of that name, none when it is empty.
func (r *rig) ask(as, method, path, body string) *httptest.ResponseRecorder {
	r.Helper()
	q := httptest.NewRequest(method, path, strings.NewReader(body))
	if as != "" {
		key, known := r.keys[as]
		if !known {
			r.Fatalf("no credential is called %s", as)
		}
		q.Header.Set("Authorization", "Bearer "+key)
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, q)
	return w
}

// must sends one request as the operator and decodes the answer, which must have that status.
func (r *rig) must(status int, method, path, body string) map[string]any {
	r.Helper()
	w := r.ask("operator", method, path, body)
	if w.Code != status {
		r.Fatalf("%s %s %s: status %d, want %d: %s", method, path, body, w.Code, status, w.Body)
	}
	answer := map[string]any{}
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			r.Fatalf("%s %s: %v: %s", method, path, err, w.Body)
		}
	}
	return answer
}

// capsule makes the rig's capsule with a spec of two actions and a fixed seed.
func (r *rig) capsule() {
	r.Helper()
	r.must(http.StatusCreated, "PUT", heroPath+"/spec", `{"actions":[{"id":"a"},{"id":"b"}],"seed":2026}`)
}
