package storetest

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"

	"holdfast/decision"
	"holdfast/fault"
)

func logCases() []decisionCase {
	return []decisionCase{
		{"a batch reads back as it was appended", batchReadsBack},
		{"spans", spans},
		{"overlapping batches in any order", overlapping},
		{"a visit may stop and fail", visits},
		{"counts and times", countsAndTimes},
		{"client-made ids", clientIDs},
		{"a purge", purge},
	}
}

func batchReadsBack(b *decisionBench) {
	key := b.capsule("a")
	payload := make([]byte, 70_000)
	for i := range payload {
		payload[i] = byte(rand.Uint32())
	}
	want := decision.Batch{Capsule: key, FirstMS: 1790000000123, LastMS: 1790000000125, Count: 512, Payload: payload}
	b.append(want, batch(key, 1790000000125, 1790000000125, ""))
	n := 0
	b.read(func(v decision.View) error {
		return v.Batches(key, decision.BatchQuery{}, func(got decision.Batch) (bool, error) {
			if n++; n == 1 {
				same(b, "times", [2]int64{got.FirstMS, got.LastMS}, [2]int64{want.FirstMS, want.LastMS})
				same(b, "count", got.Count, want.Count)
				equal(b, "payload", got.Payload, payload)
			} else {
				same(b, "empty payload", len(got.Payload), 0)
			}
			return true, nil
		})
	})
	same(b, "batches", n, 2)
	same(b, "payload bytes are not mixed up with counts", b.row("a").Decisions, 513)
}

func spans(b *decisionBench) {
	key, other := b.capsule("a"), b.capsule("b")
	b.append(batch(key, 10, 20, "a"), batch(key, 20, 22, "b"), batch(key, 30, 5_000_000, "long"), batch(key, 5_000_000, 5_000_010, "z"),
		batch(other, 10, 20, "other"))
	for _, c := range []struct {
		since, until int64
		want         []string
	}{
		{0, 0, []string{"a", "b", "long", "z"}},
		{0, 10, nil},
		{0, 11, []string{"a"}},
		{20, 21, []string{"a", "b"}},
		{21, 30, []string{"b"}},
		{22, 31, []string{"b", "long"}},
		{23, 30, nil},
		{4_000_000, 4_000_001, []string{"long"}},
		{5_000_000, 5_000_001, []string{"long", "z"}},
		{5_000_001, 0, []string{"z"}},
		{5_000_010, 5_000_011, []string{"z"}},
		{5_000_011, 0, nil},
	} {
		q := decision.BatchQuery{Span: decision.Span{Since: c.since, Until: c.until}}
		equal(b, "oldest first", b.batches(key, q), c.want)
		q.Newest = true
		slices.Reverse(c.want)
		equal(b, "newest first", b.batches(key, q), c.want)
	}
}

// overlapping compares every query with a plain list, over batches as uploads make them: late, long and overlapping.
func overlapping(b *decisionBench) {
	key := b.capsule("a")
	rnd := rand.New(rand.NewPCG(7, 11))
	var all []decision.Batch
	now := int64(1_000_000_000)
	lengths := []int64{0, 1, 3, 900, 50_000, 4_000_000, 600_000_000}
	for i := range 150 {
		now += rnd.Int64N(3000)
		first := now
		if rnd.IntN(3) == 0 {
			first -= rnd.Int64N(700_000_000)
		}
		one := batch(key, first, first+lengths[rnd.IntN(len(lengths))], numbered("b", i))
		if rnd.IntN(3) > 0 {
			one.LastMS = one.FirstMS + rnd.Int64N(3)
		}
		all = append(all, one)
	}
	b.append(all...)
	for range 60 {
		q := decision.BatchQuery{Newest: rnd.IntN(2) == 0}
		switch rnd.IntN(4) {
		case 0:
			at := all[rnd.IntN(len(all))]
			q.Since = at.FirstMS + rnd.Int64N(at.LastMS-at.FirstMS+1)
			q.Until = q.Since + 1
		case 1:
			q.Since = now - rnd.Int64N(800_000_000)
		case 2:
			q.Until = now - rnd.Int64N(800_000_000)
		default:
			q.Since = now - rnd.Int64N(800_000_000)
			q.Until = q.Since + rnd.Int64N(400_000_000)
		}
		b.overlap(all, q, b.batches(key, q))
	}
	row := b.row("a")
	first := slices.MinFunc(all, func(x, y decision.Batch) int { return cmp.Compare(x.FirstMS, y.FirstMS) })
	last := slices.MaxFunc(all, func(x, y decision.Batch) int { return cmp.Compare(x.LastMS, y.LastMS) })
	same(b, "first and last", [2]int64{row.FirstMS, row.LastMS}, [2]int64{first.FirstMS, last.LastMS})
}

// overlap compares an answer with a plain list: the same batches, by ascending start or by descending end.
func (b *decisionBench) overlap(all []decision.Batch, q decision.BatchQuery, got []string) {
	b.Helper()
	times := map[string]int64{}
	for _, one := range all {
		switch {
		case one.LastMS < q.Since || q.Until != 0 && one.FirstMS >= q.Until:
		case q.Newest:
			times[string(one.Payload)] = -one.LastMS
		default:
			times[string(one.Payload)] = one.FirstMS
		}
	}
	same(b, "batches found", len(got), len(times))
	for i, name := range got {
		at, wanted := times[name]
		if !wanted {
			b.Errorf("%s does not overlap %+v, or came twice", name, q)
		}
		if i > 0 && at < times[got[i-1]] {
			b.Errorf("%s after %s: out of order for %+v", name, got[i-1], q)
		}
	}
	slices.Sort(got)
	same(b, "batches that came twice", len(got)-len(slices.Compact(got)), 0)
}

func visits(b *decisionBench) {
	key := b.capsule("a")
	for i := range int64(5) {
		b.append(batch(key, i*10, i*10+5, numbered("b", int(i))))
		b.reward(key, numbered("b", int(i)), numbered("b", int(i)))
	}
	b.write(func(tx decision.Tx) error { // a change reads as a view does
		seen := 0
		err := tx.Batches(key, decision.BatchQuery{Newest: true}, func(one decision.Batch) (bool, error) {
			seen++
			rewards, err := tx.RewardsOf(key, string(one.Payload)) // other reads go on meanwhile
			same(b, "rewards inside a visit", len(rewards), 1)
			return seen < 2, err
		})
		same(b, "batches visited", seen, 2)
		if err != nil {
			return err
		}
		seen = 0
		err = tx.Rewards(key, 1, func(r decision.Reward) (bool, error) {
			seen++
			return r.Seq < 4, nil
		})
		same(b, "rewards visited", seen, 3)
		return err
	})
	b.read(func(v decision.View) error {
		err := v.Batches(key, decision.BatchQuery{}, func(decision.Batch) (bool, error) { return true, errOwn })
		same(b, "the visit's error comes back from Batches", errors.Is(err, errOwn), true)
		err = v.Rewards(key, 0, func(decision.Reward) (bool, error) { return true, errOwn })
		same(b, "the visit's error comes back from Rewards", errors.Is(err, errOwn), true)
		return nil
	})
	same(b, "a query after one that stopped", len(b.batches(key, decision.BatchQuery{})), 5)
}

func countsAndTimes(b *decisionBench) {
	key := b.capsule("a")
	b.append(batch(key, 100, 200, "a", "b"))
	row := b.row("a")
	same(b, "decisions and times", [3]int64{row.Decisions, row.FirstMS, row.LastMS}, [3]int64{2, 100, 200})
	b.append(batch(key, 50, 60, "c")) // late
	b.append(batch(key, 150, 190, "d", "e", "f"))
	row = b.row("a")
	same(b, "decisions and times", [3]int64{row.Decisions, row.FirstMS, row.LastMS}, [3]int64{6, 50, 200})
	b.refused(fault.NotFound, func(tx decision.Tx) error { return tx.AppendBatch(batch(key+99, 1, 1, "x")) })
	same(b, "batches of an unknown capsule", len(b.batches(key+99, decision.BatchQuery{})), 0)
}

func clientIDs(b *decisionBench) {
	key, other := b.capsule("a"), b.capsule("b")
	one := batch(key, 100, 101, "cart-1", "cart-2", "dec_1")
	one.Events = []string{"cart-1", "cart-2"}
	two := batch(other, 300, 300, "cart-1")
	two.Events = []string{"cart-1"}
	b.append(one, two)
	b.read(func(v decision.View) error {
		ms, err := v.EventTime(key, "cart-2")
		if err != nil {
			return err
		}
		if ms < 100 || ms > 101 {
			b.Errorf("time of an id: %d, outside its batch", ms)
		}
		if ms, err = v.EventTime(other, "cart-1"); err != nil {
			return err
		}
		same(b, "the same id in another capsule", ms, 300)
		var ids []string
		err = v.EventIDs(key, func(id string) { ids = append(ids, id) })
		slices.Sort(ids)
		equal(b, "ids", ids, one.Events)
		return err
	})
	same(b, "a server's id", b.known(key, "dec_1"), false)
	same(b, "the wrong case", b.known(key, "CART-1"), false)
	again := batch(key, 900, 900, "cart-1")
	again.Events = []string{"cart-1"}
	b.append(again)
	b.read(func(v decision.View) error {
		ms, err := v.EventTime(key, "cart-1")
		same(b, "the first keeps the id", ms <= 101, true)
		return err
	})
}

func purge(b *decisionBench) {
	key, other := b.capsule("a"), b.capsule("b")
	b.fill(key)
	b.fill(other)
	erase := func() (decisions, rewards int64) {
		b.write(func(tx decision.Tx) (err error) {
			decisions, rewards, err = tx.PurgeLogs(key)
			return err
		})
		return decisions, rewards
	}
	decisions, rewards := erase()
	same(b, "removed", [2]int64{decisions, rewards}, [2]int64{3, 2})
	row := b.row("a")
	same(b, "row after", [6]int64{row.Purges, row.LastSeq, row.Decisions, row.Rewards, row.FirstMS, row.LastMS}, [6]int64{1, 2, 0, 0, 0, 0})
	same(b, "batches", len(b.batches(key, decision.BatchQuery{})), 0)
	same(b, "rewards", len(b.rewardsAfter(key, 0)), 0)
	same(b, "rewards by decision", len(b.rewardsOf(key, "x")), 0)
	same(b, "event", b.known(key, "x"), false)
	b.read(func(v decision.View) error { // the model, what was published and what is held stay
		if _, err := v.NewestSnapshot(key); err != nil {
			return err
		}
		if _, err := v.Publication(key, "t"); err != nil {
			return err
		}
		_, err := v.Held(key, "h")
		return err
	})
	row = b.row("b")
	same(b, "the other", [3]int64{row.Purges, row.Decisions, row.Rewards}, [3]int64{0, 3, 2})

	b.refused(fault.NotFound, func(tx decision.Tx) error { // the reward was looked up before the purge
		_, err := tx.AppendReward(key, 0, decision.Reward{DecisionID: "z", Key: "z"})
		return err
	})
	b.append(batch(key, 5, 6, "n"))
	var seq int64
	b.write(func(tx decision.Tx) (err error) {
		seq, err = tx.AppendReward(key, 1, decision.Reward{DecisionID: "n", Key: "x"}) // a key of before is free again
		return err
	})
	same(b, "sequence goes on", seq, 3)
	decisions, rewards = erase()
	same(b, "removed again", [2]int64{decisions, rewards}, [2]int64{1, 1})
	same(b, "purges", b.row("a").Purges, 2)
}
