package storetest

import (
	"math"

	"holdfast/decision"
	"holdfast/fault"
)

func rewardCases() []decisionCase {
	return []decisionCase{
		{"a reward reads back as it was appended", rewardReadsBack},
		{"a key counts once", keyCountsOnce},
		{"rewards of one decision", rewardsOfOne},
		{"rewards after a sequence number", rewardsAfterSeq},
		{"gone is not a duplicate", goneIsNotDuplicate},
	}
}

func rewardReadsBack(b *decisionBench) {
	key := b.capsule("a")
	want := []decision.Reward{
		{Seq: 1, TimeMS: 1790000000123, DecisionID: "order:42", Key: "paid-é", Value: -0.1, Normalized: math.Nextafter(0.3, 1),
			Detail: []byte(`{"latencyMs": 310}`), Learned: true},
		{Seq: 2, DecisionID: "x", Key: "x", Value: math.MaxFloat64},
		{Seq: 3, DecisionID: "x", Key: "y", Value: math.SmallestNonzeroFloat64, Normalized: 1, Detail: []byte("{}")},
	}
	b.write(func(tx decision.Tx) error {
		for _, r := range want {
			give := r
			give.Seq = 99 // the storage's to give
			seq, err := tx.AppendReward(key, 0, give)
			if err != nil {
				return err
			}
			same(b, "sequence", seq, r.Seq)
		}
		return nil
	})
	got := b.rewardsAfter(key, 0)
	if len(got) != len(want) {
		b.Fatalf("%d rewards", len(got))
	}
	for i := range want {
		same(b, "detail", string(got[i].Detail), string(want[i].Detail))
		same(b, "detail absent", got[i].Detail == nil, want[i].Detail == nil)
		g, w := got[i], want[i]
		g.Detail, w.Detail = nil, nil
		if g.TimeMS != w.TimeMS || g.Seq != w.Seq || g.DecisionID != w.DecisionID || g.Key != w.Key || g.Value != w.Value ||
			g.Normalized != w.Normalized || g.Learned != w.Learned {
			b.Errorf("got %+v, want %+v", g, w)
		}
	}
	row := b.row("a")
	same(b, "counts", [2]int64{row.Rewards, row.LastSeq}, [2]int64{3, 3})
}

func keyCountsOnce(b *decisionBench) {
	key, other := b.capsule("a"), b.capsule("b")
	same(b, "first", b.reward(key, "x", "k"), 1)
	same(b, "repeat", b.reward(key, "x", "k"), 0)
	same(b, "repeat for another decision", b.reward(key, "y", "k"), 0)
	same(b, "another capsule", b.reward(other, "x", "k"), 1)
	same(b, "the number of a repeat is not lost", b.reward(key, "y", "l"), 2)
	b.write(func(tx decision.Tx) error { // twice in one change
		for _, want := range []int64{3, 0, 4} {
			k := "m"
			if want == 4 {
				k = "n"
			}
			seq, err := tx.AppendReward(key, 0, decision.Reward{DecisionID: "z", Key: k})
			if err != nil {
				return err
			}
			same(b, "sequence", seq, want)
		}
		return nil
	})
	got := b.rewardsAfter(key, 0)
	equal(b, "stored", seqs(got), []int64{1, 2, 3, 4})
	same(b, "the first one stands", got[0].DecisionID, "x")
	same(b, "counted", b.row("a").Rewards, 4)
}

func rewardsOfOne(b *decisionBench) {
	key, other := b.capsule("a"), b.capsule("b")
	b.reward(key, "x", "k1")
	b.reward(key, "y", "y")
	b.reward(key, "x", "x")
	b.reward(key, "z", "k2")
	b.reward(key, "x", "x:default")
	b.reward(key, "z", "w") // the key is the id of another decision
	b.reward(other, "x", "k9")
	equal(b, "of x", seqs(b.rewardsOf(key, "x")), []int64{1, 3, 5})
	equal(b, "of y", seqs(b.rewardsOf(key, "y")), []int64{2})
	equal(b, "of z", seqs(b.rewardsOf(key, "z")), []int64{4, 6})
	equal(b, "of w", seqs(b.rewardsOf(key, "w")), nil)
	equal(b, "of x elsewhere", seqs(b.rewardsOf(other, "x")), []int64{1})
	for _, r := range b.rewardsOf(key, "x") {
		same(b, "decision", r.DecisionID, "x")
	}
}

func rewardsAfterSeq(b *decisionBench) {
	key := b.capsule("a")
	const n = 30
	for i := range n {
		b.reward(key, numbered("d", i), numbered("d", i))
	}
	for _, after := range []int64{0, 1, 17, n - 1, n, n + 5} {
		got := seqs(b.rewardsAfter(key, after))
		same(b, "rewards after", len(got), int(max(0, n-after)))
		for i, seq := range got {
			same(b, "sequence", seq, after+int64(i)+1)
		}
	}
}

func goneIsNotDuplicate(b *decisionBench) {
	key := b.capsule("a")
	b.reward(key, "x", "x")
	for what, c := range map[string]struct{ capsule, purges int64 }{
		"unknown capsule": {key + 99, 0}, "later purge": {key, 1}, "earlier purge": {key, -1},
	} {
		err := b.try(func(tx decision.Tx) error {
			seq, err := tx.AppendReward(c.capsule, c.purges, decision.Reward{DecisionID: "x", Key: "x"})
			same(b, what+": sequence", seq, 0)
			return err
		})
		if err == nil || fault.KindOf(err) != fault.NotFound {
			b.Errorf("%s: got %v, want not found", what, err)
		}
	}
	same(b, "rewards", len(b.rewardsAfter(key, 0)), 1)
}
