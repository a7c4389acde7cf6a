package lab

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"holdfast/fault"
	"holdfast/lab/load"
	"holdfast/lab/report"
)

// BenchOptions is one measurement.
type BenchOptions struct {
	Duration    time.Duration // more than 0, at most an hour
	Connections int           // 1 to 4096
	Shape       load.Shape
}

// Bench measures one cell on a server of its own with a throwaway store, and fails when the counts of client and server
// differ. The limiter is the default one unless SYNTRA_RATE_LIMIT_RPS and SYNTRA_RATE_LIMIT_BURST say otherwise.
func Bench(ctx context.Context, o Options, plan BenchOptions) error {
	if plan.Duration <= 0 || plan.Duration > time.Hour || plan.Connections < 1 || plan.Connections > 4096 {
		return fault.New("lab.Bench", fault.Invalid, "bench takes a duration up to 1h and 1 to 4096 connections")
	}
	limit, err := limitFrom(os.Getenv)
	if err != nil {
		return err
	}
	r := start(o, "Holdfast bench", plan.Duration)
	return r.conclude(r.bench(ctx, plan, limit))
}

// limitFrom reads the limiter from the environment a server would read it from.
func limitFrom(getenv func(string) string) (Limit, error) {
	limit := defaultLimit
	for _, v := range []struct {
		name string
		into *float64
	}{{"SYNTRA_RATE_LIMIT_RPS", &limit.Rate}, {"SYNTRA_RATE_LIMIT_BURST", &limit.Burst}} {
		text := getenv(v.name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n > 0) {
			return limit, fault.New("lab.Bench", fault.Invalid, "%s is %q: it must be a number above 0", v.name, text)
		}
		*v.into = n
	}
	return limit, nil
}

func (r *run) bench(ctx context.Context, plan BenchOptions, limit Limit) error {
	c, err := r.serve(ctx, limit)
	if err != nil {
		return err
	}
	defer c.stop()
	if _, err := benchSubject.create(ctx, c.control()); err != nil {
		return err
	}
	r.step("bench: %d connections, %s, %v", plan.Connections, plan.Shape, plan.Duration)
	one := benchSubject.cell(plan.Connections, plan.Duration)
	one.shape = plan.Shape
	m, err := r.measure(ctx, c, one)
	if err != nil {
		return err
	}
	table, refused := cells("Shadow decides on the six-node bench capsule, every decision logged"), refusals()
	name := fmt.Sprintf("%g/s + %g", limit.Rate, limit.Burst)
	addCell(&table, name, one, m, judge(m, 0))
	addRefusals(&refused, name, one, m)
	r.doc.Tables = append(r.doc.Tables, table)
	if len(refused.Rows) > 0 {
		r.doc.Tables = append(r.doc.Tables, refused)
	}
	r.doc.Find(report.Note, "By status: %s.", statuses(m.Total()))
	r.note("bench", m)
	if m.mismatch == nil {
		r.doc.Find(report.Met, "Client and server counted alike, per status, and the histogram holds every accepted decide.")
	}
	return nil
}
