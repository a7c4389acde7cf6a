package main

import (
	"strings"
	"testing"
)

// shopRule is an algorithm that everything satisfies.
const shopRule = `{"type":"advanced","data":{"globals":{},"default_selection":{"single":{"gateway_name":"b","gateway_id":null}},
 "rules":[{"name":"all","routing_type":"priority","output":{"priority":[{"gateway_name":"a","gateway_id":null}]},"statements":[{"condition":[]}]}],"metadata":{}}}`

func TestRulesOverHTTP(t *testing.T) {
	s := newShop(t, nil)
	s.merchant("shop")
	secret := []string{"x-admin-secret", shopSecret}
	row := s.must(200, "algorithm_for created_at modified_at name rule_id",
		s.ask("POST", "/routing/create", `{"name":"n","created_by":"shop","algorithm":`+shopRule+`}`, secret...))
	body := `{"created_by":"shop","routing_algorithm_id":"` + row["rule_id"].(string) + `"}`
	if w := s.ask("POST", "/routing/activate", body, secret...); w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("activate: %d %q", w.Code, w.Body)
	}
	got := s.must(200, "eligible_connectors evaluated_output ignored_parameters latency output payment_id rule_name status",
		s.ask("POST", "/routing/evaluate", `{"payment_id":"p","created_by":"shop","parameters":{}}`, secret...))
	if got["status"] != "success" || got["rule_name"] != "all" {
		t.Errorf("evaluated %v", got)
	}
	for _, method := range []string{"GET", "POST"} {
		for _, path := range []string{"/routing/list/shop?limit=7&x", "/routing/list/active/shop"} {
			if w := s.ask(method, path, "", secret...); w.Code != 200 || !strings.HasPrefix(w.Body.String(), `[{"id":"routing_`) {
				t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
		}
	}
	reader := []string{"Authorization", "Bearer " + s.token(map[string]any{"perms": []string{"routing:read"}})}
	if w := s.ask("POST", "/routing/evaluate", `{"created_by":"shop","parameters":{}}`, reader...); w.Code != 200 {
		t.Errorf("evaluated by who may read: %d %s", w.Code, w.Body)
	}
	s.refused("deactivated by who may read", 403, "TE_04", s.ask("POST", "/routing/deactivate", body, reader...))
}

// A rule body of 2 MiB is read; one byte more is refused and nothing is stored.
func TestRuleBodiesHaveABound(t *testing.T) {
	s := newShop(t, nil)
	secret := []string{"x-admin-secret", shopSecret}
	head, tail := `{"name":"n","created_by":"big","algorithm":`+shopRule+`,"more":"`, `"}`
	fill := func(size int) string { return head + strings.Repeat("x", size-len(head)-len(tail)) + tail }
	if w := s.ask("POST", "/routing/create", fill(largeGatewayBody+1), secret...); w.Code != 413 || !strings.HasPrefix(w.Body.String(), `{"code":"TE_0`) {
		t.Errorf("one byte too many: %d %s", w.Code, w.Body)
	}
	if w := s.ask("POST", "/routing/list/big", "", secret...); w.Body.String() != "[]" {
		t.Errorf("stored all the same: %s", w.Body)
	}
	if w := s.ask("POST", "/routing/create", fill(largeGatewayBody), secret...); w.Code != 200 {
		t.Errorf("the bound itself: %d %s", w.Code, w.Body)
	}
	conditions := strings.Repeat(`{"lhs":"amount","comparison":"equal","value":{"type":"number","value":1},"metadata":{}},`, 10_000)
	many := strings.Replace(shopRule, `"condition":[]`, `"condition":[`+strings.TrimSuffix(conditions, ",")+`]`, 1)
	if w := s.ask("POST", "/routing/create", `{"name":"n","created_by":"big","algorithm":`+many+`}`, secret...); w.Code != 400 ||
		!strings.Contains(w.Body.String(), "more than 4096 conditions") {
		t.Errorf("10,000 conditions: %d %s", w.Code, w.Body)
	}
	deep := strings.Replace(shopRule, `"condition":[]`, strings.Repeat(`"condition":[],"nested":[{`, 40)+`"condition":[]`+strings.Repeat(`}]`, 40), 1)
	if w := s.ask("POST", "/routing/create", `{"name":"n","created_by":"big","algorithm":`+deep+`}`, secret...); w.Code != 400 ||
		!strings.Contains(w.Body.String(), "nested more than 32 deep") {
		t.Errorf("40 levels: %d %s", w.Code, w.Body)
	}
}
