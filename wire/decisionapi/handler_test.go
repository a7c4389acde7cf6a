package decisionapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"holdfast/decision"
	"holdfast/ident"
)

var hero = decision.CapsuleID{Tenant: "north", Job: "web", Capsule: "hero"}

// newAPI is an API over a real service in memory with one capsule of three actions.
func newAPI(t testing.TB) *API {
	t.Helper()
	storage := decision.NewMemory()
	err := storage.Write(t.Context(), decision.Write{Change: func(tx decision.Tx) error {
		spec, err := decision.MergePatch(decision.Defaults(), []byte(`{"actions":[{"id":"express"},{"id":"standard"},{"id":"pickup"}]}`))
		if err == nil {
			_, err = tx.CreateCapsule(decision.CapsuleRow{ID: hero, Spec: spec})
		}
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	service, err := decision.Open(t.Context(), decision.Options{Storage: storage, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := service.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return New(Options{Service: service, Log: log})
}

func call(body string) *ident.Call {
	return &ident.Call{Principal: ident.Principal{Kind: ident.Operator}, RequestID: "r",
		Params: []string{hero.Tenant, hero.Job, hero.Capsule}, Body: []byte(body)}
}

// sink is a ResponseWriter that keeps nothing, so that only the handler's own allocations count.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }

func TestDecideHandler(t *testing.T) {
	a := newAPI(t)
	c := call(smallBody)
	w := httptest.NewRecorder()
	a.Decide(w, httptest.NewRequest("POST", "/", nil), c)
	if w.Code != http.StatusOK || c.Handled <= 0 {
		t.Fatalf("status %d, handled %d: %s", w.Code, c.Handled, w.Body)
	}
	c = call(`{"context":1}`)
	w = httptest.NewRecorder()
	a.Decide(w, httptest.NewRequest("POST", "/", nil), c)
	if w.Code != http.StatusBadRequest || c.Handled != 0 {
		t.Errorf("a refused decide: status %d, handled %d", w.Code, c.Handled)
	}
}

// TestDecideHandlerAllocations holds the ceiling of a whole decide, from the body to the written answer.
func TestDecideHandlerAllocations(t *testing.T) {
	a := newAPI(t)
	r := httptest.NewRequest("POST", "/", nil)
	w := &sink{header: http.Header{}}
	c := call(smallBody)
	got := testing.AllocsPerRun(500, func() { a.Decide(w, r, c) })
	if w.status != http.StatusOK {
		t.Fatalf("status %d", w.status)
	}
	const most = 3 // the id of the decision, and now and then a new batch
	if got > most && !raced {
		t.Errorf("%v allocations, at most %v", got, most)
	}
}

func TestRewardDetailOutlivesTheBody(t *testing.T) {
	a := newAPI(t)
	w := httptest.NewRecorder()
	a.Decide(w, httptest.NewRequest("POST", "/", nil), call(`{"eventId":"e"}`))
	c := call(`{"decisionId":"e","reward":1,"detail":{"note":"kept"}}`)
	w = httptest.NewRecorder()
	a.Reward(w, httptest.NewRequest("POST", "/", nil), c)
	clear(c.Body) // the server reuses it
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	w = httptest.NewRecorder()
	c = call("")
	c.Params = append(c.Params, "e")
	a.Decision(w, httptest.NewRequest("GET", "/", nil), c)
	if !strings.Contains(w.Body.String(), `"note":"kept"`) {
		t.Errorf("the detail is lost: %s", w.Body)
	}
}

func BenchmarkDecideHandlerSmall(b *testing.B) { benchmarkHandler(b, smallBody) }

func BenchmarkDecideHandlerLarge(b *testing.B) {
	benchmarkHandler(b, strings.Replace(largeBody, `,"eventId":"cart-9917"`, "", 1))
}

func benchmarkHandler(b *testing.B, body string) {
	a := newAPI(b)
	r := httptest.NewRequest("POST", "/", nil)
	w := &sink{header: http.Header{}}
	c := call(body)
	b.ReportAllocs()
	for b.Loop() {
		a.Decide(w, r, c)
	}
	if w.status != http.StatusOK {
		b.Logf("last status %d", w.status) // the queue can fill when nothing takes from it as fast
	}
}
