package gateway

import (
	"sync/atomic"
	"testing"
	"time"
)

// ptr is a member that was sent.
func ptr[T any](v T) *T { return &v }

func TestHasFollowsTheDraw(t *testing.T) {
	var wide atomic.Pointer[deployment]
	wide.Store(&deployment{features: [featureCount]Switch{FeatureCost: {On: true, Rollout: 50}, FeatureAutopilot: {On: true, Rollout: 50}}})
	set := &settings{wide: &wide}
	set.features[FeatureExplore] = Switch{On: true, Rollout: 30}
	set.features[FeatureCost] = Switch{On: true, Rollout: 80}
	set.features[FeatureGSM] = Switch{Rollout: 100}
	set.excluded[FeatureAutopilot] = true
	for f, want := range map[Feature]int{FeatureExplore: 30, FeatureCost: 80, FeatureGSM: 0, FeatureAutopilot: 0, FeatureElimination: 0} {
		n := 0
		for draw := range uint64(100) {
			if set.has(f, draw) {
				n++
			}
		}
		if n != want {
			t.Errorf("%s: %d of 100 draws, want %d", f, n, want)
		}
	}
	if (&settings{}).has(FeatureCost, 0) {
		t.Error("settings without anything have a feature")
	}
}

func TestResolveEachValueOnItsOwn(t *testing.T) {
	data := &SuccessData{Bucket: ptr(200), Hedging: ptr(7.5), Rows: []SuccessRowData{
		{MethodType: ptr("card"), Bucket: ptr(50)},
		{MethodType: ptr("CARD"), Method: ptr("CREDIT"), Hedging: ptr(1.0)},
		{MethodType: ptr("CARD"), Method: ptr("CREDIT"), Currency: ptr("EUR"), Bucket: ptr(0), Hedging: ptr(-1.0), LatencyThreshold: ptr(20.0)},
		{MethodType: ptr("CARD"), Network: ptr("VISA"), Bucket: ptr(60)},
		{MethodType: ptr("CARD"), BIN: ptr("453210"), Bucket: ptr(70)},
		{MethodType: ptr("UPI"), Bucket: ptr(10)},
		{Bucket: ptr(11)},
		{MethodType: ptr("CARD"), AuthType: ptr("THREE_DS_2"), LowerReset: ptr(0.5)},
	}}
	set := &settings{success: data.config()}
	general := &deployment{success: (&SuccessData{Bucket: ptr(300), UpperReset: ptr(4.0), Margin: ptr(0.3)}).config()}
	credit := Facts{MethodType: "CARD", Method: "CREDIT", Network: "VISA", BIN: "453210", Currency: "EUR", AuthType: "THREE_DS2"}
	for name, c := range map[string]struct {
		set  *settings
		d    *deployment
		f    Facts
		want resolved
	}{
		"built in":    {&settings{}, &deployment{}, credit, resolved{125, 5, false, 300 * time.Second, 3, 3, 0}},
		"deployment":  {&settings{}, general, credit, resolved{300, 5, false, 300 * time.Second, 3, 4, 0.3}},
		"rows":        {set, general, credit, resolved{60, 1, true, 20 * time.Second, 0.5, 4, 0.3}},
		"fewer facts": {set, general, Facts{MethodType: "CARD", Method: "DEBIT"}, resolved{50, 7.5, true, 300 * time.Second, 3, 4, 0.3}},
		"one row":     {set, general, Facts{MethodType: "UPI", Method: "CREDIT"}, resolved{10, 7.5, true, 300 * time.Second, 3, 4, 0.3}},
		"no row":      {set, general, Facts{MethodType: "WALLET"}, resolved{200, 7.5, true, 300 * time.Second, 3, 4, 0.3}},
		"ignored": {&settings{success: (&SuccessData{Bucket: ptr(-3), Hedging: ptr(-1.0), LowerReset: ptr(-1.0), LatencyThreshold: ptr(-2.0), Margin: ptr(-1.0)}).config()},
			&deployment{}, credit, resolved{125, 5, false, 300 * time.Second, 3, 3, 0}},
		"hedging 0 counts": {&settings{success: (&SuccessData{Hedging: ptr(0.0)}).config()}, &deployment{}, credit, resolved{125, 0, true, 300 * time.Second, 3, 3, 0}},
	} {
		if got := c.set.resolve(c.d, &c.f); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestResolveDoesNotAllocate(t *testing.T) {
	data := &SuccessData{}
	for range MaxSuccessRows {
		data.Rows = append(data.Rows, SuccessRowData{MethodType: ptr("CARD"), Network: ptr("VISA"), Bucket: ptr(60)})
	}
	set, d, f := &settings{success: data.config()}, &deployment{}, &Facts{MethodType: "CARD", Network: "VISA"}
	if n := testing.AllocsPerRun(100, func() { set.resolve(d, f) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkResolve(b *testing.B) {
	data := &SuccessData{}
	for range MaxSuccessRows {
		data.Rows = append(data.Rows, SuccessRowData{MethodType: ptr("CARD"), Network: ptr("VISA"), Currency: ptr("EUR"), Bucket: ptr(60)})
	}
	set, d, f := &settings{success: data.config()}, &deployment{}, &Facts{MethodType: "CARD", Network: "VISA", Currency: "USD"}
	b.ReportAllocs()
	for b.Loop() {
		set.resolve(d, f)
	}
}
