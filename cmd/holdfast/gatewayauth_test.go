package main

import (
	"context"
	"encoding/json/v2"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/bcrypt"

	"holdfast/gateway"
	"holdfast/ident"
	"holdfast/server"
	"holdfast/store"
	"holdfast/store/gateways"
	"holdfast/wire/gatewayapi"
	"holdfast/wire/reply"
)

const (
	shopSecret   = "the-admin-secret"
	shopSigning  = "the-session-secret-of-the-tests!"
	shopPassword = "Correct-Horse-7"
)

// shop is the gateway API behind the server's checks, on a real store, with a session secret that the test knows.
type shop struct {
	testing.TB
	routes  []server.Route
	handler http.Handler
	service *gateway.Service
	storage *gateways.Gateways
}

func newShop(t testing.TB, change func(*gateway.Options)) *shop {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	db, err := store.Open(t.Context(), store.Options{Path: t.TempDir() + "/gateways.db", Migrations: gateways.Migrations()})
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{TB: t, storage: gateways.New(db)}
	o := gateway.Options{Storage: s.storage, AdminSecret: shopSecret, SessionSecret: []byte(shopSigning)}
	o.Sessions.PasswordCost = bcrypt.MinCost
	if change != nil {
		change(&o)
	}
	if s.service, err = gateway.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.service.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := db.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	api := gatewayapi.New(gatewayapi.Options{Service: s.service, Log: log})
	metrics := prometheus.NewRegistry()
	parts := gatewayFront{api: api, endpoints: server.NewEndpoints(metrics), refuse: server.Refusal(reply.Gateway(log, reply.CodeAccounts)),
		decline: server.Refusal(reply.GatewayDecision(log))}
	s.routes = parts.routes()
	keys, err := ident.NewKeyring(t.Context(), ident.Options{OperatorKey: "k", Storage: &ident.Memory{}})
	if err != nil {
		t.Fatal(err)
	}
	front, err := server.New(server.Options{Keys: keys, Metrics: server.NewMetrics(metrics), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	s.handler, err = front.Handler(server.Table{Routes: s.routes, Refuse: server.Refusal(reply.Gateway(log, reply.CodeNotFound)), Identify: api.Identify})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// headers are name and value in turn.
func (s *shop) ask(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	s.Helper()
	q := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, q)
	judge(s, method, path, w)
	if w.Code < 300 {
		judgeRequest(s, method, path, []byte(body))
	}
	return w
}

// must asks and decodes the answer, which must have that status and exactly those members.
func (s *shop) must(status int, members string, w *httptest.ResponseRecorder) map[string]any {
	s.Helper()
	var got map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		s.Fatalf("%v: %s", err, w.Body)
	}
	if have := strings.Join(slices.Sorted(maps.Keys(got)), " "); w.Code != status || have != members {
		s.Fatalf("%d with %q, want %d with %q: %s", w.Code, have, status, members, w.Body)
	}
	return got
}

// The members of the answers.
const (
	refusalMembers = "code data message"
	sessionMembers = "email merchant_id merchants role token user_id"
	messageMembers = "message"
)

// refused is the refusal of the dialect with that status and code.
func (s *shop) refused(what string, status int, code string, w *httptest.ResponseRecorder) {
	s.Helper()
	got := s.must(status, refusalMembers, w)
	if got["code"] != code || got["data"] != nil || got["message"] == "" {
		s.Errorf("%s: %v", what, got)
	}
}

func (s *shop) merchant(id gateway.MerchantID) {
	s.Helper()
	err := s.storage.Write(s.Context(), gateway.Write{Change: func(tx gateway.Tx) error {
		_, err := tx.CreateMerchant(gateway.MerchantRow{ID: id, Enabled: true})
		return err
	}})
	if err != nil {
		s.Fatal(err)
	}
}

// token makes a session as somebody who has the secret would.
func (s *shop) token(change jwt.MapClaims) string {
	s.Helper()
	c := jwt.MapClaims{"sub": "u1", "user_id": "u1", "email": "u1@example.com", "merchant_id": "shop", "role": "admin", "jti": "j1",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(c, change)
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString([]byte(shopSigning))
	if err != nil {
		s.Fatal(err)
	}
	return text
}

func TestSessionsOverHTTP(t *testing.T) {
	s := newShop(t, nil)
	s.merchant("shop")
	const account = `{"email":"Ana@Example.com","password":"` + shopPassword + `","merchant_id":"shop","unknown":1}`
	s.refused("signing up without the secret", 401, "TE_04", s.ask("POST", "/auth/signup", account))
	s.refused("with a wrong one", 401, "TE_04", s.ask("POST", "/auth/signup", account, "x-admin-secret", "x"))
	in := s.must(200, sessionMembers, s.ask("POST", "/auth/signup", account, "x-admin-secret", shopSecret))
	if in["email"] != "ana@example.com" || in["merchant_id"] != "shop" || in["role"] != "admin" {
		t.Errorf("%v", in)
	}
	if first := in["merchants"].([]any)[0].(map[string]any); len(first) != 3 || first["merchant_id"] != "shop" || first["merchant_name"] != "shop" || first["role"] != "admin" {
		t.Errorf("%v", first)
	}
	s.refused("a second time", 409, "TE_04", s.ask("POST", "/auth/signup", account, "x-admin-secret", shopSecret))
	weak := strings.Replace(account, shopPassword, "weak", 1)
	s.refused("weak", 400, "TE_04", s.ask("POST", "/auth/signup", weak, "x-admin-secret", shopSecret))
	nowhere := strings.Replace(account, `"shop"`, `"nope"`, 1)
	s.refused("nowhere", 404, "TE_04", s.ask("POST", "/auth/signup", nowhere, "x-admin-secret", shopSecret))
	alone := s.must(200, sessionMembers, s.ask("POST", "/auth/signup", `{"email":"bo@example.com","password":"`+shopPassword+`","merchant_id":null}`, "x-admin-secret", shopSecret))
	if alone["merchant_id"] != "" || alone["role"] != "admin" || len(alone["merchants"].([]any)) != 0 {
		t.Errorf("%v", alone)
	}

	s.refused("a wrong password", 401, "TE_04", s.ask("POST", "/auth/login", `{"email":"ana@example.com","password":"x"}`))
	w := s.ask("POST", "/auth/login", `{"email":"ANA@example.com","password":"`+shopPassword+`"}`)
	in = s.must(200, sessionMembers, w)
	if w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("a token in an answer that may be cached: %v", w.Header())
	}
	bearer := "Bearer " + in["token"].(string)
	me := s.must(200, "email email_verified is_super_admin is_super_admin_view merchant_id merchants permissions role user_id",
		s.ask("GET", "/auth/me", "", "Authorization", bearer))
	if me["user_id"] != in["user_id"] || me["email_verified"] != true || me["is_super_admin"] != false || len(me["permissions"].([]any)) != 2 {
		t.Errorf("%v", me)
	}
	if w := s.ask("GET", "/auth/merchants", "", "Authorization", bearer); w.Body.String() != `[{"merchant_id":"shop","merchant_name":"shop","role":"admin"}]` {
		t.Errorf("%s", w.Body)
	}
	made := s.must(200, "merchant_id merchant_name merchants token", s.ask("POST", "/onboarding/merchant", `{"merchant_name":"New"}`, "Authorization", bearer))
	if made["merchant_name"] != "New" || len(made["merchants"].([]any)) != 2 {
		t.Errorf("%v", made)
	}
	s.must(200, sessionMembers, s.ask("POST", "/auth/switch-merchant", `{"merchant_id":"`+made["merchant_id"].(string)+`"}`, "Authorization", bearer))
	s.refused("no member", 404, "TE_04", s.ask("POST", "/auth/switch-merchant", `{"merchant_id":"nope"}`, "Authorization", bearer))

	for range 2 {
		if out := s.must(200, messageMembers, s.ask("POST", "/auth/logout", "", "Authorization", bearer)); out["message"] != "Logged out successfully" {
			t.Errorf("%v", out)
		}
	}
	s.refused("after logout", 401, "TE_04", s.ask("GET", "/auth/me", "", "Authorization", bearer))
	s.refused("no token", 401, "TE_04", s.ask("POST", "/auth/logout", ""))
}

func TestMembersOverHTTP(t *testing.T) {
	s := newShop(t, nil)
	s.merchant("shop")
	in := s.must(200, sessionMembers, s.ask("POST", "/auth/signup", `{"email":"ana@example.com","password":"`+shopPassword+`","merchant_id":"shop"}`, "x-admin-secret", shopSecret))
	bearer := "Bearer " + in["token"].(string)
	got := s.must(200, "email is_new_user password role", s.ask("POST", "/merchant/members/invite", `{"email":"bo@example.com","role":"owner"}`, "Authorization", bearer))
	if got["is_new_user"] != true || got["role"] != "member" {
		t.Errorf("%v", got)
	}
	s.refused("twice", 409, "TE_04", s.ask("POST", "/merchant/members/invite", `{"email":"bo@example.com"}`, "Authorization", bearer))
	bo := s.must(200, sessionMembers, s.ask("POST", "/auth/login", `{"email":"bo@example.com","password":"`+got["password"].(string)+`"}`))
	boBearer := "Bearer " + bo["token"].(string)
	s.refused("a member invites", 403, "TE_04", s.ask("POST", "/merchant/members/invite", `{"email":"cy@example.com"}`, "Authorization", boBearer))
	s.refused("without a session", 401, "TE_04", s.ask("GET", "/merchant/members", "", "x-admin-secret", shopSecret))
	w := s.ask("GET", "/merchant/members", "", "Authorization", boBearer)
	var members []map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &members); err != nil || len(members) != 2 || members[0]["email"] != "ana@example.com" ||
		members[0]["role"] != "admin" || len(members[1]) != 3 || members[1]["user_id"] != bo["user_id"] {
		t.Errorf("%s", w.Body)
	}
}

func TestPasswordsOverHTTP(t *testing.T) {
	s := newShop(t, nil)
	in := s.must(200, sessionMembers, s.ask("POST", "/auth/signup", `{"email":"ana@example.com","password":"`+shopPassword+`"}`, "x-admin-secret", shopSecret))
	bearer := "Bearer " + in["token"].(string)
	s.refused("a wrong current", 401, "TE_04", s.ask("POST", "/auth/change-password", `{"current_password":"x","new_password":"Battery-Staple-8"}`, "Authorization", bearer))
	s.refused("weak", 400, "TE_04", s.ask("POST", "/auth/change-password", `{"current_password":"`+shopPassword+`","new_password":"x"}`, "Authorization", bearer))
	s.must(200, messageMembers, s.ask("POST", "/auth/change-password", `{"current_password":"`+shopPassword+`","new_password":"Battery-Staple-8"}`, "Authorization", bearer))
	known, unknown := s.ask("POST", "/auth/forgot-password", `{"email":"ana@example.com"}`), s.ask("POST", "/auth/forgot-password", `{"email":"nobody@example.com"}`)
	if known.Code != 200 || known.Body.String() != unknown.Body.String() || known.Code != unknown.Code {
		t.Errorf("%d %s, %d %s", known.Code, known.Body, unknown.Code, unknown.Body)
	}
	s.refused("a bad token", 400, "TE_04", s.ask("POST", "/auth/reset-password", `{"token":"x","new_password":"Staple-Battery-9"}`))
	s.refused("a bad token", 400, "TE_04", s.ask("POST", "/auth/verify-email", `{"token":"x"}`))
	const wanted = `{"email":"ana@example.com","purpose":"reset_password"}`
	s.refused("a ticket for a session", 401, "TE_04", s.ask("POST", "/auth/admin/user-token", wanted, "Authorization", bearer))
	ticket := s.must(200, "expires_in purpose token", s.ask("POST", "/auth/admin/user-token", wanted, "x-admin-secret", shopSecret))
	reset := `{"token":"` + ticket["token"].(string) + `","password":"Staple-Battery-9"}`
	s.must(200, messageMembers, s.ask("POST", "/auth/reset-password", reset))
	s.refused("a used token", 400, "TE_04", s.ask("POST", "/auth/reset-password", reset))
	s.refused("a session of before", 401, "TE_04", s.ask("GET", "/auth/me", "", "Authorization", bearer))
	s.must(200, sessionMembers, s.ask("POST", "/auth/login", `{"email":"ana@example.com","password":"Staple-Battery-9"}`))
	verify := s.must(200, "expires_in purpose token", s.ask("POST", "/auth/admin/user-token", `{"email":"ana@example.com","purpose":"verify_email"}`, "x-admin-secret", shopSecret))
	s.must(200, messageMembers, s.ask("POST", "/auth/verify-email", `{"token":"`+verify["token"].(string)+`"}`))
}

func TestOperatorsSessionsOverHTTP(t *testing.T) {
	s := newShop(t, func(o *gateway.Options) { o.Sessions.SuperAdmins = []string{"boss@example.com"} })
	s.merchant("shop")
	s.refused("no secret", 401, "TE_04", s.ask("POST", "/auth/admin/merchant-token", `{"merchant_id":"shop"}`))
	s.refused("nowhere", 404, "TE_04", s.ask("POST", "/auth/admin/merchant-token", `{"merchant_id":"nope"}`, "x-admin-secret", shopSecret))
	code := s.must(200, "code expires_in", s.ask("POST", "/auth/admin/merchant-token", `{"merchant_id":"shop"}`, "x-admin-secret", shopSecret))
	if code["expires_in"] != 60.0 {
		t.Errorf("%v", code)
	}
	exchange := `{"code":"` + code["code"].(string) + `"}`
	if in := s.must(200, sessionMembers, s.ask("POST", "/auth/admin/merchant-token/exchange", exchange)); in["user_id"] != "hs_shop" || in["merchant_id"] != "shop" {
		t.Errorf("%v", in)
	}
	s.refused("twice", 401, "TE_04", s.ask("POST", "/auth/admin/merchant-token/exchange", exchange))

	boss := s.must(200, sessionMembers, s.ask("POST", "/auth/signup", `{"email":"boss@example.com","password":"`+shopPassword+`"}`, "x-admin-secret", shopSecret))
	bearer, other := "Bearer "+boss["token"].(string), "Bearer "+s.token(nil)
	view := s.must(200, sessionMembers, s.ask("POST", "/auth/super-admin/enter-merchant", `{"merchant_id":"shop"}`, "Authorization", bearer))
	bearer = "Bearer " + view["token"].(string)
	if w := s.ask("GET", "/auth/me", "", "Authorization", bearer); !strings.Contains(w.Body.String(), `"is_super_admin":true,"is_super_admin_view":true`) {
		t.Errorf("%s", w.Body)
	}
	if w := s.ask("POST", "/auth/super-admin/lookup", `{"query":"SH"}`, "Authorization", bearer); w.Body.String() != `[{"merchant_id":"shop","merchant_name":"shop"}]` {
		t.Errorf("%s", w.Body)
	}
	if w := s.ask("POST", "/auth/super-admin/lookup", `{"query":""}`, "Authorization", bearer); w.Body.String() != `[]` {
		t.Errorf("%s", w.Body)
	}
	s.must(200, sessionMembers, s.ask("POST", "/auth/super-admin/exit", "", "Authorization", bearer))
	s.refused("nowhere", 404, "TE_04", s.ask("POST", "/auth/super-admin/enter-merchant", `{"merchant_id":"nope"}`, "Authorization", bearer))
	for path, body := range map[string]string{"enter-merchant": `{"merchant_id":"shop"}`, "exit": "", "lookup": `{"query":""}`} {
		s.refused("another's "+path, 403, "TE_04", s.ask("POST", "/auth/super-admin/"+path, body, "Authorization", other))
		s.refused("nobody's "+path, 401, "TE_04", s.ask("POST", "/auth/super-admin/"+path, body))
	}
}

// filled puts values into the {names} of a route's path.
func filled(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "{") {
			parts[i] = "shop"
		}
	}
	return strings.Join(parts, "/")
}

// The walk of every route by every kind of caller that must not get in.
func TestEveryGatewayRouteAsksWhoIsThere(t *testing.T) {
	s := newShop(t, nil)
	s.merchant("shop")
	write, read, none := s.token(nil), s.token(jwt.MapClaims{"perms": []string{"routing:read"}}), s.token(jwt.MapClaims{"perms": []string{}})
	over := s.token(jwt.MapClaims{"exp": time.Now().Add(-time.Second).Unix()})
	for _, route := range s.routes {
		if route.Access == server.Public {
			continue
		}
		path := filled(route.Path)
		walk := func(who string, status int, headers ...string) {
			t.Helper()
			if w := s.ask(route.Method, path, "", append(headers, "x-tenant-id", "public")...); w.Code != status {
				t.Errorf("%s %s by %s: %d, want %d: %s", route.Method, path, who, w.Code, status, w.Body)
			} else if !strings.HasPrefix(w.Body.String(), `{"code":"TE_0`) {
				t.Errorf("%s %s by %s: %s", route.Method, path, who, w.Body)
			}
		}
		walk("nobody", 401)
		walk("an unknown key", 401, "x-api-key", "DE_00")
		walk("a wrong secret", 401, "x-admin-secret", "x")
		walk("an empty secret", 401, "x-admin-secret", "")
		walk("a bad bearer", 401, "Authorization", "Bearer x")
		walk("a bad bearer beside the secret", 401, "Authorization", "Bearer x", "x-admin-secret", shopSecret)
		walk("a bad bearer behind another scheme", 401, "Authorization", "Basic x", "Authorization", "Bearer x", "x-admin-secret", shopSecret)
		walk("an expired session", 401, "Authorization", "Bearer "+over)
		walk("a session that may nothing", 403, "Authorization", "Bearer "+none)
		if !readsOnly(route) {
			walk("a session that may read", 403, "Authorization", "Bearer "+read)
		} else if w := s.ask(route.Method, path, "", "Authorization", "Bearer "+read, "x-tenant-id", "public"); w.Code == 401 || strings.Contains(w.Body.String(), "permission") {
			t.Errorf("%s %s by a session that may read: %d %s", route.Method, path, w.Code, w.Body)
		}
		if route.Method == "DELETE" && route.Path == "/merchant-account/{merchant_id}" {
			continue // with the merchant its sessions would end
		}
		if w := s.ask(route.Method, path, "", "Authorization", "Bearer "+write, "x-tenant-id", "public"); w.Code == 401 || strings.Contains(w.Body.String(), "permission") {
			t.Errorf("%s %s by a session that may all: %d %s", route.Method, path, w.Code, w.Body)
		}
	}
}

// readsOnly is the list of 3.2.
func readsOnly(r server.Route) bool {
	return r.Method == "GET" || slices.Contains([]string{"/routing/list/{created_by}", "/routing/list/active/{created_by}", "/routing/evaluate", "/rule/get"}, r.Path) ||
		strings.HasSuffix(r.Path, "/seed-costs/simulate")
}

// Public routes ask by themselves: what each needs is missing here.
func TestPublicGatewayRoutesAskByThemselves(t *testing.T) {
	s := newShop(t, nil)
	open := map[string]bool{"/auth/login": true, "/auth/forgot-password": true, "/auth/reset-password": true, "/auth/verify-email": true,
		"/auth/admin/merchant-token/exchange": true, "/webhooks/settlement/{connector}": true, "/decision_gateway": true, "/update-score": true, "/openapi/gateway.json": true}
	for _, route := range s.routes {
		if route.Access != server.Public || open[route.Path] || strings.HasPrefix(route.Path, "/health") {
			continue
		}
		path := filled(route.Path)
		if w := s.ask(route.Method, path, "{}", "x-api-key", "DE_00"); w.Code != 401 {
			t.Errorf("%s %s by nobody: %d %s", route.Method, path, w.Code, w.Body)
		}
	}
}

// Guessing passwords is bounded by the line for hashes: whoever finds it full is told when to come back, and what goes on
// beside it is not held up.
func TestGuessingPasswordsIsBounded(t *testing.T) {
	s := newShop(t, func(o *gateway.Options) { o.Sessions.PasswordCost = 9 })
	bearer := "Bearer " + s.token(nil)
	answers := make(chan *httptest.ResponseRecorder, 64)
	var all sync.WaitGroup
	for range cap(answers) {
		all.Go(func() { answers <- s.ask("POST", "/auth/login", `{"email":"ana@example.com","password":"guess"}`) })
	}
	if w := s.ask("GET", "/auth/me", "", "Authorization", bearer); w.Code != 200 {
		t.Errorf("beside the line: %d %s", w.Code, w.Body)
	}
	all.Wait()
	close(answers)
	count := map[int]int{}
	for w := range answers {
		count[w.Code]++
		if w.Code == 429 && w.Header().Get("Retry-After") == "" {
			t.Errorf("not told when to come back: %v", w.Header())
		}
	}
	if count[401]+count[429] != cap(answers) || count[429] == 0 || count[401] < 17 {
		t.Errorf("%v", count)
	}
}

// What a client may send must never be an internal failure.
func TestAuthRoutesTakeAnyBody(t *testing.T) {
	s := newShop(t, nil)
	bearer := "Bearer " + s.token(nil)
	for _, route := range s.routes {
		if !strings.HasPrefix(route.Path, "/auth/") && !strings.HasPrefix(route.Path, "/merchant/members") && !strings.HasPrefix(route.Path, "/onboarding/") {
			continue
		}
		for _, body := range []string{"", "{", "[]", "null", "1", `"x"`, "{}", "\xff", `{"email":1}`, `{"email":null,"password":null,"merchant_id":null,"token":null}`,
			`{"email":"a@b.io","password":"` + strings.Repeat("x", 5000) + `"}`, `{"email":"a@b.io","merchant_id":"\u0000","merchant_name":"\u0000","code":"","token":"","query":"%"}`,
			`{"email":"a@b.io","role":["admin"]}`, strings.Repeat("[", 10_000)} {
			w := s.ask(route.Method, route.Path, body, "Authorization", bearer, "x-admin-secret", shopSecret)
			if w.Code >= 500 || w.Code >= 400 && !strings.HasPrefix(w.Body.String(), `{"code":"TE_04","message":"`) {
				t.Errorf("%s %s %.60q: %d %s", route.Method, route.Path, body, w.Code, w.Body)
			}
		}
	}
}

// elsewhere are bodies that would do, and name a merchant that is not the caller's.
var elsewhere = map[string]string{
	"/decide-gateway": `{"merchantId":"shop","eligibleGatewayList":["a"],"paymentInfo":{"paymentId":"p","amount":1,"currency":"EUR",
		"paymentType":"ORDER_PAYMENT","paymentMethodType":"CARD","paymentMethod":"CREDIT"}}`,
	"/update-gateway-score": `{"merchantId":"shop","gateway":"a","paymentId":"p","status":"CHARGED"}`,
	"/routing/create":       `{"name":"n","created_by":"shop","algorithm":{"type":"single","data":{"gateway_name":"a","gateway_id":null}}}`,
	"/routing/evaluate":     `{"created_by":"shop","parameters":{}}`,
	"/routing/hybrid":       `{"static_routing_request":{"created_by":"shop","parameters":{}}}`,
	"/routing/update":       `{"created_by":"shop","routing_algorithm_id":"r","name":"n","algorithm":{"type":"single","data":{"gateway_name":"a","gateway_id":null}}}`,
	"/rule/create":          `{"merchant_id":"shop","config":{"type":"elimination","data":{}}}`,
	"/rule/update":          `{"merchant_id":"shop","config":{"type":"elimination","data":{}}}`,
	"/rule/get":             `{"merchant_id":"shop","algorithm":"elimination"}`,
	"/rule/delete":          `{"merchant_id":"shop","algorithm":"elimination"}`,
	"/config-sr-dimension":  `{"merchant_id":"shop","paymentInfo":{}}`,
	"":                      `{"created_by":"shop","merchant_id":"shop","merchantId":"shop","routing_algorithm_id":"r","name":"n","enabled":true,"gateway":"a"}`,
}

// nobodys are routes that name no merchant, or name one by what it has: TestKeysAndOutagesOfOthers walks those.
func nobodys(path string) bool {
	for _, prefix := range []string{"/api-key/{key_id}", "/gateway-outage", "/config/routing-keys", "/gsm/options", "/debit-routing/tables", "/analytics/", "/admin/"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// The walk of every route that names a merchant by a caller who belongs to another.
func TestNoGatewayRouteReachesAnotherMerchant(t *testing.T) {
	s := newShop(t, nil)
	s.merchant("shop")
	s.merchant("other")
	other := s.token(jwt.MapClaims{"merchant_id": "other"})
	for _, route := range s.routes {
		if route.Access == server.Public || nobodys(route.Path) {
			continue
		}
		body, known := elsewhere[route.Path]
		if !known {
			body = elsewhere[""]
		}
		if w := s.ask(route.Method, filled(route.Path), body, "Authorization", "Bearer "+other, "x-tenant-id", "public"); w.Code != 403 {
			t.Errorf("%s %s: %d %s", route.Method, route.Path, w.Code, w.Body)
		}
	}
}
