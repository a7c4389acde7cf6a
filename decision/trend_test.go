package decision

import (
	"context"
	"testing"

	"holdfast/fault"
)

func TestRewardsSinceAndOf(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	var ids []string
	for i := range 5 {
		a := b.decide(c, request(`{}`, ""))
		ids = append(ids, a.ID)
		if i != 3 {
			b.reward(c, a.ID, float64(i)/4)
		}
	}
	all, err := c.RewardsSince(context.Background(), 0, 1000)
	if err != nil || len(all) != 4 || all[0].Seq != 1 || all[3].Seq != 4 || all[3].Value != 1 {
		t.Fatalf("all rewards: %+v, %v", all, err)
	}
	if some, err := c.RewardsSince(context.Background(), 1, 2); err != nil || len(some) != 2 || some[0].Seq != 2 || some[1].Seq != 3 {
		t.Errorf("two rewards after the first: %+v, %v", some, err)
	}
	if none, err := c.RewardsSince(context.Background(), 4, 0); err != nil || len(none) != 0 {
		t.Errorf("after the newest: %+v, %v", none, err)
	}
	of, err := c.RewardsOf(context.Background(), append(ids, "unknown"))
	if err != nil || len(of) != 6 {
		t.Fatalf("rewards of decisions: %+v, %v", of, err)
	}
	for i, want := range []int{1, 1, 1, 0, 1, 0} {
		if len(of[i]) != want || want == 1 && of[i][0].DecisionID != ids[i] {
			t.Errorf("decision %d has rewards %+v, want %d", i, of[i], want)
		}
	}
}

func TestTrendOfADeletedCapsule(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	a := b.decide(c, request(`{}`, ""))
	b.reward(c, a.ID, 1)
	if _, err := b.service.DeleteCapsule(context.Background(), northHero); err != nil {
		t.Fatal(err)
	}
	_, err := c.RewardsSince(context.Background(), 0, 10)
	b.kind(fault.NotFound, err)
	_, err = c.RewardsOf(context.Background(), []string{a.ID})
	b.kind(fault.NotFound, err)
}
