package lab

import (
	"context"
	"math"
	"time"

	"holdfast/fault"
	"holdfast/lab/load"
	"holdfast/lab/report"
)

// cell is one measurement: so many connections, so long, with this traffic.
type cell struct {
	connections int
	duration    time.Duration
	shape       load.Shape
	rate        float64       // intended requests per second; 0 is a closed loop
	think       time.Duration // of a closed loop's users between two requests
	kinds       []string
	traffic     func(load.Target) func(worker int) load.Traffic
}

// measured is what a cell found.
type measured struct {
	*load.Result
	client, server time.Duration // processor time spent by each side; negative when unknown
	mean           time.Duration // server's mean handler time of a decide; 0 when it decided nothing
	delta          sample        // what the server counted
	mismatch       error         // how the server's counts differ from the client's
}

// measure runs one cell against a child. The first requests of a connection are measured like all others: no answer is
// thrown away, so all can be reconciled.
func (r *run) measure(ctx context.Context, c *child, one cell) (*measured, error) {
	return r.watch(ctx, c, func(key string) (*load.Result, error) {
		r.done += one.duration
		return load.Run(ctx, one.plan(c.target(key)))
	})
}

func (one cell) plan(t load.Target) load.Plan {
	return load.Plan{Dial: load.Dialer(t.Host), Workers: one.connections, Duration: one.duration, Shape: one.shape,
		Rate: one.rate, Think: one.think, Kinds: one.kinds, Traffic: one.traffic(t)}
}

// watch measures what drive does to a child under a fresh credential: the processor time of both sides, and the server's
// counts, which are reconciled. The null server has no counts.
func (r *run) watch(ctx context.Context, c *child, drive func(key string) (*load.Result, error)) (*measured, error) {
	key := ""
	var before sample
	if c.key != "" {
		var err error
		if key, err = c.control().token(ctx); err != nil {
			return nil, err
		}
		if before, err = c.control().metrics(ctx); err != nil {
			return nil, err
		}
	}
	m := &measured{}
	own, theirs := ownProcessorTime(), processorTime(c.cmd.Process.Pid)
	var err error
	if m.Result, err = drive(key); err != nil {
		return nil, err
	}
	m.client, m.server = spent(own, ownProcessorTime()), spent(theirs, processorTime(c.cmd.Process.Pid))
	if c.key != "" {
		if err := m.settle(ctx, c.control(), before); err != nil {
			return nil, err
		}
	}
	return m, m.reachable()
}

func spent(before, after time.Duration) time.Duration {
	if before < 0 || after < before {
		return -1
	}
	return after - before
}

// settle compares counts. A server counts an answer after it has left, so a difference is looked at again for a moment.
func (m *measured) settle(ctx context.Context, c *control, before sample) error {
	for range 20 {
		after, err := c.metrics(ctx)
		if err != nil {
			return err
		}
		delta := after.since(before)
		m.mean, m.delta = delta.mean(), delta
		if m.mismatch = reconcile(delta, m.Tally); m.mismatch == nil {
			return nil
		}
		if err := pause(ctx, 25*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// reachable fails when not one answer came back: then the cell says nothing about the server.
func (m *measured) reachable() error {
	for _, kind := range m.Kinds {
		if kind.Answers() == 0 && kind.Errors > 0 {
			return fault.Wrap("lab.Measure", fault.Unavailable, kind.LastErr, "no request was answered")
		}
	}
	return nil
}

// perSecond is a count over the cell's time.
func (m *measured) perSecond(n uint64) float64 { return float64(n) / m.Elapsed.Seconds() }

// note adds the findings that every cell of a scenario must stand up to: counts agree, nothing was answered with an error,
// and a refusal says when to come back.
func (r *run) note(where string, m *measured) {
	if m.mismatch != nil {
		r.doc.Find(report.Broken, "%s: %s", where, text(m.mismatch))
	}
	all := m.Total()
	if n := all.Class(load.Failed); n > 0 {
		r.doc.Find(report.Broken, "%s: %d requests were answered with an error (%s)", where, n, statuses(all))
	}
	if all.Errors > 0 {
		r.doc.Find(report.Broken, "%s: %d requests got no complete answer (last: %v)", where, all.Errors, all.LastErr)
	}
	if all.NoRetry > 0 {
		r.doc.Find(report.Broken, "%s: %d refusals did not say when to come back", where, all.NoRetry)
	}
}

// cells starts the table of measurements that quick, ladder and bench share.
func cells(title string) report.Table {
	return report.Table{Name: "cells", Title: title,
		Note: "Latencies run from the intended sending to the last byte, of accepted requests only; under churn that includes the dial. " +
			"Server mean: handler time from the server's own histogram. CPU-µs: processor time per answered request.",
		Columns: []report.Column{{Key: "limiter", Title: "limiter"}, {Key: "shape", Title: "shape"}, {Key: "connections", Title: "conns"},
			{Key: "requests", Title: "requests"}, {Key: "accepted", Title: "accepted"}, {Key: "accepted_per_s", Title: "acc/s"},
			{Key: "refused", Title: "refused"}, {Key: "failed", Title: "failed"}, {Key: "p50_ms", Title: "p50 ms", Digits: 2},
			{Key: "p95_ms", Title: "p95 ms", Digits: 2}, {Key: "p99_ms", Title: "p99 ms", Digits: 2},
			{Key: "server_mean_ms", Title: "server ms", Digits: 3}, {Key: "server_cpu_us", Title: "srv CPU-µs", Digits: 1},
			{Key: "client_cpu_us", Title: "cli CPU-µs", Digits: 1}, {Key: "verdict", Title: "verdict"}}}
}

// addCell appends a measurement to the table made by cells.
func addCell(t *report.Table, limiter string, one cell, m *measured, verdict verdict) {
	all := m.Total()
	times := all.Times(load.Accepted)
	quantile := func(q float64) float64 { return report.Milliseconds(times.Quantile(load.FromIntended, q)) }
	t.Add(limiter, one.shape.String(), one.connections, all.Answers()+all.Errors, all.Class(load.Accepted),
		m.perSecond(all.Class(load.Accepted)), all.Class(load.Refused), all.Class(load.Failed)+all.Errors,
		quantile(0.5), quantile(0.95), quantile(0.99), report.Milliseconds(m.mean),
		perRequest(m.server, all.Answers()), perRequest(m.client, all.Answers()), string(verdict))
}

// refusals starts the table of refused requests.
func refusals() report.Table {
	return report.Table{Name: "refusals", Title: "Refused requests", Columns: []report.Column{{Key: "limiter", Title: "limiter"},
		{Key: "shape", Title: "shape"}, {Key: "connections", Title: "conns"}, {Key: "refused", Title: "refused"},
		{Key: "refused_per_s", Title: "refused/s"}, {Key: "p50_ms", Title: "p50 ms", Digits: 2}, {Key: "p95_ms", Title: "p95 ms", Digits: 2},
		{Key: "p99_ms", Title: "p99 ms", Digits: 2}, {Key: "without_retry_after", Title: "no Retry-After"}}}
}

// addRefusals appends a measurement's refusals, if there were any.
func addRefusals(t *report.Table, limiter string, one cell, m *measured) {
	all := m.Total()
	n := all.Class(load.Refused)
	if n == 0 {
		return
	}
	times := all.Times(load.Refused)
	quantile := func(q float64) float64 { return report.Milliseconds(times.Quantile(load.FromIntended, q)) }
	t.Add(limiter, one.shape.String(), one.connections, n, m.perSecond(n), quantile(0.5), quantile(0.95), quantile(0.99), all.NoRetry)
}

// ratio is a/b, NaN when b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}
