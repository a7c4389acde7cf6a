// Package lab is the load lab: it drives a real server over HTTP and proves, or disproves, what Holdfast promises.
//
// There is one file per scenario (quick, ladder, bench, budget, learn) over lab/load, which sends and times, lab/stats,
// which compares, lab/history, which keeps what callers were told, and lab/report, which shows it. Servers are children of
// this process, started from the same binary on a throwaway store and a free loopback port; the lab knows them only by
// their address, their key and their process id.
//
// Invariants: counts are reconciled per status with the server's own /metrics after every measurement, and a mismatch
// fails the run; a missed goal is reported as missed and changes no exit status; a figure that was not measured is absent,
// never 0. The lab refuses to share a store with a server that is not its own, and imports no other part of the program.
//
// Goroutines: each child has one that waits for its process and ends with it; everything else is joined by the call that
// started it.
package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"holdfast/fault"
	"holdfast/lab/load"
	"holdfast/lab/report"
)

// Options is what every scenario needs.
type Options struct {
	Executable string                               // the program to start children from
	Serve      func(data, addr string) []string     // arguments that start a server on a data folder and an address
	Null       func(addr string, size int) []string // arguments that start the null server
	Env        []string                             // environment of the children; nil means this process's
	Out        *os.File                             // where progress and results go; nil means standard output
	Screen     report.Screen                        // how progress is shown; nil chooses by Out
	Command    string                               // the command line, for the report
	Files      report.Files                         // what else to write
}

// run is one scenario in progress.
type run struct {
	Options
	doc    *report.Document
	screen report.Screen
	done   time.Duration // planned time that has passed
	total  time.Duration // planned time of all measurements
}

// start begins a scenario whose measurements take the given time together.
func start(o Options, title string, total time.Duration) *run {
	if o.Out == nil {
		o.Out = os.Stdout
	}
	r := &run{Options: o, doc: report.New(title, o.Command), screen: o.Screen, total: max(total, 1)}
	if r.screen == nil {
		r.screen = report.NewScreen(o.Out)
	}
	if load := busy(); load > float64(runtime.NumCPU())/2 {
		r.doc.Find(report.Note, "Others were using this machine (load average %.1f on %d processors before the run): trust ratios, not rates.",
			load, runtime.NumCPU())
	}
	return r
}

// step says what is being measured now.
func (r *run) step(format string, args ...any) {
	r.screen.Step(fmt.Sprintf(format, args...), min(1, float64(r.done)/float64(r.total)))
}

// tell leaves a line about a measurement that is done.
func (r *run) tell(label string, m *measured) {
	all := m.Total()
	times := all.Times(load.Accepted)
	r.screen.Line(fmt.Sprintf("%s: %.0f accepted/s, p50 %.2f ms, p99 %.2f ms, %d refused", label, m.perSecond(all.Class(load.Accepted)),
		report.Milliseconds(times.Quantile(load.FromIntended, 0.5)), report.Milliseconds(times.Quantile(load.FromIntended, 0.99)),
		all.Class(load.Refused)))
}

// finish prints and saves the report. A broken promise is an error; a missed goal is not.
func (r *run) finish() error {
	r.screen.Close()
	write := r.doc.WriteText
	if report.Terminal(r.Out) {
		write = r.doc.WriteColor
	}
	if err := write(r.Out); err != nil {
		return fault.Wrap("lab.Report", fault.Internal, err, "cannot print the report")
	}
	if err := r.doc.Save(r.Files); err != nil {
		return err
	}
	if r.doc.Worst() == report.Broken {
		return fault.New("lab.Report", fault.Internal, "a promise was broken: see the findings marked %s", report.Broken)
	}
	return nil
}

// conclude ends a scenario: with its report when it ran through, with the error that stopped it otherwise.
func (r *run) conclude(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		r.screen.Close()
		return fault.Wrap("lab.Run", fault.Unavailable, err, "stopped before the end: there is no result")
	case err != nil:
		r.screen.Close()
		return err
	}
	return r.finish()
}

// pause waits, unless ctx is done first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
