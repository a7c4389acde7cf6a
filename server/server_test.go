package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"holdfast/admission"
	"holdfast/fault"
	"holdfast/ident"
	"holdfast/wire/reply"
)

const operatorKey = "operator-key-of-the-tests"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a server on a loopback address with everything real.
type rig struct {
	*Server
	t        testing.TB
	url      string
	address  string
	keys     *ident.Keyring
	registry *prometheus.Registry
	log      *lockedBuffer
	stop     context.CancelFunc
	served   chan error
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// echo answers with what the handler was given.
func echo(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	reply.JSON(w, http.StatusOK, fmt.Appendf(nil, `{"path":%q,"params":%q,"body":%d,"who":%q}`, r.URL.Path, c.Params, len(c.Body), c.Principal.ID))
}

func testTable(log *slog.Logger) Table {
	capsule := "/v1/tenants/{tenant}/jobs/{job}/capsules/{capsule}"
	return Table{
		Refuse: Refusal(reply.Decision(log)), Twins: "/v1",
		Routes: []Route{
			{Method: "GET", Path: "/health", Label: "health", Access: Public, Infra: true, Handler: echo},
			{Method: "GET", Path: "/v1/auth/whoami", Label: "whoami", Access: Credential, Handler: echo},
			{Method: "GET", Path: "/v1/admin/tokens", Label: "tokens", Access: Admins, Handler: echo},
			{Method: "DELETE", Path: "/v1/tenants/{tenant}", Label: "tenant.delete", Access: TenantAdmins, Handler: echo},
			{Method: "POST", Path: capsule + "/decide", Label: "capsule.decide", Access: Readers, Handler: func(w http.ResponseWriter, r *http.Request, c *ident.Call) {
				c.Handled = 1500
				echo(w, r, c)
			}},
			{Method: "PUT", Path: capsule + "/spec", Label: "capsule.spec.put", Access: TenantAdmins, Handler: echo},
			{Method: "GET", Path: capsule + "/spec", Label: "capsule.spec", Access: Readers, Handler: echo},
			{Method: "GET", Path: capsule + "/decisions/{id}", Label: "capsule.decision", Access: Readers, Handler: echo},
			{Method: "POST", Path: capsule + "/decisions:batch", Label: "capsule.upload", Access: Readers, MaxBody: 1 << 10, Handler: echo},
			{Method: "POST", Path: capsule + "/personalizer/v1.0/rank", Label: "personalizer.rank", Access: Readers, Refuse: Refusal(reply.Personalizer(log)), Handler: echo},
			{Method: "POST", Path: "/tenants/{tenant}/capsules/{capsule}/decide", Label: "capsule.decide", Access: Readers, Job: "default", Handler: echo},
			{Method: "GET", Path: "/assets/{file...}", Label: "assets", Access: Public, Infra: true, Handler: echo},
			{Method: "POST", Path: "/v1/panic/{when}", Label: "panic", Access: Admins, Handler: panicker},
			{Method: "GET", Path: "/v1/silent", Label: "silent", Access: Credential, Handler: func(http.ResponseWriter, *http.Request, *ident.Call) {}},
		},
	}
}

func panicker(w http.ResponseWriter, _ *http.Request, c *ident.Call) {
	if c.Params[0] == "late" {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
	}
	panic("the handler broke its secret word")
}

// build makes a rig that does not listen yet.
func build(t testing.TB, o Options) *rig {
	t.Helper()
	r := &rig{t: t, registry: prometheus.NewRegistry(), log: &lockedBuffer{}}
	o.Log = slog.New(slog.NewJSONHandler(r.log, nil))
	o.Metrics = NewMetrics(r.registry)
	keys, err := ident.NewKeyring(t.Context(), ident.Options{OperatorKey: operatorKey, Storage: &ident.Memory{}, Log: o.Log})
	if err != nil {
		t.Fatal(err)
	}
	if !o.Dev {
		o.Keys = keys
	}
	r.keys = keys
	if r.Server, err = New(o); err != nil {
		t.Fatal(err)
	}
	return r
}

// start listens and serves until the test ends.
func start(t testing.TB, o Options, edit func(*Table)) *rig {
	t.Helper()
	r := build(t, o)
	table := testTable(slog.New(slog.NewJSONHandler(r.log, nil)))
	if edit != nil {
		edit(&table)
	}
	address, err := r.Listen("127.0.0.1:0", table)
	if err != nil {
		t.Fatal(err)
	}
	r.address = address.String()
	r.url = "http://" + r.address
	ctx, stop := context.WithCancel(context.Background())
	r.stop, r.served = stop, make(chan error, 1)
	go func() { r.served <- r.Serve(ctx) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		if err, open := <-r.served; open && err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return r
}

func (r *rig) token(scope ident.Scope, ttl time.Duration) ident.Issued {
	r.t.Helper()
	issued, err := r.keys.Issue(r.t.Context(), scope, ttl, "")
	if err != nil {
		r.t.Fatal(err)
	}
	return issued
}

// do sends a request with a key, if there is one, and returns the answer with its body.
func (r *rig) do(method, path, key, body string) (*http.Response, string) {
	r.t.Helper()
	req, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return r.send(req)
}

func (r *rig) send(req *http.Request) (*http.Response, string) {
	r.t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res, string(text)
}

// raw writes text to a fresh connection and returns everything that comes back until the server closes it.
func (r *rig) raw(text string) string {
	r.t.Helper()
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		r.t.Fatal(err)
	}
	all, _ := io.ReadAll(c) // a reset after the answer is as good as an end
	return string(all)
}

func TestOrderOfChecks(t *testing.T) {
	gate, err := admission.New(admission.Options{Rate: &admission.Rate{PerSecond: 0.2, Burst: 3}})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, Options{Limits: Limits{MaxBody: 100}}, func(t *Table) { t.Gate = gate })
	reader := r.token(ident.Scope{Role: ident.Reader, Tenant: "north", Job: "web", Capsule: "hero"}, 0)
	big := strings.Repeat("x", 101)
	for _, c := range []struct {
		what, method, path, key, body string
		status                        int
		text                          string
	}{
		{"size before everything", "POST", "/nowhere", "", big, 413, "payload too large"},
		{"public routes before the credential", "GET", "/health", "", "", 200, `"path":"/health"`},
		{"credential before the route", "GET", "/nowhere", "", "", 401, `{"error":"unauthorized"}`},
		{"unknown key", "GET", "/v1/auth/whoami", "wrong", "", 401, `{"error":"unauthorized"}`},
		{"route before the scope", "GET", "/v1/nowhere", reader.Secret, "", 404, `{"error":"no such route"}`},
		{"scope before the handler", "DELETE", "/v1/tenants/north", reader.Secret, "", 403, `{"error":"forbidden: scope does not allow this action"}`},
		{"the handler", "GET", "/v1/auth/whoami", reader.Secret, "", 200, reader.Hash},
		{"rate before the route", "GET", "/v1/nowhere", reader.Secret, "", 429, `{"error":"rate limit exceeded","retryAfterSeconds":5}`},
		{"size before the rate", "POST", "/v1/nowhere", reader.Secret, big, 413, ""},
		{"infra routes have no rate", "GET", "/health", reader.Secret, "", 200, ""},
		{"others are not limited by it", "GET", "/v1/auth/whoami", operatorKey, "", 200, `"who":"operator"`},
	} {
		res, text := r.do(c.method, c.path, c.key, c.body)
		if res.StatusCode != c.status || !strings.Contains(text, c.text) {
			t.Errorf("%s: %d %s, want %d %s", c.what, res.StatusCode, text, c.status, c.text)
		}
		if after := res.Header.Get("Retry-After"); (after == "5") != (c.status == 429) {
			t.Errorf("%s: Retry-After %q", c.what, after)
		}
		if id := res.Header.Get("X-Request-Id"); len(id) != 16 {
			t.Errorf("%s: request id %q", c.what, id)
		}
		if !strings.HasPrefix(res.Header.Get("Server-Timing"), "app;dur=0.") {
			t.Errorf("%s: Server-Timing %q", c.what, res.Header.Get("Server-Timing"))
		}
	}
}

func TestCredentials(t *testing.T) {
	r := start(t, Options{}, nil)
	for _, c := range []struct {
		header http.Header
		status int
	}{
		{http.Header{"Authorization": {"Bearer " + operatorKey}}, 200},
		{http.Header{"Ocp-Apim-Subscription-Key": {operatorKey}}, 200},
		{http.Header{"Authorization": {"bearer " + operatorKey}}, 401},
		{http.Header{"Authorization": {"Bearer  " + operatorKey}}, 401},
		{http.Header{"Authorization": {"Basic x"}, "Ocp-Apim-Subscription-Key": {operatorKey}}, 401},
		{http.Header{"Authorization": {""}, "Ocp-Apim-Subscription-Key": {operatorKey}}, 401},
		{http.Header{"Authorization": {"Bearer " + operatorKey, "Bearer x"}}, 401},
		{http.Header{"Authorization": {"Bearer"}}, 401},
		{http.Header{}, 401},
	} {
		req, err := http.NewRequest("GET", r.url+"/v1/auth/whoami", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = c.header
		if res, _ := r.send(req); res.StatusCode != c.status {
			t.Errorf("%v: %d, want %d", c.header, res.StatusCode, c.status)
		}
	}
	log := r.log.String()
	if strings.Contains(log, operatorKey) || !strings.Contains(log, `"path":"/v1/auth/whoami"`) || !strings.Contains(log, `"remote":"127.0.0.1:`) {
		t.Errorf("the log of failures is wrong:\n%s", log)
	}
}

func TestEveryRouteAsEverybody(t *testing.T) {
	r := start(t, Options{}, nil)
	issue := func(s ident.Scope) string { return r.token(s, 0).Secret }
	keys := map[Caller]string{
		Anonymous: "", Unknown: "never-issued", Revoked: issue(ident.Scope{Role: ident.Admin}),
		OtherTenant: issue(ident.Scope{Role: ident.TenantAdmin, Tenant: "elsewhere"}),
		OtherReader: issue(ident.Scope{Role: ident.Reader, Tenant: WalkTenant, Job: WalkJob, Capsule: "elsewhere"}),
		ReadOnly:    issue(ident.Scope{Role: ident.Reader, Tenant: WalkTenant, Job: WalkJob, Capsule: WalkCapsule}),
		OwnTenant:   issue(ident.Scope{Role: ident.TenantAdmin, Tenant: WalkTenant}),
		OwnAdmin:    issue(ident.Scope{Role: ident.Admin}),
		OwnOperator: operatorKey,
	}
	expired := r.token(ident.Scope{Role: ident.Admin}, time.Second)
	keys[Expired] = expired.Secret
	revoked := ""
	for _, info := range r.keys.List() {
		if _, ok := r.keys.Verify(keys[Revoked], time.Now()); ok && info.Scope.Role == ident.Admin && info.ExpiresAt.IsZero() {
			revoked = info.Hash
			if found, err := r.keys.Revoke(t.Context(), revoked); !found || err != nil {
				t.Fatal(found, err)
			}
		}
	}
	keys[OwnAdmin] = issue(ident.Scope{Role: ident.Admin})
	for time.Now().Before(expired.ExpiresAt) { // a second of real time: the server's clock is the real one
		<-time.After(time.Until(expired.ExpiresAt) + time.Millisecond)
	}
	visits := Walk(testTable(slog.Default()))
	if len(visits) < 100 {
		t.Fatalf("only %d visits", len(visits))
	}
	for _, v := range visits {
		if strings.HasPrefix(v.Path, "/v1/panic") || strings.HasPrefix(v.Path, "/panic") {
			continue
		}
		res, _ := r.do(v.Method, v.Path, keys[v.As], "")
		if got := res.StatusCode; v.Status == 0 && (got == 401 || got == 403) || v.Status != 0 && got != v.Status {
			t.Errorf("%s %s as %v: %d, want %d", v.Method, v.Path, v.As, got, v.Status)
		}
	}
}

func TestPathsAreDecodedSegmentBySegment(t *testing.T) {
	r := start(t, Options{}, nil)
	c := "/v1/tenants/north/jobs/web/capsules/hero"
	for _, test := range []struct {
		path   string
		status int
		text   string
	}{
		{c + "/decisions/order%3A42", 200, `"order:42"`},
		{c + "/decisions/order:42", 200, `"order:42"`},
		{c + "/decisions/a%2Fb", 200, `"a/b"`},
		{c + "/decisions/a%2fb%20c", 200, `"a/b c"`},
		{c + "/decisions/a/b", 404, ""},
		{c + "/decisions/", 404, ""},
		{c + "/%64ecisions/x", 200, `"x"`},
		{c + "/decisions", 404, ""},
		{"/v1/tenants/no%2Frth/jobs/web/capsules/hero/spec", 200, `"no/rth"`},
		{"/assets/a/b%2Fc.css", 200, `"a/b/c.css"`},
		{"/assets/", 200, `[""]`},
		{"/v1//auth/whoami", 404, ""},
		{"/" + strings.Repeat("a/", 200), 404, ""},
	} {
		res, text := r.do("GET", test.path, operatorKey, "")
		if res.StatusCode != test.status || !strings.Contains(text, test.text) {
			t.Errorf("%s: %d %s, want %d %s", test.path, res.StatusCode, text, test.status, test.text)
		}
	}
}

func TestWrongMethod(t *testing.T) {
	r := start(t, Options{}, nil)
	c := "/v1/tenants/north/jobs/web/capsules/hero"
	if res, text := r.do("PATCH", c+"/spec", operatorKey, ""); res.StatusCode != 404 || text != `{"error":"no such route"}` {
		t.Errorf("decision dialect: %d %s", res.StatusCode, text)
	}
	res, text := r.do("GET", c+"/personalizer/v1.0/rank", operatorKey, "")
	if res.StatusCode != 405 || res.Header.Get("Allow") != "POST" || text != `{"error":{"code":"MethodNotAllowed","message":"method not allowed"}}` {
		t.Errorf("Personalizer dialect: %d %q %s", res.StatusCode, res.Header.Get("Allow"), text)
	}
	if res, text := r.do("HEAD", c+"/spec", operatorKey, ""); res.StatusCode != 200 || text != "" {
		t.Errorf("HEAD: %d %s", res.StatusCode, text)
	}
}

func TestTwinsAreDeprecated(t *testing.T) {
	r := start(t, Options{}, nil)
	res, _ := r.do("GET", "/tenants/no%2Frth/jobs/web/capsules/hero/spec?a=b%20c&d=1", operatorKey, "")
	if got := res.Header.Get("Link"); res.StatusCode != 200 || res.Header.Get("Deprecation") != "true" ||
		got != `</v1/tenants/no%2Frth/jobs/web/capsules/hero/spec?a=b%20c&d=1>; rel="successor-version"` {
		t.Errorf("%d %q %q", res.StatusCode, res.Header.Get("Deprecation"), got)
	}
	reader := r.token(ident.Scope{Role: ident.Reader, Tenant: "a", Job: "b", Capsule: "c"}, 0)
	for path, want := range map[string]int{"/tenants/x": 403, "/auth/whoami": 200} {
		method := map[int]string{403: "DELETE", 200: "GET"}[want]
		if res, _ := r.do(method, path, reader.Secret, ""); res.StatusCode != want || res.Header.Get("Deprecation") != "true" {
			t.Errorf("%s: %d %q", path, res.StatusCode, res.Header.Get("Deprecation"))
		}
	}
	for _, c := range []struct{ method, path, key string }{
		{"GET", "/auth/whoami", ""}, {"GET", "/health", ""}, {"GET", "/v1/auth/whoami", operatorKey}, {"GET", "/nowhere", operatorKey},
		{"POST", "/tenants/n/capsules/c/decide", operatorKey}, // a row of its own
	} {
		if res, _ := r.do(c.method, c.path, c.key, ""); res.Header.Get("Deprecation") != "" || res.Header.Get("Link") != "" {
			t.Errorf("%s %s is called deprecated", c.method, c.path)
		}
	}
}

func TestRequestIDs(t *testing.T) {
	r := start(t, Options{}, nil)
	seen := map[string]bool{}
	for _, given := range []string{"abc", "~!\"{}", strings.Repeat("x", 128), "", strings.Repeat("x", 129), "a b", "tab\there", "caf\u00e9", "a", "a"} {
		req, err := http.NewRequest("GET", r.url+"/health", nil)
		if err != nil {
			t.Fatal(err)
		}
		if given != "" {
			req.Header.Set("X-Request-Id", given)
		}
		res, _ := r.send(req)
		got := res.Header.Get("x-request-id")
		if validRequestID(given, '!') {
			if got != given {
				t.Errorf("%q came back as %q", given, got)
			}
			continue
		}
		if _, err := strconv.ParseUint(got, 16, 64); len(got) != 16 || err != nil || seen[got] {
			t.Errorf("%q was answered with %q", given, got)
		}
		seen[got] = true
	}
}

func TestBodyLimitIsInclusive(t *testing.T) {
	r := start(t, Options{}, nil)
	path := "/v1/tenants/north/jobs/web/capsules/hero/decide"
	small := "/v1/tenants/north/jobs/web/capsules/hero/decisions:batch"
	for _, c := range []struct {
		path    string
		size    int
		chunked bool
		status  int
	}{
		{path, 4194304, false, 200}, {path, 4194305, false, 413}, {path, 4194304, true, 200}, {path, 4194305, true, 413},
		{small, 1024, false, 200}, {small, 1025, false, 413}, {small, 1024, true, 200}, {small, 1025, true, 413}, {path, 0, true, 200},
	} {
		var body io.Reader = bytes.NewReader(make([]byte, c.size))
		if c.chunked {
			body = struct{ io.Reader }{body}
		}
		req, err := http.NewRequest("POST", r.url+c.path, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+operatorKey)
		res, text := r.send(req)
		if res.StatusCode != c.status {
			t.Errorf("%d bytes, chunked %v: %d %s, want %d", c.size, c.chunked, res.StatusCode, text, c.status)
		}
		if want := fmt.Sprintf(`"body":%d,`, c.size); c.status == 200 && !strings.Contains(text, want) {
			t.Errorf("%d bytes arrived as %s", c.size, text)
		}
	}
}

func TestADeclaredLengthIsRefusedUnread(t *testing.T) {
	r := start(t, Options{}, nil)
	got := r.raw("POST /v1/x HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 413 ") || !strings.Contains(got, "Connection: close") {
		t.Errorf("got %q", got)
	}
}

// TestTooLargeIsReadByAClientThatSendsFirst: most clients send the whole body before they look for an answer.
func TestTooLargeIsReadByAClientThatSendsFirst(t *testing.T) {
	r := start(t, Options{}, nil)
	const size = 12 << 20 // more than the sockets hold between them
	head := fmt.Sprintf("POST /v1/x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", size)
	if got := r.raw(head + strings.Repeat("x", size)); !strings.HasPrefix(got, "HTTP/1.1 413 ") {
		t.Errorf("got %.80q", got)
	}
}

func TestBrokenFramingIsTheCallersFault(t *testing.T) {
	r := start(t, Options{}, nil)
	got := r.raw("POST /v1/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nnothex\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 400 ") {
		t.Errorf("got %q", got)
	}
}

func TestHeadersAreBounded(t *testing.T) {
	r := start(t, Options{}, nil)
	request := func(size int) string {
		head := "GET /health HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-Fill: "
		return head + strings.Repeat("x", size-len(head)-4) + "\r\n\r\n"
	}
	if got := r.raw(request(16 << 10)); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Errorf("16 KiB of headers: %q", got)
	}
	if got := r.raw(request(16<<10 + 1)); !strings.HasPrefix(got, "HTTP/1.1 431 ") {
		t.Errorf("one byte more: %q", got)
	}
}

func TestSlowClients(t *testing.T) {
	limits := Limits{HeaderTime: 300 * time.Millisecond, BodyTime: 400 * time.Millisecond, IdleTime: 500 * time.Millisecond}
	r := start(t, Options{Limits: limits}, nil)
	for _, c := range []struct {
		name, send, want string
		least            time.Duration
	}{
		{"header", "GET /health HTTP/1.1\r\nHost:", "", limits.HeaderTime},
		{"body", "POST /v1/x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab", "HTTP/1.1 408 ", limits.BodyTime},
		{"chunked body", "POST /v1/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", "HTTP/1.1 408 ", limits.BodyTime},
		{"idle", "GET /health HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 ", limits.IdleTime},
	} {
		t.Run(c.name, func(t *testing.T) {
			begun := time.Now()
			got := r.raw(c.send)
			took := time.Since(begun)
			if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("got %q", got)
			}
			if took < c.least {
				t.Errorf("closed after %v, before its %v were over", took, c.least)
			}
		})
	}
}

func TestPanicsAreAnsweredAndLogged(t *testing.T) {
	r := start(t, Options{}, nil)
	res, text := r.do("POST", "/v1/panic/early", operatorKey, "")
	if res.StatusCode != 500 || text != `{"error":"internal error"}` {
		t.Errorf("%d %s", res.StatusCode, text)
	}
	if log := r.log.String(); !strings.Contains(log, "broke its secret word") || !strings.Contains(log, res.Header.Get("X-Request-Id")) || !strings.Contains(log, "panicker") {
		t.Errorf("the log does not tell what happened:\n%s", log)
	}
	late := r.raw("POST /v1/panic/late HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + operatorKey + "\r\n\r\n")
	if !strings.HasPrefix(late, "HTTP/1.1 200 ") || strings.HasSuffix(late, "0\r\n\r\n") {
		t.Errorf("an answer that broke off looks whole: %q", late)
	}
}

func TestASilentHandlerIsAnEmptyAnswer(t *testing.T) {
	r := start(t, Options{}, nil)
	if res, text := r.do("GET", "/v1/silent", operatorKey, ""); res.StatusCode != 200 || text != "" {
		t.Errorf("%d %q", res.StatusCode, text)
	}
	if got := r.count("silent", "200"); got != 1 {
		t.Errorf("counted %v times", got)
	}
}

func TestDrainFinishesWhatRuns(t *testing.T) {
	entered, proceed := make(chan struct{}), make(chan struct{})
	r := start(t, Options{}, func(t *Table) {
		t.Routes = append(t.Routes, Route{Method: "GET", Path: "/v1/wait", Label: "wait", Access: Credential, Handler: func(w http.ResponseWriter, _ *http.Request, _ *ident.Call) {
			close(entered)
			<-proceed
			reply.Text(w, 200, "done")
		}})
	})
	answer := make(chan string, 1)
	go func() {
		_, text := r.do("GET", "/v1/wait", operatorKey, "")
		answer <- text
	}()
	<-entered
	r.stop()
	<-r.Stopping()
	for { // accepting stops a moment after
		c, err := net.Dial("tcp", r.address)
		if err != nil {
			break
		}
		c.Close()
	}
	close(proceed)
	if got := <-answer; got != "done" {
		t.Errorf("the running request got %q", got)
	}
	if err := <-r.served; err != nil {
		t.Errorf("serve: %v", err)
	}
	close(r.served)
}

func TestDrainEndsWithWhatNeverFinishes(t *testing.T) {
	r := build(t, Options{Limits: Limits{DrainTime: 50 * time.Millisecond}})
	entered := make(chan struct{})
	table := testTable(slog.Default())
	table.Routes = append(table.Routes, Route{Method: "GET", Path: "/v1/wait", Label: "wait", Access: Credential, Handler: func(_ http.ResponseWriter, r *http.Request, _ *ident.Call) {
		close(entered)
		<-r.Context().Done()
	}})
	address, err := r.Listen("127.0.0.1:0", table)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- r.Serve(ctx) }()
	c, err := net.Dial("tcp", address.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET /v1/wait HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\n\r\n", operatorKey)
	<-entered
	stop()
	if err := <-served; err == nil || !strings.Contains(err.Error(), "still had requests running") {
		t.Errorf("serve: %v", err)
	}
}

func TestDevModeStaysAtHome(t *testing.T) {
	r := build(t, Options{Dev: true})
	if _, err := r.Listen("0.0.0.0:0", testTable(slog.Default())); err == nil {
		t.Error("dev mode listens to the world")
	}
	if _, err := New(Options{Log: slog.Default(), Metrics: r.metrics}); err == nil {
		t.Error("a server without keys was made outside of dev mode")
	}
	served := start(t, Options{Dev: true}, nil)
	if res, text := served.do("GET", "/v1/admin/tokens", "", ""); res.StatusCode != 200 {
		t.Errorf("dev mode asks for a key: %d %s", res.StatusCode, text)
	}
}

func TestStreamsAndHijacking(t *testing.T) {
	gate, err := admission.New(admission.Options{Guard: &admission.GuardOptions{}})
	if err != nil {
		t.Fatal(err)
	}
	inFlight := make(chan int, 2)
	r := start(t, Options{}, func(t *Table) {
		t.Gate = gate
		t.Routes = append(t.Routes,
			Route{Method: "GET", Path: "/v1/stream", Label: "stream", Access: Credential, Handler: func(w http.ResponseWriter, _ *http.Request, _ *ident.Call) {
				fmt.Fprint(w, "one")
				if err := http.NewResponseController(w).Flush(); err != nil {
					panic(err)
				}
				inFlight <- gate.State().InFlight
				_, _ = io.Copy(w, strings.NewReader("two"))
			}},
			Route{Method: "GET", Path: "/v1/socket", Label: "socket", Access: Credential, Handler: func(w http.ResponseWriter, _ *http.Request, _ *ident.Call) {
				c, rw, err := http.NewResponseController(w).Hijack()
				if err != nil {
					panic(err)
				}
				defer c.Close()
				inFlight <- gate.State().InFlight
				_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\n\r\n")
				_ = rw.Flush()
				_ = c.SetReadDeadline(time.Now().Add(time.Minute))
				line, _ := rw.ReadString('\n')
				_, _ = io.WriteString(c, "you said "+line)
			}})
	})
	if res, text := r.do("GET", "/v1/stream", operatorKey, ""); res.StatusCode != 200 || text != "onetwo" || <-inFlight != 0 {
		t.Errorf("%d %s", res.StatusCode, text)
	}
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET /v1/socket HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\n\r\n", operatorKey)
	in := bufio.NewReader(c)
	for line := "x"; line != "\r\n"; {
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprint(c, "hello\n")
	if got, _ := in.ReadString('\n'); got != "you said hello\n" || <-inFlight != 0 {
		t.Errorf("got %q", got)
	}
	if r.count("socket", "101") != 1 || r.count("stream", "200") != 1 {
		t.Error("not counted once each")
	}
}

func TestTablesThatContradictThemselves(t *testing.T) {
	r := build(t, Options{})
	ok := Route{Method: "GET", Path: "/a/{tenant}", Label: "a", Handler: echo}
	with := func(edit func(*Route)) Route { c := ok; edit(&c); return c }
	refuse := testTable(slog.Default()).Refuse
	for name, routes := range map[string][]Route{
		"twice":                   {ok, ok},
		"twice by another name":   {ok, with(func(r *Route) { r.Path = "/a/{other}" })},
		"no handler":              {with(func(r *Route) { r.Handler = nil })},
		"no label":                {with(func(r *Route) { r.Label = "" })},
		"no slash":                {with(func(r *Route) { r.Path = "a" })},
		"readers without capsule": {with(func(r *Route) { r.Access = Readers })},
		"tenant without tenant":   {with(func(r *Route) { r.Access, r.Path = TenantAdmins, "/a" })},
		"rest in the middle":      {with(func(r *Route) { r.Path = "/a/{b...}/c" })},
	} {
		if _, err := r.Handler(Table{Refuse: refuse, Routes: routes}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := r.Handler(Table{Routes: []Route{ok}}); err == nil {
		t.Error("a table without a refusal was accepted")
	}
}

func TestInternalErrorsTellNothing(t *testing.T) {
	r := start(t, Options{}, func(t *Table) {
		refuse := t.Refuse
		t.Routes = append(t.Routes, Route{Method: "GET", Path: "/v1/broken", Label: "broken", Access: Credential, Handler: func(w http.ResponseWriter, r *http.Request, _ *ident.Call) {
			refuse(w, r, fault.Wrap("x", fault.Internal, io.ErrShortWrite, "disk of the boss"))
		}})
	})
	res, text := r.do("GET", "/v1/broken", operatorKey, "")
	if res.StatusCode != 500 || text != `{"error":"internal error"}` {
		t.Errorf("%d %s", res.StatusCode, text)
	}
	if log := r.log.String(); !strings.Contains(log, "short write") || !strings.Contains(log, res.Header.Get("X-Request-Id")) {
		t.Errorf("the log says nothing:\n%s", log)
	}
}

var _ http.Handler = (*listener)(nil)
