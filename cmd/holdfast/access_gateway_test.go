package main

import (
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/prometheus/client_golang/prometheus"

	"holdfast/gateway"
	"holdfast/ident"
	"holdfast/server"
)

// gate is the whole program with its gateway listeners, and one credential of every kind.
type gate struct {
	*rig
	dropIn  http.Handler
	table   server.Table
	callers map[string][]string // header names and values in turn, by the kind of caller
}

func newGate(t testing.TB) *gate {
	t.Helper()
	g := &gate{rig: newRig(t)}
	fronts, err := server.New(server.Options{Keys: g.house.keys, Metrics: server.NewMetrics(prometheus.NewRegistry()), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	g.table = g.gatewayTable
	if g.dropIn, err = fronts.Handler(g.table); err != nil {
		t.Fatal(err)
	}
	service := g.house.gateway
	key := func(m gateway.MerchantID) string {
		key, err := service.CreateMerchant(t.Context(), gateway.NewMerchant{ID: m})
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	own, other := key("shop"), key("other")
	revoked, row, err := service.CreateKey(t.Context(), "shop", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := service.RevokeKey(t.Context(), ident.Principal{Kind: ident.Operator}, row.ID); err != nil {
		t.Fatal(err)
	}
	signing, err := g.house.dir.SessionKey()
	if err != nil {
		t.Fatal(err)
	}
	session := func(merchant string, change jwt.MapClaims) string {
		c := jwt.MapClaims{"sub": "u", "user_id": "u", "email": "u@example.com", "merchant_id": merchant, "role": "admin", "jti": "j",
			"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
		maps.Copy(c, change)
		text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString([]byte(signing))
		if err != nil {
			t.Fatal(err)
		}
		return "Bearer " + text
	}
	const bearer, secret, apiKey = "Authorization", "X-Admin-Secret", "X-Api-Key"
	full, expired := session("shop", nil), session("shop", jwt.MapClaims{"exp": time.Now().Add(-time.Minute).Unix()})
	g.callers = map[string][]string{
		"nobody": nil, "an unknown key": {apiKey, "DE_" + strings.Repeat("0", 64)}, "a revoked key": {apiKey, revoked},
		"an expired session": {bearer, expired}, "a forged session": {bearer, full + "x"}, "a bad bearer beside a good key": {bearer, "Bearer x", apiKey, own},
		"a wrong secret beside a good key": {secret, "wrong", apiKey, own}, "the secret as a bearer": {bearer, "Bearer " + g.keys["operator"]},
		"the secret as a key": {apiKey, g.keys["operator"]}, "a decision token as a key": {apiKey, g.keys["admin"]}, "a decision token": {bearer, "Bearer " + g.keys["admin"]},
		"a session that may nothing": {bearer, session("shop", jwt.MapClaims{"perms": []string{}})},
		"a session that may read":    {bearer, session("shop", jwt.MapClaims{"perms": []string{"routing:read"}})},
		"another merchant's key":     {apiKey, other}, "another merchant's session": {bearer, session("other", nil)},
		"the own key": {apiKey, own}, "the own session": {bearer, full}, "the admin secret": {secret, g.keys["operator"]},
	}
	return g
}

// askAs sends a request to a listener as that kind of caller.
func (g *gate) askAs(caller string, listener http.Handler, route server.Route) *httptest.ResponseRecorder {
	g.Helper()
	credentials, known := g.callers[caller]
	if !known {
		g.Fatalf("nobody is called %s", caller)
	}
	body, known := elsewhere[route.Path]
	if !known {
		body = elsewhere[""]
	}
	q := httptest.NewRequest(route.Method, filled(route.Path), strings.NewReader(body))
	q.Header.Set("X-Tenant-Id", "public")
	for i := 0; i < len(credentials); i += 2 {
		q.Header.Set(credentials[i], credentials[i+1])
	}
	w := httptest.NewRecorder()
	listener.ServeHTTP(w, q)
	return w
}

// TestEveryGatewayRouteIsGuarded walks the gateway API's rows on both listeners as every sort of caller.
func TestEveryGatewayRouteIsGuarded(t *testing.T) {
	g := newGate(t)
	kept := 0
	for where, listener := range map[string]http.Handler{"main": g.handler, "drop-in": g.dropIn} {
		for _, route := range g.table.Routes {
			if route.Access == server.Public {
				continue
			}
			kept++
			expect := func(caller string, status int) {
				t.Helper()
				w := g.askAs(caller, listener, route)
				if w.Code != status || !strings.HasPrefix(w.Body.String(), `{"code":"TE_0`) {
					t.Errorf("%s: %s %s by %s: %d, want %d: %s", where, route.Method, route.Path, caller, w.Code, status, w.Body)
				}
			}
			for _, caller := range []string{"nobody", "an unknown key", "a revoked key", "an expired session", "a forged session", "a bad bearer beside a good key",
				"a wrong secret beside a good key", "the secret as a bearer", "the secret as a key", "a decision token as a key", "a decision token"} {
				if strings.HasPrefix(route.Path, "/analytics/") && caller == "a wrong secret beside a good key" {
					continue // there the secret is not looked at
				}
				expect(caller, http.StatusUnauthorized)
			}
			expect("a session that may nothing", http.StatusForbidden)
			if !readsOnly(route) {
				expect("a session that may read", http.StatusForbidden)
			}
			if !nobodys(route.Path) {
				expect("another merchant's key", http.StatusForbidden)
				expect("another merchant's session", http.StatusForbidden)
			}
		}
	}
	if kept < 40 {
		t.Errorf("only %d rows were walked", kept)
	}
}

// TestGatewayCallersWhoMayGetThrough is the other half: nobody who may is refused. The routes that end a key or a merchant
// are left out, for the callers are theirs.
func TestGatewayCallersWhoMayGetThrough(t *testing.T) {
	g := newGate(t)
	for _, route := range g.table.Routes {
		if route.Access == server.Public || route.Method == http.MethodDelete {
			continue
		}
		callers := []string{"the own key", "the own session", "the admin secret"}
		switch {
		case strings.HasPrefix(route.Path, "/analytics/"):
			callers = callers[:2] // there the secret belongs to no merchant
		case operators(route):
			callers = callers[2:]
		}
		if readsOnly(route) && !operators(route) {
			callers = append(callers, "a session that may read")
		}
		for _, caller := range callers {
			if w := g.askAs(caller, g.handler, route); w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden {
				t.Errorf("%s %s by %s: %d %s", route.Method, route.Path, caller, w.Code, w.Body)
			}
		}
	}
}

// operators reports whether a route needs the admin secret.
func operators(r server.Route) bool {
	return r.Method != http.MethodGet && (strings.HasPrefix(r.Path, "/gsm/") || strings.HasPrefix(r.Path, "/debit-routing/")) || strings.HasPrefix(r.Path, "/admin/")
}

// TestTheDropInListenerAnswersOneDialect: its rows are those of the main listener and the dialect's own health, and nothing
// there has an answer of another dialect.
func TestTheDropInListenerAnswersOneDialect(t *testing.T) {
	g := newGate(t)
	var own []string
	for _, route := range g.table.Routes {
		key := route.Method + " " + route.Path
		if !route.UUIDs || route.Tally == nil || route.Gate == nil || (route.Identify == nil) != (route.Access == server.Public) {
			t.Errorf("%s lacks what the rows of this dialect have", key)
		}
		if !slices.ContainsFunc(g.rig.table.Routes, func(r server.Route) bool { return r.UUIDs && r.Method+" "+r.Path == key }) {
			own = append(own, key)
		}
	}
	if !slices.Equal(own, []string{"GET /health"}) {
		t.Errorf("only the drop-in listener answers %q", own)
	}
	for _, path := range []string{"/", "/metrics", "/ready", "/v1/tenants", heroPath + "/decide", "/console/events", "/v1/admin/log-level", "/openapi/decision.json"} {
		w := httptest.NewRecorder()
		q := httptest.NewRequest(http.MethodGet, path, nil)
		q.Header.Set("Authorization", "Bearer "+g.keys["operator"])
		g.dropIn.ServeHTTP(w, q)
		if w.Code != http.StatusNotFound || !strings.HasPrefix(w.Body.String(), `{"code":"TE_02"`) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
