package main

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast/gateway"
	"holdfast/ident"
)

const secretHeader = "x-admin-secret"

// admin asks with the admin secret, for the only tenant.
func (s *shop) admin(method, path, body string) *httptest.ResponseRecorder {
	s.Helper()
	return s.ask(method, path, body, secretHeader, shopSecret, "x-tenant-id", "public")
}

// says checks an answer to the byte.
func (s *shop) says(what string, status int, body string, w *httptest.ResponseRecorder) {
	s.Helper()
	if w.Code != status || w.Body.String() != body {
		s.Errorf("%s: %d %s\nwant %d %s", what, w.Code, w.Body, status, body)
	}
}

func TestMerchantsOverHTTP(t *testing.T) {
	s := newShop(t, nil)
	const create = "/merchant-account/create"
	w := s.admin("POST", create, `{"merchant_id":"shop_lisbon","gateway_success_rate_based_decider_input":null,"more":1}`)
	at := strings.Index(w.Body.String(), `"api_key":"DE_`)
	if w.Code != 200 || at < 0 || !strings.HasPrefix(w.Body.String(), `{"message":"Merchant account created successfully","merchant_id":"shop_lisbon","gateway_success_rate_based_decider_input":null,`) {
		t.Fatalf("created: %d %s", w.Code, w.Body)
	}
	key := strings.TrimSuffix(w.Body.String()[at+len(`"api_key":"`):], `"}`)
	s.refused("a second", 400, "TE_04", s.admin("POST", create, `{"merchant_id":"shop_lisbon"}`))
	for _, headers := range [][]string{nil, {secretHeader, "x"}, {"x-api-key", key}} {
		s.refused("without the secret", 401, "TE_04", s.ask("POST", create, `{"merchant_id":"m"}`, headers...))
	}
	for body, status := range map[string]int{`{`: 400, `[]`: 422, `{}`: 422, `{"merchant_id":null}`: 422, `{"merchant_id":1}`: 422, `{"merchant_id":""}`: 400,
		`{"merchant_id":"a\u0000"}`: 400, `{"merchant_id":"` + strings.Repeat("x", 257) + `"}`: 400, `{"merchant_id":"m","gateway_priority":1}`: 422} {
		s.refused("create "+body[:min(len(body), 40)], status, "TE_04", s.admin("POST", create, body))
	}

	own := func(method, path, body string) *httptest.ResponseRecorder {
		return s.ask(method, path, body, "x-api-key", key)
	}
	const path = "/merchant-account/shop_lisbon"
	s.says("read", 200, `{"merchant_id":"shop_lisbon","gateway_success_rate_based_decider_input":""}`, own("GET", path, ""))
	s.refused("an unknown one", 404, "TE_04", s.admin("GET", "/merchant-account/nobody", ""))
	s.refused("an odd one", 400, "TE_04", s.admin("GET", "/merchant-account/a%00", ""))
	s.refused("an odd one", 400, "TE_04", s.admin("GET", "/merchant-account/%FF", ""))
	s.says("debit", 200, `{"merchant_id":"shop_lisbon","debit_routing_enabled":false}`, own("GET", path+"/debit-routing", ""))
	s.says("debit on", 200, `{"merchant_id":"shop_lisbon","debit_routing_enabled":true}`, own("POST", path+"/debit-routing", `{"enabled":true}`))
	s.says("debit", 200, `{"merchant_id":"shop_lisbon","debit_routing_enabled":true}`, own("GET", path+"/debit-routing", ""))
	s.refused("debit of nobody", 404, "TE_04", s.admin("POST", "/merchant-account/nobody/debit-routing", `{"enabled":true}`))
	s.refused("debit of a wrong type", 422, "TE_04", own("POST", path+"/debit-routing", `{"enabled":"yes"}`))

	odd := s.admin("POST", create, `{"merchant_id":"a/b ü","gateway_success_rate_based_decider_input":{"mode": 1}}`)
	if odd.Code != 200 || !strings.Contains(odd.Body.String(), `"gateway_success_rate_based_decider_input":{"mode":1}`) {
		t.Errorf("odd: %d %s", odd.Code, odd.Body)
	}
	s.says("odd", 200, `{"merchant_id":"a/b ü","gateway_success_rate_based_decider_input":"{\"mode\":1}"}`, s.admin("GET", "/merchant-account/a%2Fb%20%C3%BC", ""))

	s.says("deleted", 200, `{"message":"Merchant account deleted successfully","merchant_id":"shop_lisbon"}`, own("DELETE", path, ""))
	s.refused("its key", 401, "TE_04", own("GET", path, ""))
	s.refused("afterwards", 404, "TE_04", s.admin("GET", path, ""))
	s.refused("again", 404, "TE_04", s.admin("DELETE", path, ""))
}

func TestFeaturesOverHTTP(t *testing.T) {
	s := newShop(t, nil)
	s.merchant("shop")
	shown := func(on ...string) string {
		var all []string
		for _, slug := range []string{"gsm-scoring-filter", "explore-exploit-srv3", "ab-test-real-payments", "multi-objective-routing", "elimination", "auto-calibration", "autopilot"} {
			all = append(all, fmt.Sprintf(`{"feature":"%s","enabled":%t}`, slug, strings.Contains(strings.Join(on, " "), slug)))
		}
		return `{"merchant_id":"shop","features":[` + strings.Join(all, ",") + `]}`
	}
	const path = "/merchant-account/shop/features"
	s.says("none", 200, shown(), s.admin("GET", path, ""))
	s.says("one", 200, shown("elimination"), s.admin("POST", path+"/elimination", `{"enabled":true}`))
	s.says("two", 200, shown("elimination", "explore-exploit-srv3"), s.admin("POST", path+"/explore-exploit-srv3", `{"enabled":true,"rollout":20}`))
	s.says("one again", 200, shown("explore-exploit-srv3"), s.admin("POST", path+"/elimination", `{"enabled":false}`))
	s.says("read", 200, shown("explore-exploit-srv3"), s.admin("GET", path, ""))
	s.refused("an unknown slug", 400, "TE_04", s.admin("POST", path+"/other", `{"enabled":true}`))
	s.refused("of nobody", 404, "TE_04", s.admin("GET", "/merchant-account/nobody/features", ""))
	for body, status := range map[string]int{`{}`: 422, `{"enabled":1}`: 422, `{"enabled":true,"rollout":101}`: 400, ``: 400} {
		s.refused(body, status, "TE_04", s.admin("POST", path+"/autopilot", body))
	}
}

func TestKeysOverHTTP(t *testing.T) {
	s := newShop(t, nil)
	s.merchant("shop_lisbon")
	made := s.must(200, "api_key created_at description key_id key_prefix merchant_id", s.admin("POST", "/api-key/create", `{"merchant_id":"shop_lisbon","description":"checkout"}`))
	key, id := made["api_key"].(string), made["key_id"].(string)
	if !strings.HasPrefix(key, made["key_prefix"].(string)) || len(made["key_prefix"].(string)) != 11 || made["description"] != "checkout" {
		t.Errorf("made %v", made)
	}
	list := s.ask("GET", "/api-key/list/shop_lisbon", "", "x-api-key", key)
	if list.Code != 200 || strings.Contains(list.Body.String(), key) || !strings.HasPrefix(list.Body.String(), `[{"key_id":"`+id+`","key_prefix":"`) ||
		!strings.Contains(list.Body.String(), `"is_active":true`) {
		t.Errorf("listed: %d %s", list.Code, list.Body)
	}
	for range 2 {
		s.says("revoked", 200, `{"key_id":"`+id+`","message":"API key revoked successfully"}`, s.admin("DELETE", "/api-key/"+id, ""))
		s.refused("used", 401, "TE_04", s.ask("GET", "/merchant-account/shop_lisbon", "", "x-api-key", key))
	}
	s.refused("an unknown id", 404, "TE_04", s.admin("DELETE", "/api-key/nothing", ""))
	s.refused("keys of nobody", 404, "TE_04", s.admin("GET", "/api-key/list/nobody", ""))
	s.refused("a key for nobody", 404, "TE_04", s.admin("POST", "/api-key/create", `{"merchant_id":"nobody"}`))
	s.refused("a key for no merchant", 422, "TE_04", s.admin("POST", "/api-key/create", `{}`))
}

// What names its merchant by its id only is not reached by another's credential either.
func TestKeysAndOutagesOfOthers(t *testing.T) {
	s := newShop(t, nil)
	s.merchant("shop")
	s.merchant("other")
	_, row, err := s.service.CreateKey(t.Context(), "shop", "")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UnixMilli()
	o, err := s.service.CreateOutage(t.Context(), ident.Principal{Kind: ident.Operator}, gateway.Outage{Gateway: "a", Merchant: "shop", StartMS: now, EndMS: now + 1000})
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := s.service.CreateKey(t.Context(), "other", "")
	if err != nil {
		t.Fatal(err)
	}
	const times = `"gateway":"a","start_time":"2026-03-09T08:00:00Z","end_time":"2026-03-09T09:00:00Z"`
	for _, c := range [][3]string{{"DELETE", "/api-key/" + row.ID, ""}, {"DELETE", "/gateway-outage/" + o.ID, ""}, {"GET", "/gateway-outage?merchant_id=shop", ""},
		{"POST", "/gateway-outage", `{"merchant_id":"shop",` + times + `}`}, {"POST", "/gateway-outage", `{` + times + `}`}} {
		s.refused(c[0]+" "+c[1], 403, "TE_04", s.ask(c[0], c[1], c[2], "x-api-key", key))
	}
	s.says("a list", 200, `[]`, s.ask("GET", "/gateway-outage", "", "x-api-key", key))
}

func TestConfigsOverHTTP(t *testing.T) {
	s := newShop(t, nil)
	s.merchant("shop")
	const success = `{"defaultLatencyThreshold":90,"defaultBucketSize":20,"defaultHedgingPercent":5.5,"defaultLowerResetFactor":null,"defaultUpperResetFactor":null,"defaultGatewayExtraScore":[{"gatewayName":"a","gatewaySigmaFactor":1.5}],"margin":null,"subLevelInputConfig":null}`
	for _, c := range []struct{ kind, title, sent, stored string }{
		{"successRate", "Success Rate", `{"defaultSuccessRate":0.5,"defaultLatencyThreshold":90,"defaultBucketSize":20,"defaultHedgingPercent":5.5,"defaultGatewayExtraScore":[{"gatewayName":"a","gatewaySigmaFactor":1.5}]}`, success},
		{"elimination", "Elimination", `{"threshold":0.35,"txnLatency":{"gatewayLatency":5000}}`, `{"threshold":0.35,"txnLatency":{"gatewayLatency":5000}}`},
		{"debitRouting", "Debit Routing", `{"merchant_category_code":"5411","acquirer_country":"US"}`, `{"merchantCategoryCode":"5411","acquirerCountry":"US"}`},
	} {
		ask := `{"merchant_id":"shop","algorithm":"` + c.kind + `"}`
		put := `{"merchant_id":"shop","config":{"type":"` + c.kind + `","data":` + c.sent + `}}`
		config := `"config":{"type":"` + c.kind + `","data":` + c.stored + `}}`
		for _, path := range []string{"get", "delete"} {
			s.refused(path+" nothing", 404, "TE_04", s.admin("POST", "/rule/"+path, ask))
		}
		s.refused("update nothing", 404, "TE_04", s.admin("POST", "/rule/update", put))
		s.says("create", 200, `{"message":"`+c.title+` Configuration created successfully","merchant_id":"shop",`+config, s.admin("POST", "/rule/create", put))
		s.says("get", 200, `{"merchant_id":"shop",`+config, s.admin("POST", "/rule/get", ask))
		if again := s.admin("POST", "/rule/create", put); (again.Code == 200) != (c.kind == "elimination") || again.Code != 200 && again.Code != 400 {
			t.Errorf("create %s again: %d %s", c.kind, again.Code, again.Body)
		}
		s.says("update", 200, `{"message":"`+c.title+` Configuration updated successfully","merchant_id":"shop",`+config, s.admin("POST", "/rule/update", put))
		s.says("delete", 200, `{"message":"`+c.title+` Configuration deleted successfully","merchant_id":"shop"}`, s.admin("POST", "/rule/delete", ask))
		s.refused("create for nobody", 404, "TE_04", s.admin("POST", "/rule/create", strings.Replace(put, `"shop"`, `"nobody"`, 1)))
	}
	for body, status := range map[string]int{`{"merchant_id":"shop","config":{"type":"other","data":{}}}`: 400, `{"merchant_id":"shop","config":{"type":"successRate","data":{"defaultBucketSize":"x"}}}`: 422,
		`{"merchant_id":"shop","config":{"type":"successRate","data":{"defaultHedgingPercent":101}}}`: 400, `{"merchant_id":"shop","config":{"type":"successRate"}}`: 422, `{"merchant_id":"shop"}`: 422,
		`{"merchant_id":"shop","config":{"type":"successRate","data":[]}}`: 422, `{"config":{}}`: 422, `{"merchant_id":"","config":{"type":"elimination","data":{}}}`: 400,
		`{"merchant_id":"shop","config":{"type":"successRate","data":{"subLevelInputConfig":[1]}}}`: 422, `{"merchant_id":"shop","config":{"type":"successRate","data":{"subLevelInputConfig":"x"}}}`: 422,
		`{"merchant_id":"shop","config":{"type":"elimination","data":{"threshold":1.5}}}`: 400} {
		s.refused(body, status, "TE_04", s.admin("POST", "/rule/create", body))
	}
}

// A published client sends the rows of the success-rate config as an object.
func TestSubLevelsAsAnObject(t *testing.T) {
	s := newShop(t, nil)
	s.merchant("shop")
	put := func(rows string) *httptest.ResponseRecorder {
		return s.admin("POST", "/rule/create", `{"merchant_id":"shop","config":{"type":"successRate","data":{"subLevelInputConfig":`+rows+`}}}`)
	}
	s.refused("rows that match nothing", 400, "TE_04", put(`{"currency":{"EUR":{"bucketSize":60}}}`))
	s.refused("a row of a wrong type", 422, "TE_04", put(`{"paymentMethodType":{"CARD":7}}`))
	s.refused("a dimension of a wrong type", 422, "TE_04", put(`{"paymentMethodType":[]}`))
	w := put(`{"paymentMethodType":{"CARD":{"bucketSize":60,"hedgingPercent":4,"more":1},"UPI":{"bucketSize":30}},"cardNetwork":{"VISA":{"bucketSize":70}},"currency":{"EUR":{"paymentMethodType":"CARD","bucketSize":9}},"other":{"x":1}}`)
	if n := strings.Count(w.Body.String(), `{"paymentMethodType":"`); w.Code != 200 || n != 4 || !strings.Contains(w.Body.String(), `"paymentMethodType":"CARD","paymentMethod":null,"cardNetwork":"VISA"`) ||
		strings.Index(w.Body.String(), `"bucketSize":60`) > strings.Index(w.Body.String(), `"bucketSize":30`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestDimensionsOverHTTP(t *testing.T) {
	s := newShop(t, nil)
	s.merchant("shop")
	s.says("nothing", 200, `{"merchant_id":"shop","paymentInfo":{"udfs":[],"fields":null}}`, s.admin("GET", "/config-sr-dimension/shop", ""))
	if w := s.admin("POST", "/config-sr-dimension", `{"merchant_id":"shop","paymentInfo":{"udfs":[1,2],"fields":["currency","card_network"]}}`); w.Code != 200 || w.Body.String()[0] != '"' {
		t.Errorf("stored: %d %s", w.Code, w.Body)
	}
	s.says("stored", 200, `{"merchant_id":"shop","paymentInfo":{"udfs":[1,2],"fields":["currency","card_network"]}}`, s.admin("GET", "/config-sr-dimension/shop", ""))
	w := s.admin("POST", "/config-sr-dimension", `{"merchant_id":"shop","paymentInfo":{"fields":["currency","colour"]}}`)
	s.refused("an unknown field", 400, "TE_04", w)
	if !strings.Contains(w.Body.String(), "colour") {
		t.Errorf("the refusal does not name the field: %s", w.Body)
	}
	s.refused("no info", 422, "TE_04", s.admin("POST", "/config-sr-dimension", `{"merchant_id":"shop"}`))
	s.refused("for nobody", 404, "TE_04", s.admin("POST", "/config-sr-dimension", `{"merchant_id":"nobody","paymentInfo":{}}`))
}

func TestScoreResetOverHTTP(t *testing.T) {
	s := newShop(t, nil)
	s.merchant("shop")
	for _, body := range []string{`{"merchant_id":"shop"}`, `{"merchantId":"shop"}`} {
		s.says("reset", 200, `{"merchant_id":"shop","deleted_keys":0,"removed_overrides":0}`, s.admin("POST", "/gateway-score/reset", body))
	}
	s.refused("no id", 422, "TE_04", s.admin("POST", "/gateway-score/reset", `{}`))
	s.refused("an empty id", 400, "TE_04", s.admin("POST", "/gateway-score/reset", `{"merchant_id":""}`))
	s.refused("nobody", 404, "TE_04", s.admin("POST", "/gateway-score/reset", `{"merchant_id":"nobody"}`))
	s.refused("no tenant", 400, "TE_03", s.ask("POST", "/gateway-score/reset", `{"merchant_id":"shop"}`, secretHeader, shopSecret))
}

func TestOutagesOverHTTP(t *testing.T) {
	s := newShop(t, nil)
	s.merchant("shop")
	now := time.Now().UTC().Truncate(time.Second)
	body := fmt.Sprintf(`{"gateway":"a","merchant_id":"shop","start_time":%q,"end_time":%q,"payment_method_type":"card","metadata":{"cardType":"CREDIT"}}`,
		now.Add(-time.Hour).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339))
	row := s.must(200, "bank end_time gateway id merchant_id metadata payment_method payment_method_type start_time", s.admin("POST", "/gateway-outage", body))
	if row["payment_method_type"] != "CARD" || row["bank"] != nil {
		t.Errorf("row %v", row)
	}
	id := row["id"].(string)
	if w := s.admin("GET", "/gateway-outage?merchant_id=shop&active=true", ""); w.Code != 200 || !strings.HasPrefix(w.Body.String(), `[{"id":"`+id+`"`) {
		t.Errorf("running: %d %s", w.Code, w.Body)
	}
	s.says("ended", 200, `{"message":"Gateway outage ended successfully","id":"`+id+`"}`, s.admin("DELETE", "/gateway-outage/"+id, ""))
	s.says("running", 200, `[]`, s.admin("GET", "/gateway-outage?merchant_id=shop&active=true", ""))
	s.refused("an unknown id", 404, "TE_04", s.admin("DELETE", "/gateway-outage/x", ""))
	s.refused("those of nobody", 404, "TE_04", s.admin("GET", "/gateway-outage?merchant_id=nobody", ""))
	alone := s.admin("POST", "/gateway-outage", `{"gateway":"a","start_time":"2026-03-09T08:00:00Z","end_time":"2026-03-09T09:00:00+00:00","payment_method_type":"CARD"}`)
	if alone.Code != 200 || !strings.Contains(alone.Body.String(), `"warning":"`) {
		t.Errorf("a method type alone: %d %s", alone.Code, alone.Body)
	}
	const start = `"gateway":"a","start_time":"2026-03-09T08:00:00Z"`
	for tail, status := range map[string]int{`"end_time":"2026-03-09T08:00:00Z"`: 400, `"end_time":"2026-03-10T08:00:00Z"`: 400, `"end_time":"soon"`: 400, `"end_time":1`: 422,
		`"end_time":null`: 422, `"end_time":"2026-03-09T09:00:00Z","metadata":{"other":"x"}`: 400, `"end_time":"2026-03-09T09:00:00Z","metadata":"x"`: 400} {
		s.refused(tail, status, "TE_04", s.admin("POST", "/gateway-outage", `{`+start+`,`+tail+`}`))
	}
}

func TestServiceConfigsOverHTTP(t *testing.T) {
	s := newShop(t, nil)
	s.merchant("shop")
	const path = "/admin/service-config/gateway_penalty_factor"
	s.refused("nothing", 404, "TE_04", s.admin("GET", path, ""))
	s.says("stored", 200, `{"name":"gateway_penalty_factor","value":7.5}`, s.admin("PUT", path, ` 7.5 `))
	s.says("read", 200, `{"name":"gateway_penalty_factor","value":7.5}`, s.admin("GET", path, ""))
	s.refused("out of bounds", 400, "TE_04", s.admin("PUT", path, `100`))
	s.refused("not JSON", 400, "TE_04", s.admin("PUT", path, `7,`))
	s.refused("another name", 404, "TE_04", s.admin("PUT", "/admin/service-config/other", `1`))
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		s.refused(method+" by a merchant", 403, "TE_04", s.ask(method, path, "1", "Authorization", "Bearer "+s.token(nil)))
	}
	s.says("removed", 200, `{"message":"Service config removed successfully"}`, s.admin("DELETE", path, ""))
	s.refused("removed", 404, "TE_04", s.admin("GET", path, ""))
}

// What a client may send must never be an internal failure, and never an answer in another shape.
func TestAccountRoutesTakeAnyBody(t *testing.T) {
	s := newShop(t, nil)
	s.merchant("shop")
	for _, route := range accountRoutes(nil) {
		for _, body := range []string{"", "{", "[]", "null", "1", `"x"`, "{}", "\xff", `{"merchant_id":null,"config":null,"paymentInfo":null,"enabled":null,"algorithm":null}`,
			`{"merchant_id":1,"config":1,"paymentInfo":1,"enabled":1,"algorithm":1,"gateway":1,"rollout":1e99}`, `{"merchant_id":"shop","config":{"type":"successRate","data":{"subLevelInputConfig":{"paymentMethodType":{"":{}}}}}}`,
			`{"merchant_id":"shop","config":{"type":"successRate","data":{"defaultBucketSize":1e30,"defaultHedgingPercent":1e999}}}`, `{"merchant_id":"\ud800"}`,
			`{"merchant_id":"shop","paymentInfo":{"udfs":[1.5],"fields":[null]}}`, `{"merchant_id":"shop","merchant_id":"shop"}`, strings.Repeat("[", 10_000)} {
			w := s.admin(route.Method, filled(route.Path), body)
			if w.Code >= 500 || w.Code >= 400 && !strings.HasPrefix(w.Body.String(), `{"code":"TE_0`) {
				t.Errorf("%s %s %.60q: %d %s", route.Method, route.Path, body, w.Code, w.Body)
			}
		}
	}
}
