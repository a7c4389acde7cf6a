package decision

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/fault"
)

func TestSixThreadsOneEvent(t *testing.T) {
	b := newBench(t, Options{BatchRecords: 16})
	c := b.install(northHero, threeModels)
	const threads, rounds = 6, 60
	for round := range rounds {
		req := request("{}", fmt.Sprintf("cart-%d", round))
		answers := make([]Answer, threads)
		var wg sync.WaitGroup
		for i := range threads {
			wg.Go(func() {
				if err := c.Decide(context.Background(), req, &answers[i]); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		fresh := 0
		for i := range answers {
			if !answers[i].Replayed {
				fresh++
			}
			if answers[i].Action != answers[0].Action || answers[i].Probability != answers[0].Probability || answers[i].ID != req.EventID {
				t.Fatalf("round %d: %+v and %+v", round, answers[i], answers[0])
			}
		}
		if fresh != 1 {
			t.Fatalf("round %d: %d fresh decisions", round, fresh)
		}
	}
	if s := c.Stats(t.Context()); s.Decisions != rounds {
		t.Errorf("%d decisions, want %d", s.Decisions, rounds)
	}
}

func TestRepeatedEvent(t *testing.T) {
	b := newBench(t, Options{BatchWindow: time.Hour})
	c := b.install(northHero, threeModels)
	first := b.decide(c, request(`{"a":1}`, "order:1"))
	repeat := func(when string) {
		t.Helper()
		again := b.decide(c, request(`{"a":1}`, "order:1"))
		if !again.Replayed || again.Action != first.Action || again.Probability != first.Probability ||
			again.ModelVersion != first.ModelVersion || fmt.Sprint(again.Ranking) != fmt.Sprint(first.Ranking) {
			t.Errorf("%s: %+v, want %+v", when, again, first)
		}
		var out Answer
		err := c.Decide(t.Context(), request(`{"a":2}`, "order:1"), &out)
		b.kind(fault.Conflict, err)
		if err != nil && !strings.Contains(err.Error(), "already used for a different request") {
			t.Errorf("%s: %v", when, err)
		}
	}
	repeat("queued")
	if !c.settle(t.Context(), time.Minute) {
		t.Fatal("not settled")
	}
	repeat("committed")
	b.reward(c, "order:1", 1)
	repeat("rewarded")
	b.restart(Options{})
	c = b.capsule(northHero)
	repeat("after a restart, with a cold filter")
	b.decide(c, request(`{"a":1}`, "order:2"))
	repeat("with a warm filter")
}

func TestEventIDsAreOfTheirCapsule(t *testing.T) {
	b := newBench(t, Options{})
	one, two := b.install(northHero, threeModels), b.install(CapsuleID{"north", "web", "other"}, threeModels)
	b.decide(one, request(`{"a":1}`, "e"))
	if a := b.decide(two, request(`{"a":2}`, "e")); a.Replayed {
		t.Error("an id of another capsule was replayed")
	}
}

func TestEventIDLikeAServerMadeOne(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	a := b.decide(c, request(`{"a":1}`, ""))
	b.decide(c, request(`{"a":1}`, "warm-up"))
	var out Answer
	b.kind(fault.Conflict, c.Decide(t.Context(), request(`{"a":2}`, a.ID), &out)) // queued
	if !c.settle(t.Context(), time.Minute) {
		t.Fatal("not settled")
	}
	b.kind(fault.Conflict, c.Decide(t.Context(), request(`{"a":2}`, a.ID), &out)) // committed
	made := "dec_0123456789a0123456789ab"
	b.decide(c, request(`{"a":1}`, made))
	if again := b.decide(c, request(`{"a":1}`, made)); !again.Replayed {
		t.Error("not replayed from the queue")
	}
	c.settle(t.Context(), time.Minute)
	if again := b.decide(c, request(`{"a":1}`, made)); !again.Replayed {
		t.Error("not replayed from the log")
	}
	if r := b.reward(c, made, 1); !r.Applied {
		t.Errorf("reward %+v", r)
	}
}

func TestEventHeldIsTaken(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	err := b.store.Write(t.Context(), Write{Change: func(tx Tx) error {
		return tx.SaveHeld(Held{Capsule: c.key, EventID: "later", TimeMS: 1, Record: []byte("x")})
	}})
	if err != nil {
		t.Fatal(err)
	}
	var out Answer
	b.kind(fault.Conflict, c.Decide(t.Context(), request("{}", "later"), &out))
	r, err := c.Reward(t.Context(), RewardRequest{DecisionID: "later", Value: 0.5, Detail: []byte(`{"a":1}`)})
	if err != nil || !r.Held || r.Applied {
		t.Fatalf("reward %+v, %v", r, err)
	}
	if r, err = c.Reward(t.Context(), RewardRequest{DecisionID: "later", Value: 0.25, Key: "k", HasKey: true}); err != nil || !r.Held {
		t.Fatalf("reward %+v, %v", r, err)
	}
	var held Held
	_ = b.store.Read(t.Context(), func(v View) (err error) { held, err = v.Held(c.key, "later"); return err })
	list, err := heldRewards(held.Rewards)
	if err != nil || len(list) != 2 || list[0].Value != 0.5 || string(list[0].Detail) != `{"a":1}` || list[1].Key != "k" || !list[1].HasKey {
		t.Errorf("held %+v, %v", list, err)
	}
}

func TestFilter(t *testing.T) {
	var f filter
	f.add("ignored before it is in use")
	if !f.start() || f.start() {
		t.Fatal("only the first must warm")
	}
	const n = 60000 // beyond the first layer
	for i := range n {
		f.add(fmt.Sprint("id-", i))
	}
	for i := range n {
		if !f.has(fmt.Sprint("id-", i)) {
			t.Fatalf("id-%d was forgotten", i)
		}
	}
	wrong := 0
	for i := range n {
		if f.has(fmt.Sprint("other-", i)) {
			wrong++
		}
	}
	if wrong > n/20 {
		t.Errorf("%d of %d fresh ids taken for known", wrong, n)
	}
	if layers := len(*f.layers.Load()); layers != 2 {
		t.Errorf("%d layers, want 2", layers)
	}
}

// warmed waits until the filter of client-made ids has read the log, which the first such id starts in the background.
func (b *bench) warmed(c *Capsule) {
	b.Helper()
	for !c.events.warm.Load() {
		if err := b.store.Read(b.Context(), func(View) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

func TestFreshEventIDsCostNoLookUp(t *testing.T) {
	store := &counting{Memory: NewMemory()}
	b := newBench(t, Options{Storage: store})
	c := b.install(northHero, threeModels)
	b.decide(c, request("{}", "first"))
	b.warmed(c)
	before := store.reads.Load()
	for i := range 500 {
		b.decide(c, request("{}", fmt.Sprint("fresh-", i)))
	}
	if got := store.reads.Load() - before; got > 25 {
		t.Errorf("%d reads for 500 fresh ids", got)
	}
}
