package gateway_test

import (
	"encoding/json/v2"
	"fmt"
	"math"
	"testing"
	"time"

	"holdfast/gateway"
	"holdfast/ident"
)

// configure stores a rule config as a client writes it.
func (r *rig) configure(m gateway.MerchantID, k gateway.ConfigKind, text string) {
	r.t.Helper()
	data, err := gateway.NewData(k)
	if err == nil {
		err = json.Unmarshal([]byte(text), data)
	}
	if err == nil {
		if err = r.service.CreateConfig(r.t.Context(), m, data); err != nil {
			err = r.service.UpdateConfig(r.t.Context(), m, data)
		}
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) switchOn(m gateway.MerchantID, f gateway.Feature) {
	r.t.Helper()
	if _, err := r.service.SetFeature(r.t.Context(), m, f, gateway.Switch{On: true, Rollout: 100}); err != nil {
		r.t.Fatal(err)
	}
}

// pay decides and reports one payment of a request, at a gateway.
func (r *rig) pay(q *gateway.Request, g gateway.Name, status gateway.Status) gateway.FeedbackAnswer {
	r.t.Helper()
	r.decide(q)
	return r.update(q.Merchant, q.Payment.ID, g, status)
}

func scoreOf(a *gateway.Answer, g gateway.Name) float64 {
	for _, s := range a.Ranked {
		if s.Gateway == g {
			return s.Score
		}
	}
	return math.NaN()
}

func TestWorkedExampleOfAWindowOfTen(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.merchant("shop")
	r.configure("shop", gateway.ConfigSuccess, `{"defaultBucketSize":10}`)
	n := 0
	report := func(status gateway.Status) float64 {
		n++
		r.pay(request("shop", fmt.Sprint("p", n)), "alphapay", status)
		return r.scores("shop")["alphapay"]
	}
	for i, step := range []struct {
		status gateway.Status
		want   float64
	}{{"FAILURE", 0.9}, {"FAILURE", 0.8}, {"CHARGED", 0.8}} {
		if got := report(step.status); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
	for range 10 {
		report("FAILURE")
	}
	if got := r.scores("shop")["alphapay"]; got != 0 {
		t.Errorf("ten failures in a row: %v", got)
	}
	// Growing keeps what is known, shrinking drops the oldest at the next outcome.
	r.configure("shop", gateway.ConfigSuccess, `{"defaultBucketSize":20}`)
	if got := report("CHARGED"); got != 1.0/11 {
		t.Errorf("after growing: %v", got)
	}
	r.configure("shop", gateway.ConfigSuccess, `{"defaultBucketSize":2}`)
	if got := report("CHARGED"); got != 1 {
		t.Errorf("after shrinking: %v", got)
	}
}

func TestTwentyOnePenaltiesFallBelowTheThreshold(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.merchant("shop")
	r.configure("shop", gateway.ConfigElimination, `{"threshold":0.35,"txnLatency":{"gatewayLatency":5000}}`)
	r.switchOn("shop", gateway.FeatureElimination)
	for i := range 21 {
		if a := r.decide(request("shop", "q")); a.Approach != gateway.ApproachSuccess {
			t.Fatalf("after %d penalties: %s", i, a.Approach)
		}
		r.pay(request("shop", fmt.Sprint("p", i)), "kestrel", "PENDING_VBV")
	}
	a := r.decide(request("shop", "q"))
	if a.Approach != gateway.ApproachDown || scoreOf(a, "kestrel") != 0.2 {
		t.Errorf("after 21 penalties: %s, %v", a.Approach, a.Ranked)
	}
	// A slow success gives no reward, a slow failure still costs.
	slow := func(id string, status gateway.Status) gateway.FeedbackAnswer {
		r.decide(request("shop", id))
		f, err := r.service.Update(t.Context(), &gateway.Feedback{Merchant: "shop", PaymentID: id, Gateway: "mercato", Status: status, Latency: 5001})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if f := slow("slow1", "CHARGED"); f.Applied || f.Reason != gateway.ReasonSlow {
		t.Errorf("a slow success: %+v", f)
	}
	if f := slow("slow2", "FAILURE"); !f.Applied {
		t.Errorf("a slow failure: %+v", f)
	}
}

func TestRowsDecideWhichWindowIsReadAndWritten(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.merchant("shop")
	r.configure("shop", gateway.ConfigSuccess, `{"defaultBucketSize":100,"subLevelInputConfig":[
		{"paymentMethodType":"CARD","bucketSize":50},{"paymentMethodType":"CARD","paymentMethod":"CREDIT","cardNetwork":"VISA","bucketSize":10},
		{"paymentMethodType":"CARD","paymentMethod":"CREDIT","bucketSize":20}]}`)
	for i, c := range []struct {
		network, method, kind string
		want                  float64
	}{{"VISA", "CREDIT", "CARD", 0.9}, {"AMEX", "CREDIT", "CARD", 0.95}, {"", "DEBIT", "CARD", 0.98}, {"", "UPI", "UPI", 0.99}} {
		q := request("shop", fmt.Sprint("p", i))
		q.Payment.Network, q.Payment.Method, q.Payment.MethodType = c.network, c.method, c.kind
		q.Payment.Country = fmt.Sprint(i) // not a dimension: it changes nothing
		if i == 1 {
			q.Payment.OrderType = "MOTO_PAYMENT" // a window of its own, for the size of a new one shows
		}
		r.pay(q, "kestrel", "FAILURE")
		if got := scoreOf(r.decide(q), "kestrel"); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestDimensionsMakeWindowsOfTheirOwn(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.merchant("shop")
	err := r.service.SetDimensions(t.Context(), "shop", gateway.DimensionData{Fields: []string{"currency", "auth_type"}, UDFs: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	q := request("shop", "p1")
	q.Payment.AuthType, q.Payment.UDFs = "THREE_DS2", []string{"", "gold"}
	r.pay(q, "alphapay", "FAILURE")
	a := r.decide(q)
	if got := scoreOf(a, "alphapay"); got != 124.0/125 || a.Dimension != "ORDER_PAYMENT, CARD, CREDIT, CREDIT, EUR, THREE_DS, gold" {
		t.Errorf("score %v of %q", got, a.Dimension)
	}
	q.Payment.Currency = "USD"
	if a := r.decide(q); scoreOf(a, "alphapay") != 1 {
		t.Errorf("another currency has the score %v", scoreOf(a, "alphapay"))
	}
	// Feedback after a change of the dimensions writes where its decision read.
	q.Payment.ID, q.Payment.Currency = "p2", "EUR"
	r.decide(q)
	if err := r.service.SetDimensions(t.Context(), "shop", gateway.DimensionData{}); err != nil {
		t.Fatal(err)
	}
	r.update("shop", "p2", "alphapay", "FAILURE")
	if got := r.scores("shop")["alphapay"]; got != 1 {
		t.Errorf("the window without dimensions has %v", got)
	}
}

func TestHedging(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.merchant("shop")
	r.configure("shop", gateway.ConfigSuccess, `{"defaultHedgingPercent":100}`)
	for i := range 3 {
		r.pay(request("shop", fmt.Sprint("p", i)), "alphapay", "FAILURE")
	}
	if a := r.decide(request("shop", "q")); a.Approach != gateway.ApproachSuccess || a.Gateway != "mercato" {
		t.Errorf("with the switch off: %s, %s", a.Approach, a.Gateway)
	}
	r.switchOn("shop", gateway.FeatureExplore)
	counts := map[gateway.Name]int{}
	for i := range 600 {
		a := r.decide(request("shop", fmt.Sprint("h", i)))
		counts[a.Gateway]++
		if a.Approach != gateway.ApproachHedging || scoreOf(a, "alphapay") != 1 || len(a.Fallbacks) != 2 {
			t.Fatalf("%s, %v, %v", a.Approach, a.Ranked, a.Fallbacks)
		}
	}
	for g, n := range counts {
		if n < 140 || n > 260 { // five standard deviations
			t.Errorf("%s was picked %d times of 600", g, n)
		}
	}
	if len(counts) != 3 {
		t.Errorf("picked %v", counts)
	}
	r.configure("shop", gateway.ConfigSuccess, `{"defaultHedgingPercent":0}`)
	if a := r.decide(request("shop", "q")); a.Approach != gateway.ApproachSuccess || a.Gateway != "mercato" {
		t.Errorf("a stored 0 %%: %s, %s", a.Approach, a.Gateway)
	}
}

func TestAScheduledOutageLowersTheScore(t *testing.T) {
	c := newClock()
	r := newRig(t, gateway.Options{Now: c.now})
	r.merchant("shop")
	r.merchant("other")
	o, err := r.service.CreateOutage(t.Context(), ident.Principal{Kind: ident.Operator}, gateway.Outage{Gateway: "alphapay", Merchant: "shop",
		StartMS: c.now().Add(time.Minute).UnixMilli(), EndMS: c.now().Add(time.Hour).UnixMilli()})
	if err != nil {
		t.Fatal(err)
	}
	if a := r.decide(request("shop", "before")); a.Outage || a.Gateway != "alphapay" {
		t.Errorf("before it begins: %+v", a.Ranked)
	}
	c.pass(2 * time.Minute)
	if a := r.decide(request("shop", "during")); !a.Outage || a.Gateway != "mercato" || scoreOf(a, "alphapay") != 0.1 || a.Before != "mercato" {
		t.Errorf("during it: %+v, before elimination %s", a.Ranked, a.Before)
	}
	if a := r.decide(request("other", "during")); a.Outage {
		t.Error("it reaches another merchant")
	}
	q := request("shop", "without")
	q.Eligible = []gateway.Name{"mercato", "kestrel"}
	if a := r.decide(q); a.Outage || len(a.Ranked) != 2 {
		t.Errorf("a gateway that is not eligible appears: %+v", a.Ranked)
	}
	if err := r.service.EndOutage(t.Context(), ident.Principal{Kind: ident.Operator}, o.ID); err != nil {
		t.Fatal(err)
	}
	if a := r.decide(request("shop", "after")); a.Outage {
		t.Error("it goes on after its end")
	}
}

func TestTheActiveRuleDecidesPriorityRouting(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.merchant("shop")
	row, _, err := r.service.CreateAlgorithm(t.Context(), gateway.NewAlgorithm{Owner: "shop", Name: "by currency", Algorithm: []byte(`{"type":"advanced","data":{
		"globals":{},"metadata":{},"default_selection":{"priority":[{"gateway_name":"kestrel","gateway_id":null}]},
		"rules":[{"name":"euros","routing_type":"priority","output":{"priority":[{"gateway_name":"mercato","gateway_id":"acc_7"},{"gateway_name":"kestrel","gateway_id":null}]},
		"statements":[{"condition":[{"lhs":"currency","comparison":"equal","value":{"type":"enum_variant","value":"EUR"},"metadata":{}}]}]}]}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.service.ActivateAlgorithm(t.Context(), "shop", row.ID); err != nil {
		t.Fatal(err)
	}
	q := request("shop", "p1")
	q.Ranking = gateway.RankPriority
	a := r.decide(q)
	if a.Gateway != "mercato" || a.Approach != gateway.ApproachPriority || a.Logic.Tag != "euros" || a.Logic.Primary.Name != "by currency" ||
		fmt.Sprint(a.Ranked) != "[{mercato 1} {kestrel 0.9} {alphapay 0.8}]" {
		t.Errorf("decided %+v, %+v", a.Ranked, a.Logic)
	}
	q.Payment.Currency = "USD"
	if a := r.decide(q); a.Gateway != "kestrel" {
		t.Errorf("the default decided %s", a.Gateway)
	}
	if err := r.service.DeactivateAlgorithm(t.Context(), "shop", row.ID); err != nil {
		t.Fatal(err)
	}
	if a := r.decide(q); a.Gateway != "alphapay" || a.Logic.Primary != nil {
		t.Errorf("without a rule %s is decided by %+v", a.Gateway, a.Logic.Primary)
	}
}

func TestCostMayChangeTheLeader(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.merchant("shop")
	err := r.service.PutSeedCosts(t.Context(), "shop", []gateway.CostRow{{PSP: "alphapay", Interchange: 300}, {PSP: "mercato", Interchange: 100}})
	if err != nil {
		t.Fatal(err)
	}
	q := request("shop", "p")
	if a := r.decide(q); a.Cost != nil || a.Gateway != "alphapay" {
		t.Errorf("without the switch: %s, %+v", a.Gateway, a.Cost)
	}
	q.Cost = gateway.Yes
	a := r.decide(q)
	if a.Gateway != "mercato" || a.Approach != gateway.ApproachCost || a.Cost == nil || a.Cost.Outcome != gateway.CostWon || a.Cost.SavedBPS != 200 ||
		fmt.Sprint(a.Fallbacks) != "[alphapay kestrel]" {
		t.Errorf("decided %s by %s, then %v: %+v", a.Gateway, a.Approach, a.Fallbacks, a.Cost)
	}
}
