package main

import (
	"bytes"
	"encoding/json/v2"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/docs/openapi"
	"holdfast/server"
	"holdfast/wire/gatewayapi"
)

// document is as much of an OpenAPI description as the tests look at.
type document struct {
	OpenAPI    string                          `json:"openapi"`
	Paths      map[string]map[string]operation `json:"paths"`
	Components map[string]map[string]any       `json:"components"`
}

type operation struct {
	ID         string              `json:"operationId"`
	Access     string              `json:"x-access"`
	Parameters []map[string]string `json:"parameters"`
	Body       map[string]any      `json:"requestBody"`
	Responses  map[string]any      `json:"responses"`
	Permission string              `json:"x-permission"`
	Deprecated bool                `json:"deprecated"`
}

// describedAPI is one API with its description and the rows of the table that it describes.
type describedAPI struct {
	name   string
	text   []byte
	routes []server.Route
	handle server.Handler // of the description itself
}

func describedAPIs() []describedAPI {
	front := gatewayFront{api: gatewayapi.New(gatewayapi.Options{Log: slog.New(slog.DiscardHandler)}),
		endpoints: server.NewEndpoints(prometheus.NewRegistry())}
	infra := infraRoutes(&house{registry: prometheus.NewRegistry()}, Config{}, nil)
	return []describedAPI{
		{"decision", openapi.Decision(), append(infra, decisionRoutes(nil, nil, nil)...), describe},
		{"gateway", openapi.Gateway(), append(front.health()[1:], front.routes()...), describeGateway},
	}
}

func (a *describedAPI) document(t *testing.T) (d document) {
	t.Helper()
	if err := json.Unmarshal(a.text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

var accessWords = map[server.Access]string{
	server.Admins: "admin", server.TenantAdmins: "tenant_admin", server.Readers: "read", server.Credential: "any credential", server.Public: "",
}

func TestOpenAPIDescribesTheRouteTable(t *testing.T) {
	for _, api := range describedAPIs() {
		t.Run(api.name, func(t *testing.T) { api.describesItsRoutes(t) })
	}
}

func (a *describedAPI) describesItsRoutes(t *testing.T) {
	d := a.document(t)
	if !strings.HasPrefix(d.OpenAPI, "3.1.") {
		t.Errorf("version %q, want 3.1", d.OpenAPI)
	}
	described := map[string]operation{}
	for path, methods := range d.Paths {
		for method, o := range methods {
			described[strings.ToUpper(method)+" "+path] = o
		}
	}
	names := regexp.MustCompile(`\{(\w+)\}`)
	for _, route := range a.routes {
		if route.Label == notFoundLabel {
			continue
		}
		path := strings.Replace(route.Path, "...}", "}", 1)
		key := route.Method + " " + path
		o, found := described[key]
		if !found {
			t.Errorf("%s is served but not described", key)
			continue
		}
		delete(described, key)
		if want := accessWords[route.Access]; o.Access != want && !(strings.HasPrefix(path, "/personalizer/") && strings.HasPrefix(o.Access, "read token")) {
			t.Errorf("%s is described as open to %q, served to %q", key, o.Access, want)
		}
		for _, m := range names.FindAllStringSubmatch(path, -1) {
			if !slices.ContainsFunc(o.Parameters, func(p map[string]string) bool { return p["$ref"] == "#/components/parameters/"+m[1] }) {
				t.Errorf("%s does not describe its parameter %s", key, m[1])
			}
		}
		a.describesBody(t, route.Method, path, &o)
	}
	for key := range described {
		t.Errorf("%s is described but not served", key)
	}
}

// describesBody checks that what takes a body says so. The gateway API has POST routes that take none.
func (a *describedAPI) describesBody(t *testing.T, method, path string, o *operation) {
	takes := method == http.MethodPut || method == http.MethodPost
	if takes && (o.Body == nil) && (a.name == "gateway" || strings.HasSuffix(path, "/activate")) {
		return
	}
	if takes != (o.Body != nil) {
		t.Errorf("%s %s: a body is described: %v", method, path, o.Body != nil)
	}
}

func TestOpenAPIHoldsTogether(t *testing.T) {
	for _, api := range describedAPIs() {
		t.Run(api.name, func(t *testing.T) {
			api.leadsSomewhere(t)
			api.namesItsOperations(t)
		})
	}
}

// leadsSomewhere checks that every reference resolves and that every component is used.
func (a *describedAPI) leadsSomewhere(t *testing.T) {
	var d any
	if err := json.Unmarshal(a.text, &d); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if to, ok := v["$ref"].(string); ok {
				used[to] = true
				if !resolves(d, to) {
					t.Errorf("%s leads nowhere", to)
				}
			}
			for _, inner := range v {
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(d)
	for kind, all := range a.document(t).Components {
		for name := range all {
			if to := "#/components/" + kind + "/" + name; kind != "securitySchemes" && !used[to] {
				t.Errorf("%s is used nowhere", to)
			}
		}
	}
}

// namesItsOperations checks that every operation has a name of its own and an answer that is no error.
func (a *describedAPI) namesItsOperations(t *testing.T) {
	ids := map[string]bool{}
	for path, methods := range a.document(t).Paths {
		for method, o := range methods {
			if o.ID == "" || ids[o.ID] {
				t.Errorf("%s %s: operation id %q is missing or there twice", method, path, o.ID)
			}
			ids[o.ID] = true
			succeeds := slices.ContainsFunc(slices.Collect(maps.Keys(o.Responses)), func(c string) bool { return c[0] == '2' })
			if succeeds == o.Deprecated { // what is deprecated here is not served any more
				t.Errorf("%s %s: a success is described: %v", method, path, succeeds)
			}
		}
	}
}

func resolves(d any, to string) bool {
	at := d
	for part := range strings.SplitSeq(strings.TrimPrefix(to, "#/"), "/") {
		m, ok := at.(map[string]any)
		if !ok {
			return false
		}
		if at, ok = m[part]; !ok {
			return false
		}
	}
	return true
}

func TestOpenAPIIsServed(t *testing.T) {
	for _, api := range describedAPIs() {
		w := httptest.NewRecorder()
		api.handle(w, httptest.NewRequest(http.MethodGet, "/openapi/"+api.name+".json", nil), nil)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || !bytes.Equal(w.Body.Bytes(), api.text) {
			t.Errorf("%s: status %d, type %q, %d bytes", api.name, w.Code, w.Header().Get("Content-Type"), w.Body.Len())
		}
	}
}

// What the gateway API says of permissions is what its routes ask for.
func TestOpenAPINamesThePermissionAskedFor(t *testing.T) {
	for _, api := range describedAPIs() {
		for path, methods := range api.document(t).Paths {
			for method, o := range methods {
				if o.Access != accessWords[server.Credential] || api.name != "gateway" {
					continue
				}
				want := "routing:write"
				if gatewayapi.OnlyReads(strings.ToUpper(method), path) {
					want = "routing:read"
				}
				if o.Permission != want && o.Permission != "admin secret" {
					t.Errorf("%s %s is described as asking for %q, asks for %s", method, path, o.Permission, want)
				}
			}
		}
	}
}
