package main

import (
	"bytes"
	"encoding/json/v2"
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
}

func describedAPI(t *testing.T) document {
	t.Helper()
	var d document
	if err := json.Unmarshal(openapi.Decision(), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

var accessWords = map[server.Access]string{
	server.Admins: "admin", server.TenantAdmins: "tenant_admin", server.Readers: "read", server.Credential: "any credential", server.Public: "",
}

func TestOpenAPIDescribesTheRouteTable(t *testing.T) {
	d := describedAPI(t)
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
	served := infraRoutes(&house{registry: prometheus.NewRegistry()}, Config{}, nil)
	for _, route := range append(served, decisionRoutes(nil, nil, nil)...) {
		if route.Label == notFoundLabel {
			continue
		}
		key := route.Method + " " + route.Path
		o, found := described[key]
		if !found {
			t.Errorf("%s is served but not described", key)
			continue
		}
		delete(described, key)
		if want := accessWords[route.Access]; o.Access != want && !(strings.HasPrefix(route.Path, "/personalizer/") && strings.HasPrefix(o.Access, "read token")) {
			t.Errorf("%s is described as open to %q, served to %q", key, o.Access, want)
		}
		for _, m := range names.FindAllStringSubmatch(route.Path, -1) {
			if !slices.ContainsFunc(o.Parameters, func(p map[string]string) bool { return p["$ref"] == "#/components/parameters/"+m[1] }) {
				t.Errorf("%s does not describe its parameter %s", key, m[1])
			}
		}
		if (route.Method == http.MethodPut || route.Method == http.MethodPost) != (o.Body != nil) && !strings.HasSuffix(route.Path, "/activate") {
			t.Errorf("%s: a body is described: %v", key, o.Body != nil)
		}
	}
	for key := range described {
		t.Errorf("%s is described but not served", key)
	}
}

func TestOpenAPIHoldsTogether(t *testing.T) {
	var d any
	if err := json.Unmarshal(openapi.Decision(), &d); err != nil {
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
	for kind, all := range describedAPI(t).Components {
		for name := range all {
			if to := "#/components/" + kind + "/" + name; kind != "securitySchemes" && !used[to] {
				t.Errorf("%s is used nowhere", to)
			}
		}
	}
	ids := map[string]bool{}
	for path, methods := range describedAPI(t).Paths {
		for method, o := range methods {
			if o.ID == "" || ids[o.ID] {
				t.Errorf("%s %s: operation id %q is missing or there twice", method, path, o.ID)
			}
			ids[o.ID] = true
			if len(o.Responses) == 0 || !slices.ContainsFunc(slices.Collect(maps.Keys(o.Responses)), func(c string) bool { return c[0] == '2' }) {
				t.Errorf("%s %s: no success is described", method, path)
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
	w := httptest.NewRecorder()
	describe(w, httptest.NewRequest(http.MethodGet, "/openapi/decision.json", nil), nil)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || !bytes.Equal(w.Body.Bytes(), openapi.Decision()) {
		t.Errorf("status %d, type %q, %d bytes", w.Code, w.Header().Get("Content-Type"), w.Body.Len())
	}
}
