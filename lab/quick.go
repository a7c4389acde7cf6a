package lab

import (
	"context"
	"fmt"
	"time"

	"holdfast/lab/load"
	"holdfast/lab/report"
)

// quickPlan is how long each part of quick takes.
type quickPlan struct {
	steps                      []int // connections
	calibration, each, limited time.Duration
}

// Quick answers "how fast is it here, and what is the bottleneck?" in half a minute, on a throwaway store: it finds out
// what the client can do at best against a server that does nothing, climbs three steps with the limiter raised, and
// shows the limiter's default at work.
func Quick(ctx context.Context, o Options) error {
	plan := quickPlan{steps: []int{1, 8, 64}, calibration: 2 * time.Second, each: 4 * time.Second, limited: 5 * time.Second}
	r := start(o, "Holdfast lab: quick", time.Duration(len(plan.steps))*(plan.calibration+plan.each)+plan.limited)
	return r.conclude(r.quick(ctx, plan))
}

func (r *run) quick(ctx context.Context, plan quickPlan) error {
	r.step("start: a server on a throwaway store")
	raised, err := r.serve(ctx, raisedLimit)
	if err != nil {
		return err
	}
	defer raised.stop()
	size, err := benchSubject.create(ctx, raised.control())
	if err != nil {
		return err
	}
	ceilings, err := r.calibrate(ctx, size, plan.steps, plan.calibration)
	if err != nil {
		return err
	}
	table := cells("Steps (shadow decides on the six-node bench capsule, every decision logged)")
	best := &measured{}
	var bestVerdict verdict
	for _, connections := range plan.steps {
		r.step("ladder: %d connections", connections)
		one := benchSubject.cell(connections, plan.each)
		m, err := r.measure(ctx, raised, one)
		if err != nil {
			return err
		}
		v := judge(m, ceilings[connections])
		addCell(&table, "raised", one, m, v)
		r.note("raised limiter", m)
		r.tell(fmt.Sprintf("raised limiter, %d connections", connections), m)
		if best.Result == nil || m.perSecond(m.Total().Class(load.Accepted)) > best.perSecond(best.Total().Class(load.Accepted)) {
			best, bestVerdict = m, v
		}
	}
	limited, one, err := r.limited(ctx, plan.limited)
	if err != nil {
		return err
	}
	r.tell(fmt.Sprintf("default limiter, %d connections", one.connections), limited)
	addCell(&table, "default", one, limited, judge(limited, ceilings[one.connections]))
	r.note("default limiter", limited)
	r.doc.Tables = append(r.doc.Tables, table)
	r.doc.Find(report.Note, "Counts were compared with the server's /metrics after every step.")
	accepted := best.Total().Times(load.Accepted)
	r.doc.Find(report.Note, "%s: at best %.0f decisions/s with the limiter raised, p50 %.2f ms, p99 %.2f ms.", bestVerdict,
		best.perSecond(best.Total().Class(load.Accepted)), report.Milliseconds(accepted.Quantile(load.FromIntended, 0.5)),
		report.Milliseconds(accepted.Quantile(load.FromIntended, 0.99)))
	r.doc.Find(report.Note, "Client and server share the processors of this machine; on two machines both are faster.")
	return nil
}

// calibrate measures what the client reaches against the null server, per number of connections.
func (r *run) calibrate(ctx context.Context, size int, connections []int, each time.Duration) (map[int]float64, error) {
	bare, err := r.null(ctx, size)
	if err != nil {
		return nil, err
	}
	defer bare.stop()
	ceilings := map[int]float64{}
	for _, n := range connections {
		r.step("calibration: %d connections to a server that does nothing", n)
		m, err := r.measure(ctx, bare, benchSubject.cell(n, each))
		if err != nil {
			return nil, err
		}
		ceilings[n] = m.perSecond(m.Total().Answers())
	}
	return ceilings, nil
}

// limited saturates a fresh server under the limiter's default and judges the number of accepted requests.
func (r *run) limited(ctx context.Context, d time.Duration) (*measured, cell, error) {
	one := benchSubject.cell(8, d)
	r.step("limiter: its default, %.0f/s and %.0f at once", defaultLimit.Rate, defaultLimit.Burst)
	c, err := r.serve(ctx, defaultLimit)
	if err != nil {
		return nil, one, err
	}
	defer c.stop()
	if _, err := benchSubject.create(ctx, c.control()); err != nil {
		return nil, one, err
	}
	m, err := r.measure(ctx, c, one)
	if err != nil {
		return nil, one, err
	}
	grade, off := admitted(m, defaultLimit, d)
	r.doc.Find(grade, "The limiter accepted %d requests in %.1f s of saturating load, %+.2f %% from rate x time + burst; goal: within 1 %%.",
		m.Total().Class(load.Accepted), d.Seconds(), 100*off)
	return m, one, nil
}

// admitted judges the number of accepted requests against rate x time + burst, and returns the deviation as a share of it.
// The time is the planned one: no request is sent after it, however long the last answers take.
func admitted(m *measured, limit Limit, d time.Duration) (report.Grade, float64) {
	off := float64(m.Total().Class(load.Accepted))/limit.within(d) - 1
	if off < -0.01 || off > 0.01 {
		return report.Missed, off
	}
	return report.Met, off
}
