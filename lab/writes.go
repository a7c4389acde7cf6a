package lab

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/fault"
	"holdfast/lab/load"
	"holdfast/lab/report"
)

// The load of writes.
const (
	callers  = 64   // that write rewards
	calmRate = 2000 // decides per second beside the rewards, open loop
)

// rewardSubject has decisions to reward; every decision is rewarded once.
var rewardSubject = subject{name: "rewards", capsule: "rewards", setUp: "PUT /spec", content: threeActions, decide: "/decide",
	body: `{"context":{"plan":"pro","basket":63.5}}`}

// writes measures durable rewards at their peak, and decides beside rewards at half of it.
func (r *run) writes(ctx context.Context, b *budgets) error {
	if _, err := rewardSubject.create(ctx, b.server.control()); err != nil {
		return err
	}
	r.step("writes: collecting decisions to reward")
	ids, err := r.collect(ctx, b)
	if err != nil {
		return err
	}
	next := &atomic.Uint64{}
	r.step("writes: rewards from %d callers", callers)
	m, err := r.measure(ctx, b.server, rewardCell(ids, next, b.plan.timing.reward))
	if err != nil {
		return err
	}
	r.note("rewards", m)
	peak := m.perSecond(m.Total().Class(load.Accepted))
	b.row(fmt.Sprintf("rewards per second, each on disk when acknowledged, %d callers", callers), "≥ 10,000", one(peak), grade(peak >= 10_000))
	b.row("rewards: p99, ms", "none", one(report.Milliseconds(m.Total().Times(load.Accepted).Quantile(load.FromIntended, 0.99))), report.Note)
	b.row("rewards: the server's CPU-µs each", "none", one(perRequest(m.server, m.Total().Answers())), report.Note)
	for _, calm := range []float64{calmRate, 0} {
		if err := r.beside(ctx, b, mix{ids: ids, next: next, rewards: peak / 2, decides: calm}); err != nil {
			return err
		}
	}
	return nil
}

// collect makes decisions and returns their ids.
func (r *run) collect(ctx context.Context, b *budgets) ([]string, error) {
	var mu sync.Mutex // guards ids
	ids := make([]string, 0, b.plan.timing.ids)
	number := &atomic.Uint64{}
	one := rewardSubject.cell(8, b.plan.timing.collect)
	one.traffic = func(t load.Target) func(int) load.Traffic {
		whole := rewardSubject.traffic(t)(0)
		request, _ := whole.Next()
		return func(int) load.Traffic {
			return &load.Fill{Number: number,
				Make: func(dst []byte, n uint64) []byte {
					if n >= b.plan.timing.ids {
						return nil
					}
					return append(dst, request...)
				},
				After: func(a load.Answer) {
					if id := decisionID(a.Body); id != "" {
						mu.Lock()
						ids = append(ids, id)
						mu.Unlock()
					}
				}}
		}
	}
	m, err := r.measure(ctx, b.server, one)
	if err != nil {
		return nil, err
	}
	r.note("collecting", m)
	if len(ids) == 0 {
		return nil, fault.New("lab.Budget", fault.Internal, "no decision id was found in any answer")
	}
	return ids, nil
}

// decisionID takes the id out of an answer; ids need no escapes.
func decisionID(body []byte) string {
	_, after, found := bytes.Cut(body, []byte(`"decisionId"`))
	if !found {
		return ""
	}
	after = bytes.TrimLeft(after, ": \n\t\r")
	if len(after) == 0 || after[0] != '"' {
		return ""
	}
	id, _, found := bytes.Cut(after[1:], []byte(`"`))
	if !found {
		return ""
	}
	return string(id)
}

// rewardCell rewards decisions that were not rewarded yet, until there are none, as fast as the callers can.
func rewardCell(ids []string, next *atomic.Uint64, d time.Duration) cell {
	line := "POST " + capsulePath(rewardSubject.capsule) + "/reward"
	return cell{connections: callers, duration: d, kinds: []string{"reward"},
		traffic: func(t load.Target) func(int) load.Traffic {
			return func(int) load.Traffic {
				var body []byte
				return &load.Fill{Number: next, Make: func(dst []byte, n uint64) []byte {
					if n >= uint64(len(ids)) {
						return nil
					}
					body, _ = jsontext.AppendQuote(append(body[:0], `{"decisionId":`...), ids[n]) // an id is ASCII
					body = append(body, `,"reward":0.5}`...)
					return append(t.AppendHead(dst, line, len(body)), body...)
				}}
			}
		}}
}

// mix is rewards at one rate beside decides at another; 0 decides per second is a closed loop of 8 connections.
type mix struct {
	ids              []string
	next             *atomic.Uint64
	rewards, decides float64
}

// beside measures decides while rewards are written.
func (r *run) beside(ctx context.Context, b *budgets, x mix) error {
	d := b.plan.timing.mixed
	decides := rewardSubject.cell(8, d)
	decides.rate = x.decides
	rewards := rewardCell(x.ids, x.next, d)
	rewards.rate = x.rewards
	r.step("mixed: decides beside %.0f rewards/s", x.rewards)
	var decided, rewarded *load.Result
	m, err := r.watch(ctx, b.server, func(key string) (*load.Result, error) {
		r.done += d
		var both sync.WaitGroup
		var failed [2]error
		both.Go(func() { decided, failed[0] = load.Run(ctx, decides.plan(b.server.target(key))) })
		both.Go(func() { rewarded, failed[1] = load.Run(ctx, rewards.plan(b.server.target(key))) })
		both.Wait()
		if err := errors.Join(failed[:]...); err != nil {
			return nil, err
		}
		return &load.Result{Begin: decided.Begin, Elapsed: max(decided.Elapsed, rewarded.Elapsed),
			Tally: &load.Tally{Kinds: append(decided.Kinds, rewarded.Kinds...)}}, nil
	})
	if err != nil {
		return err
	}
	r.note("decides beside rewards", m)
	times := decided.Total().Times(load.Accepted)
	p99 := report.Milliseconds(times.Quantile(load.FromIntended, 0.99))
	reached := float64(rewarded.Total().Class(load.Accepted)) / rewarded.Elapsed.Seconds()
	if x.decides > 0 {
		b.row(fmt.Sprintf("p99 of %.0f decides/s beside %.0f rewards/s, ms", x.decides, reached), "≤ 3", one(p99), grade(p99 <= 3))
		b.row("the same from the sending, ms", "none", one(report.Milliseconds(times.Quantile(load.FromSent, 0.99))), report.Note)
		return nil
	}
	b.row(fmt.Sprintf("p99 of saturating decides beside %.0f rewards/s, ms", reached), "none", one(p99), report.Note)
	b.row("decides per second of that", "none", one(float64(decided.Total().Class(load.Accepted))/decided.Elapsed.Seconds()), report.Note)
	return nil
}
