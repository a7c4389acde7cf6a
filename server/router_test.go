package server

import (
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func testRouter(t testing.TB) *router {
	t.Helper()
	table := testTable(slog.Default())
	rt, err := newRouter(&table, NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func TestALiteralThatLeadsNowhereGivesWayToAParameter(t *testing.T) {
	table := testTable(slog.Default())
	add := func(path, label string) {
		table.Routes = append(table.Routes, Route{Method: "GET", Path: path, Label: label, Handler: echo})
	}
	add("/a/b/c", "literal")
	add("/a/{x}/d", "parameter")
	add("/a/{x...}", "rest")
	rt, err := newRouter(&table, NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/a/b/c": "literal [ ]", "/a/b/d": "parameter [b]", "/a/b/e": "rest [b/e]", "/a/": "rest []", "/a": "not_found []",
	} {
		var room [maxDepth]string
		m, params := rt.find("GET", &url.URL{Path: path}, &room, nil)
		if got := m.entry.route.Label + " [" + strings.Join(params, " ") + "]"; got != strings.Replace(want, "[ ]", "[]", 1) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestFindingAllocatesNothing(t *testing.T) {
	rt := testRouter(t)
	u := &url.URL{Path: benchPath}
	var room [maxDepth]string
	var params [maxParams]string
	if n := testing.AllocsPerRun(1000, func() { rt.find("POST", u, &room, params[:0]) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// Whatever a path holds, its segments are those of the raw text, each decoded by itself, and parameters are never empty.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"/", "/health", benchPath, "/v1/tenants/a%2Fb/jobs/%20/capsules/c/decisions/x:y", "/assets/a/%2e%2e/b", "/%zz", "//"} {
		f.Add(path)
	}
	rt := testRouter(f)
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.ParseRequestURI(text)
		if err != nil || !strings.HasPrefix(text, "/") || u.Host != "" {
			return
		}
		var room [maxDepth]string
		segments, ok := split(u, &room)
		path, _, _ := strings.Cut(text, "?") // what the client wrote, however url spells it
		raw := strings.Split(strings.TrimPrefix(path, "/"), "/")
		if ok && len(raw) != len(segments) {
			t.Fatalf("%q has %d segments, %q was found", text, len(raw), segments)
		}
		for i := range segments {
			if want, err := url.PathUnescape(raw[i]); err == nil && segments[i] != want {
				t.Fatalf("segment %d of %q is %q, want %q", i, text, segments[i], want)
			}
		}
		m, params := rt.find("GET", u, &room, nil)
		if m.entry == nil || m.entry != rt.missing && len(params) != len(m.entry.names) {
			t.Fatalf("%q: %+v with %q", text, m.entry, params)
		}
		for i, p := range params {
			if p == "" && m.entry != rt.missing && m.entry.names[i] != "file" {
				t.Fatalf("%q: parameter %d is empty", text, i)
			}
		}
	})
}
