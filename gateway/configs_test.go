package gateway_test

import (
	"encoding/json/v2"
	"fmt"
	"strings"
	"sync"
	"testing"

	"holdfast/fault"
	"holdfast/gateway"
)

func ptr[T any](v T) *T { return &v }

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestConfigsLiveAndDie(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.create("shop")
	for kind, datas := range map[gateway.ConfigKind][2]gateway.ConfigData{
		gateway.ConfigSuccess:     {&gateway.SuccessData{Bucket: ptr(20)}, &gateway.SuccessData{Bucket: ptr(30)}},
		gateway.ConfigElimination: {&gateway.EliminationData{Threshold: ptr(0.3)}, &gateway.EliminationData{Latency: &gateway.LatencyData{Gateway: ptr(5000.0)}}},
		gateway.ConfigDebit:       {&gateway.DebitData{CategoryCode: ptr("5411")}, &gateway.DebitData{AcquirerCountry: ptr("US")}},
	} {
		has := func(what string, want gateway.ConfigData) {
			t.Helper()
			got, err := r.service.Config(t.Context(), "shop", kind)
			if want == nil {
				r.refused(what, err, fault.NotFound)
			} else if err != nil || text(t, got) != text(t, want) {
				t.Errorf("%s, %s: %s, %v", kind, what, text(t, got), err)
			}
		}
		has("nothing is stored", nil)
		r.refused("an update of nothing", r.service.UpdateConfig(t.Context(), "shop", datas[0]), fault.NotFound)
		r.refused("a removal of nothing", r.service.DeleteConfig(t.Context(), "shop", kind), fault.NotFound)
		r.must(r.service.CreateConfig(t.Context(), "shop", datas[0]))
		has("created", datas[0])
		if err := r.service.CreateConfig(t.Context(), "shop", datas[1]); kind == gateway.ConfigElimination {
			r.must(err)
			has("created over", datas[1])
		} else {
			r.refused("a second", err, fault.Invalid)
			has("still the first", datas[0])
		}
		r.must(r.service.UpdateConfig(t.Context(), "shop", datas[1]))
		r.stop()
		r.start()
		has("updated", datas[1])
		r.must(r.service.DeleteConfig(t.Context(), "shop", kind))
		has("removed", nil)
		for what, err := range map[string]error{"create": r.service.CreateConfig(t.Context(), "nobody", datas[0]),
			"update": r.service.UpdateConfig(t.Context(), "nobody", datas[0]), "remove": r.service.DeleteConfig(t.Context(), "nobody", kind)} {
			r.refused(what+" for nobody", err, fault.NotFound)
			if !strings.Contains(fault.MessageOf(err), "nobody") {
				t.Errorf("%s for nobody: %v", what, err)
			}
		}
	}
	_, err := r.service.Config(t.Context(), "shop", "other")
	r.refused("another kind", err, fault.Invalid)
}

func TestConfigBounds(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.create("shop")
	long := ptr(strings.Repeat("x", 300))
	rows := func(row gateway.SuccessRowData) gateway.ConfigData {
		return &gateway.SuccessData{Rows: []gateway.SuccessRowData{{}, row}}
	}
	for name, c := range map[string]struct {
		data gateway.ConfigData
		says string
	}{
		"hedging":        {&gateway.SuccessData{Hedging: ptr(100.1)}, "hedging"},
		"bucket":         {&gateway.SuccessData{Bucket: ptr(100_001)}, "bucket"},
		"latency":        {&gateway.SuccessData{LatencyThreshold: ptr(1e300)}, "latency"},
		"margin":         {&gateway.SuccessData{Margin: ptr(1e300)}, "margin"},
		"rows":           {&gateway.SuccessData{Rows: make([]gateway.SuccessRowData, gateway.MaxSuccessRows+1)}, "rows"},
		"row's hedging":  {rows(gateway.SuccessRowData{Hedging: ptr(101.0)}), "[1]"},
		"row's text":     {rows(gateway.SuccessRowData{Network: long}), "cardNetwork"},
		"row's factor":   {rows(gateway.SuccessRowData{UpperReset: ptr(1e9)}), "upper"},
		"extra score":    {&gateway.SuccessData{ExtraScores: []gateway.ExtraScoreData{{}}}, "gatewayName"},
		"extra scores":   {&gateway.SuccessData{ExtraScores: make([]gateway.ExtraScoreData, 257)}, "extra scores"},
		"sigma":          {&gateway.SuccessData{ExtraScores: []gateway.ExtraScoreData{{Gateway: "a", Sigma: -1e9}}}, "Sigma"},
		"threshold":      {&gateway.EliminationData{Threshold: ptr(1.01)}, "threshold"},
		"slow":           {&gateway.EliminationData{Latency: &gateway.LatencyData{Gateway: ptr(1e300)}}, "gatewayLatency"},
		"category":       {&gateway.DebitData{CategoryCode: long}, "merchantCategoryCode"},
		"country's name": {&gateway.DebitData{AcquirerCountry: long}, "acquirerCountry"},
	} {
		err := r.service.CreateConfig(t.Context(), "shop", c.data)
		r.refused(name, err, fault.Invalid)
		if !strings.Contains(fault.MessageOf(err), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is ignored is stored as it was sent, and a bucket of the config sizes the next window.
func TestConfigsAreSeenByTheNextRequest(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.create("shop")
	r.must(r.service.CreateConfig(t.Context(), "shop", &gateway.SuccessData{Bucket: ptr(10), Hedging: ptr(-4.0)}))
	r.decide(request("shop", "p1"))
	r.update("shop", "p1", "alphapay", "FAILURE")
	if got := r.scores("shop")["alphapay"]; got != 0.9 {
		t.Errorf("with a bucket of 10 one failure gives %v", got)
	}
	r.must(r.service.UpdateConfig(t.Context(), "shop", &gateway.SuccessData{Bucket: ptr(2)}))
	r.decide(request("shop", "p2"))
	r.update("shop", "p2", "mercato", "FAILURE")
	if got := r.scores("shop")["mercato"]; got != 0.5 {
		t.Errorf("with a bucket of 2 one failure gives %v", got)
	}
}

func TestHedgingWithoutExplorationIsWarnedOf(t *testing.T) {
	o := gateway.Options{}
	log := logged(&o)
	r := newRig(t, o)
	r.create("shop")
	warned := func() bool {
		defer log.Reset()
		return strings.Contains(log.String(), "hedgingPercent") && strings.Contains(log.String(), "merchant=shop")
	}
	r.must(r.service.CreateConfig(t.Context(), "shop", &gateway.SuccessData{Bucket: ptr(10)}))
	if warned() {
		t.Error("warned without a percentage")
	}
	row := []gateway.SuccessRowData{{MethodType: ptr("CARD"), Hedging: ptr(4.0)}}
	r.must(r.service.UpdateConfig(t.Context(), "shop", &gateway.SuccessData{Rows: row}))
	if !warned() {
		t.Error("no warning with the switch off")
	}
	_, err := r.service.SetFeature(t.Context(), "shop", gateway.FeatureExplore, gateway.Switch{On: true})
	r.must(err)
	r.must(r.service.UpdateConfig(t.Context(), "shop", &gateway.SuccessData{Hedging: ptr(5.0)}))
	if warned() {
		t.Error("warned with the switch on")
	}
	_, err = r.service.SetFeature(t.Context(), "shop", gateway.FeatureExplore, gateway.Switch{})
	r.must(err)
	if !warned() {
		t.Error("no warning when the switch is turned off over a percentage")
	}
}

// Changes of different parts at the same moment: each is kept.
func TestConfigsAtOnceLoseNothing(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.create("shop")
	var wait sync.WaitGroup
	for _, change := range []func() error{
		func() error {
			return r.service.CreateConfig(t.Context(), "shop", &gateway.SuccessData{Bucket: ptr(10)})
		},
		func() error {
			return r.service.CreateConfig(t.Context(), "shop", &gateway.EliminationData{Threshold: ptr(0.3)})
		},
		func() error {
			return r.service.CreateConfig(t.Context(), "shop", &gateway.DebitData{CategoryCode: ptr("1")})
		},
		func() error { return r.service.SetDebitRouting(t.Context(), "shop", gateway.Yes) },
		func() error {
			return r.service.SetDimensions(t.Context(), "shop", gateway.DimensionData{Fields: []string{"currency"}})
		},
	} {
		wait.Go(func() {
			if err := change(); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, kind := range []gateway.ConfigKind{gateway.ConfigSuccess, gateway.ConfigElimination, gateway.ConfigDebit} {
		if _, err := r.service.Config(t.Context(), "shop", kind); err != nil {
			t.Error(err)
		}
	}
	on, err := r.service.DebitRouting(t.Context(), "shop")
	d, err2 := r.service.Dimensions(t.Context(), "shop")
	if !on || err != nil || fmt.Sprint(d.Fields) != "[currency]" || err2 != nil {
		t.Errorf("debit %t, %v; dimensions %v, %v", on, err, d.Fields, err2)
	}
}

func TestDebitRoutingSwitch(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.create("shop")
	for _, want := range []gateway.Choice{gateway.No, gateway.Yes, gateway.No} {
		r.must(r.service.SetDebitRouting(t.Context(), "shop", want))
		if on, err := r.service.DebitRouting(t.Context(), "shop"); err != nil || on != (want == gateway.Yes) {
			t.Errorf("%t, %v", on, err)
		}
	}
	_, err := r.service.DebitRouting(t.Context(), "nobody")
	r.refused("of nobody", err, fault.NotFound)
	r.refused("for nobody", r.service.SetDebitRouting(t.Context(), "nobody", gateway.Yes), fault.NotFound)
}
