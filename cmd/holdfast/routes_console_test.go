package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/console"
	"holdfast/decision"
	"holdfast/ident"
	"holdfast/server"
	"holdfast/wire/decisionapi"
	"holdfast/wire/reply"
)

func TestConsoleLivesBesideTheAPI(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	service, err := decision.Open(context.Background(), decision.Options{Storage: decision.NewMemory()})
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close(context.Background())
	keys, err := ident.NewKeyring(context.Background(), ident.Options{OperatorKey: "key", Storage: &ident.Memory{}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Options{Keys: keys, Metrics: server.NewMetrics(prometheus.NewRegistry()), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	api := decisionapi.New(decisionapi.Options{Service: service, Tokens: keys, Log: log})
	refuse := reply.Decision(log)
	pages := console.New(console.Options{Service: service, Keys: keys, Stopping: s.Stopping(), Log: log})
	handler, err := s.Handler(server.Table{Refuse: server.Refusal(refuse), Twins: "/v1",
		Routes: append(decisionRoutes(api, refuse, reply.Personalizer(log)), consoleRoutes(pages)...)})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"/": 200, "/admin": 302, "/v1/admin": 302, "/console/static/console.css": 200, "/console/events": 401,
		"/console/capsule/a/b/c": 303, "/v1/tenants": 401,
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s answers %d, want %d", path, w.Code, want)
		}
		if w.Header().Get("Deprecation") != "" {
			t.Errorf("%s says that it is deprecated", path)
		}
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/console/sign-in", strings.NewReader("key=key"))
	handler.ServeHTTP(w, r)
	if w.Code != http.StatusSeeOther || w.Header().Get("Set-Cookie") == "" {
		t.Errorf("signing in answers %d", w.Code)
	}
}
