package main

import (
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"holdfast/gateway"
)

const (
	decidedMembers = "debit_routing_output decided_gateway fallback_gateways filter_wise_gateways gateway_before_evaluation gateway_mga_id_map " +
		"gateway_priority_map is_dynamic_mga_enabled is_rust_based_decider is_scheduled_outage latency multi_objective_info " +
		"priority_logic_output priority_logic_tag reset_approach routing_approach routing_dimension routing_dimension_level"
	costDecide = `{"merchantId":"shop","eligibleGatewayList":["alphapay","mercato"],"rankingAlgorithm":"SR_BASED_ROUTING","enableMultiObjective":true,` +
		`"paymentInfo":{"paymentId":"ord-1","amount":42.5,"currency":"EUR","paymentType":"ORDER_PAYMENT","paymentMethodType":"CARD","paymentMethod":"CREDIT","cardSwitchProvider":"VISA"}}`
)

func TestCostsOverHTTP(t *testing.T) {
	s := newShop(t, nil)
	s.merchant("shop")
	s.merchant("other")
	auth := []string{"Authorization", "Bearer " + s.token(nil)}
	ask := func(method, path, body string) map[string]any {
		t.Helper()
		w := s.ask(method, path, body, auth...)
		if path == "/decide-gateway" {
			return s.must(200, decidedMembers, w)
		}
		return s.must(200, "merchant_id rows", w)
	}
	if got := ask("POST", "/decide-gateway", costDecide); got["multi_objective_info"] != nil || got["decided_gateway"] != "alphapay" {
		t.Errorf("without costs: %v", got)
	}
	stored := ask("PUT", "/merchant-account/shop/seed-costs", `{"rows":[{"psp":"alphapay","interchange_bps":150,"scheme_bps":20,"markup_bps":30},
		{"psp":"mercato","markup_bps":110,"card_network":"Visa"}]}`)
	if row := stored["rows"].([]any)[0].(map[string]any); row["effective_pct_bps"] != 200. {
		t.Errorf("%v", stored)
	}
	got := ask("POST", "/decide-gateway", costDecide)
	info, _ := got["multi_objective_info"].(map[string]any)
	if info == nil || got["decided_gateway"] != "mercato" || got["routing_approach"] != "SR_SELECTION_MULTI_OBJECTIVE" ||
		info["outcome"] != "COST_WON" || info["costSavedBps"] != 90. || info["qualifiedCount"] != 2. || info["margin"] != 1. {
		t.Errorf("with costs: %v", got)
	}
	if scores := got["gateway_priority_map"].(map[string]any); scores["alphapay"] != 1. || scores["mercato"] != 1. {
		t.Errorf("the scores are what is known, not what it costs: %v", scores)
	}
	amex := strings.Replace(costDecide, `"VISA"`, `"AMEX"`, 1)
	if got := ask("POST", "/decide-gateway", amex); got["decided_gateway"] != "alphapay" || got["multi_objective_info"].(map[string]any)["qualifiedCount"] != 1. {
		t.Errorf("a network without a row: %v", got)
	}
	const other = "/merchant-account/other/seed-costs"
	s.refused("another merchant's", 403, "TE_04", s.ask("GET", other, "", auth...))
	s.refused("another merchant's", 403, "TE_04", s.ask("PUT", other, `{"rows":[]}`, auth...))
	s.refused("another merchant's", 403, "TE_04", s.ask("DELETE", other, "", auth...))
	s.refused("another merchant's", 403, "TE_04", s.ask("POST", other+"/simulate", `{"amount":1}`, auth...))
	s.must(200, "merchant_id rows", s.ask("GET", other, "", "x-admin-secret", shopSecret))
	reader := "Bearer " + s.token(jwt.MapClaims{"perms": []string{"routing:read"}})
	if w := s.ask("POST", "/merchant-account/shop/seed-costs/simulate", `{"amount":42.5}`, "Authorization", reader); w.Code != 200 {
		t.Errorf("simulating by a session that reads: %d %s", w.Code, w.Body)
	}
	s.refused("an amount of nothing", 400, "TE_04", s.ask("POST", "/merchant-account/shop/seed-costs/simulate", `{"amount":0}`, auth...))
	s.must(200, "merchant_id message", s.ask("DELETE", "/merchant-account/shop/seed-costs", "", auth...))
	if got := ask("POST", "/decide-gateway", costDecide); got["multi_objective_info"] != nil {
		t.Errorf("costs removed: %v", got)
	}
}

// The tables of all merchants are the operator's: others read them.
func TestOperatorsTablesOverHTTP(t *testing.T) {
	s := newShop(t, nil)
	s.merchant("shop")
	auth := []string{"Authorization", "Bearer " + s.token(nil)}
	secret := []string{"x-admin-secret", shopSecret}
	for _, c := range []struct{ path, body, says string }{
		{"/gsm/options", `{"rules":[{"connector":"mercato","errorCode":"E7","decision":"requeue"}]}`, `"errorCode":"E7"`},
		{"/debit-routing/tables", `{"bins":[{"from":"453210","to":"453210","networks":["VISA","NYCE"],"card_type":"debit"}]}`, `"NYCE"]`},
	} {
		shipped := s.ask("GET", c.path, "", auth...)
		if shipped.Code != 200 || strings.Contains(shipped.Body.String(), c.says) {
			t.Errorf("%s: %d %s", c.path, shipped.Code, shipped.Body)
		}
		s.refused("a merchant's import", 403, "TE_04", s.ask("PUT", c.path, c.body, auth...))
		s.refused("a merchant's reset", 403, "TE_04", s.ask("DELETE", c.path, "", auth...))
		if w := s.ask("PUT", c.path, c.body, secret...); w.Code != 200 || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d %s", c.path, w.Code, w.Body)
		}
		if w := s.ask("GET", c.path, "", auth...); w.Code != 200 || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s after the import: %d %s", c.path, w.Code, w.Body)
		}
		if w := s.ask("DELETE", c.path, "", secret...); w.Code != 200 || w.Body.String() != shipped.Body.String() {
			t.Errorf("%s after the reset: %d %s", c.path, w.Code, w.Body)
		}
	}
	const failure = `{"merchantId":"shop","gateway":"mercato","status":"FAILURE","paymentId":"ord-2",` +
		`"errorInfo":{"connector":"mercato","flow":"Authorize","errorCode":"54","errorMessage":"expired"}}`
	w := s.ask("POST", "/update-gateway-score", failure, auth...)
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"gsm_info":{"decision":"do_default","stepUpPossible":false,`) ||
		!strings.Contains(w.Body.String(), `"unifiedMessage":"Problem with the payment method details"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// What a dashboard asks for when it starts is answered, and empty.
func TestLaterRoutesOverHTTP(t *testing.T) {
	s := newShop(t, nil)
	s.merchant("shop")
	auth := []string{"Authorization", "Bearer " + s.token(nil), "x-tenant-id", "public"}
	for _, path := range []string{"connectors", "connectors/mercato/reports", "cost-clusters", "connector-fees"} {
		if w := s.ask("GET", "/merchant-account/shop/"+path, "", auth...); w.Code != 200 || w.Body.String() != "[]" {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for _, c := range []struct{ method, path, says string }{
		{"GET", "/merchant-account/shop/cost-coverage", `"coverage_pct":0`},
		{"POST", "/merchant-account/shop/connectors/mercato/reports", `"rows_ingested":0`},
		{"POST", "/webhooks/settlement/mercato", `"accepted":false`},
		{"GET", "/analytics/experiment/e-1/results", `"verdict":"collecting_data"`},
		{"GET", "/analytics/experiment/e-1/transactions", `"transactions":[]`},
	} {
		if w := s.ask(c.method, c.path, "", auth...); w.Code != 200 || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d %s", c.path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/analytics/experiment/e-1/results", "/analytics/experiment/e-1/transactions"} {
		s.refused("no tenant", 400, "TE_03", s.ask("GET", path, "", auth[:2]...))
		s.refused("the secret alone", 401, "TE_03", s.ask("GET", path, "", "x-admin-secret", shopSecret, "x-tenant-id", "public"))
	}
	for path, to := range map[string]string{"/decision_gateway": "/decide-gateway", "/update-score": "/update-gateway-score"} {
		w := s.ask("POST", path, `{"anything":1}`)
		s.refused(path, 404, "TE_02", w)
		if !strings.Contains(w.Body.String(), to) {
			t.Errorf("%s points nowhere: %s", path, w.Body)
		}
	}
}

// debitDecide asks for a ranking of networks; metadata is a JSON document without its quotes escaped, or empty for none.
func debitDecide(ranking, metadata string) string {
	text := "null"
	if metadata != "" {
		text = `"` + strings.ReplaceAll(metadata, `"`, `\"`) + `"`
	}
	return `{"merchantId":"shop","eligibleGatewayList":["alphapay","mercato"],"rankingAlgorithm":"` + ranking + `","paymentInfo":{"paymentId":"ord-9",` +
		`"amount":100,"currency":"USD","paymentType":"ORDER_PAYMENT","paymentMethodType":"CARD","paymentMethod":"DEBIT","cardIsin":"453210","metadata":` + text + `}}`
}

const coBadged = `{"merchant_category_code":"merchant_category_code_0001","acquirer_country":"US","co_badged_card_data":` +
	`{"co_badged_card_networks":["Visa","PULSE","nyce"],"issuer_country":"US","is_regulated":false,"regulated_name":null,"card_type":"debit"}}`

func TestDebitRoutingOverHTTP(t *testing.T) {
	s := newShop(t, nil)
	s.merchant("shop")
	auth := []string{"Authorization", "Bearer " + s.token(nil)}
	decide := func(ranking, metadata string) map[string]any {
		t.Helper()
		return s.must(200, decidedMembers, s.ask("POST", "/decide-gateway", debitDecide(ranking, metadata), auth...))
	}
	declined := func(ranking, metadata, status, code, info string) {
		t.Helper()
		w := s.ask("POST", "/decide-gateway", debitDecide(ranking, metadata), auth...)
		if body := w.Body.String(); w.Code != 400 || !strings.Contains(body, `"status":"`+status+`","error_code":"`+code+`"`) ||
			!strings.Contains(body, `"error_info":{"code":"`+info+`"`) {
			t.Errorf("%d %s", w.Code, body)
		}
	}
	declined("NTW_BASED_ROUTING", coBadged, "Forbidden", "debit_routing_not_enabled", "TE_05")
	if got := decide("NTW_SR_HYBRID_ROUTING", coBadged); got["debit_routing_output"] != nil || got["decided_gateway"] != "alphapay" {
		t.Errorf("hybrid with the switch off: %v", got)
	}
	if err := s.service.SetDebitRouting(t.Context(), "shop", gateway.Yes); err != nil {
		t.Fatal(err)
	}
	// 100 dollars: VISA 1.9575, NYCE 1.628125, PULSE 1.88: the savings are 0.33 and 0.08
	const ranked = `"debit_routing_output":{"co_badged_card_networks_info":[{"network":"NYCE","saving_percentage":0.33},` +
		`{"network":"PULSE","saving_percentage":0.08},{"network":"VISA","saving_percentage":0}],"issuer_country":"US","is_regulated":false,` +
		`"regulated_name":null,"card_type":"debit"}`
	w := s.ask("POST", "/decide-gateway", debitDecide("NTW_BASED_ROUTING", coBadged), auth...)
	got := s.must(200, decidedMembers, w)
	if !strings.Contains(w.Body.String(), ranked) || got["decided_gateway"] != "alphapay" || got["routing_approach"] != "NTW_BASED_ROUTING" ||
		got["gateway_priority_map"] != nil || got["latency"] == nil {
		t.Errorf("%s", w.Body)
	}
	w = s.ask("POST", "/decide-gateway", debitDecide("NTW_SR_HYBRID_ROUTING", coBadged), auth...)
	got = s.must(200, decidedMembers, w)
	if !strings.Contains(w.Body.String(), ranked) || got["routing_approach"] != "SR_SELECTION_V3_ROUTING" || got["gateway_priority_map"] == nil {
		t.Errorf("hybrid: %s", w.Body)
	}
	for _, metadata := range []string{"", "{}", "nonsense", `{"co_badged_card_data":{"co_badged_card_networks":["SHOPCARD"]}}`} {
		declined("NTW_BASED_ROUTING", metadata, "Invalid Request", "invalid_request_error", "CO_BADGED_NETWORK_NOT_FOUND")
		if got := decide("NTW_SR_HYBRID_ROUTING", metadata); got["debit_routing_output"] != nil || got["decided_gateway"] != "alphapay" {
			t.Errorf("hybrid with %q: %v", metadata, got)
		}
	}
	bins := `{"bins":[{"from":"453210","to":"453210","networks":["VISA","PULSE"],"issuer_country":"US","card_type":"debit"}]}`
	if w := s.ask("PUT", "/debit-routing/tables", bins, "x-admin-secret", shopSecret); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	w = s.ask("POST", "/decide-gateway", debitDecide("NTW_BASED_ROUTING", ""), auth...)
	if !strings.Contains(w.Body.String(), `[{"network":"PULSE","saving_percentage":0.08},{"network":"VISA","saving_percentage":0}],"issuer_country":"US"`) {
		t.Errorf("by the BIN: %d %s", w.Code, w.Body)
	}
}
