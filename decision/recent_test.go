package decision

import (
	"fmt"
	"testing"
	"time"

	"holdfast/fault"
)

func TestRecentDecisionsAreFoundInMemory(t *testing.T) {
	store := &counting{Memory: NewMemory()}
	b := newBench(t, Options{Storage: store, BatchRecords: 4, BatchWindow: time.Hour})
	c := b.install(northHero, threeModels)
	var ids []string
	for i := range 40 {
		event := ""
		if i >= 28 { // no more of them than recentNamed batches, should each have its own
			event = fmt.Sprint("event-", i)
		}
		ids = append(ids, b.decide(c, request("{}", event)).ID)
	}
	if !c.settle(t.Context(), time.Minute) {
		t.Fatal("not settled")
	}
	b.warmed(c) // in the background, by a read of its own
	before := store.reads.Load()
	for _, id := range ids {
		b.reward(c, id, 1)
	}
	if got := store.reads.Load() - before; got != 0 {
		t.Errorf("%d reads for rewards of decisions that were just made", got)
	}
	b.crash(Options{})
	if c = b.capsule(northHero); c.Version() != 40 {
		t.Errorf("version %d after a crash", c.Version())
	}
	for _, id := range ids {
		if r := b.reward(c, id, 0); !r.Duplicate {
			t.Errorf("%s: %+v", id, r)
		}
	}
}

func TestErasedDecisionsAreForgotten(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	id := b.decide(c, request("{}", "")).ID
	if !c.settle(t.Context(), time.Minute) {
		t.Fatal("not settled")
	}
	if _, err := c.purge(t.Context(), AuditRow{Event: "logs_purged", Detail: emptyObject}); err != nil {
		t.Fatal(err)
	}
	_, err := c.Reward(t.Context(), RewardRequest{DecisionID: id, Value: 1})
	b.kind(fault.NotFound, err)
}

func TestRecentIsBounded(t *testing.T) {
	b := newBench(t, Options{BatchRecords: 1})
	c := b.install(northHero, threeModels)
	big := fmt.Sprintf(`{"text":"%0300000d"}`, 1)
	var first string
	for i := range 150 {
		id := b.decide(c, request(big, "")).ID
		if i == 0 {
			first = id
		}
		if !c.settle(t.Context(), time.Minute) {
			t.Fatal("not settled")
		}
	}
	b.reward(c, first, 1) // long gone from memory
	// The writer gives up old batches after it has told the waiting; a write of one's own comes after that.
	if err := b.store.Write(t.Context(), Write{Change: func(Tx) error { return nil }}); err != nil {
		t.Fatal(err)
	}
	r := &b.service.queue.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.bytes > recentBytes || len(r.batches)-r.first != len(c.recent) || len(c.recent) == 0 {
		t.Errorf("%d bytes in %d batches, %d in the capsule", r.bytes, len(r.batches)-r.first, len(c.recent))
	}
	sum := 0
	for _, one := range c.recent {
		sum += one.footprint()
	}
	if sum != r.bytes {
		t.Errorf("%d bytes counted, %d there", r.bytes, sum)
	}
}

func TestBatchesThatRewardsReadAreKept(t *testing.T) {
	store := &counting{Memory: NewMemory()}
	b := newBench(t, Options{Storage: store, BatchWindow: time.Hour})
	c := b.install(northHero, threeModels)
	var ids []string
	for i := range 600 {
		event := ""
		if i%3 == 0 {
			event = fmt.Sprint("event-", i)
		}
		ids = append(ids, b.decide(c, request("{}", event)).ID)
	}
	b.restart(Options{})
	c = b.capsule(northHero)
	before := store.reads.Load()
	for _, id := range ids {
		if r := b.reward(c, id, 1); !r.Applied {
			t.Fatalf("%s: %+v", id, r)
		}
	}
	if got := store.reads.Load() - before; got > 20 {
		t.Errorf("%d reads for rewards in the order of their decisions", got)
	}
	if _, err := c.purge(t.Context(), AuditRow{Event: "logs_purged", Detail: emptyObject}); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids[:10] {
		_, err := c.Reward(t.Context(), RewardRequest{DecisionID: id, Value: 1})
		b.kind(fault.NotFound, err)
	}
}
