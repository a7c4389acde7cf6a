package gateway_test

import (
	"fmt"
	"testing"

	"holdfast/gateway"
)

// warm is a service with one merchant whose three gateways have windows.
func warm(t testing.TB) *rig {
	r := newRig(t, gateway.Options{})
	r.merchant("shop")
	for i, g := range []gateway.Name{"alphapay", "mercato", "kestrel"} {
		id := fmt.Sprint("w", i)
		r.decide(request("shop", id))
		r.update("shop", id, g, "CHARGED")
	}
	return r
}

func BenchmarkDecide(b *testing.B) {
	r := warm(b)
	q, a := request("shop", "p"), &gateway.Answer{}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if err := r.service.Decide(ctx, q, a); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecideParallel(b *testing.B) {
	r := warm(b)
	ctx := b.Context()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		q, a := request("shop", "p"), &gateway.Answer{}
		for pb.Next() {
			if err := r.service.Decide(ctx, q, a); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkPair is a decide and its feedback, each feedback synced, from 20 callers.
func BenchmarkPair(b *testing.B) {
	r := warm(b)
	ctx := b.Context()
	b.ReportAllocs()
	b.SetParallelism(10)
	b.RunParallel(func(pb *testing.PB) {
		a := &gateway.Answer{}
		for i := 0; pb.Next(); i++ {
			q := request("shop", fmt.Sprintf("%p-%d", a, i))
			if err := r.service.Decide(ctx, q, a); err != nil {
				b.Error(err)
				return
			}
			f := &gateway.Feedback{Merchant: "shop", PaymentID: q.Payment.ID, Gateway: a.Gateway, Status: "CHARGED", Latency: -1}
			if got, err := r.service.Update(ctx, f); err != nil || !got.Applied {
				b.Error(got, err)
				return
			}
		}
	})
}

// TestDecideAllocates is the ceiling of the hot path: what a decision costs the collector, its share of the chunks included.
func TestDecideAllocates(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates on its own")
	}
	r := warm(t)
	q, a := request("shop", "p"), &gateway.Answer{}
	got := testing.AllocsPerRun(2000, func() {
		if err := r.service.Decide(t.Context(), q, a); err != nil {
			t.Fatal(err)
		}
	})
	if got > 5 {
		t.Errorf("a decision allocates %v times, 5 are allowed", got)
	}
}
