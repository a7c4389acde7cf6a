package gatewayapi

import (
	"encoding/json/v2"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast/gateway"
	"holdfast/ident"
	"holdfast/internal/strictjson"
)

// bigEuro is the program of the contract.
const bigEuro = `{"type":"advanced","data":{"globals":{"low_risk_bins":[{"type":"str_value","value":"453210"}]},
 "default_selection":{"priority":[{"gateway_name":"alphapay","gateway_id":null}]},
 "rules":[{"name":"big euro cards","routing_type":"priority",
   "output":{"priority":[{"gateway_name":"mercato","gateway_id":"acc_7"},{"gateway_name":"kestrel","gateway_id":null}]},
   "statements":[{"condition":[
       {"lhs":"payment_method","comparison":"equal","value":{"type":"enum_variant","value":"card"},"metadata":{}},
       {"lhs":"amount","comparison":"greater_than","value":{"type":"number","value":5000},"metadata":{}}],
     "nested":[{"condition":[{"lhs":"currency","comparison":"equal","value":{"type":"enum_variant","value":"EUR"},"metadata":{}}]},
               {"condition":[{"lhs":"card_network","comparison":"equal","value":{"type":"enum_variant","value":"Visa"},"metadata":{}}]}]}]}],
 "metadata":{}}}`

// created stores an algorithm and returns its id.
func created(t testing.TB, a *API, owner, algorithm string) string {
	t.Helper()
	w := ask(t, a.CreateAlgorithm, operator, fmt.Sprintf(`{"name":"the rule","description":"d","created_by":%q,"algorithm":%s,"metadata":{"a":1},"more":1}`, owner, algorithm))
	var got stored
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 || got.RuleID == "" {
		t.Fatalf("%d %s, %v", w.Code, w.Body, err)
	}
	return got.RuleID
}

func activated(t testing.TB, a *API, owner, algorithm string) string {
	t.Helper()
	id := created(t, a, owner, algorithm)
	if w := ask(t, a.ActivateAlgorithm, operator, named(owner, id)); w.Code != 200 || w.Body.Len() != 0 {
		t.Fatalf("%d %q", w.Code, w.Body)
	}
	return id
}

func named(owner, id string) string {
	return fmt.Sprintf(`{"created_by":%q,"routing_algorithm_id":%q}`, owner, id)
}

func TestAlgorithmsOverHTTP(t *testing.T) {
	a := costAPI(t)
	w := ask(t, a.CreateAlgorithm, lisbon, `{"rule_id":"mine","name":"n","created_by":"shop_lisbon","algorithm_for":"payout","algorithm":`+bigEuro+`}`)
	answers(t, w, 200, `{"rule_id":"mine","name":"n","algorithm_for":"payout","created_at":"...`)
	if strings.Contains(w.Body.String(), "warnings") {
		t.Errorf("warned: %s", w.Body)
	}
	var got stored
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse("2006-01-02 15:04:05.000000", got.Created); err != nil || got.Modified != got.Created {
		t.Errorf("times %q, %q: %v", got.Created, got.Modified, err)
	}
	answers(t, ask(t, a.ListActive, lisbon, "", "shop_lisbon"), 200, `[]`)
	answers(t, ask(t, a.ListAlgorithms, lisbon, "not looked at", "shop_lisbon"), 200,
		`[{"id":"mine","created_by":"shop_lisbon","name":"n","description":"","algorithm_data":{"type":"advanced","data":{"globals":...`)
	answers(t, ask(t, a.ListAlgorithms, operator, "", "never_heard_of"), 200, `[]`)
	if w := ask(t, a.ActivateAlgorithm, lisbon, named("shop_lisbon", "mine")); w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("activate: %d %q", w.Code, w.Body)
	}
	answers(t, ask(t, a.ListActive, lisbon, "{}", "shop_lisbon"), 200, `[{"id":"mine",...`)
	update := `{"created_by":"shop_lisbon","routing_algorithm_id":"mine","name":"m","algorithm":{"type":"volume_split","data":[{"split":50,"output":{"gateway_name":"a"}}]}}`
	answers(t, ask(t, a.UpdateAlgorithm, lisbon, update), 400, `{"code":"TE_04","message":"the algorithm mine is active: deactivate it first","data":null}`)
	answers(t, ask(t, a.DeleteAlgorithm, lisbon, named("shop_lisbon", "mine")), 400, `{"code":"TE_04",...`)
	for range 2 {
		if w := ask(t, a.DeactivateAlgorithm, lisbon, named("shop_lisbon", "mine")); w.Code != 200 || w.Body.Len() != 0 {
			t.Errorf("deactivate: %d %q", w.Code, w.Body)
		}
	}
	w = ask(t, a.UpdateAlgorithm, lisbon, update)
	answers(t, w, 200, `{"rule_id":"mine","id":"mine","created_by":"shop_lisbon","name":"m","description":"","algorithm_data":{"type":"volume_split","data":[{"split":50,"output":{"gateway_name":"a"}}]},"algorithm_for":"payout",...`)
	if !strings.Contains(w.Body.String(), `"warnings":["volume_split: the splits add up to 50, not to 100"]`) {
		t.Errorf("not warned: %s", w.Body)
	}
	answers(t, ask(t, a.DeleteAlgorithm, lisbon, named("shop_lisbon", "mine")), 200, `{"status":"deleted","routing_algorithm_id":"mine"}`)
	answers(t, ask(t, a.DeleteAlgorithm, lisbon, named("shop_lisbon", "mine")), 404, `{"code":"TE_04","message":"there is no algorithm mine","data":null}`)
}

func TestAlgorithmRefusals(t *testing.T) {
	a := costAPI(t)
	create := func(members string) string { return `{"name":"n","created_by":"shop_lisbon",` + members + `}` }
	for _, c := range []struct {
		body, want string
		status     int
	}{
		{`{`, "could not parse", 400},
		{`[]`, "could not parse", 400},
		{create(`"algorithm":{"type":"single"}`), "could not parse the algorithm: missing field `data`", 400},
		{create(`"algorithm":7`), "could not parse", 400},
		{create(`"algorithm":null`), "could not parse", 400},
		{create(`"more":1`), "missing field `algorithm`", 400},
		{`{"created_by":"shop_lisbon","algorithm":{}}`, "missing field `name`", 400},
		{`{"name":"n","algorithm":{}}`, "missing field `created_by`", 400},
		{`{"name":7,"created_by":"shop_lisbon","algorithm":{}}`, "wrong type", 400},
		{create(`"algorithm_for":"refund","algorithm":` + bigEuro), `algorithm_for \"refund\" is none of`, 400},
		{create(`"algorithm":` + strings.Replace(bigEuro, `"EUR"`, `"Euro"`, 1)), `rule \"big euro cards\", statement 1.1, condition 1: key \"currency\": the value \"Euro\" is not one of`, 400},
		{create(`"algorithm":` + strings.Replace(bigEuro, `"lhs":"amount"`, `"lhs":"amounts"`, 1)), `rule \"big euro cards\", statement 1, condition 2: key \"amounts\": the catalogue has no such key`, 400},
		{create(`"algorithm":{"type":"volume_split","data":[]}`), "no splits", 400},
		{strings.Replace(create(`"algorithm":`+bigEuro), "shop_lisbon", "shop_porto", 1), "another merchant", 403},
	} {
		w := ask(t, a.CreateAlgorithm, lisbon, c.body)
		answers(t, w, c.status, `{"code":"TE_04","message":"...`)
		if !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%.120s: %s, want %s", c.body, w.Body, c.want)
		}
	}
	id := created(t, a, "shop_porto", bigEuro)
	for name, h := range map[string]Handler{"activate": a.ActivateAlgorithm, "deactivate": a.DeactivateAlgorithm, "delete": a.DeleteAlgorithm} {
		answers(t, ask(t, h, lisbon, named("shop_porto", id)), 403, `{"code":"TE_04",...`)
		answers(t, ask(t, h, lisbon, named("shop_lisbon", id)), 400, `{"code":"TE_04",...`)
		if w := ask(t, h, lisbon, `{"created_by":"shop_lisbon"}`); w.Code != 422 {
			t.Errorf("%s without an id: %d", name, w.Code)
		}
		if w := ask(t, h, lisbon, `{`); w.Code != 400 {
			t.Errorf("%s, broken: %d", name, w.Code)
		}
	}
	answers(t, ask(t, a.ActivateAlgorithm, lisbon, named("shop_lisbon", "routing_none")), 400, `{"code":"TE_04","message":"there is no algorithm routing_none","data":null}`)
	answers(t, ask(t, a.ListAlgorithms, lisbon, "", "shop_porto"), 403, `{"code":"TE_04",...`)
	answers(t, ask(t, a.ListActive, lisbon, "", "shop_porto"), 403, `{"code":"TE_04",...`)
}

func TestRoutingKeys(t *testing.T) {
	w := ask(t, costAPI(t).RoutingKeys, looking, "")
	text := w.Body.String()
	answers(t, w, 200, `{"keys":{"amount":{"type":"integer","values":null,"min_value":null,"max_value":null,"min_length":null,"max_length":null,"exact_length":null,"regex":null},"authentication_type":{"type":"enum","values":"three_ds, no_three_ds",...`)
	if !strings.Contains(text, `"card_bin":{"type":"str_value","values":null,"min_value":null,"max_value":null,"min_length":null,"max_length":null,"exact_length":6,`) {
		t.Error("card_bin has no length")
	}
}

// evaluationOf is the example of the contract for an owner.
func evaluationOf(owner string) string {
	return `{"payment_id":"ord-7741-1","created_by":"` + owner + `","fallback_output":[{"gateway_name":"alphapay","gateway_id":null}],
 "parameters":{"payment_method":{"type":"enum_variant","value":"card"},"amount":{"type":"number","value":9900},
               "currency":{"type":"enum_variant","value":"EUR"},"metadata":null}}`
}

// untimed cuts the members that the contract does not have.
func untimed(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	text, more, found := strings.Cut(w.Body.String(), `,"rule_name":`)
	if w.Code != 200 || !found || !strings.Contains(more, `"latency":0}`) {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return text
}

func TestEvaluateOverHTTP(t *testing.T) {
	a := costAPI(t)
	answers(t, ask(t, a.Evaluate, lisbon, evaluationOf("shop_lisbon")), 400, `{"code":"TE_04","message":"shop_lisbon has no active payment algorithm","data":null}`)
	activated(t, a, "shop_lisbon", bigEuro)
	w := ask(t, a.Evaluate, looking, evaluationOf("shop_lisbon"))
	answers(t, w, 200, `{"payment_id":"ord-7741-1","status":"success","output":{"type":"priority","connectors":[{"gateway_name":"mercato","gateway_id":"acc_7"},{"gateway_name":"kestrel","gateway_id":null}]},`+
		`"evaluated_output":[{"gateway_name":"mercato","gateway_id":"acc_7"},{"gateway_name":"kestrel","gateway_id":null}],`+
		`"eligible_connectors":[{"gateway_name":"mercato","gateway_id":"acc_7"},{"gateway_name":"kestrel","gateway_id":null}],`+
		`"rule_name":"big euro cards","ignored_parameters":[],"latency":0}`)
	if w.Header().Get("X-Response-Time") != "0" || w.Header().Get("X-Routing-Latency-Us") == "" {
		t.Errorf("headers %v", w.Header())
	}
	other := strings.Replace(evaluationOf("shop_lisbon"), "9900", "1", 1)
	answers(t, ask(t, a.Evaluate, lisbon, other), 200, `{"payment_id":"ord-7741-1","status":"default_selection","output":{"type":"priority","connectors":[{"gateway_name":"alphapay","gateway_id":null}]},...`)
	answers(t, ask(t, a.Evaluate, lisbon, evaluationOf("shop_porto")), 403, `{"code":"TE_04",...`)
}

func TestEveryKindOfOutputHasItsForm(t *testing.T) {
	a := costAPI(t)
	for _, c := range []struct{ algorithm, want string }{
		{`{"type":"single","data":{"gateway_name":"a","gateway_id":"1"}}`,
			`"output":{"type":"straight_through","connector":{"gateway_name":"a","gateway_id":"1"}},"evaluated_output":[{"gateway_name":"a","gateway_id":"1"}]`},
		{`{"type":"priority","data":[]}`, `"output":{"type":"priority","connectors":[]},"evaluated_output":[],"eligible_connectors":[]`},
		{`{"type":"volume_split","data":[{"split":0,"output":{"gateway_name":"a","gateway_id":null}},{"split":100,"output":{"gateway_name":"b","gateway_id":null}}]}`,
			`"output":{"type":"volume_split","splits":[{"connector":{"gateway_name":"a","gateway_id":null},"split":0},{"connector":{"gateway_name":"b","gateway_id":null},"split":100}]},` +
				`"evaluated_output":[{"gateway_name":"b","gateway_id":null},{"gateway_name":"a","gateway_id":null}]`},
		{strings.Replace(bigEuro, `"default_selection":{"priority":[{"gateway_name":"alphapay","gateway_id":null}]}`,
			`"default_selection":{"volume_split_priority":[{"split":100,"output":[{"gateway_name":"a"},{"gateway_name":"b"}]},{"split":0,"output":[{"gateway_name":"b"},{"gateway_name":"c"}]}]}`, 1),
			`"output":{"type":"volume_split_priority","splits":[{"connectors":[{"gateway_name":"a","gateway_id":null},{"gateway_name":"b","gateway_id":null}],"split":100},{"connectors":[{"gateway_name":"b","gateway_id":null},{"gateway_name":"c","gateway_id":null}],"split":0}]},` +
				`"evaluated_output":[{"gateway_name":"a","gateway_id":null},{"gateway_name":"b","gateway_id":null},{"gateway_name":"c","gateway_id":null}]`},
	} {
		activated(t, a, "shop_lisbon", c.algorithm)
		if got := untimed(t, ask(t, a.Evaluate, lisbon, `{"payment_id":"p","created_by":"shop_lisbon","parameters":{}}`)); !strings.Contains(got, c.want) {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

func TestEvaluateBodyRefusals(t *testing.T) {
	with := func(parameters string) string { return `{"created_by":"o","parameters":` + parameters + `}` }
	for _, c := range []struct {
		body   string
		status int
		want   string
	}{
		{``, 400, "empty body"}, {`{`, 400, "could not parse"}, {`[]`, 400, "expected a JSON object"}, {`{"a":1,"a":2}`, 400, "duplicate key"},
		{`{}`, 422, "missing field `created_by`"},
		{`{"created_by":"o"}`, 422, "missing field `parameters`"},
		{`{"created_by":7,"parameters":{}}`, 422, "created_by"},
		{`{"created_by":"` + strings.Repeat("o", 257) + `","parameters":{}}`, 422, "longer than 256"},
		{`{"created_by":"o","parameters":{},"algorithm_for":"x"}`, 422, "algorithm_for"},
		{`{"created_by":"o","parameters":{},"fallback_output":{}}`, 422, "fallback_output"},
		{`{"created_by":"o","parameters":{},"fallback_output":[7]}`, 422, "fallback_output"},
		{`{"created_by":"o","parameters":{},"fallback_output":[{}]}`, 422, "gateway_name"},
		{with(`[]`), 422, "parameters"}, {with(`null`), 422, "parameters"}, {with(`{"a":1}`), 422, "parameters.a"},
		{with(`{"a":{}}`), 422, "parameters.a"}, {with(`{"a":{"type":"number"}}`), 422, "parameters.a"},
		{with(`{"a":{"type":"number","value":-1}}`), 422, "parameters.a"}, {with(`{"a":{"type":"number","value":1.5}}`), 422, "parameters.a"},
		{with(`{"a":{"type":"number","value":"1"}}`), 422, "parameters.a"}, {with(`{"a":{"type":"word","value":"1"}}`), 422, "parameters.a"},
		{with(`{"a":{"type":7,"value":"1"}}`), 422, "type"}, {with(`{"a":{"type":"str_value","value":null}}`), 422, "parameters.a"},
		{with(`{"a":{"type":"metadata_variant","value":"x"}}`), 422, "parameters.a"},
		{with(`{"a":{"type":"metadata_variant","value":{"key":"x"}}}`), 422, "parameters.a"},
		{with(`{"a":{"type":"metadata_variant","value":["key","x"]}}`), 422, "parameters.a"},
	} {
		var e evaluateBody
		err := e.decode([]byte(c.body))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.100s: %v, want %s", c.body, err, c.want)
			continue
		}
		w := httptest.NewRecorder()
		New(Options{Log: slog.New(slog.DiscardHandler)}).refuse(w, httptest.NewRequest("POST", "/", nil), err)
		if w.Code != c.status {
			t.Errorf("%.100s: %d, want %d", c.body, w.Code, c.status)
		}
	}
}

func TestEvaluateBodyReads(t *testing.T) {
	var e evaluateBody
	body := `{"payment_id":null,"created_by":"o","algorithm_for":"payout","fallback_output":null,"parameters":{
	  "n":{"value":18446744073709551615,"type":"number"},"e":{"type":"enum_variant","value":"a\u00e9"},"s":{"type":"str_value","value":""},
	  "m":{"type":"metadata_variant","value":{"value":"v","key":"k","more":1}},"g":{"type":"global_ref","value":"set"},
	  "l":{"type":"number_array","value":[1]},"\u006eull":null}}`
	for range 2 {
		if err := e.decode([]byte(body)); err != nil {
			t.Fatal(err)
		}
		want := []gateway.Parameter{{Key: "n", Kind: gateway.ValueNumber, Number: 1<<64 - 1}, {Key: "e", Kind: gateway.ValueEnum, Text: "aé"},
			{Key: "s", Kind: gateway.ValueText}, {Key: "m", Kind: gateway.ValueMetadata, Meta: "k", Text: "v"}, {Key: "g", Kind: gateway.ValueGlobal, Text: "set"},
			{Key: "l", Kind: gateway.ValueNumbers}, {Key: "null"}}
		if fmt.Sprint(e.req.Parameters) != fmt.Sprint(want) || e.req.Purpose != gateway.ForPayout || e.req.Owner != "o" || len(e.req.Fallback) != 0 {
			t.Errorf("%+v", e.req)
		}
	}
	if err := e.decode([]byte(`{"created_by":"o","parameters":{}}`)); err != nil || len(e.req.Parameters) != 0 || e.req.Purpose != gateway.ForPayment {
		t.Errorf("the second body kept of the first: %+v, %v", e.req, err)
	}
	var many strings.Builder
	for i := range gateway.MaxParameters {
		fmt.Fprintf(&many, `"p%d":null,`, i)
	}
	if err := e.decode([]byte(`{"created_by":"o","parameters":{` + strings.TrimSuffix(many.String(), ",") + `}}`)); err != nil {
		t.Errorf("the bound itself: %v", err)
	}
	if err := e.decode([]byte(`{"created_by":"o","parameters":{` + many.String() + `"x":null}}`)); err == nil {
		t.Error("one parameter too many was taken")
	}
}

// What the hot reader takes, a general JSON reader reads alike.
func FuzzEvaluateBody(f *testing.F) {
	f.Add([]byte(evaluationOf("o")))
	f.Add([]byte(`{"created_by":"o","parameters":{"m":{"type":"metadata_variant","value":{"key":"k","value":"v"}},"\u0061":{"type":"str_value","value":"\n"}}}`))
	f.Add([]byte(`{"created_by":"o","parameters":{"l":{"type":"number_comparison_array","value":[{}]}},"fallback_output":[{"gateway_name":"g"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var e evaluateBody
		if e.decode(body) != nil {
			return
		}
		var plain struct {
			Owner      string `json:"created_by"`
			Parameters map[string]*struct {
				Type  string `json:"type"`
				Value any    `json:"value"`
			} `json:"parameters"`
		}
		if err := json.Unmarshal(body, &plain); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if string(e.req.Owner) != plain.Owner || len(e.req.Parameters) != len(plain.Parameters) {
			t.Fatalf("%s: %+v", body, e.req)
		}
		for _, p := range e.req.Parameters {
			want, there := plain.Parameters[p.Key]
			if !there || (want == nil) != (p.Kind == gateway.ValueNull) {
				t.Fatalf("%s: %+v", body, p)
			}
			if want != nil {
				if text, isText := want.Value.(string); want.Type != p.Kind.String() || isText && text != p.Text {
					t.Fatalf("%s: %+v, want %+v", body, p, want)
				}
			}
		}
	})
}

func TestHybrid(t *testing.T) {
	a := costAPI(t)
	static := func(owner string) string { return `"static_routing_request":` + evaluationOf(owner) }
	dynamic := func(merchant, eligible string) string {
		return `"dynamic_routing_request":{"merchantId":"` + merchant + `","eligibleGatewayList":` + eligible + `,"rankingAlgorithm":"SR_BASED_ROUTING",
		"paymentInfo":{"paymentId":"p","amount":99,"currency":"EUR","paymentType":"ORDER_PAYMENT","paymentMethodType":"CARD","paymentMethod":"CREDIT"}}`
	}
	answers(t, ask(t, a.Hybrid, lisbon, `{}`), 400, `{"code":"TE_04","message":"At least one of...`)
	answers(t, ask(t, a.Hybrid, lisbon, `{"static_routing_request":null,"more":1}`), 400, `{"code":"TE_04","message":"At least one of...`)
	noFallback := strings.Replace(static("shop_lisbon"), `[{"gateway_name":"alphapay","gateway_id":null}]`, `[]`, 1)
	answers(t, ask(t, a.Hybrid, lisbon, `{`+noFallback+`}`), 400, `{"code":"TE_04","message":"shop_lisbon has no active payment algorithm","data":null}`)
	answers(t, ask(t, a.Hybrid, lisbon, `{`+static("shop_lisbon")+`}`), 200, `{"evaluated_connectors":[{"gateway_name":"alphapay","gateway_id":null}]}`)
	activated(t, a, "shop_lisbon", bigEuro)
	answers(t, ask(t, a.Hybrid, lisbon, `{`+static("shop_lisbon")+`}`), 200, `{"static_routing":{"payment_id":"ord-7741-1","status":"success",...`)
	w := ask(t, a.Hybrid, lisbon, `{`+static("shop_lisbon")+`,`+dynamic("shop_lisbon", `[]`)+`}`)
	answers(t, w, 200, `{"static_routing":{...`)
	for _, want := range []string{`"dynamic_routing":{"status":"success","decision":{"decided_gateway":"mercato:acc_7","fallback_gateways":["kestrel"]`,
		`"fallback_connectors":[{"gateway_name":"kestrel","gateway_id":null}]},"evaluated_connectors":[{"gateway_name":"mercato","gateway_id":"acc_7"}]}`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s\nlacks %s", w.Body, want)
		}
	}
	w = ask(t, a.Hybrid, lisbon, `{`+static("shop_lisbon")+`,`+dynamic("shop_lisbon", `["own"]`)+`}`)
	if !strings.Contains(w.Body.String(), `"evaluated_connectors":[{"gateway_name":"own","gateway_id":null}]}`) {
		t.Errorf("the caller's own list: %s", w.Body)
	}
	// A merchant that does not exist: the decision fails, the rules stand in.
	activated(t, a, "nobody", bigEuro)
	w = ask(t, a.Hybrid, operator, `{`+static("nobody")+`,`+dynamic("nobody", `[]`)+`}`)
	list := `[{"gateway_name":"mercato","gateway_id":"acc_7"},{"gateway_name":"kestrel","gateway_id":null}]`
	if want := `"dynamic_routing":{"status":"fallback","decision":null,"fallback_connectors":` + list + `},"evaluated_connectors":` + list + `}`; w.Code != 200 || !strings.HasSuffix(w.Body.String(), want) {
		t.Errorf("%d %s\nlacks %s", w.Code, w.Body, want)
	}
	answers(t, ask(t, a.Hybrid, operator, `{`+dynamic("nobody", `["x"]`)+`}`), 400, `{"status":"Invalid Request","error_code":"invalid_request_error",...`)
	answers(t, ask(t, a.Hybrid, lisbon, `{`+dynamic("shop_porto", `["x"]`)+`}`), 403, `{"code":"TE_04",...`)
	answers(t, ask(t, a.Hybrid, lisbon, `{`+static("shop_porto")+`}`), 403, `{"code":"TE_04",...`)
	for _, body := range []string{`{"static_routing_request":7}`, `{"dynamic_routing_request":{}}`, `{"static_routing_request":{}}`} {
		if w := ask(t, a.Hybrid, lisbon, body); w.Code != 422 && w.Code != 400 {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}

// sixParameters meet the six conditions of the rule.
const sixParameters = `{"payment_id":"ord-7741-1","created_by":"shop_lisbon","parameters":{"payment_method":{"type":"enum_variant","value":"card"},
 "amount":{"type":"number","value":9900},"currency":{"type":"enum_variant","value":"EUR"},"card_network":{"type":"enum_variant","value":"VISA"},
 "card_bin":{"type":"str_value","value":"453210"},"billing_country":{"type":"enum_variant","value":"Portugal"}}}`

// null is a response writer without costs of its own.
type null struct{ header http.Header }

func (n null) Header() http.Header       { return n.header }
func (null) WriteHeader(int)             {}
func (null) Write(p []byte) (int, error) { return len(p), nil }

func TestEvaluateHandlerAllocatesLittle(t *testing.T) {
	if raced {
		t.Skip("the race detector lets pools forget")
	}
	a := costAPI(t)
	activated(t, a, "shop_lisbon", bigEuro)
	r, w, body := httptest.NewRequest("POST", "/", nil), null{http.Header{}}, []byte(sixParameters)
	// One copy of the body; the rest is room for what the audit trail stores meanwhile.
	if n := testing.AllocsPerRun(2000, func() { a.Evaluate(w, r, &ident.Call{Principal: lisbon, Body: body}) }); n > 3 {
		t.Errorf("%v allocations, at most 3", n)
	}
}

func BenchmarkEvaluateHandler(b *testing.B) {
	a := costAPI(b)
	activated(b, a, "shop_lisbon", bigEuro)
	r, w, body := httptest.NewRequest("POST", "/", nil), null{http.Header{}}, []byte(sixParameters)
	b.ReportAllocs()
	for b.Loop() {
		a.Evaluate(w, r, &ident.Call{Principal: lisbon, Body: body})
	}
}

func BenchmarkEvaluateBody(b *testing.B) {
	var e evaluateBody
	body := []byte(sixParameters)
	b.ReportAllocs()
	for b.Loop() {
		if err := e.decode(body); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAnswersOfEvaluationsAreJSON(t *testing.T) {
	out := &gateway.EvaluateAnswer{Status: gateway.StatusSuccess, Matched: true, Rule: "a \"rule\"\n", Ignored: []string{"x", "\x01"},
		Output: &gateway.Output{Kind: gateway.OutputSingle, Connectors: []gateway.Connector{{Gateway: `g"`, ID: `\`}}}}
	text := appendEvaluation(nil, "p\t", out, time.Millisecond)
	if err := strictjson.Validate(text, 10); err != nil {
		t.Errorf("%s: %v", text, err)
	}
}
