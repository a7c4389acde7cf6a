package decision

import (
	"context"
	"fmt"
	"testing"
)

// trainedCapsule is a capsule whose model has learned from some rewards, on a storage that throws decisions away so that only the
// decide is measured.
func trainedCapsule(b testing.TB, spec string) *Capsule {
	bench := newBench(b, Options{Storage: &discarding{NewMemory()}, QueueRecords: 1 << 30})
	c := bench.install(northHero, spec)
	e := c.engine.Load()
	for i := range 500 {
		context := fmt.Appendf(nil, `{"plan":"p%d","load":%d}`, i%3, i%5)
		for _, a := range e.actions {
			d := Decision{Context: context, Actions: []Action{a}, Eligible: []int{0}, PMF: []float64{1}}
			terms, err := lesson(&d, e.spec.Learner.Bits)
			if err != nil {
				b.Fatal(err)
			}
			e.model.Update(terms, float64(i%2), 1, 0.5)
		}
	}
	return c
}

// discarding is a storage that takes batches of the decision log at once and keeps none.
type discarding struct{ *Memory }

func (d *discarding) Queue(w Write) error {
	tx := &discardTx{memoryTx{memoryView: memoryView{&d.data}}}
	err := w.Change(tx)
	if w.Applied != nil {
		w.Applied(err)
	}
	return nil
}

type discardTx struct{ memoryTx }

func (discardTx) AppendBatch(Batch) error { return nil }

func BenchmarkDecide(b *testing.B) {
	small := []byte(`{"plan":"p1","load":2}`)
	large := []byte(`{"plan":"p1","load":2,"region":"eu","tier":3,"device":"phone","os":"ios","hour":14,"cart":63.5,"new":true,"lang":"de"}`)
	own := []Action{{ID: "small", Features: []byte(`{"cost":0.1,"speed":3}`)}, {ID: "medium", Features: []byte(`{"cost":0.4,"speed":2}`)},
		{ID: "large", Features: []byte(`{"cost":1,"speed":1}`)}}
	for _, bc := range []struct {
		name string
		req  Request
	}{
		{"small body", Request{Context: small}},
		{"350 bytes with actions", Request{Context: large, Actions: own}},
	} {
		b.Run(bc.name, func(b *testing.B) {
			c := trainedCapsule(b, threeModels)
			var out Answer
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Decide(context.Background(), &bc.req, &out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("fresh event id", func(b *testing.B) {
		c := trainedCapsule(b, threeModels)
		var out Answer
		n := 0
		b.ReportAllocs()
		for b.Loop() {
			n++
			req := Request{Context: small, EventID: fmt.Sprintf("event-%d", n)}
			if err := c.Decide(context.Background(), &req, &out); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		c := trainedCapsule(b, threeModels)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			var out Answer
			req := Request{Context: small}
			for pb.Next() {
				if err := c.Decide(context.Background(), &req, &out); err != nil {
					b.Error(err)
				}
			}
		})
	})
}
