package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"holdfast/decision"
	"holdfast/fault"
)

func writeCases() []decisionCase {
	return []decisionCase{
		{"a change that fails leaves nothing", failedChange},
		{"a change fails alone", failedAmongOthers},
		{"a change sees the ones before it", changesSeeEachOther},
		{"applied comes in commit order and before the answer", appliedOrder},
		{"a caller that leaves does not stop its change", impatientCaller},
		{"a read is one state", consistentRead},
		{"what was handed over is copied", handedOver},
		{"what was read stays", readStays},
		{"many writers", manyWriters},
	}
}

func failedChange(b *decisionBench) {
	key := b.capsule("a")
	err := b.try(func(tx decision.Tx) error {
		if err := tx.AppendBatch(decision.Batch{Capsule: key, FirstMS: 1, LastMS: 2, Count: 1, Payload: []byte("x"),
			Events: []string{"e"}}); err != nil {
			return err
		}
		if _, err := tx.AppendReward(key, 0, decision.Reward{DecisionID: "x", Key: "x"}); err != nil {
			return err
		}
		if _, err := tx.CreateCapsule(decision.CapsuleRow{ID: capsuleID("b"), Spec: []byte("{}")}); err != nil {
			return err
		}
		if err := tx.AppendAudit(capsuleID("a"), decision.AuditRow{Event: "spec_updated", Detail: []byte("{}")}); err != nil {
			return err
		}
		if err := tx.SaveHeld(decision.Held{Capsule: key, EventID: "h", Record: []byte("r")}); err != nil {
			return err
		}
		return errOwn
	})
	if !errors.Is(err, errOwn) {
		b.Fatalf("the change's own error came back as %v", err)
	}
	row := b.row("a")
	same(b, "decisions", row.Decisions, 0)
	same(b, "rewards", row.Rewards, 0)
	same(b, "last sequence", row.LastSeq, 0)
	same(b, "last ms", row.LastMS, 0)
	same(b, "event known", b.known(key, "e"), false)
	equal(b, "batches", b.batches(key, decision.BatchQuery{}), nil)
	b.read(func(v decision.View) error {
		_, err := v.Capsule(capsuleID("b"))
		b.kind(fault.NotFound, err)
		_, err = v.Held(key, "h")
		b.kind(fault.NotFound, err)
		_, err = v.Audits(capsuleID("a"), 10)
		return err
	})
	same(b, "the next sequence number", b.reward(key, "x", "x"), 1)
}

func failedAmongOthers(b *decisionBench) {
	key := b.capsule("a")
	const n = 20
	outcome := make(chan error, n)
	for i := range n {
		err := b.s.Queue(decision.Write{
			Change: func(tx decision.Tx) error {
				id := numbered("d", i)
				if _, err := tx.AppendReward(key, 0, decision.Reward{DecisionID: id, Key: id}); err != nil {
					return err
				}
				if i%3 == 0 {
					return errOwn
				}
				return nil
			},
			Applied: func(err error) { outcome <- err },
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	failed := 0
	for i := range n {
		err := <-outcome
		if (i%3 == 0) != errors.Is(err, errOwn) || (i%3 != 0) != (err == nil) {
			b.Errorf("change %d: %v", i, err)
		}
		if err != nil {
			failed++
		}
	}
	got := b.rewardsAfter(key, 0)
	same(b, "rewards kept", len(got), n-failed)
	for i, r := range got {
		same(b, "sequence without gaps", r.Seq, int64(i+1))
	}
}

func changesSeeEachOther(b *decisionBench) {
	b.capsule("a")
	const n = 50
	done := make(chan error, n)
	for range n {
		err := b.s.Queue(decision.Write{
			Change: func(tx decision.Tx) error {
				row, err := tx.Capsule(capsuleID("a"))
				if err != nil {
					return err
				}
				row.Draws++
				return tx.SaveCapsule(row)
			},
			Applied: func(err error) { done <- err },
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for range n {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	same(b, "draws", b.row("a").Draws, n)
}

func appliedOrder(b *decisionBench) {
	key := b.capsule("a")
	const callers, each = 8, 12
	var (
		mu     sync.Mutex // guards order, though Applied comes from one goroutine: a storage may be wrong
		order  []int64
		wg     sync.WaitGroup
		missed atomic.Int64
	)
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				id := numbered(numbered("d", c), i)
				var seq int64
				var applied atomic.Bool
				err := b.s.Write(context.Background(), decision.Write{
					Change: func(tx decision.Tx) (err error) {
						seq, err = tx.AppendReward(key, 0, decision.Reward{DecisionID: id, Key: id})
						return err
					},
					Applied: func(err error) {
						if err == nil {
							mu.Lock()
							order = append(order, seq)
							mu.Unlock()
						}
						applied.Store(true)
					},
				})
				if err != nil || !applied.Load() {
					missed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	same(b, "writes that failed or were answered before Applied", missed.Load(), 0)
	same(b, "applied", len(order), callers*each)
	if !slices.IsSorted(order) {
		b.Errorf("applied out of commit order: %v", order)
	}
}

func impatientCaller(b *decisionBench) {
	b.capsule("a")
	started, let := make(chan struct{}), make(chan struct{})
	if err := b.s.Queue(decision.Write{Change: func(decision.Tx) error {
		close(started)
		<-let
		return nil
	}}); err != nil {
		b.Fatal(err)
	}
	<-started
	ctx, cancel := context.WithCancel(context.Background())
	applied, answered := make(chan error, 1), make(chan error, 1)
	entered := make(chan struct{})
	go func() {
		close(entered)
		answered <- b.s.Write(ctx, decision.Write{
			Change: func(tx decision.Tx) error {
				row, err := tx.Capsule(capsuleID("a"))
				if err != nil {
					return err
				}
				row.Draws = 77
				return tx.SaveCapsule(row)
			},
			Applied: func(err error) { applied <- err },
		})
	}()
	<-entered
	cancel()
	left := <-answered // while the writer is held: only the waiting can have ended
	close(let)
	if left == nil {
		b.Fatal("a write was acknowledged while the writer was held")
	}
	// The context may have ended before the change was handed over. Then it must not happen; else it must.
	b.write(func(decision.Tx) error { return nil })
	select {
	case err := <-applied:
		if err != nil {
			b.Fatalf("the change failed: %v", err)
		}
		same(b, "draws", b.row("a").Draws, 77)
	default:
		same(b, "draws", b.row("a").Draws, 0)
	}
}

func consistentRead(b *decisionBench) {
	b.capsule("a")
	b.capsule("b")
	b.write(func(tx decision.Tx) error { return move(tx, 1000, 0) })
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := uint64(1); ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := b.try(func(tx decision.Tx) error { return move(tx, 1000-i%1000, i%1000) }); err != nil {
				b.Error(err)
				return
			}
		}
	})
	for range 100 {
		b.read(func(v decision.View) error {
			one, err := v.Capsule(capsuleID("a"))
			if err != nil {
				return err
			}
			two, err := v.Capsule(capsuleID("b"))
			if err != nil {
				return err
			}
			same(b, "the sum over two capsules in one read", one.Draws+two.Draws, 1000)
			return nil
		})
	}
	close(stop)
	wg.Wait()
}

func move(tx decision.Tx, a, z uint64) error {
	for name, draws := range map[string]uint64{"a": a, "b": z} {
		row, err := tx.Capsule(capsuleID(name))
		if err != nil {
			return err
		}
		row.Draws = draws
		if err := tx.SaveCapsule(row); err != nil {
			return err
		}
	}
	return nil
}

func handedOver(b *decisionBench) {
	key := b.capsule("a")
	payload, detail := []byte("one"), []byte(`{"a":1}`)
	spec, bytes := []byte(`{"x":1}`), []byte("model")
	b.write(func(tx decision.Tx) error {
		if err := tx.AppendBatch(decision.Batch{Capsule: key, FirstMS: 1, LastMS: 1, Count: 1, Payload: payload}); err != nil {
			return err
		}
		if _, err := tx.AppendReward(key, 0, decision.Reward{DecisionID: "one", Key: "one", Detail: detail}); err != nil {
			return err
		}
		if err := tx.SaveCapsule(decision.CapsuleRow{Key: key, ID: capsuleID("a"), Spec: spec}); err != nil {
			return err
		}
		return tx.SaveSnapshot(decision.Snapshot{Capsule: key, Bytes: bytes}, 3)
	})
	for _, p := range [][]byte{payload, detail, spec, bytes} {
		clear(p)
	}
	equal(b, "payload", b.batches(key, decision.BatchQuery{}), []string{"one"})
	same(b, "detail", string(b.rewardsOf(key, "one")[0].Detail), `{"a":1}`)
	same(b, "spec", string(b.row("a").Spec), `{"x":1}`)
	b.read(func(v decision.View) error {
		s, err := v.NewestSnapshot(key)
		same(b, "snapshot", string(s.Bytes), "model")
		return err
	})
}

func readStays(b *decisionBench) {
	key := b.capsule("a")
	b.reward(key, "one", "one")
	b.write(func(tx decision.Tx) error {
		if err := tx.SaveHeld(decision.Held{Capsule: key, EventID: "h", Record: []byte("record"), Rewards: []byte("[1]")}); err != nil {
			return err
		}
		return tx.SaveSnapshot(decision.Snapshot{Capsule: key, Bytes: []byte("model")}, 3)
	})
	var row decision.CapsuleRow
	var held decision.Held
	var snap decision.Snapshot
	b.read(func(v decision.View) (err error) {
		if row, err = v.Capsule(capsuleID("a")); err != nil {
			return err
		}
		if held, err = v.Held(key, "h"); err != nil {
			return err
		}
		snap, err = v.NewestSnapshot(key)
		return err
	})
	b.write(func(tx decision.Tx) error {
		if err := tx.SaveCapsule(decision.CapsuleRow{Key: key, ID: capsuleID("a"), Spec: []byte(`{"seed":2}`)}); err != nil {
			return err
		}
		if err := tx.DropHeld(key, "h"); err != nil {
			return err
		}
		return tx.SaveSnapshot(decision.Snapshot{Capsule: key, Version: 2, Bytes: []byte("other")}, 1)
	})
	b.row("a")
	same(b, "spec read before", string(row.Spec), `{"seed":1}`)
	same(b, "held read before", string(held.Record)+string(held.Rewards), "record[1]")
	same(b, "snapshot read before", string(snap.Bytes), "model")
}

func manyWriters(b *decisionBench) {
	key := b.capsule("a")
	const callers, keys = 16, 40
	var applied, duplicates atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := range keys {
				id := numbered("d", i)
				var seq int64
				err := b.try(func(tx decision.Tx) (err error) {
					seq, err = tx.AppendReward(key, 0, decision.Reward{DecisionID: id, Key: id})
					return err
				})
				switch {
				case err != nil:
					b.Error(err)
				case seq == 0:
					duplicates.Add(1)
				default:
					applied.Add(1)
				}
			}
		})
	}
	wg.Wait()
	same(b, "rewards applied", applied.Load(), keys)
	same(b, "duplicates", duplicates.Load(), keys*(callers-1))
	got := b.rewardsAfter(key, 0)
	same(b, "rewards stored", len(got), keys)
	for i, r := range got {
		same(b, "sequence", r.Seq, int64(i+1))
	}
	same(b, "counted", b.row("a").Rewards, keys)
}
