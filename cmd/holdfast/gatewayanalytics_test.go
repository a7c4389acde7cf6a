package main

import (
	"encoding/json/v2"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"holdfast/gateway"
)

// panelMembers is exactly what each route answers with.
var panelMembers = map[string]string{
	"overview":       "kpis merchant_id route_hits smart_retry_stats top_errors top_rules top_scores",
	"gateway-scores": "merchant_id range series snapshots",
	"decisions":      "approaches series tiles",
	"routing-stats":  "available_filters gateway_share merchant_id sr_trend top_rules",
	"cost-savings":   "available_currencies currency totals trend",
	"routing-events": "events generated_at_ms",
	"log-summaries":  "errors page page_size samples total_errors",
	"payment-audit":  auditMembers,
	"preview-trace":  auditMembers,
}

const auditMembers = "auth_type card_is_in card_network country currency end_ms error_code exclude_routing_approach flow_type gateway merchant_id page" +
	" page_size payment_id payment_method payment_method_type range request_id results route routing_approach start_ms status timeline" +
	" total_failure total_results total_success"

const decideBody = `{"merchantId":"shop","eligibleGatewayList":["alphapay","mercato"],"rankingAlgorithm":"SR_BASED_ROUTING","paymentInfo":{"paymentId":%s,` +
	`"amount":42.5,"currency":"EUR","paymentType":"ORDER_PAYMENT","paymentMethodType":"CARD","paymentMethod":"CREDIT","cardType":"CREDIT","cardIsin":"453210"}}`

// analyst is a shop with a merchant and the headers of its session.
func analyst(t *testing.T, change func(*gateway.Options)) (*shop, []string) {
	s := newShop(t, change)
	s.merchant("shop")
	return s, []string{"Authorization", "Bearer " + s.token(nil), "x-tenant-id", "public"}
}

func TestAnalyticsAreEmptyAtFirst(t *testing.T) {
	s, auth := analyst(t, nil)
	for route, members := range panelMembers {
		for _, query := range []string{"", "?range=15m", "?range=1w&gateway=alphapay,mercato&currency=EUR", "?range=1d&page=3&page_size=50"} {
			got := s.must(200, members, s.ask("GET", "/analytics/"+route+query, "", auth...))
			for _, list := range []string{"series", "snapshots", "events", "errors", "samples", "results", "timeline", "trend", "top_errors", "gateway_share"} {
				if v, there := got[list]; there && len(v.([]any)) != 0 {
					t.Errorf("%s%s: %s is not empty: %v", route, query, list, v)
				}
			}
		}
	}
	hits := s.must(200, panelMembers["overview"], s.ask("GET", "/analytics/overview", "", auth...))["route_hits"]
	if text := fmt.Sprint(hits); strings.Count(text, "count:0") != 3 || !strings.Contains(text, "/rule_evaluate") {
		t.Errorf("route hits %v", hits)
	}
}

func TestAnalyticsRefusals(t *testing.T) {
	s, auth := analyst(t, nil)
	now := s.service.NowMS()
	for route := range panelMembers {
		path := "/analytics/" + route
		s.refused("no tenant", 400, "TE_03", s.ask("GET", path, "", auth[:2]...))
		s.refused("an empty tenant", 400, "TE_03", s.ask("GET", path, "", auth[0], auth[1], "x-tenant-id", ""))
		s.refused("nobody", 401, "TE_03", s.ask("GET", path, "", "x-tenant-id", "public"))
		s.refused("the secret alone", 401, "TE_03", s.ask("GET", path, "", "x-admin-secret", shopSecret, "x-tenant-id", "public"))
		s.refused("a bad bearer", 401, "TE_03", s.ask("GET", path, "", "Authorization", "Bearer x", "x-tenant-id", "public"))
		s.refused("no permission", 403, "TE_03", s.ask("GET", path, "", "Authorization",
			"Bearer "+s.token(jwt.MapClaims{"perms": []string{}}), "x-tenant-id", "public"))
		for _, query := range []string{"range=2h", "range=1H", "start_ms=1", "end_ms=1", "start_ms=x&end_ms=1", "start_ms=5&end_ms=5", "start_ms=-5&end_ms=5",
			"start_ms=1&end_ms=2", fmt.Sprintf("start_ms=%d&end_ms=%d", now+1e12, now+2e12), "start_ms=99999999999999999999&end_ms=1", "page=x", "page_size=x", "gateway=%zz"} {
			s.refused(query, 400, "TE_03", s.ask("GET", path+"?"+query, "", auth...))
		}
	}
	s.refused("status", 400, "TE_03", s.ask("GET", "/analytics/payment-audit?status=maybe", "", auth...))
	got := s.must(200, panelMembers["payment-audit"], s.ask("GET", "/analytics/payment-audit?page=0&page_size=900", "", auth...))
	if got["page"] != 1.0 || got["page_size"] != 50.0 {
		t.Errorf("page %v of %v", got["page"], got["page_size"])
	}
	custom := s.must(200, panelMembers["gateway-scores"], s.ask("GET", fmt.Sprintf("/analytics/gateway-scores?range=1h&start_ms=%d&end_ms=%d", now-5000, now), "", auth...))
	if custom["range"] != "custom" {
		t.Errorf("range %v", custom["range"])
	}
}

func TestAuditOverHTTP(t *testing.T) {
	s, auth := analyst(t, nil)
	for _, id := range []string{"ord-1", "a/b?c=d&e", "\u2028\"\\<é>", strings.Repeat("x", 256)} {
		quoted, err := json.Marshal(id)
		if err != nil {
			t.Fatal(err)
		}
		w := s.ask("POST", "/decide-gateway", fmt.Sprintf(decideBody, quoted), auth...)
		if w.Code != 200 {
			t.Fatalf("decide: %d %s", w.Code, w.Body)
		}
		w = s.ask("POST", "/update-gateway-score", fmt.Sprintf(`{"merchantId":"shop","gateway":"mercato","status":"FAILURE","paymentId":%s,`+
			`"errorInfo":{"connector":"mercato","flow":"Authorize","subFlow":"s","errorCode":"51","errorMessage":"no funds"}}`, quoted), auth...)
		if w.Code != 200 {
			t.Fatalf("update: %d %s", w.Code, w.Body)
		}
		got := s.must(200, auditMembers, s.ask("GET", "/analytics/payment-audit?payment_id="+url.QueryEscape(id), "", auth...))
		if got["payment_id"] != id || got["total_results"] != 1.0 || got["total_failure"] != 1.0 {
			t.Errorf("%q: %v of %v", id, got["total_results"], got["payment_id"])
		}
		flows := ""
		for _, e := range got["timeline"].([]any) {
			e := e.(map[string]any)
			flows += fmt.Sprint(e["flow_type"], " ", e["event_stage"], ";")
			if e["payment_id"] != id || e["merchant_id"] != "shop" || e["request_id"] == nil {
				t.Errorf("%q: %v", id, e)
			}
		}
		for _, want := range []string{"decide_gateway_decision Decide Gateway", "update_gateway_score_update Update Gateway"} {
			if !strings.Contains(flows, want) {
				t.Errorf("%q: flows %s", id, flows)
			}
		}
	}
	overview := s.ask("GET", "/analytics/overview", "", auth...).Body.String()
	for _, want := range []string{`{"route":"/decide_gateway","count":4}`, `{"route":"/update_gateway","count":4}`, `"error_code":"51"`} {
		if !strings.Contains(overview, want) {
			t.Errorf("the overview lacks %s: %s", want, overview)
		}
	}
	// Another merchant's session sees none of it, whatever it asks for.
	s.merchant("rival")
	rival := []string{"Authorization", "Bearer " + s.token(jwt.MapClaims{"merchant_id": "rival"}), "x-tenant-id", "public"}
	for route := range panelMembers {
		w := s.ask("GET", "/analytics/"+route+"?merchant_id=shop&payment_id=", "", rival...)
		if w.Code != 200 || strings.Contains(w.Body.String(), "mercato") || strings.Contains(w.Body.String(), `"shop"`) {
			t.Errorf("%s: %d %s", route, w.Code, w.Body)
		}
	}
}

func TestAnalyticsWithoutAuthentication(t *testing.T) {
	s, auth := analyst(t, func(o *gateway.Options) { o.Deployment.APIKeysOff = true })
	s.ask("POST", "/decide-gateway", fmt.Sprintf(decideBody, `"p"`), auth...)
	tenant := []string{"x-tenant-id", "public"}
	s.refused("nobody named", 401, "TE_03", s.ask("GET", "/analytics/overview", "", tenant...))
	if w := s.ask("GET", "/analytics/overview?merchant_id=shop", "", tenant...); w.Code != 200 || !strings.Contains(w.Body.String(), `{"route":"/decide_gateway","count":1}`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	key, _, err := s.service.CreateKey(t.Context(), "shop", "")
	if err != nil {
		t.Fatal(err)
	}
	if w := s.ask("GET", "/analytics/overview", "", "x-tenant-id", "public", "x-api-key", key); w.Code != 200 || !strings.Contains(w.Body.String(), `"merchant_id":"shop"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	s.refused("a merchant that is not there", 401, "TE_03", s.ask("GET", "/analytics/overview?merchant_id=none", "", tenant...))
}
