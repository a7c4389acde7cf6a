package storetest

import (
	"errors"
	"math"
	"slices"

	"holdfast/decision"
	"holdfast/fault"
)

func retentionCases() []decisionCase {
	return []decisionCase{
		{"by age", retainByAge},
		{"by bytes", retainByBytes},
		{"uncovered rewards hold their batch", retainUncovered},
		{"a few at a time", retainStepwise},
		{"late and long batches", retainLate},
		{"an unreadable payload stops it", retainUnreadable},
	}
}

// keeper fills a capsule with n batches of two decisions, ids dNNN (rewarded by the server's rule) and eNNN (client-made,
// rewarded under a key of its own), 100 ms apart.
func (b *decisionBench) keeper(n int) (key int64) {
	b.Helper()
	key = b.capsule("a")
	for i := range n {
		one := batch(key, int64(i*100+100), int64(i*100+150), numbered("d", i), numbered("e", i))
		one.Events = []string{numbered("e", i)}
		b.append(one)
		b.reward(key, numbered("d", i), numbered("d", i))
		b.reward(key, numbered("e", i), numbered("key", i))
	}
	return key
}

func (b *decisionBench) drop(key int64, r decision.Retention) (decisions, rewards int64) {
	b.Helper()
	r.IDs = payloadIDs
	b.write(func(tx decision.Tx) (err error) {
		decisions, rewards, err = tx.DropBatches(key, r)
		return err
	})
	return decisions, rewards
}

func retainByAge(b *decisionBench) {
	key := b.keeper(6)
	decisions, rewards := b.drop(key, decision.Retention{BeforeMS: 350, Watermark: math.MaxInt64}) // the third ends at 350
	same(b, "removed", [2]int64{decisions, rewards}, [2]int64{4, 4})
	same(b, "batches left", len(b.batches(key, decision.BatchQuery{})), 4)
	row := b.row("a")
	same(b, "row", [5]int64{row.Decisions, row.Rewards, row.FirstMS, row.LastMS, row.LastSeq}, [5]int64{8, 8, 300, 650, 12})
	equal(b, "rewards left", seqs(b.rewardsAfter(key, 0)), []int64{5, 6, 7, 8, 9, 10, 11, 12})
	same(b, "a dropped id", b.known(key, "e001"), false)
	same(b, "a kept id", b.known(key, "e002"), true)
	decisions, rewards = b.drop(key, decision.Retention{BeforeMS: 350, Watermark: math.MaxInt64})
	same(b, "removed again", [2]int64{decisions, rewards}, [2]int64{0, 0})
	decisions, rewards = b.drop(key, decision.Retention{Watermark: math.MaxInt64})
	same(b, "removed without a rule", [2]int64{decisions, rewards}, [2]int64{0, 0})
	decisions, rewards = b.drop(key, decision.Retention{BeforeMS: 1 << 40, Watermark: math.MaxInt64})
	same(b, "the rest", [2]int64{decisions, rewards}, [2]int64{8, 8})
	row = b.row("a")
	same(b, "row when empty", [5]int64{row.Decisions, row.Rewards, row.FirstMS, row.LastMS, row.LastSeq}, [5]int64{0, 0, 0, 0, 12})
	same(b, "sequence goes on", b.reward(key, "n", "n"), 13)
}

func retainByBytes(b *decisionBench) {
	key := b.keeper(5) // nine bytes each
	decisions, _ := b.drop(key, decision.Retention{KeepBytes: 45, Watermark: math.MaxInt64})
	same(b, "removed when it fits", decisions, 0)
	decisions, rewards := b.drop(key, decision.Retention{KeepBytes: 26, Watermark: math.MaxInt64})
	same(b, "removed", [2]int64{decisions, rewards}, [2]int64{6, 6})
	equal(b, "left", b.batches(key, decision.BatchQuery{}), []string{"d003\ne003", "d004\ne004"})
	decisions, _ = b.drop(key, decision.Retention{KeepBytes: 1, Watermark: math.MaxInt64})
	same(b, "removed when nothing fits", decisions, 4)
}

func retainUncovered(b *decisionBench) {
	key := b.keeper(4)
	b.reward(key, "e001", "late") // sequence 9
	decisions, rewards := b.drop(key, decision.Retention{BeforeMS: 1 << 40, Watermark: 6})
	same(b, "removed", [2]int64{decisions, rewards}, [2]int64{4, 4}) // batches 0 and 2
	equal(b, "left", b.batches(key, decision.BatchQuery{}), []string{"d001\ne001", "d003\ne003"})
	equal(b, "rewards left", seqs(b.rewardsAfter(key, 0)), []int64{3, 4, 7, 8, 9})
	row := b.row("a")
	same(b, "times", [2]int64{row.FirstMS, row.LastMS}, [2]int64{200, 450})
	b.drop(key, decision.Retention{BeforeMS: 1 << 40, Watermark: 8})
	equal(b, "left then", b.batches(key, decision.BatchQuery{}), []string{"d001\ne001"})
	row = b.row("a")
	same(b, "times then", [2]int64{row.FirstMS, row.LastMS}, [2]int64{200, 250})
	b.drop(key, decision.Retention{BeforeMS: 1 << 40, Watermark: 9})
	same(b, "left in the end", len(b.batches(key, decision.BatchQuery{}))+len(b.rewardsAfter(key, 0)), 0)
}

func retainStepwise(b *decisionBench) {
	key := b.keeper(5)
	for _, want := range []int64{4, 4, 2, 0} {
		decisions, _ := b.drop(key, decision.Retention{BeforeMS: 1 << 40, Watermark: math.MaxInt64, Batches: 2})
		same(b, "removed in one step", decisions, want)
	}
}

func retainLate(b *decisionBench) {
	key := b.capsule("a")
	b.append(batch(key, 1_000_000, 1_000_010, "a"), batch(key, 2_000_000, 2_000_010, "b"),
		batch(key, 10, 1_500_000, "long"), batch(key, 20, 30, "late"))
	b.drop(key, decision.Retention{BeforeMS: 1_400_000, Watermark: math.MaxInt64})
	equal(b, "left", b.batches(key, decision.BatchQuery{}), []string{"long", "b"})
	row := b.row("a")
	same(b, "times", [2]int64{row.FirstMS, row.LastMS}, [2]int64{10, 2_000_010})
	b.drop(key, decision.Retention{KeepBytes: 1, Watermark: math.MaxInt64})
	equal(b, "left then", b.batches(key, decision.BatchQuery{}), []string{"b"})
	b.append(batch(key, 2_000_011, 2_000_020, "c"))
	equal(b, "the log goes on", b.batches(key, decision.BatchQuery{}), []string{"b", "c"})
}

func retainUnreadable(b *decisionBench) {
	key := b.keeper(2)
	err := b.try(func(tx decision.Tx) error {
		n := 0
		_, _, err := tx.DropBatches(key, decision.Retention{BeforeMS: 1 << 40, Watermark: math.MaxInt64,
			IDs: func(payload []byte, visit func(string)) error {
				if n++; n == 2 {
					return errOwn
				}
				return payloadIDs(payload, visit)
			}})
		return err
	})
	same(b, "the reader's error comes back", errors.Is(err, errOwn), true)
	same(b, "nothing went", b.row("a").Decisions, 4)
}

func modelCases() []decisionCase {
	return []decisionCase{
		{"snapshots", snapshots},
		{"publications", publications},
	}
}

func snapshots(b *decisionBench) {
	key, other := b.capsule("a"), b.capsule("b")
	b.read(func(v decision.View) error {
		_, err := v.NewestSnapshot(key)
		b.kind(fault.NotFound, err)
		list, err := v.Snapshots(key)
		same(b, "none", len(list), 0)
		return err
	})
	save := func(s decision.Snapshot, keep int) {
		b.write(func(tx decision.Tx) error { return tx.SaveSnapshot(s, keep) })
	}
	versions := func(key int64) (found []uint64) {
		b.read(func(v decision.View) error {
			list, err := v.Snapshots(key)
			for _, s := range list {
				found = append(found, s.Version)
			}
			return err
		})
		return found
	}
	save(decision.Snapshot{Capsule: other, Version: 1, Bytes: []byte("other")}, 3)
	want := decision.Snapshot{Capsule: key, Version: math.MaxUint64, Seq: 812, TimeMS: 1790000000123, Bytes: []byte{0, 1, 2, 255}}
	save(want, 3)
	b.read(func(v decision.View) error {
		got, err := v.NewestSnapshot(key)
		equal(b, "bytes", got.Bytes, want.Bytes)
		same(b, "rest", [4]uint64{uint64(got.Capsule), got.Version, uint64(got.Seq), uint64(got.TimeMS)},
			[4]uint64{uint64(key), want.Version, 812, 1790000000123})
		return err
	})
	again := want
	again.TimeMS++
	save(again, 3)
	equal(b, "an equal one is not written again", versions(key), []uint64{math.MaxUint64})
	for v := range uint64(4) { // a rebuilt model may start over: the newest is the last saved
		save(decision.Snapshot{Capsule: key, Version: v, Seq: 900, Bytes: []byte("m")}, 3)
	}
	equal(b, "kept", versions(key), []uint64{3, 2, 1})
	again.TimeMS++
	save(again, 2)
	equal(b, "kept two", versions(key), []uint64{math.MaxUint64, 3})
	save(again, 1)
	equal(b, "an equal one still drops the rest", versions(key), []uint64{math.MaxUint64})
	equal(b, "the other's", versions(other), []uint64{1})
	b.refused(fault.NotFound, func(tx decision.Tx) error {
		return tx.SaveSnapshot(decision.Snapshot{Capsule: key + 99, Bytes: []byte("x")}, 3)
	})
}

func publications(b *decisionBench) {
	key, other := b.capsule("a"), b.capsule("b")
	save := func(key int64, tag string, version uint64, keep int) {
		b.write(func(tx decision.Tx) error {
			return tx.SavePublication(decision.Publication{Capsule: key, Tag: tag, Section: []byte(`{"gamma": 1e-07}`), Version: version,
				Seq: 5, TimeMS: 6, Bytes: []byte("model " + tag)}, keep)
		})
	}
	tags := func(key int64) (found []string) {
		b.read(func(v decision.View) error {
			list, err := v.Publications(key)
			for _, p := range list {
				found = append(found, p.Tag)
				same(b, "listed without bytes", len(p.Bytes), 0)
				same(b, "section", string(p.Section), `{"gamma": 1e-07}`)
			}
			return err
		})
		return found
	}
	for i, tag := range []string{"aa", "bb", "cc", "dd"} {
		save(key, tag, uint64(i), 3)
	}
	save(other, "bb", 9, 3)
	equal(b, "kept, newest first", tags(key), []string{"dd", "cc", "bb"})
	b.read(func(v decision.View) error {
		_, err := v.Publication(key, "aa")
		b.kind(fault.NotFound, err)
		p, err := v.Publication(key, "cc")
		same(b, "bytes", string(p.Bytes), "model cc")
		same(b, "rest", [5]uint64{uint64(p.Capsule), uint64(len(p.Section)), p.Version, uint64(p.Seq), uint64(p.TimeMS)},
			[5]uint64{uint64(key), 16, 2, 5, 6})
		return err
	})
	save(key, "bb", 1, 3)
	equal(b, "an old tag comes to the front", tags(key), []string{"bb", "dd", "cc"})
	save(key, "bb", 1, 3)
	equal(b, "an equal one changes nothing", tags(key), []string{"bb", "dd", "cc"})
	equal(b, "the other's", tags(other), []string{"bb"})
	b.refused(fault.NotFound, func(tx decision.Tx) error {
		return tx.SavePublication(decision.Publication{Capsule: key + 99, Tag: "x", Section: []byte("{}"), Bytes: []byte("x")}, 3)
	})
}

func trailCases() []decisionCase {
	return []decisionCase{
		{"trails", trails},
		{"deferred events", deferred},
	}
}

func trails(b *decisionBench) {
	add := func(name, event string) {
		b.write(func(tx decision.Tx) error {
			return tx.AppendAudit(capsuleID(name), decision.AuditRow{Seq: 77, TimeMS: 4, Event: event, Detail: []byte(`{"file": "a.yaml"}`)})
		})
	}
	trail := func(name string, limit int) (found []string) {
		b.read(func(v decision.View) error {
			rows, err := v.Audits(capsuleID(name), limit)
			for _, r := range rows {
				found = append(found, r.Event)
				same(b, "detail", string(r.Detail), `{"file": "a.yaml"}`)
				same(b, "time", r.TimeMS, 4)
			}
			for i := 1; i < len(rows); i++ {
				same(b, "numbers follow each other", rows[i].Seq, rows[i-1].Seq+1)
			}
			if limit >= 100 && len(rows) > 0 {
				same(b, "the first number", rows[0].Seq, 1)
			}
			return err
		})
		return found
	}
	for _, event := range []string{"capsule_created", "spec_updated", "mode_changed"} {
		add("a", event)
	}
	add("b", "capsule_created")
	equal(b, "all", trail("a", 100), []string{"capsule_created", "spec_updated", "mode_changed"})
	equal(b, "the newest two, oldest first", trail("a", 2), []string{"spec_updated", "mode_changed"})
	equal(b, "none", trail("a", 0), nil)
	equal(b, "another", trail("b", 100), []string{"capsule_created"})
	equal(b, "unknown", trail("c", 100), nil)
	key := b.capsule("a")
	b.write(func(tx decision.Tx) error { _, err := tx.DeleteCapsule(key); return err })
	add("a", "capsule_deleted")
	equal(b, "after the capsule", trail("a", 2), []string{"mode_changed", "capsule_deleted"})
}

func deferred(b *decisionBench) {
	key, other := b.capsule("a"), b.capsule("b")
	save := func(h decision.Held) { b.write(func(tx decision.Tx) error { return tx.SaveHeld(h) }) }
	before := func(ms int64) (found []string) {
		b.read(func(v decision.View) error {
			list, err := v.HeldBefore(ms)
			for _, h := range list {
				found = append(found, h.EventID)
			}
			return err
		})
		return found
	}
	save(decision.Held{Capsule: key, EventID: "later", TimeMS: 200, Record: []byte{0, 1}})
	save(decision.Held{Capsule: other, EventID: "first", TimeMS: 100, Record: []byte{2}})
	save(decision.Held{Capsule: key, EventID: "same", TimeMS: 200, Record: []byte{3}})
	equal(b, "before 100", before(100), nil)
	equal(b, "before 101", before(101), []string{"first"})
	found := before(201)
	same(b, "before 201", len(found), 3)
	same(b, "the oldest first", found[0], "first")
	save(decision.Held{Capsule: key, EventID: "later", TimeMS: 201, Record: []byte{0, 1}, Rewards: []byte("[0.5]")})
	b.read(func(v decision.View) error {
		h, err := v.Held(key, "later")
		same(b, "rewards", string(h.Rewards), "[0.5]")
		same(b, "record", slices.Equal(h.Record, []byte{0, 1}), true)
		same(b, "rest", [2]int64{h.Capsule, h.TimeMS}, [2]int64{key, 201})
		if err != nil {
			return err
		}
		h, err = v.Held(key, "same")
		same(b, "no rewards", h.Rewards == nil, true)
		_, missing := v.Held(other, "later")
		b.kind(fault.NotFound, missing)
		return err
	})
	drop := func(tx decision.Tx) error { return tx.DropHeld(key, "later") }
	b.write(drop)
	b.write(drop) // twice is as good as once
	equal(b, "left", before(1000), []string{"first", "same"})
	b.refused(fault.NotFound, func(tx decision.Tx) error {
		return tx.SaveHeld(decision.Held{Capsule: key + 99, EventID: "x", Record: []byte{1}})
	})
}
