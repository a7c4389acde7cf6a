package decisions_test

import (
	"context"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"holdfast/decision"
)

// BenchmarkServiceRewards is a reward through the service and the real store: look the decision up, write, sync, learn.
// The decisions were made before, a batch of 512 after the other.
func BenchmarkServiceRewards(b *testing.B) {
	ctx := context.Background()
	for _, callers := range []int{1, 64} {
		b.Run("callers="+strconv.Itoa(callers), func(b *testing.B) {
			s, _, shut, err := serve(filepath.Join(b.TempDir(), "decisions.db"))
			if err != nil {
				b.Fatal(err)
			}
			defer func() {
				if err := shut(); err != nil {
					b.Error(err)
				}
			}()
			if _, _, err := s.PutSpec(ctx, hero, []byte(`{"actions":[{"id":"small"},{"id":"large","features":{"cost":2}}]}`), decision.Merge); err != nil {
				b.Fatal(err)
			}
			c, err := s.Capsule(ctx, hero)
			if err != nil {
				b.Fatal(err)
			}
			ids := make([]string, b.N)
			var answer decision.Answer
			for i := range ids {
				if err := c.Decide(ctx, &decision.Request{Context: []byte(`{"plan":"pro","basket":63.5}`), Durable: i == b.N-1 || i%20_000 == 0}, &answer); err != nil {
					b.Fatal(err)
				}
				ids[i] = answer.ID
			}
			var next atomic.Int64
			b.SetParallelism(callers)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					r, err := c.Reward(ctx, decision.RewardRequest{DecisionID: ids[next.Add(1)-1], Value: 0.5})
					if err != nil || !r.Applied {
						b.Errorf("%+v, %v", r, err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rewards/s")
		})
	}
}
