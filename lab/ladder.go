package lab

import (
	"context"
	"fmt"
	"time"

	"holdfast/fault"
	"holdfast/lab/load"
	"holdfast/lab/report"
)

// LadderOptions is the plan of Ladder. Zero values choose the defaults.
type LadderOptions struct {
	Connections []int         // the steps; nil means 1, 2, 4 .. 64
	Each        time.Duration // per measurement; 0 means 3 s
}

// Ladder measures every step of connections with kept and with fresh connections, under the limiter's default and under
// one that is never reached. It is the table of the first seed, one row per measurement.
func Ladder(ctx context.Context, o Options, plan LadderOptions) error {
	if plan.Connections == nil {
		plan.Connections = []int{1, 2, 4, 8, 16, 32, 64}
	}
	if plan.Each == 0 {
		plan.Each = 3 * time.Second
	}
	for _, n := range plan.Connections {
		if n < 1 || n > 4096 {
			return fault.New("lab.Ladder", fault.Invalid, "a step of %d connections: use 1 to 4096", n)
		}
	}
	r := start(o, "Holdfast lab: ladder", time.Duration(6*len(plan.Connections))*plan.Each)
	return r.conclude(r.ladder(ctx, plan))
}

// rungs collects what the ladder's four parts found.
type rungs struct {
	cells, refused report.Table
	rate, slowest  report.Chart
}

func (r *run) ladder(ctx context.Context, plan LadderOptions) error {
	found := rungs{cells: cells("Ladder (shadow decides on the six-node bench capsule, every decision logged)"), refused: refusals(),
		rate:    report.Chart{Title: "Accepted requests per second", X: "connections", Y: "accepted/s", Log2: true},
		slowest: report.Chart{Title: "p99 of accepted requests", X: "connections", Y: "ms", Log2: true}}
	for _, limiter := range []struct {
		name  string
		limit Limit
	}{{"default", defaultLimit}, {"raised", raisedLimit}} {
		if err := r.climb(ctx, plan, limiter.name, limiter.limit, &found); err != nil {
			return err
		}
	}
	r.doc.Tables = append(r.doc.Tables, found.cells)
	if len(found.refused.Rows) > 0 {
		r.doc.Tables = append(r.doc.Tables, found.refused)
	}
	r.doc.Charts = append(r.doc.Charts, found.rate, found.slowest)
	if r.doc.Worst() < report.Broken {
		r.doc.Find(report.Met, "Every status was counted alike by client and server in all %d measurements.", len(found.cells.Rows))
	}
	return nil
}

// climb measures all steps of both shapes on one server, each step against its own ceiling.
func (r *run) climb(ctx context.Context, plan LadderOptions, name string, limit Limit, found *rungs) error {
	c, err := r.serve(ctx, limit)
	if err != nil {
		return err
	}
	defer c.stop()
	size, err := benchSubject.create(ctx, c.control())
	if err != nil {
		return err
	}
	bare, err := r.null(ctx, size)
	if err != nil {
		return err
	}
	defer bare.stop()
	for _, shape := range []load.Shape{load.KeepAlive, load.Churn} {
		rate, slowest := report.Series{Name: fmt.Sprintf("%s, %s limiter", shape, name)}, report.Series{}
		slowest.Name = rate.Name
		for _, connections := range plan.Connections {
			r.step("ladder: %s limiter, %s, %d connections", name, shape, connections)
			one := benchSubject.cell(connections, plan.Each)
			one.shape = shape
			ceiling, err := r.ceiling(ctx, bare, one)
			if err != nil {
				return err
			}
			m, err := r.measure(ctx, c, one)
			if err != nil {
				return err
			}
			where := fmt.Sprintf("%s limiter, %s, %d connections", name, shape, connections)
			addCell(&found.cells, name, one, m, judge(m, ceiling))
			addRefusals(&found.refused, name, one, m)
			r.note(where, m)
			r.tell(where, m)
			accepted := m.Total().Times(load.Accepted)
			rate.Points = append(rate.Points, report.Point{X: float64(connections), Y: m.perSecond(m.Total().Class(load.Accepted))})
			slowest.Points = append(slowest.Points, report.Point{X: float64(connections),
				Y: report.Milliseconds(accepted.Quantile(load.FromIntended, 0.99))})
		}
		found.rate.Series = append(found.rate.Series, rate)
		found.slowest.Series = append(found.slowest.Series, slowest)
	}
	return nil
}

// ceiling measures what the client reaches against the null server, in half the time: only verdicts depend on it.
func (r *run) ceiling(ctx context.Context, bare *child, one cell) (float64, error) {
	one.duration /= 2
	m, err := r.measure(ctx, bare, one)
	if err != nil {
		return 0, err
	}
	return m.perSecond(m.Total().Answers()), nil
}
