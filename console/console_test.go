package console_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/admission"
	"holdfast/console"
	"holdfast/decision"
	"holdfast/fault"
	"holdfast/ident"
	"holdfast/server"
)

const operatorKey = "the-key-of-the-operator"

// desk is a console on a real server over a service in memory, and a browser without scripts.
type desk struct {
	testing.TB
	service  *decision.Service
	keys     *ident.Keyring
	stopping chan struct{}
	address  string
	client   *http.Client
}

func newDesk(t testing.TB, change ...func(*console.Options)) *desk {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	d := &desk{TB: t, stopping: make(chan struct{})}
	var err error
	if d.service, err = decision.Open(context.Background(), decision.Options{Storage: decision.NewMemory()}); err != nil {
		t.Fatal(err)
	}
	if d.keys, err = ident.NewKeyring(context.Background(), ident.Options{OperatorKey: operatorKey, Storage: &ident.Memory{}, Log: log}); err != nil {
		t.Fatal(err)
	}
	o := console.Options{Service: d.service, Keys: d.keys, Stopping: d.stopping, Log: log}
	for _, f := range change {
		f(&o)
	}
	c := console.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { c.Run(ctx); close(ended) }()
	s, err := server.New(server.Options{Keys: d.keys, Metrics: server.NewMetrics(prometheus.NewRegistry()), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := s.Handler(server.Table{Routes: routes(c), Twins: "/v1", Refuse: func(w http.ResponseWriter, _ *http.Request, err error) {
		http.Error(w, err.Error(), map[bool]int{true: 404, false: 400}[fault.KindOf(err) == fault.NotFound])
	}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(handler)
	d.address, d.client = web.URL, browser(t)
	t.Cleanup(func() {
		web.Close()
		cancel()
		<-ended
		if err := d.service.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return d
}

// routes are the rows that the binary has for the console.
func routes(c *console.Console) []server.Route {
	all := []server.Route{
		{Method: "GET", Path: "/", Handler: c.Overview},
		{Method: "GET", Path: "/console/capsule/{tenant}/{job}/{capsule}", Handler: c.Capsule},
		{Method: "GET", Path: "/console/merchant/{merchant}", Handler: c.Merchant},
		{Method: "GET", Path: "/console/events", Handler: c.Events},
		{Method: "GET", Path: "/console/static/{file}", Handler: c.Static},
		{Method: "POST", Path: "/console/sign-in", Handler: c.SignIn},
		{Method: "POST", Path: "/console/sign-out", Handler: c.SignOut},
		{Method: "GET", Path: "/v1/admin", Handler: c.Admin},
	}
	for i := range all {
		all[i].Label, all[i].Class, all[i].Access, all[i].Infra = "console", admission.Bulk, server.Public, true
	}
	return all
}

// browser is a client with cookies of its own that follows no redirect by itself.
func browser(t testing.TB) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (d *desk) do(r *http.Request) answer {
	d.Helper()
	res, err := d.client.Do(r)
	if err != nil {
		d.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		d.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(body)}
}

func (d *desk) get(path string) answer {
	d.Helper()
	r, err := http.NewRequest("GET", d.address+path, nil)
	if err != nil {
		d.Fatal(err)
	}
	return d.do(r)
}

func (d *desk) post(path string, form url.Values, header ...string) answer {
	d.Helper()
	r, err := http.NewRequest("POST", d.address+path, strings.NewReader(form.Encode()))
	if err != nil {
		d.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return d.do(r)
}

func (d *desk) signIn(key string) {
	d.Helper()
	if a := d.post("/console/sign-in", url.Values{"key": {key}}); a.status != http.StatusSeeOther {
		d.Fatalf("sign in: %d", a.status)
	}
}

func (d *desk) token(scope ident.Scope) ident.Issued {
	d.Helper()
	issued, err := d.keys.Issue(context.Background(), scope, 0, "")
	if err != nil {
		d.Fatal(err)
	}
	return issued
}

var hero = decision.CapsuleID{Tenant: "north", Job: "web", Capsule: "hero"}

const twoOptions = `{"actions":[{"id":"plain"},{"id":"fancy"}]}`

func (d *desk) capsule(id decision.CapsuleID, spec string) *decision.Capsule {
	d.Helper()
	if _, _, err := d.service.PutSpec(context.Background(), id, []byte(spec), decision.Merge); err != nil {
		d.Fatal(err)
	}
	c, err := d.service.Capsule(context.Background(), id)
	if err != nil {
		d.Fatal(err)
	}
	return c
}

// decide makes n decisions and gives each the reward that value says.
func (d *desk) decide(c *decision.Capsule, n int, value func(option string) float64) {
	d.Helper()
	plans := []string{"free", "pro", "team"}
	for i := range n {
		var out decision.Answer
		text := fmt.Sprintf(`{"visitor":%d,"plan":%q}`, i, plans[i%len(plans)])
		if err := c.Decide(context.Background(), &decision.Request{Context: []byte(text), Digest: sha256.Sum256([]byte(text))}, &out); err != nil {
			d.Fatal(err)
		}
		if value == nil {
			continue
		}
		if _, err := c.Reward(context.Background(), decision.RewardRequest{DecisionID: out.ID, Value: value(out.Action)}); err != nil {
			d.Fatal(err)
		}
	}
}

func fancyIsBetter(option string) float64 {
	return map[string]float64{"plain": 0.2, "fancy": 0.8}[option]
}

const threeOptions = `{"actions":[{"id":"small","features":{"cost":0.1}},{"id":"medium","features":{"cost":0.4}},{"id":"large","features":{"cost":1}}]}`

func byPlan(option string) float64 {
	return map[string]float64{"small": 0.35, "medium": 0.5, "large": 0.85}[option]
}

func contains(t testing.TB, text string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestAsksForTheKey(t *testing.T) {
	d := newDesk(t)
	d.capsule(hero, twoOptions)
	a := d.get("/")
	contains(t, a.body, `name="key"`, "Sign in")
	if strings.Contains(a.body, "hero") || a.status != 200 {
		t.Errorf("status %d, or a capsule is shown to nobody", a.status)
	}
	if a := d.get("/console/capsule/north/web/hero"); a.status != 303 || a.header.Get("Location") != "/?next=%2Fconsole%2Fcapsule%2Fnorth%2Fweb%2Fhero" {
		t.Errorf("a page without a session: %d to %q", a.status, a.header.Get("Location"))
	}
	if a := d.get("/console/events"); a.status != 401 {
		t.Errorf("a stream without a session: %d", a.status)
	}
	a = d.post("/console/sign-in", url.Values{"key": {"wrong"}, "next": {"/console/capsule/north/web/hero"}})
	contains(t, a.body, "not known here", `value="/console/capsule/north/web/hero"`)
	if a.status != 401 || len(a.header["Set-Cookie"]) != 0 {
		t.Errorf("a wrong key: %d, cookies %v", a.status, a.header["Set-Cookie"])
	}
}

func TestSignInAndOut(t *testing.T) {
	d := newDesk(t)
	d.decide(d.capsule(hero, twoOptions), 40, fancyIsBetter)
	a := d.post("/console/sign-in", url.Values{"key": {operatorKey}, "next": {"//elsewhere.example"}})
	if a.status != 303 || a.header.Get("Location") != "/" {
		t.Fatalf("right key: %d to %q", a.status, a.header.Get("Location"))
	}
	cookie := a.header.Get("Set-Cookie")
	contains(t, cookie, "HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200")
	if strings.Contains(cookie, operatorKey) {
		t.Error("the cookie holds the key")
	}
	a = d.get("/")
	contains(t, a.body, "hero", "plain", "fancy", "<svg", "north / web", "operator", `data-stream="/console/events?page=1"`)
	for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"} {
		if a.header.Get(name) != want {
			t.Errorf("%s: %q", name, a.header.Get(name))
		}
	}
	a = d.get("/console/capsule/north/web/hero")
	contains(t, a.body, "Option shares", "Reward trend", "best one as far as the model knows", "0.80", "Reward range", "spec")
	for _, path := range []string{"/console/capsule/north/web/none", "/console/capsule/north/web/%3Cb%3E"} {
		if a := d.get(path); a.status != 404 || strings.Contains(a.body, "<b>") {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	if a := d.post("/console/sign-out", nil, "Sec-Fetch-Site", "cross-site"); a.status != 403 {
		t.Errorf("sign out from another site: %d", a.status)
	}
	if a := d.post("/console/sign-out", nil); a.status != 303 {
		t.Errorf("sign out: %d", a.status)
	}
	contains(t, d.get("/").body, `name="key"`)
}

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	d := newDesk(t)
	for _, h := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "http://elsewhere.example"}} {
		a := d.post("/console/sign-in", url.Values{"key": {operatorKey}}, h...)
		if a.status != 403 || len(a.header["Set-Cookie"]) != 0 {
			t.Errorf("%v: %d", h, a.status)
		}
	}
	if a := d.post("/console/sign-in", url.Values{"key": {operatorKey}}, "Sec-Fetch-Site", "same-origin"); a.status != 303 {
		t.Errorf("our own form: %d", a.status)
	}
}

func TestKeysSeeWhatTheyCover(t *testing.T) {
	d := newDesk(t)
	south := decision.CapsuleID{Tenant: "south", Job: "web", Capsule: "footer"}
	d.capsule(hero, twoOptions)
	d.capsule(decision.CapsuleID{Tenant: "north", Job: "app", Capsule: "banner"}, twoOptions)
	d.capsule(south, twoOptions)
	for _, c := range []struct {
		scope   ident.Scope
		sees    []string
		misses  []string
		refused string
	}{
		{ident.Scope{Role: ident.Admin}, []string{"hero", "banner", "footer"}, nil, ""},
		{ident.Scope{Role: ident.TenantAdmin, Tenant: "north"}, []string{"hero", "banner"}, []string{"footer"}, "/console/capsule/south/web/footer"},
		{ident.Scope{Role: ident.Reader, Tenant: "north", Job: "web", Capsule: "hero"}, []string{"hero"}, []string{"banner", "footer"}, "/console/capsule/north/app/banner"},
	} {
		d.client = browser(t)
		d.signIn(d.token(c.scope).Secret)
		body := d.get("/").body
		contains(t, body, c.sees...)
		for _, name := range c.misses {
			if strings.Contains(body, name) {
				t.Errorf("%v sees %s", c.scope, name)
			}
		}
		if c.refused == "" {
			continue
		}
		if a := d.get(c.refused); a.status != 403 {
			t.Errorf("%v: %s answers %d", c.scope, c.refused, a.status)
		}
		place := strings.Split(strings.TrimPrefix(c.refused, "/console/capsule/"), "/")
		stream := d.get("/console/events?" + url.Values{"tenant": {place[0]}, "job": {place[1]}, "capsule": {place[2]}}.Encode())
		contains(t, stream.body, "event: bye")
		if strings.Contains(stream.body, "event: part") {
			t.Errorf("%v gets updates of %s", c.scope, c.refused)
		}
	}
}

func TestRevokedTokenIsSignedOut(t *testing.T) {
	d := newDesk(t)
	token := d.token(ident.Scope{Role: ident.Admin})
	d.signIn(token.Secret)
	contains(t, d.get("/").body, "Capsules", "No capsule yet")
	events := d.listen("/console/events?page=1")
	events.until("event: beat")
	if _, err := d.keys.Revoke(context.Background(), token.Hash); err != nil {
		t.Fatal(err)
	}
	events.until("event: bye")
	contains(t, d.get("/").body, `name="key"`)
}

func TestDevModeOpensWithoutAKey(t *testing.T) {
	d := newDesk(t, func(o *console.Options) { o.Dev, o.Keys = true, nil })
	d.capsule(hero, twoOptions)
	contains(t, d.get("/").body, "hero", "dev mode")
	if strings.Contains(d.get("/").body, "Sign out") {
		t.Error("there is nothing to sign out of")
	}
	if a := d.get("/admin"); a.status != 302 || a.header.Get("Location") != "/" {
		t.Errorf("/admin: %d to %q", a.status, a.header.Get("Location"))
	}
}

// events is an open stream.
type events struct {
	testing.TB
	lines *bufio.Scanner
	close func()
}

func (d *desk) listen(path string) *events {
	d.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	r, err := http.NewRequestWithContext(ctx, "GET", d.address+path, nil)
	if err != nil {
		d.Fatal(err)
	}
	res, err := d.client.Do(r)
	if err != nil {
		d.Fatal(err)
	}
	if kind := res.Header.Get("Content-Type"); res.StatusCode != 200 || kind != "text/event-stream" {
		d.Fatalf("stream: %d, %s", res.StatusCode, kind)
	}
	e := &events{TB: d.TB, lines: bufio.NewScanner(res.Body), close: func() { cancel(); res.Body.Close() }}
	e.lines.Buffer(nil, 1<<20)
	d.Cleanup(e.close)
	return e
}

// until reads to the line that contains want and returns all up to it.
func (e *events) until(want string) string {
	e.Helper()
	var all strings.Builder
	for e.lines.Scan() {
		all.WriteString(e.lines.Text() + "\n")
		if strings.Contains(e.lines.Text(), want) {
			return all.String()
		}
	}
	e.Fatalf("the stream ended before %q (%v):\n%s", want, e.lines.Err(), all.String())
	return ""
}

func TestStreamSendsWhatChanged(t *testing.T) {
	d := newDesk(t)
	c := d.capsule(hero, twoOptions)
	d.signIn(operatorKey)
	e := d.listen("/console/events?tenant=north&job=web&capsule=hero")
	first := e.until("event: beat")
	contains(t, first, `<section id="figures"`, `<section id="trends"`, `<section id="newest"`, "no decisions yet", "Nothing was decided yet")
	d.decide(c, 30, fancyIsBetter)
	later := e.until("visitor")
	contains(t, later, "event: part", "best one as far as the model knows")
	if strings.Contains(later, `<section id="audits"`) {
		t.Error("a part that did not change was sent again")
	}
	e.until(`class="stroke"`) // the picture has the new rewards
	close(d.stopping)
	for e.lines.Scan() {
	}
	if err := e.lines.Err(); err != nil {
		t.Errorf("the stream did not end with the server: %v", err)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	d := newDesk(t, func(o *console.Options) { o.Dev = true })
	var open []*events
	for range 64 {
		open = append(open, d.listen("/console/events"))
	}
	if a := d.get("/console/events"); a.status != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("one stream too many: %d", a.status)
	}
	for _, e := range open {
		e.close()
	}
}

func TestDeletedCapsuleEndsItsPage(t *testing.T) {
	d := newDesk(t, func(o *console.Options) { o.Dev = true })
	d.decide(d.capsule(hero, twoOptions), 3, nil)
	e := d.listen("/console/events?tenant=north&job=web&capsule=hero")
	contains(t, e.until("event: beat"), "waiting")
	if _, err := d.service.DeleteCapsule(context.Background(), hero); err != nil {
		t.Fatal(err)
	}
	e.until("event: bye")
	if a := d.get("/console/capsule/north/web/hero"); a.status != 404 {
		t.Errorf("page of a deleted capsule: %d", a.status)
	}
	contains(t, d.get("/").body, "No capsule yet")
}

func TestStaticFiles(t *testing.T) {
	d := newDesk(t)
	for name, kind := range map[string]string{"console.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8", "mark.svg": "image/svg+xml"} {
		a := d.get("/console/static/" + name)
		if a.status != 200 || a.header.Get("Content-Type") != kind || a.header.Get("ETag") == "" || a.body == "" {
			t.Errorf("%s: %d %v", name, a.status, a.header)
		}
		if strings.Contains(strings.ReplaceAll(a.body, "http://www.w3.org/2000/svg", ""), "//") && name != "console.js" {
			t.Errorf("%s names another host", name)
		}
		r, _ := http.NewRequest("GET", d.address+"/console/static/"+name, nil)
		r.Header.Set("If-None-Match", a.header.Get("ETag"))
		if again := d.do(r); again.status != 304 {
			t.Errorf("%s unchanged: %d", name, again.status)
		}
	}
	if a := d.get("/console/static/console.go"); a.status != 404 {
		t.Errorf("what is not there: %d", a.status)
	}
}

func TestPagesOfManyCapsules(t *testing.T) {
	d := newDesk(t, func(o *console.Options) { o.Dev = true })
	for i := range 30 {
		d.capsule(decision.CapsuleID{Tenant: "north", Job: "web", Capsule: fmt.Sprintf("point%02d", i)}, twoOptions)
	}
	first, second := d.get("/").body, d.get("/?page=2").body
	contains(t, first, "point00", "point23", "Page 1 of 2", `href="/?page=2"`)
	contains(t, second, "point24", "point29", "Page 2 of 2", `data-stream="/console/events?page=2"`)
	if strings.Contains(first, "point24") || strings.Contains(second, "point23") {
		t.Error("a capsule is on the wrong page")
	}
	contains(t, d.get("/?page=99").body, "Page 2 of 2")
}

// hostile makes a decision with markup wherever a caller has a say.
func (d *desk) hostile() {
	d.Helper()
	const evil = `\"'><script>alert(1)</script><img src=x onerror=alert(2)>`
	c := d.capsule(hero, `{"actions":[{"id":"`+evil+`"},{"id":"javascript:alert(3)"}]}`)
	graph := `{"graph":[{"id":"n","op":"input","path":"note"},{"id":"r","op":"publish","as":"reason","of":"n"}]}`
	if _, err := d.service.Install(context.Background(), hero, []byte(graph)); err != nil {
		d.Fatal(err)
	}
	text := `{"note":"` + evil + "\"\r\r,\"x\":1}"
	var out decision.Answer
	if err := c.Decide(context.Background(), &decision.Request{Context: []byte(text)}, &out); err != nil {
		d.Fatal(err)
	}
}

func TestHostileText(t *testing.T) {
	d := newDesk(t, func(o *console.Options) { o.Dev = true })
	d.hostile()
	for _, path := range []string{"/", "/console/capsule/north/web/hero"} {
		body := d.get(path).body
		if strings.Contains(body, "<script>") || strings.Contains(body, "<img src=x") {
			t.Errorf("%s lets markup through", path)
		}
		contains(t, body, "&lt;script&gt;", `class="why given"`)
	}
	e := d.listen("/console/events?tenant=north&job=web&capsule=hero")
	all := e.until("event: beat")
	if strings.Contains(all, "<script>") || strings.Contains(all, "<img src=x") || strings.Contains(all, "\r") {
		t.Error("the stream lets markup through")
	}
	for line := range strings.Lines(all) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "data:") && line != "event: part" && line != "event: beat" {
			t.Errorf("a stray line in the stream: %q", line)
		}
	}
}

// TestFirstPictureReachesBack opens the page of a capsule that was busy before anybody looked.
func TestFirstPictureReachesBack(t *testing.T) {
	d := newDesk(t, func(o *console.Options) { o.Dev = true })
	c := d.capsule(hero, twoOptions)
	d.decide(c, 1500, func(string) float64 { return 0.25 })
	body := d.get("/console/capsule/north/web/hero").body
	contains(t, body, "1\u202f500", `class="stroke"`, `class="chart stack"`, "0.25")
	if strings.Contains(body, "no decisions yet") || strings.Contains(body, "no rewards yet") {
		t.Error("the picture is empty")
	}
}
