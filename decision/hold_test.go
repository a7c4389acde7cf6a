package decision

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/fault"
)

// clock is a time that a test moves by hand.
type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.ms.Store(1_790_000_000_000)
	return c
}

func (c *clock) now() time.Time             { return time.UnixMilli(c.ms.Load()) }
func (c *clock) advance(by time.Duration)   { c.ms.Add(by.Milliseconds()) }
func (c *clock) options(o Options) Options  { o.Now = c.now; return o }
func (b *bench) hold(c *Capsule, id string) { b.Helper(); b.held(c, request(`{"x":1}`, id)) }

// held holds a request and returns the answer.
func (b *bench) held(c *Capsule, req *Request) (out Answer) {
	b.Helper()
	if err := c.Hold(context.Background(), req, &out); err != nil {
		b.Fatalf("hold: %v", err)
	}
	return out
}

func (b *bench) activate(c *Capsule, id string) {
	b.Helper()
	if err := c.Activate(context.Background(), id); err != nil {
		b.Fatalf("activate %s: %v", id, err)
	}
}

func TestDeferredEventsCountOnceActivated(t *testing.T) {
	b := newBench(t, Options{})
	ctx := context.Background()
	c := b.install(northHero, threeModels)
	req := request(`{"plan":"pro"}`, "h1")
	first := b.held(c, req)
	if first.ID != "h1" || first.Replayed || len(first.Ranking) != 3 {
		t.Fatalf("answer %+v", first)
	}
	if s := c.Stats(ctx); s.Decisions != 0 {
		t.Errorf("a deferred event is in the log: %+v", s)
	}
	_, _, err := c.Decision(ctx, "h1")
	b.kind(fault.NotFound, err)
	if r := b.reward(c, "h1", 1); !r.Held || r.Applied || c.Version() != 0 {
		t.Errorf("an early reward: %+v, version %d", r, c.Version())
	}
	b.crash(Options{}) // and it survives a kill
	c = b.capsule(northHero)
	if again := b.held(c, req); !again.Replayed || again.Action != first.Action || again.Probability != first.Probability {
		t.Errorf("repeated: %+v, first %+v", again, first)
	}
	var out Answer
	b.kind(fault.Conflict, c.Hold(ctx, request(`{"plan":"free"}`, "h1"), &out))
	b.kind(fault.Conflict, c.Decide(ctx, req, &out))
	b.kind(fault.NotFound, c.Activate(ctx, "h2"))
	b.kind(fault.Invalid, c.Hold(ctx, request(`{}`, "no spaces"), &out))
	b.activate(c, "h1")
	b.activate(c, "h1") // already active is no error
	d, rewards, err := c.Decision(ctx, "h1")
	if err != nil || d.Actions[d.Chosen].ID != first.Action || len(rewards) != 1 || rewards[0].Value != 1 {
		t.Errorf("decision %+v, rewards %+v, %v", d, rewards, err)
	}
	if s := c.Stats(ctx); s.Decisions != 1 || s.Rewards != 1 || c.Version() != 1 {
		t.Errorf("stats %+v, version %d", s, c.Version())
	}
	if again := b.held(c, req); !again.Replayed || again.Action != first.Action {
		t.Errorf("repeated after its activation: %+v", again)
	}
	if r := b.reward(c, "h1", 0); !r.Duplicate {
		t.Errorf("a second reward: %+v", r)
	}
	want := c.capture()
	b.crash(Options{})
	if got := b.capsule(northHero).capture(); string(got.Bytes) != string(want.Bytes) {
		t.Error("the model after a crash differs")
	}
}

func TestDeferredEventsTakeFreshIDs(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	one, two := b.held(c, request(`{}`, "")), b.held(c, request(`{}`, ""))
	if len(one.ID) != idLength || one.ID == two.ID {
		t.Fatalf("ids %q and %q", one.ID, two.ID)
	}
	b.activate(c, one.ID)
	if r := b.reward(c, one.ID, 1); !r.Applied {
		t.Errorf("reward %+v", r)
	}
}

func TestDeferredRewardsKeepTheirKeys(t *testing.T) {
	b := newBench(t, Options{})
	ctx := context.Background()
	c := b.install(northHero, `{"actions":[{"id":"a"}],"rewards":"sum","reward":{"range":[0,9]}}`)
	b.hold(c, "h")
	for _, r := range []RewardRequest{
		{DecisionID: "h", Value: 2, Key: "k", HasKey: true, Detail: []byte(`{"n":1}`)},
		{DecisionID: "h", Value: 5, Key: "k", HasKey: true},
		{DecisionID: "h", Value: 3},
	} {
		if a, err := c.Reward(ctx, r); err != nil || !a.Held {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	_, err := c.Reward(ctx, RewardRequest{DecisionID: "h", Value: 1, Key: "", HasKey: true})
	b.kind(fault.Invalid, err)
	b.activate(c, "h")
	_, rewards, err := c.Decision(ctx, "h")
	if err != nil || len(rewards) != 2 || rewards[0].Value != 2 || string(rewards[0].Detail) != `{"n":1}` || rewards[0].Key != "k" || rewards[1].Value != 3 {
		t.Errorf("rewards %+v, %v", rewards, err)
	}
}

func TestDeferredEventsAreDroppedAfterADay(t *testing.T) {
	k := newClock()
	b := newBench(t, k.options(Options{}))
	ctx := context.Background()
	c := b.install(northHero, threeModels)
	b.hold(c, "old")
	k.advance(holdTime)
	if err := b.service.dropHeld(ctx); err != nil {
		t.Fatal(err)
	}
	b.reward(c, "old", 1) // exactly a day: still there
	b.hold(c, "young")
	k.advance(time.Millisecond)
	if err := b.service.dropHeld(ctx); err != nil {
		t.Fatal(err)
	}
	b.kind(fault.NotFound, c.Activate(ctx, "old"))
	_, err := c.Reward(ctx, RewardRequest{DecisionID: "old", Value: 1})
	b.kind(fault.NotFound, err)
	b.activate(c, "young")
}

// A reward that meets an activation is either held and joined, or joined: never lost and never counted twice.
func TestRewardsMeetActivations(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	const events = 200
	var all sync.WaitGroup
	for i := range events {
		id := fmt.Sprint("e", i)
		b.hold(c, id)
		all.Go(func() {
			if err := c.Activate(context.Background(), id); err != nil {
				t.Errorf("activate %s: %v", id, err)
			}
		})
		all.Go(func() {
			a, err := c.Reward(context.Background(), RewardRequest{DecisionID: id, Value: 1})
			if err != nil || a.Applied == a.Held {
				t.Errorf("reward %s: %+v, %v", id, a, err)
			}
		})
	}
	all.Wait()
	if s := c.Stats(context.Background()); s.Decisions != events || s.Rewards != events || c.Version() != events {
		t.Errorf("stats %+v, version %d, want %d of each", s, c.Version(), events)
	}
}

func TestDeletedCapsulesHoldNothing(t *testing.T) {
	b := newBench(t, Options{})
	ctx := context.Background()
	b.put(threeModels, Merge)
	c := b.capsule(northHero)
	b.hold(c, "h")
	if _, err := b.service.DeleteCapsule(ctx, northHero); err != nil {
		t.Fatal(err)
	}
	var out Answer
	b.kind(fault.NotFound, c.Hold(ctx, request(`{}`, "i"), &out))
	b.kind(fault.NotFound, c.Activate(ctx, "h"))
	b.put(threeModels, Merge)
	b.kind(fault.NotFound, b.capsule(northHero).Activate(ctx, "h"))
}

func TestDeferredSeedsAreNotUsedTwice(t *testing.T) {
	b := newBench(t, Options{})
	ctx := context.Background()
	c := b.install(northHero, `{"actions":[{"id":"a"},{"id":"b"}],"seed":2026}`)
	b.hold(c, "h")
	b.hold(c, "h")
	b.decide(c, request(`{}`, "d"))
	b.activate(c, "h")
	for k, id := range []string{"h", "d"} {
		d, _, err := c.Decision(ctx, id)
		if err != nil || d.Seed != DecisionSeed(2026, uint64(k)) {
			t.Errorf("%s: seed %d, %v, want %d", id, d.Seed, err, DecisionSeed(2026, uint64(k)))
		}
	}
	b.hold(c, "late")
	b.crash(Options{})
	c = b.capsule(northHero)
	b.decide(c, &Request{EventID: "next", Digest: sha256.Sum256(nil)})
	d, _, err := c.Decision(ctx, "next")
	if err != nil {
		t.Fatal(err)
	}
	for k := range uint64(3) {
		if d.Seed == DecisionSeed(2026, k) {
			t.Errorf("draw %d is used again after a crash", k)
		}
	}
}
