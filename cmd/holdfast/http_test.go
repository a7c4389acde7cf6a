package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
)

func TestTwinsBehaveTheSame(t *testing.T) {
	r := newRig(t)
	r.capsule()
	for _, c := range []struct{ as, method, path, body string }{
		{"reader", "POST", heroPath + "/decide", `{"eventId":"twin"}`},
		{"reader", "GET", heroPath + "/decisions?limit=1&order=newest", ""},
		{"reader", "GET", heroPath + "/spec", ""},
		{"reader", "POST", heroPath + "/decide", `{"surprise":1}`},
		{"reader", "PUT", heroPath + "/spec", `{}`},
		{"operator", "GET", "/v1/tenants", ""},
		{"operator", "GET", "/v1/auth/whoami", ""},
		{"operator", "POST", heroPath + "/personalizer/v1.0/rank", `{"actions":[]}`},
		{"operator", "GET", "/v1/tenants/north/jobs/web/capsules/none", ""},
	} {
		r.ask(c.as, c.method, c.path, c.body) // so that both that follow are repeats
		canonical, bare := r.ask(c.as, c.method, c.path, c.body), r.ask(c.as, c.method, strings.TrimPrefix(c.path, "/v1"), c.body)
		if canonical.Code != bare.Code || canonical.Body.String() != bare.Body.String() {
			t.Errorf("%s %s: %d %s, without /v1 %d %s", c.method, c.path, canonical.Code, canonical.Body, bare.Code, bare.Body)
		}
		if got := bare.Header().Get("Deprecation"); got != "true" {
			t.Errorf("%s without /v1: Deprecation %q", c.path, got)
		}
		if got, want := bare.Header().Get("Link"), "<"+c.path+`>; rel="successor-version"`; got != want {
			t.Errorf("%s without /v1: Link %s, want %s", c.path, got, want)
		}
		if canonical.Header().Get("Deprecation") != "" || canonical.Header().Get("Link") != "" {
			t.Errorf("%s is called deprecated", c.path)
		}
	}
	w := r.ask("", "GET", strings.TrimPrefix(heroPath, "/v1"), "")
	if w.Code != http.StatusUnauthorized || w.Header().Get("Deprecation") != "" {
		t.Errorf("status %d, Deprecation %q: nothing is said of routes before 401", w.Code, w.Header().Get("Deprecation"))
	}
	if w := r.ask("reader", "POST", "/personalizer/v1.0/rank", `{"actions":[{"id":"a"}]}`); w.Header().Get("Deprecation") != "" {
		t.Error("the Personalizer path is called deprecated")
	}
}

func TestInfraRoutes(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		path, says string
		status     int
	}{{"/health", `"ok":true`, 200}, {"/ready", `"ok":true`, 200}, {"/metrics", "", 401}} {
		w := r.ask("", "GET", c.path, "")
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) || w.Header().Get("Deprecation") != "" {
			t.Errorf("%s: status %d: %s", c.path, w.Code, w.Body)
		}
	}
	if w := r.ask("tenant", "GET", "/metrics", ""); w.Code != http.StatusForbidden {
		t.Errorf("/metrics as a tenant: status %d", w.Code)
	}
	w := r.ask("operator", "GET", "/metrics", "")
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("/metrics: status %d, type %s", w.Code, w.Header().Get("Content-Type"))
	}
	if w := r.ask("", "GET", "/v1/health", ""); w.Code == http.StatusOK {
		t.Error("/v1/health is answered")
	}
	if err := os.RemoveAll(r.config.Data); err != nil {
		t.Fatal(err)
	}
	w = r.ask("", "GET", "/ready", "")
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), `"reason"`) || w.Header().Get("Retry-After") == "" {
		t.Errorf("/ready without a store: status %d, Retry-After %q: %s", w.Code, w.Header().Get("Retry-After"), w.Body)
	}
	if w := r.ask("", "GET", "/health", ""); w.Code != http.StatusOK {
		t.Errorf("/health without a store: status %d", w.Code)
	}
}

func TestCredentials(t *testing.T) {
	r := newRig(t)
	for i, c := range []struct {
		header [][2]string
		status int
	}{
		{[][2]string{{"Authorization", "Bearer operator-key"}}, 200},
		{[][2]string{{"Ocp-Apim-Subscription-Key", "operator-key"}}, 200},
		{[][2]string{{"Ocp-Apim-Subscription-Key", r.keys["reader"]}}, 200},
		{nil, 401},
		{[][2]string{{"Authorization", "Bearer wrong"}}, 401},
		{[][2]string{{"Authorization", "bearer operator-key"}}, 401},
		{[][2]string{{"Authorization", "Bearer "}}, 401},
		{[][2]string{{"Authorization", ""}, {"Ocp-Apim-Subscription-Key", "operator-key"}}, 401},
		{[][2]string{{"Authorization", "Basic operator-key"}, {"Ocp-Apim-Subscription-Key", "operator-key"}}, 401},
	} {
		q := httptest.NewRequest("GET", "/v1/auth/whoami", nil)
		for _, h := range c.header {
			q.Header.Set(h[0], h[1])
		}
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, q)
		if w.Code != c.status {
			t.Errorf("%d: %v: status %d, want %d", i, c.header, w.Code, c.status)
		}
		if c.status == 401 && w.Body.String() != `{"error":"unauthorized"}` {
			t.Errorf("%d: %s", i, w.Body)
		}
	}
}

// TestOrderOfChecks sends requests that are wrong in several ways: the first check in line answers.
func TestOrderOfChecks(t *testing.T) {
	r := newRig(t)
	r.capsule()
	big := strings.Repeat(" ", 4194305)
	const none = "/v1/tenants/north/jobs/web/capsules/none"
	for _, c := range []struct {
		as, method, path, body string
		status                 int
	}{
		{"", "POST", "/v1/nothing", big, 413},             // size before the credential
		{"", "POST", "/v1/nothing", "x", 401},             // credential before the route
		{"reader", "POST", "/v1/nothing", "x", 404},       // route before the body
		{"south", "POST", heroPath + "/decide", "x", 403}, // scope before the body
		{"reader", "PUT", heroPath + "/spec", "x", 403},
		{"south", "POST", none + "/decide", "{}", 403},   // scope before the look-up
		{"operator", "POST", none + "/decide", "x", 400}, // body before the look-up
		{"operator", "POST", none + "/decide", "{}", 404},
	} {
		if w := r.ask(c.as, c.method, c.path, c.body); w.Code != c.status {
			t.Errorf("%s %s %.10q as %q: status %d, want %d", c.method, c.path, c.body, c.as, w.Code, c.status)
		}
	}
	r.config.RateLimit, r.config.RateBurst = 1e-6, 1
	r.restart()
	r.ask("operator", "GET", "/v1/tenants", "")
	for as, status := range map[string]int{"operator": 429, "": 401} {
		if w := r.ask(as, "GET", "/v1/nothing", ""); w.Code != status {
			t.Errorf("over the rate as %q: status %d, want %d", as, w.Code, status)
		}
	}
}

func TestContentTypeIsNotLookedAt(t *testing.T) {
	r := newRig(t)
	r.capsule()
	for _, kind := range []string{"", "text/plain", "application/xml", "nonsense"} {
		q := httptest.NewRequest("POST", heroPath+"/decide", strings.NewReader(`{}`))
		q.Header.Set("Authorization", "Bearer operator-key")
		if kind != "" {
			q.Header.Set("Content-Type", kind)
		}
		w := httptest.NewRecorder()
		if r.handler.ServeHTTP(w, q); w.Code != http.StatusOK {
			t.Errorf("type %q: status %d", kind, w.Code)
		}
	}
}

func TestRateLimit(t *testing.T) {
	r := newRig(t)
	r.capsule()
	r.config.RateLimit, r.config.RateBurst = 0.001, 3
	r.restart()
	for _, as := range []string{"reader", "tenant"} { // each has a bucket of its own
		for i := range 5 {
			w := r.ask(as, "POST", heroPath+"/decide", `{}`)
			if i < 3 {
				if w.Code != http.StatusOK {
					t.Errorf("%s, request %d: status %d", as, i, w.Code)
				}
				continue
			}
			after := w.Header().Get("Retry-After")
			var seconds int
			_, err := fmt.Sscan(after, &seconds)
			if w.Code != http.StatusTooManyRequests || err != nil || seconds < 900 || seconds > 1000 {
				t.Errorf("%s, request %d: status %d, Retry-After %q", as, i, w.Code, after)
			}
			if want := fmt.Sprintf(`{"error":"rate limit exceeded","retryAfterSeconds":%d}`, seconds); w.Body.String() != want {
				t.Errorf("%s: %s, want %s", as, w.Body, want)
			}
			if w.Header().Get("Deprecation") != "" {
				t.Error("a refusal by rate speaks of routes")
			}
		}
	}
	w := r.ask("reader", "POST", "/personalizer/v1.0/rank", `{"actions":[{"id":"a"}]}`)
	checkShape(t, "/personalizer/", w)
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("rank over the rate: status %d", w.Code)
	}
	for range 10 {
		if w := r.ask("", "GET", "/health", ""); w.Code != http.StatusOK {
			t.Errorf("/health is limited: status %d", w.Code)
		}
	}
}

// counts reads the counters of answers from the metrics, by "label status".
func (r *rig) counts() map[string]int {
	r.Helper()
	families, err := r.house.registry.Gather()
	if err != nil {
		r.Fatal(err)
	}
	all := map[string]int{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			switch {
			case f.GetName() == "syntra_requests_total":
				labels := map[string]string{}
				for _, l := range m.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				all[labels["route"]+" "+labels["status"]] = int(m.GetCounter().GetValue())
			case m.GetHistogram() != nil:
				all[f.GetName()] = int(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return all
}

func TestCountsEqualAnswers(t *testing.T) {
	r := newRig(t)
	r.capsule()
	r.must(http.StatusCreated, "PUT", legacyHero+"/spec", `{"actions":[{"id":"a"}]}`)
	r.config.RateBurst = 20
	r.config.RateLimit = 1e-6
	r.restart()
	labels := map[string]string{
		"POST " + heroPath + "/decide": "capsule.decide", "POST " + legacyHero + "/decide": "capsule.decide",
		"POST " + strings.TrimPrefix(heroPath, "/v1") + "/decide": "capsule.decide", "POST " + heroPath + "/feedback": "capsule.reward",
		"PUT " + heroPath + "/spec": "capsule.spec.put", "POST /personalizer/v1.0/rank": "personalizer.rank", "GET /v1/nothing": "not_found",
		"GET " + heroPath + "/decide": "not_found",
	}
	want, decided := map[string]int{}, 0
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, as := range []string{"reader", "tenant", "admin", "old", "nobody"} {
		all.Go(func() {
			for range 8 {
				for key, label := range labels {
					method, path, _ := strings.Cut(key, " ")
					q := httptest.NewRequest(method, path, strings.NewReader(`{"actions":[{"id":"a"}]}`))
					q.Header.Set("Authorization", "Bearer "+r.keys[as])
					w := httptest.NewRecorder()
					r.handler.ServeHTTP(w, q)
					switch w.Code {
					case 401:
						label = "unauthorized"
					case 429:
						label = "rate_limited"
					}
					mu.Lock()
					want[fmt.Sprintf("%s %d", label, w.Code)]++
					if label == "capsule.decide" && w.Code == 200 {
						decided++
					}
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	got := r.counts()
	for key, n := range want {
		if got[key] != n {
			t.Errorf("%s: counted %d, sent %d", key, got[key], n)
		}
	}
	for key, n := range got {
		if strings.Contains(key, " ") && want[key] != n {
			t.Errorf("%s: counted %d, sent %d", key, n, want[key])
		}
	}
	for _, name := range []string{"syntra_decide_latency_seconds", "syntra_decide_seconds"} {
		if got[name] != decided || decided == 0 {
			t.Errorf("%s counted %d, %d decides succeeded", name, got[name], decided)
		}
	}
	for _, part := range []string{"capsule.decide 200", "capsule.spec.put 403", "unauthorized 401", "rate_limited 429", "not_found 404"} {
		if want[part] == 0 {
			t.Errorf("nothing was answered %s: the test has lost its point", part)
		}
	}
}

func TestEveryMetricIsThere(t *testing.T) {
	r := newRig(t)
	r.capsule()
	r.must(http.StatusOK, "POST", heroPath+"/decide?learn=true", `{"eventId":"e"}`)
	r.must(http.StatusOK, "POST", heroPath+"/reward", `{"decisionId":"e","reward":1}`)
	text := r.ask("operator", "GET", "/metrics", "").Body.String()
	for _, line := range []string{
		`syntra_requests_total{route="capsule.decide",status="200"} 1`, "syntra_decide_latency_seconds_count 1", "syntra_decide_seconds_count 1",
		`syntra_decide_seconds_bucket{le="5e-06"}`, `syntra_decide_seconds_bucket{le="0.1"}`, `syntra_decide_seconds_bucket{le="+Inf"} 1`,
		"syntra_decisions_committed_total 1", "syntra_rewards_committed_total 1", "syntra_decision_batches_total 1",
		"syntra_decision_log_backlog 0", "syntra_decisions_rejected_backlog_total 0", "syntra_events_lost_total 0",
		"syntra_rewards_refused_after_apply_total 0", "syntra_uploaded_decisions_accepted_total 0", "syntra_uploaded_decisions_rejected_total 0",
		"syntra_default_rewards_total 0", `syntra_model_version{capsule="hero",job="web",tenant="north"} 1`, "syntra_uptime_seconds ",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
}
