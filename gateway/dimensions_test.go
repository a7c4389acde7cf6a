package gateway_test

import (
	"strings"
	"testing"

	"holdfast/fault"
	"holdfast/gateway"
)

func TestDimensionsReplaceEachOther(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.create("shop")
	for _, m := range []gateway.MerchantID{"shop", "nobody"} {
		if d, err := r.service.Dimensions(t.Context(), m); err != nil || text(t, d) != `{"udfs":[],"fields":null}` {
			t.Errorf("%s: %s, %v", m, text(t, d), err)
		}
	}
	r.must(r.service.SetDimensions(t.Context(), "shop", gateway.DimensionData{UDFs: []int{1, 2}, Fields: []string{"currency", "card_network"}}))
	r.must(r.service.SetDimensions(t.Context(), "shop", gateway.DimensionData{UDFs: []int{3, 3}, Fields: []string{"country", "country"}}))
	r.stop()
	r.start()
	if d, err := r.service.Dimensions(t.Context(), "shop"); err != nil || text(t, d) != `{"udfs":[3,3],"fields":["country","country"]}` {
		t.Errorf("%s, %v", text(t, d), err)
	}
	q := request("shop", "p1")
	q.Payment.Country = "PT"
	if a := r.decide(q); strings.Count(a.Dimension, "PT") != 1 {
		t.Errorf("dimension %q", a.Dimension)
	}
	r.refused("for nobody", r.service.SetDimensions(t.Context(), "nobody", gateway.DimensionData{}), fault.NotFound)
	err := r.service.SetDimensions(t.Context(), "shop", gateway.DimensionData{Fields: []string{"currency", "colour", "size"}})
	r.refused("unknown fields", err, fault.Invalid)
	if says := fault.MessageOf(err); !strings.Contains(says, "colour, size;") {
		t.Errorf("the refusal says %s", says)
	}
	for _, n := range []int{-1, 64} {
		r.refused("a number", r.service.SetDimensions(t.Context(), "shop", gateway.DimensionData{UDFs: []int{n}}), fault.Invalid)
	}
	r.refused("many", r.service.SetDimensions(t.Context(), "shop", gateway.DimensionData{UDFs: make([]int, 65)}), fault.Invalid)
}

func TestDimensionsTellWindowsApart(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.create("shop")
	r.must(r.service.SetDimensions(t.Context(), "shop", gateway.DimensionData{Fields: []string{"currency"}}))
	r.decide(request("shop", "p1"))
	r.update("shop", "p1", "alphapay", "FAILURE")
	other := request("shop", "p2")
	other.Payment.Currency = "USD"
	if a := r.decide(other); a.Gateway != "alphapay" {
		t.Errorf("a failure in EUR moved USD: %q", a.Gateway)
	}
	if a := r.decide(request("shop", "p3")); a.Gateway != "mercato" {
		t.Errorf("a failure in EUR did not move EUR: %q", a.Gateway)
	}
}

func TestResetForgetsWindowsAndAutopilotRows(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.create("shop")
	r.create("other")
	r.must(r.service.CreateConfig(t.Context(), "shop", &gateway.SuccessData{Rows: []gateway.SuccessRowData{{MethodType: ptr("UPI"), Source: ptr("autopilot")},
		{MethodType: ptr("UPI"), Source: ptr("manual")}, {MethodType: ptr("CARD")}}}))
	for _, m := range []gateway.MerchantID{"shop", "other"} {
		r.decide(request(m, "p1"))
		r.update(m, "p1", "alphapay", "FAILURE")
	}
	got, err := r.service.ResetScores(t.Context(), "shop")
	if err != nil || got != (gateway.ScoreReset{Windows: 1, Overrides: 1}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = r.service.ResetScores(t.Context(), "shop"); err != nil || got != (gateway.ScoreReset{}) {
		t.Errorf("again: %+v, %v", got, err)
	}
	if a, b := r.scores("shop")["alphapay"], r.scores("other")["alphapay"]; a != 1 || b == 1 {
		t.Errorf("scores %v and, of the other merchant, %v", a, b)
	}
	data, err := r.service.Config(t.Context(), "shop", gateway.ConfigSuccess)
	if err != nil || strings.Contains(text(t, data), "autopilot") || !strings.Contains(text(t, data), "manual") {
		t.Errorf("config %s, %v", text(t, data), err)
	}
	_, err = r.service.ResetScores(t.Context(), "nobody")
	r.refused("of nobody", err, fault.NotFound)
}

func TestServiceConfigs(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.create("shop")
	for name, good := range map[string]string{"SR_V3_INPUT_CONFIG_DEFAULT": `{"defaultBucketSize":10}`, "gateway_penalty_factor": `10`, "gateway_reward_factor": `0.5`,
		"gateway_reset_score_enabled": `true`, "gateway_elimination_threshold": `0.4`, "elimination": `{"enableAll":false,"enableAllRollout":10}`} {
		_, err := r.service.ServiceConfig(t.Context(), name)
		r.refused(name, err, fault.NotFound)
		for _, bad := range []string{`null`, `"x"`, `[]`, `-1`, `100`} {
			r.refused(name+" "+bad, r.service.SetServiceConfig(t.Context(), name, []byte(bad)), fault.Invalid)
		}
		r.must(r.service.SetServiceConfig(t.Context(), name, []byte(good)))
		if got, err := r.service.ServiceConfig(t.Context(), name); err != nil || string(got) != good {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	r.refused("another name", r.service.SetServiceConfig(t.Context(), "other", []byte(`1`)), fault.NotFound)
	r.refused("a rollout", r.service.SetServiceConfig(t.Context(), "elimination", []byte(`{"enableAllRollout":101}`)), fault.Invalid)
	r.refused("a long one", r.service.SetServiceConfig(t.Context(), "elimination", []byte(`{"x":"`+strings.Repeat("x", 1<<20)+`"}`)), fault.Invalid)
	r.stop()
	r.start()
	r.decide(request("shop", "p1"))
	r.update("shop", "p1", "alphapay", "FAILURE")
	if got := r.scores("shop")["alphapay"]; got != 0.9 {
		t.Errorf("with a bucket of 10 for all, one failure gives %v", got)
	}
}
