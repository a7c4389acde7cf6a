package decision

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/fault"
)

func (b *bench) keyed(c *Capsule, id string, value float64, key string) RewardAnswer {
	b.Helper()
	a, err := c.Reward(b.Context(), RewardRequest{DecisionID: id, Value: value, Key: key, HasKey: true})
	if err != nil {
		b.Fatalf("reward: %v", err)
	}
	return a
}

func TestFourThreadsRetryOneReward(t *testing.T) {
	for _, rewards := range []string{"first", "sum"} {
		t.Run(rewards, func(t *testing.T) {
			b := newBench(t, Options{})
			c := b.install(northHero, `{"rewards":"`+rewards+`","actions":[{"id":"a"},{"id":"b"}]}`)
			const threads, rounds, tries = 4, 30, 5
			applied := make([][]int, threads)
			for round := range rounds {
				id := b.decide(c, request("{}", "")).ID
				var wg sync.WaitGroup
				for i := range threads {
					wg.Go(func() {
						for range tries {
							r, err := c.Reward(context.Background(), RewardRequest{DecisionID: id, Value: 1, Key: "paid-" + id, HasKey: true})
							if err != nil {
								t.Error(err)
							}
							if r.Applied == r.Duplicate {
								t.Errorf("answer %+v", r)
							}
							if r.Applied {
								applied[i] = append(applied[i], round)
							}
						}
					})
				}
				wg.Wait()
			}
			total := 0
			for _, list := range applied {
				total += len(list)
			}
			if total != rounds || c.Version() != rounds {
				t.Errorf("%d rewards applied and version %d, want %d", total, c.Version(), rounds)
			}
			if s := c.Stats(t.Context()); s.Rewards != rounds || s.LastRewardSeq != rounds {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

func TestRewardsUnderFirst(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	id := b.decide(c, request("{}", "")).ID
	if r := b.keyed(c, id, 1, "one"); !r.Applied {
		t.Errorf("the first: %+v", r)
	}
	if r := b.keyed(c, id, 1, "two"); !r.Duplicate {
		t.Errorf("under first the key is the decision, whatever is sent: %+v", r)
	}
	_, rewards, _ := c.Decision(t.Context(), id)
	if len(rewards) != 1 || rewards[0].Key != id {
		t.Errorf("rewards %+v", rewards)
	}
}

func TestRewardsUnderSum(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, `{"rewards":"sum","actions":[{"id":"a"},{"id":"b"}]}`)
	id := b.decide(c, request("{}", "")).ID
	for i, want := range []bool{true, true, true, false} {
		key := []string{"", "", "k", "k"}[i]
		r, err := c.Reward(t.Context(), RewardRequest{DecisionID: id, Value: 0.25, Key: key, HasKey: key != ""})
		if err != nil || r.Applied != want || r.Duplicate == want {
			t.Errorf("reward %d: %+v, %v", i, r, err)
		}
	}
	_, rewards, _ := c.Decision(t.Context(), id)
	if len(rewards) != 3 || rewards[0].Key == rewards[1].Key || rewards[2].Key != "k" || c.Version() != 3 {
		t.Errorf("rewards %+v version %d", rewards, c.Version())
	}
}

func TestRewardRefusals(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	id := b.decide(c, request("{}", "")).ID
	for name, tc := range map[string]struct {
		r    RewardRequest
		kind fault.Kind
		text string
	}{
		"empty key":         {RewardRequest{Value: 1, HasKey: true}, fault.Invalid, "must not be empty"},
		"long key":          {RewardRequest{Value: 1, HasKey: true, Key: strings.Repeat("k", 257)}, fault.Invalid, "256 bytes"},
		"NUL in key":        {RewardRequest{Value: 1, HasKey: true, Key: "a\x00b"}, fault.Invalid, "NUL"},
		"not a number":      {RewardRequest{Value: math.NaN()}, fault.Invalid, "finite"},
		"infinite":          {RewardRequest{Value: math.Inf(1)}, fault.Invalid, "finite"},
		"reserved detail":   {RewardRequest{Value: 1, Detail: []byte(`{"a":1,"learned":true}`)}, fault.Invalid, "reserved"},
		"escaped reserved":  {RewardRequest{Value: 1, Detail: []byte(`{"l\u0065arned":true}`)}, fault.Invalid, "reserved"},
		"unknown decision":  {RewardRequest{Value: 1, DecisionID: "nope"}, fault.NotFound, `decision "nope" not found`},
		"unknown server id": {RewardRequest{Value: 1, DecisionID: "dec_0123456789a0123456789ab"}, fault.NotFound, "not found"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.r.DecisionID == "" {
				tc.r.DecisionID = id
			}
			_, err := c.Reward(t.Context(), tc.r)
			if err == nil || fault.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("error %v, want kind %q with %q", err, tc.kind, tc.text)
			}
		})
	}
	if r := b.keyed(c, id, 1, strings.Repeat("k", 256)); !r.Applied {
		t.Errorf("a key of 256 bytes: %+v", r)
	}
}

func TestRewardDetail(t *testing.T) {
	for _, tc := range []struct{ raw, learned, frozen string }{
		{``, ``, `{"learned":false}`},
		{`null`, ``, `{"learned":false}`},
		{`{}`, `{}`, `{"learned":false}`},
		{`{ }`, `{ }`, `{ "learned":false}`},
		{`{"a":1}`, `{"a":1}`, `{"a":1,"learned":false}`},
		{`5`, `{"value":5}`, `{"value":5,"learned":false}`},
		{`"x"`, `{"value":"x"}`, `{"value":"x","learned":false}`},
		{`[{"learned":1}]`, `{"value":[{"learned":1}]}`, `{"value":[{"learned":1}],"learned":false}`},
		{`{"deep":{"learned":1}}`, `{"deep":{"learned":1}}`, `{"deep":{"learned":1},"learned":false}`},
	} {
		got, err := rewardDetail([]byte(tc.raw), true)
		if err != nil || string(got) != tc.learned {
			t.Errorf("%s: %s, %v; want %s", tc.raw, got, err, tc.learned)
		}
		if got, err = rewardDetail([]byte(tc.raw), false); err != nil || string(got) != tc.frozen {
			t.Errorf("%s frozen: %s, %v; want %s", tc.raw, got, err, tc.frozen)
		}
	}
}

func TestRewardIsNormalizedAndKeptRaw(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, `{"reward":{"range":[-1,3]},"actions":[{"id":"a"}]}`)
	for value, want := range map[float64]float64{-5: 0, -1: 0, 0: 0.25, 3: 1, 9: 1} {
		id := b.decide(c, request("{}", "")).ID
		b.reward(c, id, value)
		_, rewards, _ := c.Decision(t.Context(), id)
		if rewards[0].Value != value || rewards[0].Normalized != want {
			t.Errorf("%v: stored %v normalized %v, want %v", value, rewards[0].Value, rewards[0].Normalized, want)
		}
	}
}

func TestRewardsOneFailsAlone(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	one, two := b.decide(c, request("{}", "")).ID, b.decide(c, request("{}", "")).ID
	results := c.Rewards(t.Context(), []RewardRequest{
		{DecisionID: one, Value: 1}, {DecisionID: "nope", Value: 1}, {DecisionID: one, Value: 0}, {DecisionID: two, Value: math.NaN()}, {DecisionID: two, Value: 1},
	})
	if !results[0].Answer.Applied || results[0].Answer.ModelVersion != 1 || !results[2].Answer.Duplicate || !results[4].Answer.Applied ||
		results[4].Answer.ModelVersion != 2 {
		t.Errorf("results %+v", results)
	}
	b.kind(fault.NotFound, results[1].Err)
	b.kind(fault.Invalid, results[3].Err)
	if got := c.Rewards(t.Context(), nil); len(got) != 0 {
		t.Errorf("no rewards gave %v", got)
	}
}

func TestRewardOfAQueuedDecisionComesAfterIt(t *testing.T) {
	b := newBench(t, Options{BatchWindow: time.Hour})
	c := b.install(northHero, threeModels)
	id := b.decide(c, request("{}", "")).ID
	b.reward(c, id, 1)
	// A restart replays from the log alone: it would fail had the reward been stored without its decision.
	b.crash(Options{})
	if c = b.capsule(northHero); c.Version() != 1 {
		t.Errorf("version %d after a crash, want 1", c.Version())
	}
}

func TestRewardIsRefusedWhenTheStorageRefuses(t *testing.T) {
	store := newFaulty()
	b := newBench(t, Options{Storage: store})
	c := b.install(northHero, threeModels)
	id := b.decide(c, request("{}", "")).ID
	if !c.settle(t.Context(), time.Minute) {
		t.Fatal("not settled")
	}
	store.breakWith(unavailable("store", "the disk is full"))
	_, err := c.Reward(t.Context(), RewardRequest{DecisionID: id, Value: 1})
	b.kind(fault.Unavailable, err)
	if c.Version() != 0 {
		t.Error("the model learned from a reward that is not stored")
	}
	store.breakWith(nil)
	if r := b.reward(c, id, 1); !r.Applied || r.ModelVersion != 1 {
		t.Errorf("after the disk had room: %+v", r)
	}
}

func TestRewardRacesWithEraseAndDelete(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		wg.Go(func() {
			var out Answer
			for {
				select {
				case <-stop:
					return
				default:
				}
				err := c.Decide(context.Background(), request("{}", ""), &out)
				if err == nil {
					_, err = c.Reward(context.Background(), RewardRequest{DecisionID: out.ID, Value: 1})
				}
				if err != nil && fault.KindOf(err) != fault.NotFound {
					t.Error(err)
				}
			}
		})
	}
	for i := range 10 {
		removed, err := c.purge(t.Context(), AuditRow{Event: "logs_purged", Detail: emptyObject})
		if err != nil {
			t.Fatal(err)
		}
		_ = b.store.Read(t.Context(), func(v View) error {
			row, err := v.Capsule(northHero)
			if err == nil && row.Purges != int64(i+1) {
				t.Errorf("purge %d (%+v): row %+v", i, removed, row)
			}
			return err
		})
	}
	close(stop)
	wg.Wait()
	// What is left is consistent: stats equal the row, and a replay gives the same model.
	if !c.settle(t.Context(), time.Minute) {
		t.Fatal("not settled")
	}
	var row CapsuleRow
	_ = b.store.Read(t.Context(), func(v View) (err error) { row, err = v.Capsule(northHero); return err })
	if got := c.Stats(t.Context()); got != rowStats(&row) {
		t.Errorf("stats %+v, row %+v", got, rowStats(&row))
	}
	want := c.capture()
	b.crash(Options{})
	c = b.capsule(northHero)
	if got := c.capture(); string(got.Bytes) != string(want.Bytes) {
		t.Error("the model after erasures and a crash differs")
	}
	testDeleteUnderLoad(b, c)
}

// testDeleteUnderLoad deletes a capsule that is in use: everything afterwards is NotFound and nothing reappears.
func testDeleteUnderLoad(b *bench, c *Capsule) {
	b.Helper()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			var out Answer
			var err error
			for err == nil {
				if err = c.Decide(context.Background(), request("{}", ""), &out); err == nil {
					_, err = c.Reward(context.Background(), RewardRequest{DecisionID: out.ID, Value: 1})
				}
			}
			b.kind(fault.NotFound, err)
		})
	}
	if _, err := b.service.remove(b.Context(), northHero, AuditRow{Event: "capsule_deleted", Detail: emptyObject}); err != nil {
		b.Fatal(err)
	}
	wg.Wait()
	_, err := b.service.Capsule(b.Context(), northHero)
	b.kind(fault.NotFound, err)
	if _, err := c.Info(b.Context()); fault.KindOf(err) != fault.NotFound {
		b.Errorf("info of a deleted capsule: %v", err)
	}
	_, err = b.service.remove(b.Context(), northHero, AuditRow{Event: "capsule_deleted", Detail: emptyObject})
	b.kind(fault.NotFound, err)
	again := b.install(northHero, threeModels)
	if s := again.Stats(b.Context()); s != (Stats{}) || again.Version() != 0 {
		b.Errorf("a recreated capsule begins with %+v", s)
	}
}

func TestDeleteFailsAndTheCapsuleLives(t *testing.T) {
	store := newFaulty()
	b := newBench(t, Options{Storage: store})
	c := b.install(northHero, threeModels)
	store.breakWith(unavailable("store", "the disk is full"))
	_, err := b.service.remove(t.Context(), northHero, AuditRow{Event: "capsule_deleted", Detail: emptyObject})
	b.kind(fault.Unavailable, err)
	store.breakWith(nil)
	b.reward(c, b.decide(c, request("{}", "")).ID, 1)
}

func TestPurgeKeepsTheModel(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	var id string
	for i := range 20 {
		id = b.decide(c, request(fmt.Sprintf(`{"i":%d}`, i), "")).ID
		b.reward(c, id, 1)
	}
	b.decide(c, request("{}", "queued"))
	removed, err := c.purge(t.Context(), AuditRow{Event: "logs_purged", Detail: emptyObject})
	if err != nil || removed != (Removed{Decisions: 21, Rewards: 20}) {
		t.Fatalf("removed %+v, %v", removed, err)
	}
	if s := c.Stats(t.Context()); s != (Stats{LastRewardSeq: 20}) {
		t.Errorf("stats %+v", s)
	}
	_, err = c.Reward(t.Context(), RewardRequest{DecisionID: id, Value: 1})
	b.kind(fault.NotFound, err)
	if a := b.decide(c, request(`{"other":1}`, "queued")); a.Replayed {
		t.Error("an erased decision was replayed")
	}
	b.reward(c, "queued", 1)
	b.crash(Options{})
	c = b.capsule(northHero)
	if c.Version() != 21 {
		t.Errorf("version %d, want 21", c.Version())
	}
	if s := c.Stats(t.Context()); s.Decisions != 1 || s.Rewards != 1 || s.LastRewardSeq != 21 {
		t.Errorf("stats %+v", s)
	}
}
