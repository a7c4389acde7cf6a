package gateway

import (
	"reflect"
	"strings"
	"testing"
)

// sample is an event with every member set.
func sample() Event {
	return Event{TimeMS: 1_700_000_000_123, Flow: FlowDecision, Stage: StageDecided, Route: "decide_gateway", Merchant: "shop_lisbon",
		PaymentID: "ord-7741-1", RequestID: "0b6f9f0e-6f1e-4d43-9d3d-5a0f2b7a9c11", MethodType: "CARD", Method: "CREDIT",
		Network: "VISA", BIN: "453210", Currency: "EUR", Country: "PT", AuthType: "THREE_DS", Gateway: "mercato",
		Approach: ApproachSuccess, Rule: "big euro cards", Status: "success", ErrorCode: "51", ErrorMessage: "no funds",
		Failed: true, Retry: true, Scored: true, Score: 0.976, Sigma: 0.5, Latency: 2.5, TP99: 9, Transactions: 125, Saved: 0.25,
		Details: []byte(`{"why":"leader"}`)}
}

// posted returns the events that wait, and leaves them there.
func (t *trail) posted(tb testing.TB) []Event {
	tb.Helper()
	var all []Event
	for i := range t.parts {
		r := records{rest: string(t.parts[i].records)}
		for e := (Event{}); r.posted(&e); {
			all = append(all, e)
		}
		if r.bad {
			tb.Fatal("the queue holds what cannot be read")
		}
	}
	return all
}

func TestPostKeepsEveryMember(t *testing.T) {
	q := newTrail()
	want := []Event{sample(), {Merchant: "shop_lisbon", Flow: FlowUpdate, TimeMS: -5}, sample()}
	want[2].Details, want[2].Scored, want[2].Saved = nil, false, 0
	want[2].Score, want[2].Sigma, want[2].Latency, want[2].TP99, want[2].Transactions = 0, 0, 0, 0, 0
	for i := range want {
		q.post(&want[i])
	}
	if got := q.posted(t); !reflect.DeepEqual(got, want) {
		t.Errorf("posted\n%+v\nwant\n%+v", got, want)
	}
}

func TestPostCutsLongTextsAtACharacter(t *testing.T) {
	q := newTrail()
	e := sample()
	e.PaymentID = strings.Repeat("é", 500)
	e.ErrorMessage = strings.Repeat("x", 5_000)
	e.Details = make([]byte, maxDetails+1)
	q.post(&e)
	got := q.posted(t)[0]
	if got.PaymentID != strings.Repeat("é", 128) || len(got.ErrorMessage) != maxEventMessage || got.Details != nil {
		t.Errorf("kept %d bytes of the id, %d of the message, %d of the details", len(got.PaymentID), len(got.ErrorMessage), len(got.Details))
	}
}

func TestFullQueueDropsAndCounts(t *testing.T) {
	q := newTrail()
	e := sample()
	for range trailEvents + 123 {
		q.post(&e)
	}
	if got := len(q.posted(t)); got != trailEvents {
		t.Errorf("%d events wait, want %d", got, trailEvents)
	}
	if got := q.dropped.Load(); got != 123 {
		t.Errorf("dropped %d, want 123", got)
	}
}

func TestPostAllocatesNothing(t *testing.T) {
	q := newTrail()
	e := sample()
	for i := range q.parts {
		q.parts[i].records = make([]byte, 0, 1<<20)
	}
	if n := testing.AllocsPerRun(200, func() { q.post(&e) }); n != 0 {
		t.Errorf("%v allocations per post", n)
	}
}

func BenchmarkPost(b *testing.B) {
	q := newTrail()
	e := sample()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%trailHigh == trailHigh-1 {
			q.take(func(r []byte) { q.settle(0, len(r)) })
			q.settle(int(q.waiting.Load()), 0)
		}
		q.post(&e)
	}
}

func FuzzRecords(f *testing.F) {
	e := sample()
	f.Add(appendPosted(nil, &e))
	f.Add([]byte{0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF})
	f.Fuzz(func(t *testing.T, text []byte) {
		r := records{rest: string(text)}
		var events []Event
		for e := (Event{}); r.posted(&e); {
			events = append(events, e)
		}
		var again []byte
		for i := range events {
			again = appendPosted(again, &events[i])
		}
		second := records{rest: string(again)}
		for i := range events {
			var e Event
			if !second.posted(&e) {
				t.Fatalf("event %d of %d cannot be read again", i, len(events))
			}
		}
	})
}
