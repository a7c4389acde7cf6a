package decision

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/fault"
)

func TestBatchClosesWhenFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{BatchRecords: 8, BatchWindow: time.Hour})
		c := b.install(northHero, threeModels)
		for range 8 {
			b.decide(c, request("{}", ""))
		}
		synctest.Wait() // the flusher needs no timer for a full batch
		if got := b.batchSizes(c); len(got) != 1 || got[0] != 8 {
			t.Errorf("batches on disk %v, want one of 8", got)
		}
		b.decide(c, request("{}", ""))
		synctest.Wait()
		if got := b.batchSizes(c); len(got) != 1 {
			t.Errorf("batches on disk %v: a fresh batch was closed before its window", got)
		}
	})
}

func TestBatchClosesAfterItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		c := b.install(northHero, threeModels)
		b.decide(c, request("{}", ""))
		synctest.Wait()
		if got := b.batchSizes(c); len(got) != 0 {
			t.Fatalf("a batch was written before its window: %v", got)
		}
		time.Sleep(2 * time.Millisecond) // fake time
		synctest.Wait()
		if got := b.batchSizes(c); len(got) != 1 || got[0] != 1 {
			t.Errorf("batches %v, want one of 1", got)
		}
	})
}

func TestQuietCapsulesShareOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		b := newBench(t, Options{Storage: store})
		var all []*Capsule
		for i := range 20 {
			all = append(all, b.install(CapsuleID{"north", "web", fmt.Sprintf("c%d", i)}, threeModels))
		}
		before := store.queued()
		for _, c := range all {
			b.decide(c, request("{}", ""))
		}
		time.Sleep(5 * time.Millisecond)
		synctest.Wait()
		if got := store.queued() - before; got != 1 {
			t.Errorf("%d writes for one window of 20 capsules, want 1", got)
		}
		for _, c := range all {
			if got := b.batchSizes(c); len(got) != 1 {
				t.Errorf("capsule %s has batches %v", c.id, got)
			}
		}
	})
}

// batchSizes lists the sizes of the capsule's batches on disk.
func (b *bench) batchSizes(c *Capsule) (sizes []int) {
	b.Helper()
	err := b.store.Read(context.Background(), func(v View) error {
		return v.Batches(c.key, BatchQuery{}, func(one Batch) (bool, error) {
			sizes = append(sizes, one.Count)
			return true, nil
		})
	})
	if err != nil {
		b.Fatal(err)
	}
	return sizes
}

func TestQueueFullRefusesDecideAndReward(t *testing.T) {
	store := newFaulty()
	b := newBench(t, Options{Storage: store, QueueRecords: 10})
	c := b.install(northHero, threeModels)
	store.hold()
	var ids []string
	for range 10 {
		ids = append(ids, b.decide(c, request("{}", "")).ID)
	}
	var out Answer
	err := c.Decide(context.Background(), request("{}", ""), &out)
	b.kind(fault.Unavailable, err)
	if fault.RetryAfter(err) < time.Second {
		t.Errorf("retry after %v, want a second or more", fault.RetryAfter(err))
	}
	_, err = c.Reward(context.Background(), RewardRequest{DecisionID: ids[0], Value: 1})
	b.kind(fault.Unavailable, err)
	if got := counterValue(t, b.service.metrics.refused); got != 1 {
		t.Errorf("refusals counted %v, want 1", got)
	}
	store.release()
	if !c.settle(context.Background(), time.Minute) {
		t.Fatal("the queue did not drain")
	}
	b.decide(c, request("{}", ""))
	if s := c.Stats(context.Background()); s.Decisions != 11 {
		t.Errorf("%d decisions, want 11: a refused one must not be logged", s.Decisions)
	}
}

func TestLargeRecordsCountMore(t *testing.T) {
	store := newFaulty()
	b := newBench(t, Options{Storage: store, QueueRecords: 100})
	c := b.install(northHero, threeModels)
	store.hold()
	defer store.release()
	big := `{"text":"` + fmt.Sprintf("%0200000d", 1) + `"}`
	n := 0
	var out Answer
	for c.Decide(context.Background(), request(big, ""), &out) == nil {
		n++
	}
	if n != 2 {
		t.Errorf("%d records of 200 KB in a queue of 100 records, want 2", n)
	}
}

func TestDurableWaitsForTheDisk(t *testing.T) {
	b := newBench(t, Options{BatchWindow: time.Hour})
	c := b.install(northHero, threeModels)
	req := request("{}", "")
	req.Durable = true
	a := b.decide(c, req)
	err := b.store.Read(context.Background(), func(v View) error {
		_, err := findStored(v, c.key, a.ID)
		return err
	})
	if err != nil {
		t.Errorf("a durable decision is not on disk: %v", err)
	}
}

func TestDurableTimesOutAndMayBeRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		b := newBench(t, Options{Storage: store})
		c := b.install(northHero, threeModels)
		store.hold()
		req := request("{}", "order-1")
		req.Durable = true
		began := time.Now()
		var out Answer
		err := c.Decide(context.Background(), req, &out)
		b.kind(fault.Unavailable, err)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("gave up after %v, want 5 s", took)
		}
		err = c.Decide(context.Background(), req, &out) // still not on disk: the retry waits as well
		b.kind(fault.Unavailable, err)
		store.release()
		again := b.decide(c, req)
		if !again.Replayed || again.ID != "order-1" {
			t.Errorf("the retry made another decision: %+v", again)
		}
		if s := c.Stats(context.Background()); s.Decisions != 1 {
			t.Errorf("%d decisions, want 1", s.Decisions)
		}
	})
}

func TestDurableCallerMayLeave(t *testing.T) {
	store := newFaulty()
	b := newBench(t, Options{Storage: store})
	c := b.install(northHero, threeModels)
	store.hold()
	defer store.release()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	req := request("{}", "")
	req.Durable = true
	var out Answer
	err := c.Decide(ctx, req, &out)
	b.kind(fault.Unavailable, err)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the cause is lost: %v", err)
	}
}

func TestFullDiskIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		b := newBench(t, Options{Storage: store})
		c := b.install(northHero, threeModels)
		store.breakWith(unavailable("store", "the disk is full"))
		a := b.decide(c, request("{}", "order-1"))
		time.Sleep(time.Second)
		if d, f, err := c.find(context.Background(), a.ID); err != nil || f == nil || d.ID != a.ID {
			t.Fatalf("the decision is not in the queue any more: %v", err)
		}
		_, err := c.Reward(context.Background(), RewardRequest{DecisionID: a.ID, Value: 1})
		b.kind(fault.Unavailable, err)
		store.breakWith(nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := b.batchSizes(c); len(got) != 1 || got[0] != 1 {
			t.Errorf("batches %v after the disk had room again, want one of 1", got)
		}
		if got := counterValue(t, b.service.metrics.lost); got != 0 {
			t.Errorf("%v events lost", got)
		}
		if r := b.reward(c, a.ID, 1); !r.Applied {
			t.Errorf("reward %+v", r)
		}
	})
}

// TestFullDiskRefusesDecides: behind a disk that takes nothing a decide would be acknowledged and then wait for as long as the
// disk is full, far longer than what a kill may cost.
func TestFullDiskRefusesDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		b := newBench(t, Options{Storage: store})
		c := b.install(northHero, threeModels)
		full := unavailable("store", "the disk is full")
		full.RetryAfter = 5 * time.Second
		store.breakWith(full)
		b.decide(c, request("{}", "order-1")) // nobody knows yet
		time.Sleep(stallAfter / 2)
		b.decide(c, request("{}", "order-2")) // a storage may be busy for a moment
		time.Sleep(stallAfter)
		var out Answer
		err := c.Decide(context.Background(), request("{}", "order-3"), &out)
		b.kind(fault.Unavailable, err)
		if fault.MessageOf(err) != "the disk is full" || fault.RetryAfter(err) != 5*time.Second {
			t.Errorf("the refusal does not say why, or when to come back: %v", err)
		}
		if again := b.decide(c, request("{}", "order-1")); !again.Replayed {
			t.Errorf("a repeat is not answered from the queue: %+v", again)
		}
		began, patient := time.Now(), request("{}", "order-1")
		patient.Durable = true
		b.kind(fault.Unavailable, c.Decide(context.Background(), patient, &out))
		if took := time.Since(began); took != 0 {
			t.Errorf("told of the full disk after %v", took)
		}
		store.breakWith(nil)
		time.Sleep(time.Second)
		if a := b.decide(c, request("{}", "order-3")); a.Replayed {
			t.Error("a refused decide was queued")
		}
		time.Sleep(time.Second)
		if s := c.Stats(context.Background()); s.Decisions != 3 || b.service.queue.backlog() != 0 {
			t.Errorf("%d decisions, %d of them in the queue, after the disk had room again", s.Decisions, b.service.queue.backlog())
		}
		if got := counterValue(t, b.service.metrics.lost); got != 0 {
			t.Errorf("%v events lost", got)
		}
	})
}

func TestCommitErrorIsFinal(t *testing.T) {
	store := newFaulty()
	b := newBench(t, Options{Storage: store, BatchWindow: time.Hour})
	c := b.install(northHero, threeModels)
	b.decide(c, request("{}", ""))
	b.decide(c, request("{}", ""))
	store.breakWith(errors.New("sync: input/output error"))
	req := request("{}", "")
	req.Durable = true
	var out Answer
	b.kind(fault.Unavailable, c.Decide(context.Background(), req, &out))
	store.breakWith(nil) // the disk works again: it makes no difference
	b.kind(fault.Unavailable, c.Decide(context.Background(), request("{}", ""), &out))
	_, err := c.Reward(context.Background(), RewardRequest{DecisionID: "x", Value: 1})
	b.kind(fault.Unavailable, err)
	if got := counterValue(t, b.service.metrics.lost); got != 3 {
		t.Errorf("%v events lost, want 3", got)
	}
	if s := c.Stats(context.Background()); s.Decisions != 0 {
		t.Errorf("%d decisions counted, want 0", s.Decisions)
	}
}

func TestCloseCommitsTheQueue(t *testing.T) {
	b := newBench(t, Options{BatchWindow: time.Hour})
	c := b.install(northHero, threeModels)
	for range 5 {
		b.decide(c, request("{}", ""))
	}
	if err := b.service.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := b.batchSizes(c); len(got) != 1 || got[0] != 5 {
		t.Errorf("batches %v, want one of 5", got)
	}
	var out Answer
	b.kind(fault.Unavailable, c.Decide(context.Background(), request("{}", ""), &out))
}

func TestCloseGivesUpInTimeAndCountsWhatIsLost(t *testing.T) {
	store := newFaulty()
	b := newBench(t, Options{Storage: store})
	c := b.install(northHero, threeModels)
	store.hold()
	for range 5 {
		b.decide(c, request("{}", ""))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	b.kind(fault.Unavailable, b.service.Close(ctx))
	if got := counterValue(t, b.service.metrics.lost); got != 5 {
		t.Errorf("%v events lost, want 5", got)
	}
	store.release()
}

// failingTx stores a number of batches and then fails.
type failingTx struct {
	memoryTx
	left int
}

func (f *failingTx) AppendBatch(b Batch) error {
	if f.left--; f.left < 0 {
		return errors.New("constraint failed")
	}
	return f.memoryTx.AppendBatch(b)
}

func TestFailedWriteStoresNoneOfItsBatches(t *testing.T) {
	store := newFaulty()
	b := newBench(t, Options{Storage: store})
	one, two := b.install(northHero, threeModels), b.install(CapsuleID{"north", "web", "two"}, threeModels)
	w := &handover{queue: &b.service.queue}
	for _, c := range []*Capsule{one, two} {
		part := &batch{capsule: c, fate: new(fate)}
		part.add(sampleDraft(newFrame("", sampleActions)))
		w.batches = append(w.batches, part)
	}
	tx := &failingTx{memoryTx: memoryTx{memoryView: memoryView{&store.data}}, left: 1}
	if err := w.change(tx); err == nil {
		t.Fatal("the failure is lost")
	}
	for i, part := range w.batches {
		if part.fate.stored.Load() {
			t.Errorf("batch %d passes for stored after its write was undone", i)
		}
	}
}
