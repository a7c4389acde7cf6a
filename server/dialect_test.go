package server

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/admission"
	"holdfast/fault"
	"holdfast/ident"
	"holdfast/wire/reply"
)

// guest lets in whoever knows the word.
func guest(r *http.Request, _ time.Time) (ident.Principal, error) {
	switch r.Header.Get("X-Word") {
	case "friend":
		return ident.Principal{Kind: ident.Token, ID: "guest"}, nil
	case "reader":
		return ident.Principal{}, fault.New("test", fault.Forbidden, "not you")
	case "broken":
		return ident.Principal{}, errors.New("the storage is gone")
	}
	return ident.Principal{}, fault.New("test", fault.Unauthenticated, "who are you?")
}

func (r *rig) asks(method, path string, header ...string) (*http.Response, string) {
	r.t.Helper()
	req, err := http.NewRequest(method, r.url+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return r.send(req)
}

func TestARouteIdentifiesItsCallers(t *testing.T) {
	for _, dev := range []bool{false, true} {
		r := start(t, Options{Dev: dev}, func(table *Table) {
			table.Routes = append(table.Routes,
				Route{Method: "GET", Path: "/guest", Label: "guest", Access: Credential, Identify: guest, Handler: echo},
				Route{Method: "GET", Path: "/open", Label: "open", Access: Public, Identify: guest, Handler: echo})
		})
		for _, c := range []struct {
			word   string
			status int
		}{{"friend", 200}, {"", 401}, {"foe", 401}, {"reader", 403}, {"broken", 500}} {
			res, text := r.asks("GET", "/guest", "X-Word", c.word, "Authorization", "Bearer "+operatorKey)
			if res.StatusCode != c.status {
				t.Errorf("dev %v: the word %q: status %d, want %d: %s", dev, c.word, res.StatusCode, c.status, text)
			}
			if c.status == 200 && !strings.Contains(text, `"who":"guest"`) {
				t.Errorf("the handler was told of %s", text)
			}
		}
		if res, text := r.asks("GET", "/open"); res.StatusCode != 200 {
			t.Errorf("a public route asked who is there: %d %s", res.StatusCode, text)
		}
		if res, _ := r.asks("GET", "/v1/auth/whoami", "X-Word", "friend"); (res.StatusCode == 200) != dev {
			t.Errorf("dev %v: the word opens a route that asks the keyring: %d", dev, res.StatusCode)
		}
		if res, _ := r.asks("GET", "/nowhere", "X-Word", "friend"); (res.StatusCode == 404) != dev {
			t.Errorf("dev %v: what no route matches answers %d to somebody without a key", dev, res.StatusCode)
		}
	}
}

func TestATableMayAskNobodyForWhatIsMissing(t *testing.T) {
	r := start(t, Options{}, func(table *Table) {
		table.Identify, table.UUIDs = func(*http.Request, time.Time) (ident.Principal, error) { return ident.Principal{}, nil }, true
	})
	for path, status := range map[string]int{"/nowhere": 404, "/v1/auth/whoami": 401} {
		if res, text := r.asks("GET", path); res.StatusCode != status {
			t.Errorf("%s: status %d, want %d: %s", path, res.StatusCode, status, text)
		}
	}
	if res, _ := r.asks("GET", "/nowhere"); !isUUID(res.Header.Get("X-Request-Id")) {
		t.Errorf("the request id is %q", res.Header.Get("X-Request-Id"))
	}
}

func isUUID(s string) bool {
	return regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(s)
}

func TestRequestIDsOfADialect(t *testing.T) {
	r := start(t, Options{}, func(table *Table) {
		table.Routes = append(table.Routes, Route{Method: "GET", Path: "/uuid", Label: "uuid", Access: Public, UUIDs: true, Handler: echo})
	})
	seen := map[string]bool{}
	for range 3 * idsAtOnce {
		res, _ := r.asks("GET", "/uuid", "X-Request-Id", "")
		id := res.Header.Get("X-Request-Id")
		if !isUUID(id) || seen[id] {
			t.Fatalf("%q is no fresh UUID", id)
		}
		seen[id] = true
	}
	for _, given := range []string{"r-1", "with some spaces", strings.Repeat("x", maxRequestID)} {
		if res, _ := r.asks("GET", "/uuid", "X-Request-Id", given); res.Header.Get("X-Request-Id") != given {
			t.Errorf("%q came back as %q", given, res.Header.Get("X-Request-Id"))
		}
	}
	for _, given := range []string{strings.Repeat("x", maxRequestID+1), "caf\xe9"} {
		if res, _ := r.asks("GET", "/uuid", "X-Request-Id", given); !isUUID(res.Header.Get("X-Request-Id")) {
			t.Errorf("%q came back as %q", given, res.Header.Get("X-Request-Id"))
		}
	}
	if res, _ := r.asks("GET", "/health"); len(res.Header.Get("X-Request-Id")) != 2*idBytes {
		t.Errorf("a route without UUIDs made %q", res.Header.Get("X-Request-Id"))
	}
}

func TestARouteHasItsOwnGate(t *testing.T) {
	gate := func(burst float64) *admission.Gate {
		g, err := admission.New(admission.Options{Rate: &admission.Rate{PerSecond: 0.001, Burst: burst}})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	r := start(t, Options{}, func(table *Table) {
		table.Gate = gate(1)
		table.Routes = append(table.Routes, Route{Method: "GET", Path: "/guest", Label: "guest", Access: Credential, Identify: guest, Gate: gate(2), Handler: echo})
	})
	for i, want := range []int{200, 200, 429} {
		if res, _ := r.asks("GET", "/guest", "X-Word", "friend"); res.StatusCode != want {
			t.Errorf("request %d: status %d, want %d", i, res.StatusCode, want)
		}
	}
	for i, want := range []int{200, 429} {
		if res, _ := r.do("GET", "/v1/auth/whoami", operatorKey, ""); res.StatusCode != want {
			t.Errorf("request %d of the table's gate: status %d, want %d", i, res.StatusCode, want)
		}
	}
}

func TestEndpointsCountWhatWasSent(t *testing.T) {
	registry := prometheus.NewRegistry()
	endpoints := NewEndpoints(registry)
	var told atomic.Int64
	r := start(t, Options{}, func(table *Table) {
		table.Routes = append(table.Routes,
			Route{Method: "GET", Path: "/guest", Label: "guest", Access: Credential, Identify: guest, Tally: endpoints.Tally("guest"), Handler: echo},
			Route{Method: "POST", Path: "/guest", Label: "guest", Access: Credential, MaxBody: 1, Identify: guest, Tally: endpoints.Tally("guest"), Handler: echo},
			Route{Method: "GET", Path: "/told", Label: "told", Access: Public, Handler: echo,
				Tally: func(status int, took time.Duration) {
					if status != 200 || took <= 0 || took > time.Minute {
						t.Errorf("told of a %d in %v", status, took)
					}
					told.Add(1)
				}})
	})
	r.asks("GET", "/guest", "X-Word", "friend")
	r.asks("HEAD", "/guest", "X-Word", "friend")
	r.asks("GET", "/guest")
	r.asks("PUT", "/guest", "X-Word", "friend") // no row, so nobody's count
	if res, _ := r.do("POST", "/guest", "", "two"); res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Fatalf("status %d", res.StatusCode)
	}
	r.asks("GET", "/told")
	if told.Load() != 1 {
		t.Errorf("told %d times of one answer", told.Load())
	}
	w := httptest.NewRecorder()
	Exposition(registry).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	var counts []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "api_requests") || strings.HasPrefix(line, "api_latency_seconds_count") {
			counts = append(counts, strings.TrimSpace(line))
		}
	}
	want := []string{
		`api_latency_seconds_count{endpoint="guest"} 4`,
		`api_requests_by_status{endpoint="guest",status="200"} 2`, `api_requests_by_status{endpoint="guest",status="401"} 1`,
		`api_requests_by_status{endpoint="guest",status="413"} 1`, `api_requests_total{endpoint="guest"} 4`,
	}
	if !slices.Equal(counts, want) {
		t.Errorf("counted %q, want %q", counts, want)
	}
	for _, bound := range []string{"0.0005", "0.001", "0.256"} {
		if !strings.Contains(w.Body.String(), `api_latency_seconds_bucket{endpoint="guest",le="`+bound+`"}`) {
			t.Errorf("there is no bucket up to %s s", bound)
		}
	}
}

func TestCountingAnEndpointAllocatesNothing(t *testing.T) {
	tally := NewEndpoints(prometheus.NewRegistry()).Tally("decide_gateway")
	tally(200, time.Millisecond)
	if n := testing.AllocsPerRun(1000, func() { tally(200, time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// BenchmarkTally is what the names of a dialect cost each of its requests.
func BenchmarkTally(b *testing.B) {
	tally := NewEndpoints(prometheus.NewRegistry()).Tally("decide_gateway")
	b.ReportAllocs()
	for b.Loop() {
		tally(200, 90*time.Microsecond)
	}
}

func TestTheDrainDelayAcceptsEverything(t *testing.T) {
	hurry := make(chan struct{})
	r := start(t, Options{Limits: Limits{DrainDelay: time.Minute}, Hurry: hurry}, nil)
	select {
	case <-r.Draining():
		t.Fatal("it drains before anybody asked for the end")
	default:
	}
	r.stop()
	<-r.Draining()
	for range 3 {
		c, err := net.Dial("tcp", r.address)
		if err != nil {
			t.Fatalf("a connection is refused in the delay: %v", err)
		}
		c.Close()
		if res, _ := r.do("GET", "/health", "", ""); res.StatusCode != 200 || res.Close {
			t.Fatalf("a request in the delay: status %d, closing %v", res.StatusCode, res.Close)
		}
	}
	select {
	case <-r.Stopping():
		t.Fatal("streams are ended within the delay")
	default:
	}
	close(hurry)
	if err := <-r.served; err != nil {
		t.Errorf("serve: %v", err)
	}
	close(r.served)
	<-r.Stopping()
	if c, err := net.Dial("tcp", r.address); err == nil {
		c.Close()
		t.Error("a connection is taken after the end")
	}
}

// A connection that is busy when the delay ends gets its answer, and is told with it that there is none after.
func TestBusyConnectionsEndWithAnAnswer(t *testing.T) {
	r := start(t, Options{Limits: Limits{DrainDelay: time.Millisecond}}, nil)
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answers := make(chan string)
	go func() {
		defer close(answers)
		buf := make([]byte, 4096)
		for {
			if _, err := io.WriteString(c, "GET /health HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
				return
			}
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			answers <- string(buf[:n])
		}
	}()
	first := <-answers
	if strings.Contains(first, "Connection: close") {
		t.Error("a connection is closed before the end was asked for")
	}
	r.stop()
	last := first
	for answer := range answers {
		last = answer
	}
	if !strings.HasPrefix(last, "HTTP/1.1 200") || !strings.Contains(last, "Connection: close") {
		t.Errorf("the last answer was %q", last)
	}
	if err := <-r.served; err != nil {
		t.Errorf("serve: %v", err)
	}
	close(r.served)
}

func TestAListenerThatFailsEndsWithoutADelay(t *testing.T) {
	r := build(t, Options{Limits: Limits{DrainDelay: time.Hour}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Attach(l, Table{Refuse: Refusal(reply.Decision(slog.Default()))}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Serve(t.Context()); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("serve: %v", err)
	}
}
