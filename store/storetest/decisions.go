package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/decision"
	"holdfast/fault"
)

// Decisions holds a decision.Storage to its contract. open returns an empty storage and closes it when its test ends.
func Decisions(t *testing.T, open func(t testing.TB) decision.Storage) {
	groups := []struct {
		name  string
		cases []decisionCase
	}{
		{"write", writeCases()},
		{"catalog", catalogCases()},
		{"log", logCases()},
		{"rewards", rewardCases()},
		{"retention", retentionCases()},
		{"models", modelCases()},
		{"trails", trailCases()},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) {
					c.run(&decisionBench{TB: t, s: open(t)})
				})
			}
		})
	}
}

type decisionCase struct {
	name string
	run  func(b *decisionBench)
}

// decisionBench is one case with its storage and the short forms of what cases do most.
type decisionBench struct {
	testing.TB
	s decision.Storage
}

// bound is how long one call may take before the case counts as hung.
const bound = time.Minute

func (b *decisionBench) try(change func(tx decision.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	return b.s.Write(ctx, decision.Write{Change: change})
}

func (b *decisionBench) write(change func(tx decision.Tx) error) {
	b.Helper()
	if err := b.try(change); err != nil {
		b.Fatalf("write: %v", err)
	}
}

func (b *decisionBench) read(look func(v decision.View) error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if err := b.s.Read(ctx, look); err != nil {
		b.Fatalf("read: %v", err)
	}
}

// refused expects change to fail with kind.
func (b *decisionBench) refused(kind fault.Kind, change func(tx decision.Tx) error) {
	b.Helper()
	b.kind(kind, b.try(change))
}

// kind expects err to be of that kind.
func (b *decisionBench) kind(kind fault.Kind, err error) {
	b.Helper()
	if err == nil || fault.KindOf(err) != kind {
		b.Errorf("got error %v, want one of kind %q", err, kind)
	}
}

func capsuleID(name string) decision.CapsuleID {
	return decision.CapsuleID{Tenant: "north", Job: "web", Capsule: name}
}

// capsule makes a capsule with a small spec and returns its key.
func (b *decisionBench) capsule(name string) (key int64) {
	b.Helper()
	b.write(func(tx decision.Tx) (err error) {
		key, err = tx.CreateCapsule(decision.CapsuleRow{ID: capsuleID(name), CreatedMS: 5, Spec: []byte(`{"seed":1}`)})
		return err
	})
	return key
}

func (b *decisionBench) row(name string) (row decision.CapsuleRow) {
	b.Helper()
	b.read(func(v decision.View) (err error) {
		row, err = v.Capsule(capsuleID(name))
		return err
	})
	return row
}

// batch makes a batch of the given ids; its payload is the ids, one a line, which payloadIDs reads back.
func batch(capsule, first, last int64, ids ...string) decision.Batch {
	return decision.Batch{Capsule: capsule, FirstMS: first, LastMS: last, Count: len(ids),
		Payload: []byte(strings.Join(ids, "\n"))}
}

func payloadIDs(payload []byte, visit func(id string)) error {
	for id := range strings.SplitSeq(string(payload), "\n") {
		visit(id)
	}
	return nil
}

func (b *decisionBench) append(batches ...decision.Batch) {
	b.Helper()
	b.write(func(tx decision.Tx) error {
		for _, one := range batches {
			if err := tx.AppendBatch(one); err != nil {
				return err
			}
		}
		return nil
	})
}

// reward appends the usual reward of a decision and returns its sequence number.
func (b *decisionBench) reward(capsule int64, id, key string) (seq int64) {
	b.Helper()
	b.write(func(tx decision.Tx) (err error) {
		seq, err = tx.AppendReward(capsule, 0, decision.Reward{TimeMS: 9, DecisionID: id, Key: key, Value: 1, Normalized: 1,
			Learned: true})
		return err
	})
	return seq
}

// batches returns the payloads that a query visits, in order.
func (b *decisionBench) batches(capsule int64, q decision.BatchQuery) (found []string) {
	b.Helper()
	b.read(func(v decision.View) error {
		found = nil
		return v.Batches(capsule, q, func(one decision.Batch) (bool, error) {
			if one.Capsule != capsule {
				b.Errorf("a batch of capsule %d in a query of %d", one.Capsule, capsule)
			}
			found = append(found, string(one.Payload))
			return true, nil
		})
	})
	return found
}

func (b *decisionBench) rewardsAfter(capsule, after int64) (found []decision.Reward) {
	b.Helper()
	b.read(func(v decision.View) error {
		found = nil
		return v.Rewards(capsule, after, func(r decision.Reward) (bool, error) {
			found = append(found, r)
			return true, nil
		})
	})
	return found
}

func (b *decisionBench) rewardsOf(capsule int64, id string) (found []decision.Reward) {
	b.Helper()
	b.read(func(v decision.View) (err error) {
		found, err = v.RewardsOf(capsule, id)
		return err
	})
	return found
}

// known reports whether the client-made id is there.
func (b *decisionBench) known(capsule int64, id string) (ok bool) {
	b.Helper()
	b.read(func(v decision.View) error {
		_, err := v.EventTime(capsule, id)
		if ok = err == nil; !ok {
			b.kind(fault.NotFound, err)
		}
		return nil
	})
	return ok
}

func seqs(rewards []decision.Reward) []int64 {
	out := make([]int64, len(rewards))
	for i, r := range rewards {
		out[i] = r.Seq
	}
	return out
}

// same fails the case when got is not want.
func same[T comparable](b *decisionBench, what string, got, want T) {
	b.Helper()
	if got != want {
		b.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// equal fails the case when the lists differ.
func equal[T comparable](b *decisionBench, what string, got, want []T) {
	b.Helper()
	if !slices.Equal(got, want) {
		b.Errorf("%s: got %v, want %v", what, got, want)
	}
}

var errOwn = errors.New("the change gave up")

func numbered(prefix string, n int) string { return fmt.Sprintf("%s%03d", prefix, n) }
