package decisions_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"

	"holdfast/decision"
	"holdfast/store/decisions"
)

// The sizes of a usual batch: 512 records of 140 bytes.
const (
	benchRecords = 512
	benchPayload = benchRecords * 140
)

func newCapsule(t testing.TB, d *decisions.Decisions, name string) (key int64) {
	t.Helper()
	write(t, d, func(tx decision.Tx) (err error) {
		key, err = tx.CreateCapsule(decision.CapsuleRow{ID: decision.CapsuleID{Tenant: "north", Job: "web", Capsule: name}, Spec: []byte("{}")})
		return err
	})
	return key
}

func write(t testing.TB, d *decisions.Decisions, change func(tx decision.Tx) error) {
	t.Helper()
	if err := d.Write(context.Background(), decision.Write{Change: change}); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, d *decisions.Decisions, look func(v decision.View) error) {
	t.Helper()
	if err := d.Read(context.Background(), look); err != nil {
		t.Fatal(err)
	}
}

func serverID(n int) string { return fmt.Sprintf("dec_%011x%012x", 1790000000000+n, n) }

func nthReward(n int) decision.Reward {
	id := serverID(n)
	return decision.Reward{TimeMS: 1790000000000, DecisionID: id, Key: id, Value: 0.7, Normalized: 0.7, Learned: true,
		Detail: []byte(`{"latencyMs":310}`)}
}

// BenchmarkRewards is what a caller waits for: one reward, synced. Compare rewards/s with the goal of 10,000 at 64 callers.
func BenchmarkRewards(b *testing.B) {
	for _, callers := range []int{1, 64, 1000} {
		b.Run("callers="+strconv.Itoa(callers), func(b *testing.B) {
			d := decisions.New(database(b))
			key := newCapsule(b, d, "a")
			var next atomic.Int64
			b.SetParallelism(callers)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					r := nthReward(int(next.Add(1)))
					if err := d.Write(context.Background(), decision.Write{Change: func(tx decision.Tx) error {
						_, err := tx.AppendReward(key, 0, r)
						return err
					}}); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rewards/s")
		})
	}
}

// BenchmarkAppendReward is the statement work alone: many rewards in one change.
func BenchmarkAppendReward(b *testing.B) {
	for _, kind := range []string{"first", "sum"} {
		b.Run(kind, func(b *testing.B) {
			d := decisions.New(database(b))
			key := newCapsule(b, d, "a")
			rewards := make([]decision.Reward, 10_000)
			b.ReportAllocs()
			for n := 0; n < b.N; {
				b.StopTimer()
				batch := rewards[:min(len(rewards), b.N-n)]
				for i := range batch {
					batch[i] = nthReward(n + i)
					if kind == "sum" {
						batch[i].Key = "paid-" + strconv.Itoa(n+i)
					}
				}
				b.StartTimer()
				write(b, d, func(tx decision.Tx) error {
					for i := range batch {
						if _, err := tx.AppendReward(key, 0, batch[i]); err != nil {
							return err
						}
					}
					return nil
				})
				n += len(batch)
			}
		})
	}
}

// BenchmarkAppendBatch writes full batches as fast as the writer takes them; with client-made ids in "events".
func BenchmarkAppendBatch(b *testing.B) {
	for _, c := range []struct {
		name            string
		records, events int
	}{{"full", benchRecords, 0}, {"events", benchRecords, benchRecords}, {"quiet", 1, 0}} {
		b.Run(c.name, func(b *testing.B) {
			d := decisions.New(database(b))
			key := newCapsule(b, d, "a")
			payload := make([]byte, benchPayload/benchRecords*c.records)
			slots := make(chan struct{}, 64)
			b.ReportAllocs()
			b.ResetTimer()
			for n := range b.N {
				one := decision.Batch{Capsule: key, FirstMS: int64(n * 3), LastMS: int64(n*3 + 2), Count: c.records, Payload: payload}
				for i := range c.events {
					one.Events = append(one.Events, "cart-"+strconv.Itoa(n*c.records+i))
				}
				slots <- struct{}{}
				err := d.Queue(decision.Write{Rows: c.records, Change: func(tx decision.Tx) error { return tx.AppendBatch(one) },
					Applied: func(err error) {
						if err != nil {
							b.Error(err)
						}
						<-slots
					}})
				if err != nil {
					b.Fatal(err)
				}
			}
			for range cap(slots) {
				slots <- struct{}{}
			}
			b.ReportMetric(float64(b.N*c.records)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// library makes a capsule with that many full batches, 3 ms apart, and a reward and a client-made id for each.
func library(t testing.TB, d *decisions.Decisions, batches int) (key int64) {
	t.Helper()
	key = newCapsule(t, d, "a")
	payload := make([]byte, benchPayload)
	for n := 0; n < batches; {
		write(t, d, func(tx decision.Tx) error {
			for range min(100, batches-n) {
				err := tx.AppendBatch(decision.Batch{Capsule: key, FirstMS: int64(n * 3), LastMS: int64(n*3 + 2), Count: benchRecords,
					Payload: payload, Events: []string{"cart-" + strconv.Itoa(n)}})
				if err != nil {
					return err
				}
				if _, err := tx.AppendReward(key, 0, nthReward(n)); err != nil {
					return err
				}
				n++
			}
			return nil
		})
	}
	return key
}

// BenchmarkLook is the reading side of a reward or of a decision's page, each within one consistent read but "read", which
// pays for taking a connection and a transaction as well.
func BenchmarkLook(b *testing.B) {
	const batches = 2000
	d := decisions.New(database(b))
	key := library(b, d, batches)
	inView := func(name string, look func(v decision.View, n int) error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			read(b, d, func(v decision.View) error {
				for n := range b.N {
					if err := look(v, n*7%batches); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
	batchAt := func(v decision.View, n int) error {
		found := 0
		err := v.Batches(key, decision.BatchQuery{Span: decision.Span{Since: int64(n*3 + 1), Until: int64(n*3 + 2)}},
			func(one decision.Batch) (bool, error) { found += len(one.Payload); return true, nil })
		if found != benchPayload {
			return fmt.Errorf("%d bytes found", found)
		}
		return err
	}
	inView("batch", batchAt)
	inView("event", func(v decision.View, n int) error {
		_, err := v.EventTime(key, "cart-"+strconv.Itoa(n))
		return err
	})
	inView("unknown event", func(v decision.View, n int) error {
		_, err := v.EventTime(key, "cart_"+strconv.Itoa(n))
		if err == nil {
			return fmt.Errorf("an unknown id was found")
		}
		return nil
	})
	inView("rewards", func(v decision.View, n int) error {
		_, err := v.RewardsOf(key, serverID(n))
		return err
	})
	inView("newest", func(v decision.View, n int) error {
		return v.Batches(key, decision.BatchQuery{Newest: true}, func(decision.Batch) (bool, error) { return false, nil })
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for n := range b.N {
			read(b, d, func(v decision.View) error { return batchAt(v, n*7%batches) })
		}
	})
}

// BenchmarkLate looks into a log of uploads: batches that come late and overlap, some of them days long.
func BenchmarkLate(b *testing.B) {
	const batches = 20_000
	d := decisions.New(database(b))
	key := newCapsule(b, d, "a")
	payload := make([]byte, 1000)
	rnd := rand.New(rand.NewPCG(1, 2))
	begin := func(n int) int64 { return int64(1_000_000_000 + n*1000) } // a batch a second
	write(b, d, func(tx decision.Tx) error {
		for n := range batches {
			length := rnd.Int64N(300_000)
			if n%1000 == 0 {
				length = 3 * 86_400_000
			}
			if err := tx.AppendBatch(decision.Batch{Capsule: key, FirstMS: begin(n) - length, LastMS: begin(n), Count: 7, Payload: payload}); err != nil {
				return err
			}
		}
		return nil
	})
	for _, c := range []struct {
		name  string
		query func(n int) decision.BatchQuery
		most  int
	}{
		{"moment", func(n int) decision.BatchQuery {
			return decision.BatchQuery{Span: decision.Span{Since: begin(n), Until: begin(n) + 1}}
		}, batches},
		{"newest", func(int) decision.BatchQuery { return decision.BatchQuery{Newest: true} }, 1},
		{"oldest", func(n int) decision.BatchQuery { return decision.BatchQuery{Span: decision.Span{Since: begin(n)}} }, 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			visited := 0
			read(b, d, func(v decision.View) error {
				for n := range b.N {
					seen := 0
					if err := v.Batches(key, c.query(n*7%batches), func(decision.Batch) (bool, error) {
						seen++
						return seen < c.most, nil
					}); err != nil {
						return err
					}
					visited += seen
				}
				return nil
			})
			b.ReportMetric(float64(visited)/float64(b.N), "batches/op")
		})
	}
}

// BenchmarkPurge is how long the writer is held by the erase of a log of 200 full batches and 100,000 rewards.
func BenchmarkPurge(b *testing.B) {
	for range b.N {
		b.StopTimer()
		d := decisions.New(database(b))
		key := library(b, d, 200)
		write(b, d, func(tx decision.Tx) error {
			for n := 1000; n < 100_000; n++ {
				if _, err := tx.AppendReward(key, 0, nthReward(n)); err != nil {
					return err
				}
			}
			return nil
		})
		b.StartTimer()
		write(b, d, func(tx decision.Tx) error { _, _, err := tx.PurgeLogs(key); return err })
	}
}
