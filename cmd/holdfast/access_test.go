package main

import (
	"net/http"
	"strings"
	"testing"

	"holdfast/server"
)

// TestEveryRouteIsGuarded walks the route table of the main listener, and its twins without /v1, as every sort of caller.
func TestEveryRouteIsGuarded(t *testing.T) {
	r := newRig(t)
	r.capsule()
	revoked := r.must(http.StatusOK, "POST", "/v1/admin/tokens", `{"scope":{"kind":"admin"}}`)
	r.keys["revoked"] = revoked["token"].(string)
	r.must(http.StatusOK, "DELETE", "/v1/admin/tokens/"+revoked["hash"].(string), "")
	r.keys["unknown"] = strings.Repeat("0", 64)

	fill := strings.NewReplacer("{tenant}", "north", "{job}", "web", "{capsule}", "hero", "{version}", "v1.0", "{id}", "d", "{event}", "e",
		"{hash}", "h", "{rest...}", "x")
	for _, route := range r.table.Routes {
		if route.UUIDs {
			continue // the gateway API: see access_gateway_test.go
		}
		for _, twin := range []bool{false, true} {
			path := fill.Replace(route.Path)
			if twin {
				bare, under := strings.CutPrefix(path, "/v1/")
				if !under {
					continue
				}
				path = "/" + bare
			}
			key := route.Method + " " + path
			if route.Access == server.Public {
				if w := r.ask("", route.Method, path, ""); w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden {
					t.Errorf("%s is public and answers %d", key, w.Code)
				}
				continue
			}
			for _, as := range []string{"", "revoked", "unknown"} {
				if w := r.ask(as, route.Method, path, ""); w.Code != http.StatusUnauthorized {
					t.Errorf("%s as %q: status %d, want 401", key, as, w.Code)
				}
			}
			refused := map[server.Access][]string{
				server.Admins: {"tenant", "reader", "south", "old"}, server.TenantAdmins: {"reader", "south", "old"}, server.Readers: {"south"},
			}[route.Access]
			if route.Access == server.Readers && route.Job == "" {
				refused = append(refused, "old") // the reader of another job's capsule
			}
			if route.Job != "" {
				refused = append(refused, "reader")
			}
			for _, as := range refused {
				w := r.ask(as, route.Method, path, "")
				if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "forbidden: scope does not allow this action") {
					t.Errorf("%s as %q: status %d, want 403: %s", key, as, w.Code, w.Body)
				}
			}
		}
	}
}

// TestAllowedCallersGetThrough is the other half: nobody who may is refused.
func TestAllowedCallersGetThrough(t *testing.T) {
	r := newRig(t)
	r.capsule()
	r.must(http.StatusCreated, "PUT", legacyHero+"/spec", `{"actions":[{"id":"a"},{"id":"b"}]}`)
	for _, c := range []struct {
		as, method, path, body string
		status                 int
	}{
		{"reader", "POST", heroPath + "/decide", `{}`, 200},
		{"tenant", "POST", heroPath + "/decide", `{}`, 200},
		{"admin", "POST", heroPath + "/decide", `{}`, 200},
		{"reader", "POST", heroPath + "/decide?learn=true", `{}`, 200},
		{"reader", "GET", heroPath, "", 200},
		{"reader", "GET", heroPath + "/spec", "", 200},
		{"reader", "PUT", heroPath + "/spec", `{}`, 403},
		{"reader", "POST", heroPath + "/evaluate", `{}`, 403},
		{"tenant", "PUT", heroPath + "/spec", `{}`, 200},
		{"tenant", "POST", "/v1/tenants/north/jobs", `{"id":"web"}`, 200},
		{"old", "POST", legacyHero + "/decide", `{}`, 200},
		{"old", "POST", strings.TrimPrefix(legacyHero, "/v1") + "/decide", `{}`, 200},
		{"reader", "POST", legacyHero + "/decide", `{}`, 403},
		{"reader", "POST", "/personalizer/v1.0/rank", `{"actions":[{"id":"a"}]}`, 201},
		{"reader", "POST", "/personalizer/v1.1-preview.3/rank", `{"actions":[{"id":"a"}]}`, 201},
		{"tenant", "POST", "/personalizer/v1.0/rank", `{"actions":[{"id":"a"}]}`, 400},
		{"operator", "POST", "/personalizer/v1.0/rank", `{"actions":[{"id":"a"}]}`, 400},
		{"reader", "GET", "/personalizer/v1.0/configurations/service", "", 200},
		{"reader", "PUT", "/personalizer/v1.0/configurations/service", `{}`, 403},
		{"tenant", "PUT", heroPath + "/personalizer/v1.0/configurations/service", `{}`, 200},
		{"reader", "GET", "/v1/tenants", "", 200},
		{"reader", "GET", "/v1/auth/whoami", "", 200},
	} {
		if w := r.ask(c.as, c.method, c.path, c.body); w.Code != c.status {
			t.Errorf("%s %s as %s: status %d, want %d: %s", c.method, c.path, c.as, w.Code, c.status, w.Body)
		}
	}
}
