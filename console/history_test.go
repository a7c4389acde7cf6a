package console

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/decision"
)

// TestHistoryIsProbed makes four minutes of decisions with a clock of its own and looks at them afterwards.
func TestHistoryIsProbed(t *testing.T) {
	var ms atomic.Int64
	begin := time.Unix(1_000_000_000, 0)
	ms.Store(begin.UnixMilli())
	service, err := decision.Open(context.Background(), decision.Options{Storage: decision.NewMemory(), Now: func() time.Time { return time.UnixMilli(ms.Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close(context.Background())
	id := decision.CapsuleID{Tenant: "north", Job: "web", Capsule: "hero"}
	if _, _, err := service.PutSpec(context.Background(), id, []byte(`{"actions":[{"id":"a"},{"id":"b"}]}`), decision.Merge); err != nil {
		t.Fatal(err)
	}
	c, err := service.Capsule(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	const seconds, each = 240, 10
	for i := range seconds {
		value := 0.0 // for the first half, then 1
		if i >= seconds/2 {
			value = 1
		}
		for k := range each {
			ms.Store(begin.Add(time.Duration(i)*time.Second + time.Duration(k)*time.Millisecond).UnixMilli())
			var out decision.Answer
			if err := c.Decide(context.Background(), &decision.Request{Context: fmt.Appendf(nil, `{"i":%d}`, i)}, &out); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Reward(context.Background(), decision.RewardRequest{DecisionID: out.ID, Value: value}); err != nil {
				t.Fatal(err)
			}
		}
	}
	now := begin.Add(seconds * time.Second)
	ms.Store(now.UnixMilli())
	trail := newTrail(id)
	if err := trail.sample(context.Background(), service, now); err != nil {
		t.Fatal(err)
	}
	p := trail.picture(now, 120)
	if p.Seconds < seconds-15 || p.Seconds > seconds+5 || p.At[0] > 0.1 {
		t.Errorf("the picture spans %d s from %v on, want about %d", p.Seconds, p.At[0], seconds)
	}
	near(t, "the reward at first", p.Reward[0], 0, 0.01)
	near(t, "the reward at last", last(p.Reward), 1, 0.05)
	if len(p.Newest) != shown || p.Newest[0].TimeMS < now.Add(-2*time.Second).UnixMilli() {
		t.Errorf("the newest decisions are not: %d, %v", len(p.Newest), p.Newest[0].TimeMS)
	}
}
