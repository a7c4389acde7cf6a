package gatewayapi_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"holdfast/gateway"
	"holdfast/ident"
	"holdfast/store"
	"holdfast/store/gateways"
	"holdfast/wire/gatewayapi"
)

func TestHealthSaysWhatTheStoreDoes(t *testing.T) {
	db, err := store.Open(t.Context(), store.Options{Path: t.TempDir() + "/gateways.db", Migrations: gateways.Migrations()})
	if err != nil {
		t.Fatal(err)
	}
	service, err := gateway.Open(t.Context(), gateway.Options{Storage: gateways.New(db)})
	if err != nil {
		t.Fatal(err)
	}
	var why error
	fresh := func() *gatewayapi.API {
		return gatewayapi.New(gatewayapi.Options{Service: service, Log: slog.New(slog.DiscardHandler), Ready: func() error { return why }})
	}
	api := fresh()
	ask := func(h gatewayapi.Handler, tenant string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(http.MethodGet, "/health", nil), httptest.NewRecorder()
		if tenant != "none" {
			r.Header.Set("x-tenant-id", tenant)
		}
		h(w, r, &ident.Call{})
		return w
	}
	check := func(what string, w *httptest.ResponseRecorder, status int, body string) {
		t.Helper()
		if w.Code != status || w.Body.String() != body {
			t.Errorf("%s: %d %s, want %d %s", what, w.Code, w.Body, status, body)
		}
	}
	const working = `{"key_custodian_locked":false,"database":{"database_connection":"Working","database_read":"Working","database_write":"Working","database_delete":"Working"}}`
	check("health", ask(api.Health, "none"), 200, `{"message":"Health is good"}`)
	check("ready", ask(api.Ready, "none"), 200, `{"message":"Up"}`)
	why = errors.New("stopping")
	check("stopping", ask(api.Ready, "none"), 400, `{"message":"Down"}`)
	diagnose := api.Tenanted(api.Diagnostics)
	check("diagnostics", ask(diagnose, "public"), 200, working)
	for _, tenant := range []string{"none", "", "other"} {
		if w := ask(diagnose, tenant); w.Code != 400 || !strings.HasPrefix(w.Body.String(), `{"code":"TE_03","message":`) {
			t.Errorf("the tenant %q: %d %s", tenant, w.Code, w.Body)
		}
	}

	// Whoever asks again at once gets the same probe: strangers cannot make the store busy.
	syncs := db.Stats().Jobs
	for range 5 {
		ask(diagnose, "public")
	}
	if more := db.Stats().Jobs - syncs; more > 2 { // at most one probe more, should a second have passed
		t.Errorf("asking five times more made %d writes", more)
	}
	if err := errors.Join(service.Close(context.Background()), db.Close(context.Background())); err != nil {
		t.Fatal(err)
	}
	api = fresh()
	check("a closed store", ask(api.Diagnostics, "public"), 200, strings.ReplaceAll(working, "Working", "Failing"))
}
