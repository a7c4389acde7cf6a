package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/decision"
	"holdfast/fault"
	"holdfast/ident"
	"holdfast/wire/decisionapi"
)

var hero = decision.CapsuleID{Tenant: "north", Job: "web", Capsule: "hero"}

// world is a real service behind its real handlers, joined to the client without a socket, so that time can be faked.
type world struct {
	testing.TB
	service *decision.Service
	mux     *http.ServeMux

	mu   sync.Mutex // guards what follows
	gate func(*http.Request) (*http.Response, error)
	seen []string // method, last part of the path, and size of the body of every request
}

func newWorld(t testing.TB, spec string) *world {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	service, err := decision.Open(context.Background(), decision.Options{Storage: decision.NewMemory(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := service.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	w := &world{TB: t, service: service, mux: http.NewServeMux()}
	w.spec(spec)
	api := decisionapi.New(decisionapi.Options{Service: service, Log: log})
	for pattern, handler := range map[string]decisionapi.Handler{"GET {c}/model": api.Model, "POST {c}/decisions:batch": api.Upload, "POST {c}/rewards:batch": api.Rewards} {
		w.mux.HandleFunc(strings.Replace(pattern, "{c}", "/v1/tenants/{t}/jobs/{j}/capsules/{c}", 1), func(out http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			handler(out, r, &ident.Call{Params: []string{r.PathValue("t"), r.PathValue("j"), r.PathValue("c")}, Body: body, RequestID: "r"})
		})
	}
	return w
}

func (w *world) spec(patch string) {
	w.Helper()
	if _, _, err := w.service.PutSpec(context.Background(), hero, []byte(patch), decision.Merge); err != nil {
		w.Fatal(err)
	}
}

// RoundTrip serves a request, unless the gate answers it.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	body := []byte{}
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	gate := w.gate
	w.seen = append(w.seen, fmt.Sprint(r.Method, " ", r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:], " ", len(body)))
	w.mu.Unlock()
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	if gate != nil {
		if answer, err := gate(r); answer != nil || err != nil {
			return answer, err
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	out := httptest.NewRecorder()
	w.mux.ServeHTTP(out, r)
	return out.Result(), nil
}

// close makes the gate answer instead of the server; nil opens it.
func (w *world) close(gate func(*http.Request) (*http.Response, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gate, w.seen = gate, nil
}

func (w *world) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.seen...)
}

func gone(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }

// answering is a gate that answers with a status.
func answering(status int, header map[string]string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		out := httptest.NewRecorder()
		for k, v := range header {
			out.Header().Set(k, v)
		}
		out.WriteHeader(status)
		return out.Result(), nil
	}
}

func (w *world) open(every time.Duration) *Client {
	w.Helper()
	c, err := Open(context.Background(), Options{Server: "http://server/", Capsule: hero, Key: "k", HTTP: &http.Client{Transport: w}, Every: every})
	if err != nil {
		w.Fatal(err)
	}
	return c
}

func (w *world) decide(c *Client, text string) decision.Decision {
	w.Helper()
	d, err := c.Decide(Request{Context: []byte(text)})
	if err != nil {
		w.Fatal(err)
	}
	return d
}

func (w *world) stats() decision.Stats {
	w.Helper()
	c, err := w.service.Capsule(context.Background(), hero)
	if err != nil {
		w.Fatal(err)
	}
	return c.Stats(context.Background())
}

func (w *world) kind(kind fault.Kind, err error) {
	w.Helper()
	if err == nil || fault.KindOf(err) != kind {
		w.Errorf("got error %v, want one of kind %q", err, kind)
	}
}

const manual = -1 // flushes and syncs are the test's

const three = `{"actions":[{"id":"a","features":{"x":1}},{"id":"b"},{"id":"c"}]}`

func TestDecideReportLearnSync(t *testing.T) {
	w := newWorld(t, three)
	c := w.open(manual)
	ctx := context.Background()
	for i := range 30 {
		d := w.decide(c, fmt.Sprintf(`{"i":%d}`, i))
		if len(d.ID) != 31 || !strings.HasPrefix(d.ID, "loc_") || d.Probability <= 0 {
			t.Fatalf("decision %+v", d)
		}
		if err := c.Reward(Reward{DecisionID: d.ID, Value: float64(d.Chosen) / 2, Detail: []byte(`{"n":1}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if s := c.Stats(); s.Queued != 60 {
		t.Errorf("stats %+v", s)
	}
	w.close(nil)
	if err := c.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if got := w.requests(); len(got) != 2 || !strings.HasPrefix(got[0], "POST decisions:batch") || !strings.HasPrefix(got[1], "POST rewards:batch") {
		t.Errorf("requests %v", got)
	}
	if s := c.Stats(); s != (Stats{Sent: 60}) {
		t.Errorf("stats %+v", s)
	}
	if s := w.stats(); s.Decisions != 30 || s.Rewards != 30 {
		t.Errorf("the server has %+v", s)
	}
	w.spec(`{"exploration":{"floor":0.1}}`)
	if err := c.Sync(ctx); err != nil || c.Version() != 30 {
		t.Errorf("version %d, %v", c.Version(), err)
	}
	w.decide(c, `{}`)
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if s := w.stats(); s.Decisions != 31 {
		t.Errorf("what was queued at the end is lost: %+v", s)
	}
}

func TestEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, three)
		c := w.open(0)
		d := w.decide(c, `{"x":1}`)
		if err := c.Reward(Reward{DecisionID: d.ID, Value: 1}); err != nil {
			t.Fatal(err)
		}
		w.close(nil)
		time.Sleep(2500 * time.Millisecond) // fake time: two rounds
		if s := w.stats(); s.Decisions != 1 || s.Rewards != 1 || c.Version() != 1 {
			t.Errorf("the server has %+v, the client version %d", s, c.Version())
		}
		if got := w.requests(); len(got) != 4 || !strings.HasPrefix(got[2], "GET model") || !strings.HasPrefix(got[3], "GET model") {
			t.Errorf("requests %v", got)
		}
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func TestTheServerIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, three)
		c := w.open(0)
		w.close(gone)
		for i := range 50 {
			d := w.decide(c, fmt.Sprintf(`{"i":%d}`, i))
			if err := c.Reward(Reward{DecisionID: d.ID, Value: 1}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if s := c.Stats(); s.Queued != 100 || s.LastError == nil {
			t.Errorf("stats %+v", s)
		}
		w.decide(c, `{"still":"here"}`)
		w.close(nil)
		time.Sleep(5 * time.Second)
		if s := w.stats(); s.Decisions != 51 || s.Rewards != 50 {
			t.Errorf("after its return the server has %+v", s)
		}
		if s := c.Stats(); s != (Stats{Sent: 101}) {
			t.Errorf("stats %+v", s)
		}
		w.close(gone)
		w.decide(c, `{}`)
		w.kind(fault.Unavailable, c.Close(context.Background()))
	})
}

func TestRetries(t *testing.T) {
	for _, tc := range []struct {
		name  string
		gate  func(*http.Request) (*http.Response, error)
		tries int
		waits time.Duration
		kind  fault.Kind
	}{
		{"gone", gone, 4, 700 * time.Millisecond, fault.Unavailable},
		{"busy", answering(503, nil), 4, 700 * time.Millisecond, fault.Unavailable},
		{"over the rate", answering(429, map[string]string{"Retry-After": "2"}), 4, 6 * time.Second, fault.Exhausted},
		{"a long Retry-After", answering(429, map[string]string{"Retry-After": "11"}), 4, 700 * time.Millisecond, fault.Exhausted},
		{"an odd Retry-After", answering(503, map[string]string{"Retry-After": "soon"}), 4, 700 * time.Millisecond, fault.Unavailable},
		{"unauthorized", answering(401, nil), 1, 0, fault.Unauthenticated},
		{"internal", answering(500, nil), 1, 0, fault.Internal},
		{"redirected", answering(302, map[string]string{"Location": "http://elsewhere/"}), 1, 0, fault.Internal},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, three)
				c := w.open(manual)
				w.decide(c, `{}`)
				w.close(tc.gate)
				began := time.Now()
				w.kind(tc.kind, c.Flush(context.Background()))
				if got := w.requests(); len(got) != tc.tries || time.Since(began) != tc.waits {
					t.Errorf("%d tries in %v, want %d in %v", len(got), time.Since(began), tc.tries, tc.waits)
				}
				if s := c.Stats(); s.Queued != 1 || s.Refused != 0 {
					t.Errorf("stats %+v", s)
				}
				w.close(nil)
				if err := c.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestChunks(t *testing.T) {
	w := newWorld(t, three)
	c := w.open(manual)
	for range 2*maxChunk + 1 {
		w.decide(c, `{}`)
	}
	large := []byte(`{"text":"` + strings.Repeat("x", 900_000) + `"}`)
	for range 10 {
		if err := c.Reward(Reward{DecisionID: w.decide(c, `{}`).ID, Value: 1, Detail: large}); err != nil {
			t.Fatal(err)
		}
	}
	w.close(nil)
	if err := c.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	got := w.requests()
	if len(got) != 3+3 {
		t.Errorf("requests %v", got)
	}
	for _, line := range got {
		size := 0
		if _, err := fmt.Sscanf(line[strings.LastIndex(line, " "):], "%d", &size); err != nil || size >= 4<<20 {
			t.Errorf("request %s, %v", line, err)
		}
	}
	if s := w.stats(); s.Decisions != 2*maxChunk+11 || s.Rewards != 10 {
		t.Errorf("the server has %+v", s)
	}
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestAFullQueueFails(t *testing.T) {
	w := newWorld(t, `{"actions":[{"id":"a"}]}`)
	c := w.open(manual)
	w.close(gone)
	first := w.decide(c, `{}`)
	for range MaxQueued - 1 {
		if err := c.queue.reserve(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.Decide(Request{})
	w.kind(fault.Unavailable, err)
	w.kind(fault.Unavailable, c.Reward(Reward{DecisionID: first.ID, Value: 1}))
	c.queue.release(MaxQueued - 1)
	_, err = c.Decide(Request{Excluded: []string{"none"}})
	w.kind(fault.Invalid, err)
	if got := c.Stats().Queued; got != 1 {
		t.Errorf("%d queued: a decide that failed keeps its place", got)
	}
	w.close(nil)
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestRefusedForGood(t *testing.T) {
	w := newWorld(t, three)
	c := w.open(manual)
	d := w.decide(c, `{}`)
	if err := c.Reward(Reward{DecisionID: d.ID, Value: 1}); err != nil {
		t.Fatal(err)
	}
	if err := c.Reward(Reward{DecisionID: "loc_unknown", Value: 1}); err != nil {
		t.Fatal(err)
	}
	// An event that spoils a whole body takes no other with it.
	for i := range 5 {
		c.queue.addReward(event{id: "x", text: []byte([]string{`{}`, `{"decisionId":"` + d.ID + `","reward":0}`}[min(i, 1)])})
		if err := c.queue.reserve(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s := c.Stats(); s != (Stats{Sent: 6, Refused: 2}) {
		t.Errorf("stats %+v", s)
	}
	if s := w.stats(); s.Rewards != 1 {
		t.Errorf("the server has %+v", s)
	}
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestRetryableRefusalsWaitWithTheirRewards(t *testing.T) {
	w := newWorld(t, three)
	c := w.open(manual)
	d, e := w.decide(c, `{}`), w.decide(c, `{}`)
	for _, id := range []string{d.ID, e.ID} {
		if err := c.Reward(Reward{DecisionID: id, Value: 1}); err != nil {
			t.Fatal(err)
		}
	}
	w.close(func(r *http.Request) (*http.Response, error) {
		if !strings.HasSuffix(r.URL.Path, "decisions:batch") {
			return nil, nil
		}
		out := httptest.NewRecorder()
		fmt.Fprintf(out, `{"accepted":0,"duplicates":0,"unverified":0,"rejected":[{"index":0,"decisionId":%q,"error":"full","retryable":true},
			{"index":1,"decisionId":%q,"error":"full","retryable":true}]}`, d.ID, e.ID)
		return out.Result(), nil
	})
	if err := c.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := w.requests(); len(got) != 1 || c.Stats().Queued != 4 {
		t.Errorf("requests %v, stats %+v", got, c.Stats())
	}
	w.close(nil)
	if err := c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s := w.stats(); s.Decisions != 2 || s.Rewards != 2 {
		t.Errorf("the server has %+v", s)
	}
}

func TestSumRewardsCountOnceEach(t *testing.T) {
	w := newWorld(t, `{"actions":[{"id":"a"}],"rewards":"sum"}`)
	c := w.open(manual)
	d := w.decide(c, `{}`)
	for range 3 {
		if err := c.Reward(Reward{DecisionID: d.ID, Value: 0.5}); err != nil {
			t.Fatal(err)
		}
	}
	// The answer to the first try is lost: everything is sent again.
	w.close(func(r *http.Request) (*http.Response, error) {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		again := r.Clone(context.Background())
		again.Body = body
		w.mux.ServeHTTP(httptest.NewRecorder(), again)
		w.mu.Lock()
		w.gate = nil
		if strings.HasSuffix(r.URL.Path, "decisions:batch") {
			w.gate = func(r *http.Request) (*http.Response, error) { return nil, nil }
		}
		w.mu.Unlock()
		return nil, io.ErrUnexpectedEOF
	})
	if err := c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s := w.stats(); s.Decisions != 1 || s.Rewards != 3 {
		t.Errorf("the server has %+v", s)
	}
}

func TestFixedSeed(t *testing.T) {
	w := newWorld(t, `{"actions":[{"id":"a"},{"id":"b"}],"seed":2026}`)
	c := w.open(manual)
	for k := range uint64(2) {
		if d := w.decide(c, `{}`); d.Seed != decision.DecisionSeed(2026, k) {
			t.Errorf("draw %d has seed %d", k, d.Seed)
		}
	}
	w.spec(`{"baselineEpsilon":0.2}`)
	if err := c.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	if d := w.decide(c, `{}`); d.Seed != decision.DecisionSeed(2026, 2) {
		t.Errorf("a new model starts the seeds again")
	}
	w.spec(`{"seed":7}`)
	if err := c.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	if d := w.decide(c, `{}`); d.Seed != decision.DecisionSeed(7, 0) {
		t.Errorf("a new seed does not start at 0")
	}
	if err := c.Close(context.Background()); err != nil || w.stats().Decisions != 4 {
		t.Errorf("the server has %+v, %v", w.stats(), err)
	}
}

func TestGraphsAreTheServers(t *testing.T) {
	w := newWorld(t, `{}`)
	c := w.open(manual)
	graph := []byte(`{"graph":[{"id":"route","op":"strategy","options":["fast","safe"]}]}`)
	if _, err := w.service.Install(context.Background(), hero, graph); err != nil {
		t.Fatal(err)
	}
	_, err := Open(context.Background(), Options{Server: "http://server", Capsule: hero, HTTP: &http.Client{Transport: w}})
	w.kind(fault.Invalid, err)
	if _, err := c.Decide(Request{Actions: []decision.Action{{ID: "a"}, {ID: "b"}}}); err != nil {
		t.Fatal(err) // it does not know yet
	}
	if err := c.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s := c.Stats(); s.Refused != 1 || s.Queued != 0 {
		t.Errorf("stats %+v", s)
	}
	_, err = c.Decide(Request{Actions: []decision.Action{{ID: "a"}}})
	w.kind(fault.Invalid, err)
	if err := w.service.RemoveProgram(context.Background(), hero); err != nil {
		t.Fatal(err)
	}
	if err := c.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Decide(Request{Actions: []decision.Action{{ID: "a"}}}); err != nil {
		t.Errorf("without the graph: %v", err)
	}
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestOpenAndInputRefusals(t *testing.T) {
	w := newWorld(t, three)
	for name, tc := range map[string]struct {
		edit func(*Options)
		kind fault.Kind
	}{
		"no URL":       {func(o *Options) { o.Server = "server:8787" }, fault.Invalid},
		"bad name":     {func(o *Options) { o.Capsule.Job = "../x" }, fault.Invalid},
		"no capsule":   {func(o *Options) { o.Capsule.Capsule = "none" }, fault.NotFound},
		"other server": {func(o *Options) { o.Server, o.HTTP = "http://127.0.0.1:1", nil }, fault.Unavailable},
	} {
		o := Options{Server: "http://server", Capsule: hero, HTTP: &http.Client{Transport: w}}
		tc.edit(&o)
		_, err := Open(context.Background(), o)
		if err == nil || fault.KindOf(err) != tc.kind {
			t.Errorf("%s: %v, want one of kind %q", name, err, tc.kind)
		}
	}
	c := w.open(manual)
	for name, req := range map[string]Request{
		"no JSON":        {Context: []byte(`{`)},
		"no object":      {Context: []byte(`[]`)},
		"twice":          {Context: []byte(`{"a":1,"a":2}`)},
		"features":       {Actions: []decision.Action{{ID: "a", Features: []byte(`7`)}}},
		"unknown action": {Excluded: []string{"z"}},
		"nothing left":   {Excluded: []string{"a", "b", "c"}},
		"too long":       {Context: []byte(`{"x":"` + strings.Repeat("y", maxEvent) + `"}`)},
		"baseline":       {Baseline: "z"},
	} {
		if _, err := c.Decide(req); err == nil || fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, r := range map[string]Reward{
		"no id":      {Value: 1},
		"NUL":        {DecisionID: "d", Key: "a\x00"},
		"long key":   {DecisionID: "d", Key: strings.Repeat("k", 257)},
		"bad detail": {DecisionID: "d", Detail: []byte(`{`)},
	} {
		w.kind(fault.Invalid, c.Reward(r))
		_ = name
	}
	if s := c.Stats(); s.Queued != 0 {
		t.Errorf("refused events are queued: %+v", s)
	}
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// Everything that a request may carry is reported so that it replays.
func TestWholeInputsReplay(t *testing.T) {
	w := newWorld(t, `{"mode":"baselineExplore"}`)
	c := w.open(manual)
	_, err := c.Decide(Request{Context: []byte(` {"a": [1.50, "x", {"b":true}], "é": 1e-7} `), Baseline: "q\"1",
		Excluded: []string{"z"}, Actions: []decision.Action{{ID: "z"}, {ID: "q\"1", Features: []byte(" {\"v\": 0.1} ")}, {ID: "ü"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s := c.Stats(); s.Sent != 1 || s.Refused != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestDecidesWhileTheModelChanges(t *testing.T) {
	w := newWorld(t, three)
	c := w.open(manual)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 100 {
				d, err := c.Decide(Request{Context: fmt.Appendf(nil, `{"g":%d,"i":%d}`, g, i)})
				if err == nil {
					err = c.Reward(Reward{DecisionID: d.ID, Value: 0.5})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for i := range 20 {
			w.spec(fmt.Sprintf(`{"exploration":{"floor":0.%02d}}`, i+10))
			if err := c.Flush(context.Background()); err != nil {
				t.Error(err)
			}
			if err := c.Sync(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	if err := c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s := w.stats(); s.Decisions != 400 || s.Rewards != 400 || c.Stats().Refused != 0 {
		t.Errorf("the server has %+v, the client %+v", s, c.Stats())
	}
}

func BenchmarkDecide(b *testing.B) {
	w := newWorld(b, three)
	c := w.open(manual)
	text := []byte(`{"plan":"pro","basket":63.5}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Decide(Request{Context: text}); err != nil {
			b.Fatal(err)
		}
		c.queue.take()
		c.queue.release(1)
	}
}
