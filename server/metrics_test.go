package server

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"holdfast/admission"
	"holdfast/ident"
)

// family gathers one metric family.
func (r *rig) family(name string) []*dto.Metric {
	r.t.Helper()
	all, err := r.registry.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == name {
			return f.GetMetric()
		}
	}
	return nil
}

// counts returns syntra_requests_total by "route status".
func (r *rig) counts() map[string]int {
	counts := map[string]int{}
	for _, m := range r.family("syntra_requests_total") {
		var route, status string
		for _, label := range m.GetLabel() {
			switch label.GetName() {
			case "route":
				route = label.GetValue()
			case "status":
				status = label.GetValue()
			}
		}
		counts[route+" "+status] = int(m.GetCounter().GetValue())
	}
	return counts
}

func (r *rig) count(route, status string) int { return r.counts()[route+" "+status] }

// What /metrics says must equal what the clients saw, while everything is going on at once.
func TestMetricsEqualWhatClientsSaw(t *testing.T) {
	gate, err := admission.New(admission.Options{Rate: &admission.Rate{PerSecond: 200, Burst: 300}})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, Options{}, func(t *Table) { t.Gate = gate })
	reader := r.token(ident.Scope{Role: ident.Reader, Tenant: "north", Job: "web", Capsule: "hero"}, 0)
	c := "/v1/tenants/north/jobs/web/capsules/hero"
	kinds := []struct{ method, path, key, label string }{
		{"POST", c + "/decide", reader.Secret, "capsule.decide"},
		{"POST", strings.TrimPrefix(c, "/v1") + "/decide", operatorKey, "capsule.decide"},
		{"GET", c + "/spec", reader.Secret, "capsule.spec"},
		{"PUT", c + "/spec", reader.Secret, "capsule.spec.put"},
		{"GET", "/v1/nowhere", reader.Secret, "not_found"},
		{"GET", c + "/spec", "wrong", "unauthorized"},
		{"GET", "/health", "", "health"},
		{"POST", c + "/decisions:batch", operatorKey, "payload_too_large"},
	}
	const workers, rounds = 8, 60
	seen := make([]map[string]int, workers)
	var all sync.WaitGroup
	for i := range workers {
		seen[i] = map[string]int{}
		all.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for n := range rounds * len(kinds) {
				k := kinds[(n+i)%len(kinds)]
				body := "{}"
				if k.label == "payload_too_large" {
					body = strings.Repeat("x", 1025)
				}
				req, err := http.NewRequest(k.method, r.url+k.path, strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Authorization", "Bearer "+k.key)
				res, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				label := k.label
				if res.StatusCode == http.StatusTooManyRequests {
					label = "rate_limited"
				}
				seen[i][label+" "+strconv.Itoa(res.StatusCode)]++
			}
		})
	}
	all.Wait()
	want := map[string]int{}
	for _, s := range seen {
		for k, n := range s {
			want[k] += n
		}
	}
	got := r.counts()
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%s: counted %d, clients saw %d", k, got[k], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("counted %v, seen %v", got, want)
	}
	for _, must := range []string{"unauthorized 401", "rate_limited 429", "not_found 404", "capsule.spec.put 403", "payload_too_large 413", "capsule.decide 200"} {
		if want[must] == 0 {
			t.Errorf("the load had no %s: %v", must, want)
		}
	}
	for _, name := range []string{"syntra_decide_latency_seconds", "syntra_decide_seconds"} {
		h := r.family(name)[0].GetHistogram()
		if int(h.GetSampleCount()) != want["capsule.decide 200"] || len(h.GetBucket()) != 14 {
			t.Errorf("%s: %d observations in %d buckets, clients saw %d answers", name, h.GetSampleCount(), len(h.GetBucket()), want["capsule.decide 200"])
		}
	}
	routed, missing := gate.Counts(admission.Critical), gate.Counts(admission.Normal)
	if refused := int(routed.Refused + missing.Refused); refused != want["rate_limited 429"] {
		t.Errorf("the gate refused %d, clients saw %d refusals", refused, want["rate_limited 429"])
	}
}

func TestExpositionIsPlainText(t *testing.T) {
	r := start(t, Options{}, nil)
	r.do("GET", "/health", "", "")
	table := Table{Refuse: testTable(nil).Refuse, Routes: []Route{{Method: "GET", Path: "/metrics", Label: "metrics", Access: Public, Handler: func(w http.ResponseWriter, req *http.Request, _ *ident.Call) {
		Exposition(r.registry).ServeHTTP(w, req)
	}}}}
	other := start(t, Options{}, func(t *Table) { *t = table })
	res, text := other.do("GET", "/metrics", "", "")
	if got := res.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/plain; version=0.0.4") {
		t.Errorf("Content-Type %q", got)
	}
	if !strings.Contains(text, `syntra_requests_total{route="health",status="200"} 1`) || !strings.Contains(text, "syntra_uptime_seconds ") {
		t.Errorf("got:\n%s", text)
	}
}
