package gatewayapi

import (
	"encoding/json/v2"
	"strings"
	"testing"
	"time"

	"holdfast/gateway"
)

// published is the example of the contract.
const published = `{"merchantId":"shop_lisbon","eligibleGatewayList":["alphapay","mercato","kestrel"],
 "rankingAlgorithm":"SR_BASED_ROUTING","eliminationEnabled":true,"enableMultiObjective":null,"cardBrand":"gold",
 "paymentInfo":{"paymentId":"ord-7741-1","amount":42.5,"currency":"EUR","country":"PT","customerId":"c-19",
  "udfs":null,"preferredGateway":null,"paymentType":"ORDER_PAYMENT","metadata":null,"internalMetadata":null,
  "isEmi":false,"emiBank":null,"emiTenure":null,"paymentMethodType":"card","paymentMethod":"CREDIT",
  "paymentSource":null,"authType":"THREE_DS_2","cardIssuerBankName":null,"cardIsin":"453210","cardType":"CREDIT",
  "cardSwitchProvider":"VISA"}}`

func TestDecideBodyReads(t *testing.T) {
	var d decideBody
	if err := d.decode([]byte(published)); err != nil {
		t.Fatal(err)
	}
	p := d.req.Payment
	if d.req.Merchant != "shop_lisbon" || len(d.req.Eligible) != 3 || d.req.Eligible[1] != "mercato" || d.req.Ranking != gateway.RankSuccess ||
		d.req.Elimination != gateway.Yes || d.req.Cost != gateway.Unsaid {
		t.Errorf("read %+v", d.req)
	}
	if p.ID != "ord-7741-1" || p.Amount != 42.5 || p.Currency != "EUR" || p.Country != "PT" || p.MethodType != "CARD" ||
		p.AuthType != "THREE_DS2" || p.BIN != "453210" || p.Network != "VISA" || p.Preferred != "" || len(p.UDFs) != 0 {
		t.Errorf("read %+v", p)
	}
	// A pooled body carries nothing over.
	small := `{"merchantId":"m","paymentInfo":{"paymentId":"a\u00e9","amount":1,"currency":"USD","paymentType":"ORDER_PAYMENT","paymentMethodType":"UPI","paymentMethod":"UPI"}}`
	if err := d.decode([]byte(small)); err != nil {
		t.Fatal(err)
	}
	if len(d.req.Eligible) != 0 || d.req.Payment.ID != "aé" || d.req.Payment.BIN != "" || d.req.Ranking != gateway.RankPriority {
		t.Errorf("read %+v", d.req)
	}
}

func TestDecideBodyRefusals(t *testing.T) {
	change := func(old, with string) string {
		out := strings.Replace(published, old, with, 1)
		if out == published {
			t.Fatalf("%q is not in the example", old)
		}
		return out
	}
	for name, c := range map[string]struct{ body, says string }{
		"not JSON":         {`{"merchantId"`, "byte 13"},
		"no object":        {`[]`, "object"},
		"empty":            {``, ""},
		"no merchant":      {change(`"merchantId":"shop_lisbon",`, ``), "merchantId"},
		"no info":          {`{"merchantId":"m"}`, "paymentInfo"},
		"info no object":   {`{"merchantId":"m","paymentInfo":[]}`, "paymentInfo"},
		"no amount":        {change(`"amount":42.5,`, ``), "amount"},
		"amount text":      {change(`42.5`, `"42.5"`), "amount"},
		"amount huge":      {change(`42.5`, `1e999`), ""},
		"no currency":      {change(`"currency":"EUR",`, ``), "currency"},
		"currency lower":   {change(`"EUR"`, `"eur"`), "currency"},
		"currency part":    {change(`"EUR"`, `"EU"`), "currency"},
		"currency pair":    {change(`"EUR"`, `"EUR FJD"`), "currency"},
		"country":          {change(`"PT"`, `"XX"`), "country"},
		"ranking":          {change(`"SR_BASED_ROUTING"`, `"SR"`), "rankingAlgorithm"},
		"payment type":     {change(`"ORDER_PAYMENT"`, `"ORDER"`), "paymentType"},
		"auth type":        {change(`"THREE_DS_2"`, `"3DS"`), "authType"},
		"card type":        {change(`"cardType":"CREDIT"`, `"cardType":"GOLD"`), "cardType"},
		"list of numbers":  {change(`["alphapay","mercato","kestrel"]`, `[1]`), "eligibleGatewayList"},
		"list no list":     {change(`["alphapay","mercato","kestrel"]`, `"alphapay"`), "eligibleGatewayList"},
		"long gateway":     {change(`"mercato"`, `"`+strings.Repeat("g", 257)+`"`), "eligibleGatewayList"},
		"many gateways":    {change(`["alphapay","mercato","kestrel"]`, `[`+strings.Repeat(`"g",`, 256)+`"g"]`), "too many"},
		"long payment":     {change(`ord-7741-1`, strings.Repeat("p", 257)), "paymentId"},
		"elimination":      {change(`"eliminationEnabled":true`, `"eliminationEnabled":"yes"`), "eliminationEnabled"},
		"tenure":           {change(`"emiTenure":null`, `"emiTenure":1.5`), "emiTenure"},
		"payment id is 7":  {change(`"ord-7741-1"`, `7`), "paymentId"},
		"deep":             {change(`"udfs":null`, `"deep":`+strings.Repeat("[", 40)+strings.Repeat("]", 40)), ""},
		"lone surrogate":   {change(`ord-7741-1`, `\ud800`), ""},
		"trailing garbage": {published + "x", ""},
	} {
		var d decideBody
		err := d.decode([]byte(c.body))
		refused, ok := err.(*gateway.DecisionError)
		if !ok || refused.InfoCode != "INVALID_INPUT" || !strings.Contains(refused.Detail, c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFeedbackBodyReads(t *testing.T) {
	var f feedbackCall
	err := f.decode([]byte(`{"merchantId":"shop_lisbon","gateway":"mercato","gatewayReferenceId":null,"status":"CHARGED","paymentId":"ord-7741-1",
 "enforceDynamicRoutingFailure":null,"txnLatency":{"gatewayLatency":2100},
 "errorInfo":{"connector":"mercato","flow":"Authorize","subFlow":"sub_flow","errorCode":"51","errorMessage":"no funds","issuerErrorCode":null,"cardNetwork":null},
 "isSmartRetry":false,"more":{}}`))
	b := f.feedback
	if err != nil || b.Merchant != "shop_lisbon" || b.Gateway != "mercato" || b.Status != "CHARGED" || b.PaymentID != "ord-7741-1" ||
		b.Latency != 2100 || b.Error.Code != "51" || b.Error.Message != "no funds" || b.EnforceFailure || b.Retry {
		t.Errorf("read %+v, %v", b, err)
	}
	if err := f.decode([]byte(`{"merchantId":"m","gateway":"g","status":"CHARGED","paymentId":"p","enforceDynamicRoutingFailure":true,"isSmartRetry":true}`)); err != nil ||
		f.feedback.Latency >= 0 || !f.feedback.EnforceFailure || !f.feedback.Retry || f.feedback.Error.Code != "" {
		t.Errorf("read %+v, %v", f.feedback, err)
	}
	for _, body := range []string{`{"merchantId":"m","gateway":"g","status":"CHARGED"}`, `{"merchantId":"m","gateway":7,"status":"CHARGED","paymentId":"p"}`,
		`{"merchantId":"m","gateway":"g","status":"CHARGED","paymentId":"p","txnLatency":5}`, `null`} {
		if f.decode([]byte(body)) == nil {
			t.Errorf("%s was read", body)
		}
	}
}

func TestDecisionHasEveryMember(t *testing.T) {
	a := &gateway.Answer{Gateway: "mercato", Fallbacks: []gateway.Name{"alphapay"}, Ranked: []gateway.Scored{{Gateway: "mercato", Score: 0.976}, {Gateway: "alphapay", Score: 0.944}},
		Approach: gateway.ApproachSuccess, Before: "mercato", Reset: gateway.NoReset, Dimension: "ORDER_PAYMENT, CARD, CREDIT", Level: "PM_LEVEL",
		Logic: &gateway.PriorityLogic{Gateways: []gateway.Name{"alphapay", "mercato"}}}
	const want = `{"decided_gateway":"mercato","fallback_gateways":["alphapay"],"gateway_priority_map":{"mercato":0.976,"alphapay":0.944},` +
		`"filter_wise_gateways":null,"priority_logic_tag":null,"routing_approach":"SR_SELECTION_V3_ROUTING","gateway_before_evaluation":"mercato",` +
		`"priority_logic_output":{"isEnforcement":false,"gws":["alphapay","mercato"],"priorityLogicTag":null,"gatewayReferenceIds":{},"primaryLogic":null,"fallbackLogic":null},` +
		`"debit_routing_output":null,"reset_approach":"NO_RESET","routing_dimension":"ORDER_PAYMENT, CARD, CREDIT","routing_dimension_level":"PM_LEVEL",` +
		`"is_scheduled_outage":false,"is_dynamic_mga_enabled":false,"gateway_mga_id_map":null,"is_rust_based_decider":true,"latency":2,"multi_objective_info":null}`
	if got := string(appendDecision(nil, a, 2600*time.Microsecond)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func FuzzDecideBody(f *testing.F) {
	f.Add([]byte(published))
	f.Fuzz(func(t *testing.T, body []byte) {
		var d decideBody
		if d.decode(body) != nil {
			return
		}
		var v struct {
			MerchantID  string `json:"merchantId"`
			PaymentInfo struct {
				PaymentID string  `json:"paymentId"`
				Amount    float64 `json:"amount"`
			} `json:"paymentInfo"`
		}
		if err := json.Unmarshal(body, &v); err != nil {
			t.Skip() // members that are ignored here may have any type
		}
		if v.MerchantID != string(d.req.Merchant) || v.PaymentInfo.PaymentID != d.req.Payment.ID || v.PaymentInfo.Amount != d.req.Payment.Amount {
			t.Errorf("%q read as %q, %q, %v", body, d.req.Merchant, d.req.Payment.ID, d.req.Payment.Amount)
		}
	})
}

func FuzzFeedbackBody(f *testing.F) {
	f.Add([]byte(`{"merchantId":"m","gateway":"g","status":"CHARGED","paymentId":"p","txnLatency":{"gatewayLatency":1}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var c feedbackCall
		if c.decode(body) == nil && (c.feedback.Merchant == "" || c.feedback.PaymentID == "" || len(c.feedback.Gateway) > gateway.MaxName) {
			t.Errorf("%q read as %+v", body, c.feedback)
		}
	})
}
