package decision

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const withDefault = `{"reward":{"default":0.25,"waitSeconds":10},"actions":[{"id":"a"},{"id":"b"}]`

// rewardsOf lists a decision's rewards.
func (b *bench) rewardsOf(c *Capsule, id string) []Reward {
	b.Helper()
	_, rewards, err := c.Decision(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return rewards
}

func TestDefaultRewards(t *testing.T) {
	for name, tc := range map[string]struct {
		spec, key string
		late      bool // a later real reward counts
	}{
		"first": {withDefault + `}`, "", false},
		"sum":   {withDefault + `,"rewards":"sum"}`, ":default", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Options{})
				c := b.install(northHero, tc.spec)
				waiting, rewarded := b.decide(c, request("{}", "")).ID, b.decide(c, request("{}", "")).ID
				b.reward(c, rewarded, 1)
				time.Sleep(9 * time.Second)
				synctest.Wait()
				if got := b.rewardsOf(c, waiting); len(got) != 0 {
					t.Fatalf("a default before the wait is over: %+v", got)
				}
				time.Sleep(3 * time.Second)
				synctest.Wait()
				got := b.rewardsOf(c, waiting)
				if len(got) != 1 || got[0].Value != 0.25 || string(got[0].Detail) != `{"default":true}` || got[0].Key != waiting+tc.key {
					t.Fatalf("rewards %+v", got)
				}
				if len(b.rewardsOf(c, rewarded)) != 1 {
					t.Error("a rewarded decision got a default")
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if len(b.rewardsOf(c, waiting)) != 1 || counterValue(t, b.service.metrics.defaulted) != 1 {
					t.Errorf("a sweep that is repeated gives more: %v counted", counterValue(t, b.service.metrics.defaulted))
				}
				if r := b.reward(c, waiting, 1); r.Applied != tc.late || r.Duplicate == tc.late {
					t.Errorf("a late reward: %+v", r)
				}
			})
		})
	}
}

func TestDefaultRewardsOfCapsulesNotLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		c := b.install(northHero, withDefault+`}`)
		id := b.decide(c, request("{}", "")).ID
		if err := b.service.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(23 * time.Hour) // the server is down; the sweep looks back a day past the wait
		b.open(Options{})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if counterValue(t, b.service.metrics.defaulted) != 1 {
			t.Fatal("no default for a capsule that nobody has asked for")
		}
		if got := b.rewardsOf(b.capsule(northHero), id); len(got) != 1 || got[0].Value != 0.25 {
			t.Errorf("rewards %+v", got)
		}
	})
}

func TestDefaultRewardsLookBackADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		c := b.install(northHero, withDefault+`}`)
		b.decide(c, request("{}", ""))
		if err := b.service.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(25 * time.Hour)
		b.open(Options{})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := counterValue(t, b.service.metrics.defaulted); got != 0 {
			t.Errorf("%v defaults for decisions older than the look back", got)
		}
	})
}

func TestDefaultRewardsFollowTheSpec(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		c := b.install(northHero, threeModels)
		id := b.decide(c, request("{}", "")).ID
		time.Sleep(time.Minute)
		b.respec(c, `{"reward":{"default":0,"waitSeconds":5}}`)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := b.rewardsOf(c, id); len(got) != 1 || got[0].Value != 0 {
			t.Errorf("rewards %+v after a default was set", got)
		}
		b.respec(c, `{"reward":{"default":null}}`)
		id = b.decide(c, request("{}", "")).ID
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := b.rewardsOf(c, id); len(got) != 0 {
			t.Errorf("rewards %+v after the default was taken away", got)
		}
	})
}

func TestDefaultRewardOfALateDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		c := b.install(northHero, withDefault+`}`)
		time.Sleep(time.Hour)
		// An upload that was decided half an hour ago comes in.
		one := &batch{capsule: c}
		d := sampleDraft(newFrame("", sampleActions))
		d.ms, d.id = time.Now().Add(-30*time.Minute).UnixMilli(), "loc_late"
		one.add(d)
		err := b.store.Write(t.Context(), Write{Change: func(tx Tx) error {
			return tx.AppendBatch(Batch{Capsule: c.key, FirstMS: d.ms, LastMS: d.ms, Count: 1, Payload: seal(one.payload), Events: one.events})
		}})
		if err != nil {
			t.Fatal(err)
		}
		b.service.sweepFrom(northHero, d.ms)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := b.rewardsOf(c, "loc_late"); len(got) != 1 {
			t.Errorf("rewards %+v", got)
		}
	})
}

// TestDefaultRewardsAfterTheClockWentBack: what is decided after the clock was set back is older than what was swept already.
func TestDefaultRewardsAfterTheClockWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Int64
		b := newBench(t, Options{Now: func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }})
		c := b.install(northHero, withDefault+`}`)
		first := b.decide(c, request("{}", "")).ID
		time.Sleep(12 * time.Second)
		synctest.Wait()
		back.Store(int64(time.Hour))
		time.Sleep(2 * time.Second)
		second := b.decide(c, request("{}", "")).ID
		time.Sleep(12 * time.Second)
		synctest.Wait()
		for _, id := range []string{first, second} {
			if got := b.rewardsOf(c, id); len(got) != 1 || got[0].Value != 0.25 {
				t.Errorf("rewards of %s: %+v", id, got)
			}
		}
	})
}

func TestSweepWaitsForASlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		b := newBench(t, Options{Storage: store})
		c := b.install(northHero, withDefault+`}`)
		time.Sleep(2 * time.Second)
		store.hold()
		id := b.decide(c, request("{}", "")).ID
		time.Sleep(20 * time.Second)
		store.release()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got := b.rewardsOf(c, id); len(got) != 1 {
			t.Errorf("a decision that was in the queue for its whole wait has rewards %+v", got)
		}
	})
}

func TestRetentionDropsWholeBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		c := b.install(northHero, `{"retention":{"days":2},"actions":[{"id":"a"},{"id":"b"}]}`)
		var old []string
		for range 5 {
			id := b.decide(c, request("{}", "")).ID
			b.reward(c, id, 1)
			old = append(old, id)
		}
		b.decide(c, request("{}", "named"))
		time.Sleep(47 * time.Hour)
		fresh := b.decide(c, request("{}", "")).ID
		synctest.Wait()
		if s := c.Stats(t.Context()); s.Decisions != 7 {
			t.Fatalf("stats %+v before the days are over", s)
		}
		want := c.capture()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		s := c.Stats(t.Context())
		if s.Decisions != 1 || s.Rewards != 0 || s.LastRewardSeq != 5 {
			t.Errorf("stats %+v, want the fresh decision only", s)
		}
		if d, _, err := c.Decision(t.Context(), fresh); err != nil || d.ID != fresh {
			t.Errorf("the fresh decision: %v", err)
		}
		if _, _, err := c.Decision(t.Context(), old[0]); err == nil {
			t.Error("an old decision is still there")
		}
		b.crash(Options{})
		if got := b.capsule(northHero).capture(); string(got.Bytes) != string(want.Bytes) {
			t.Error("retention changed the model")
		}
	})
}

func TestSweepGoesInSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counting{Memory: NewMemory()}
		b := newBench(t, Options{Storage: store})
		c := b.install(northHero, withDefault+`}`)
		const n = 2*sweepStep + 100
		var out Answer
		for i := range n {
			if err := c.Decide(t.Context(), request("{}", ""), &out); err != nil {
				t.Fatal(err)
			}
			if i%512 == 0 {
				time.Sleep(5 * time.Millisecond)
			}
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		before := store.reads.Load()
		time.Sleep(12 * time.Second)
		synctest.Wait()
		if got := counterValue(t, b.service.metrics.defaulted); got != n {
			t.Errorf("%v defaults, want %d", got, n)
		}
		if s := c.Stats(t.Context()); s.Rewards != n {
			t.Errorf("%d rewards, want %d", s.Rewards, n)
		}
		if got := store.reads.Load() - before; got < 2 {
			t.Errorf("%d reads: nothing was swept in steps", got)
		}
	})
}
