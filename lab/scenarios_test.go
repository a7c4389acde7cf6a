package lab

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/fault"
	"holdfast/lab/load"
	"holdfast/lab/report"
)

const short = 60 * time.Millisecond

func TestQuickMeasuresEveryStepAndAgreesOnCounts(t *testing.T) {
	t.Parallel()
	o := options(t, "fair")
	r := start(o, "quick", time.Second)
	if err := r.conclude(r.quick(t.Context(), quickPlan{steps: []int{1, 2}, calibration: short, each: short, limited: short})); err != nil {
		t.Fatal(err)
	}
	table := r.doc.Tables[0]
	if len(table.Rows) != 3 {
		t.Errorf("%d rows, want two steps and the limiter:\n%s", len(table.Rows), table.Text())
	}
	for _, want := range []string{"raised", "default", "at best", "burst"} {
		if got := printed(t, o); !strings.Contains(got, want) {
			t.Errorf("the output does not mention %q:\n%s", want, got)
		}
	}
	if r.doc.Worst() == report.Broken {
		t.Errorf("a fair server broke a promise: %v", r.doc.Findings)
	}
}

func TestAMiscountFailsTheRun(t *testing.T) {
	t.Parallel()
	o := options(t, "miscount")
	r := start(o, "bench", time.Second)
	err := r.conclude(r.bench(t.Context(), BenchOptions{Duration: 5 * short, Connections: 2, Shape: load.KeepAlive}, raisedLimit))
	if err == nil {
		t.Fatalf("a server that counts one request twice passed:\n%s", printed(t, o))
	}
	if out := printed(t, o); !strings.Contains(out, "BROKEN") || !strings.Contains(out, "counts differ: capsule.decide 200") {
		t.Errorf("the report does not say what differs:\n%s", out)
	}
}

func TestLadderCoversBothShapesAndLimiters(t *testing.T) {
	t.Parallel()
	o := options(t, "fair")
	dir := t.TempDir()
	o.Files = report.Files{JSON: filepath.Join(dir, "r.json"), CSV: filepath.Join(dir, "r.csv"), HTML: filepath.Join(dir, "r.html")}
	if err := Ladder(t.Context(), o, LadderOptions{Connections: []int{1, 2}, Each: short}); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(o.Files.CSV)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"default,keepalive,1", "default,churn,2", "raised,keepalive,2", "raised,churn,1"} {
		if !strings.Contains(string(raw), row) {
			t.Errorf("no row %q in\n%s", row, raw)
		}
	}
	for _, name := range []string{o.Files.JSON, o.Files.HTML} {
		if info, err := os.Stat(name); err != nil || info.Size() < 1000 {
			t.Errorf("%s: %v", filepath.Base(name), err)
		}
	}
}

func TestBudgetRunsEveryPart(t *testing.T) {
	t.Parallel()
	o := options(t, "fair")
	plan := BudgetOptions{Blocks: 1, Segment: short, timing: timing{steps: []int{1, 2}, passes: 2, each: short, limiter: short,
		collect: time.Second, ids: 500, reward: short, mixed: short}}
	if err := Budget(t.Context(), o, plan); err != nil {
		t.Fatalf("%v\n%s", err, printed(t, o))
	}
	for _, want := range []string{"small body: throughput", "350-byte body: CPU", "fresh eventId", "governed", "rewards per second",
		"beside", "connections double", "saturating load", "accepted decides are committed"} {
		if got := printed(t, o); !strings.Contains(got, want) {
			t.Errorf("the output does not mention %q:\n%s", want, got)
		}
	}
}

func TestImpossiblePlansAreRefused(t *testing.T) {
	t.Parallel()
	o := options(t, "fair")
	for name, err := range map[string]error{
		"no part":        Budget(t.Context(), o, BudgetOptions{Only: []string{"lunch"}}),
		"no blocks":      Budget(t.Context(), o, BudgetOptions{Blocks: -1}),
		"no connections": Ladder(t.Context(), o, LadderOptions{Connections: []int{0}}),
		"no time":        Bench(t.Context(), o, BenchOptions{Connections: 1}),
		"too many":       Bench(t.Context(), o, BenchOptions{Duration: short, Connections: 5000}),
		"no rounds":      Learn(t.Context(), o, LearnOptions{Rounds: 1}),
	} {
		if fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v, want an invalid plan", name, err)
		}
	}
}

func TestAServerThatDiesIsQuoted(t *testing.T) {
	t.Parallel()
	err := Bench(t.Context(), options(t, "dies"), BenchOptions{Duration: short, Connections: 1})
	if err == nil || !strings.Contains(err.Error(), "the disk is on fire") {
		t.Errorf("%v, want the server's last words", err)
	}
}

func TestLimitFromEnvironment(t *testing.T) {
	t.Parallel()
	env := map[string]string{}
	getenv := func(name string) string { return env[name] }
	if got, err := limitFrom(getenv); err != nil || got != defaultLimit {
		t.Errorf("nothing set: %v, %v", got, err)
	}
	env["SYNTRA_RATE_LIMIT_RPS"], env["SYNTRA_RATE_LIMIT_BURST"] = "0.5", "3"
	if got, err := limitFrom(getenv); err != nil || got != (Limit{0.5, 3}) {
		t.Errorf("both set: %v, %v", got, err)
	}
	for _, bad := range []string{"0", "-1", "NaN", "many"} {
		env["SYNTRA_RATE_LIMIT_RPS"] = bad
		if _, err := limitFrom(getenv); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v, want a refusal", bad, err)
		}
	}
}

func TestProcessorTimeOfThisProcess(t *testing.T) {
	t.Parallel()
	if own := ownProcessorTime(); own <= 0 {
		t.Errorf("own processor time %v", own)
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		if theirs := processorTime(os.Getpid()); theirs < 0 {
			t.Errorf("processor time by process id %v", theirs)
		}
	}
	if load := busy(); load < 0 {
		t.Errorf("load average %v", load)
	}
	if got := processorTime(-1); got >= 0 {
		t.Errorf("no such process used %v", got)
	}
}

func TestAStoppedRunSaysSoAndLeavesNoServer(t *testing.T) {
	t.Parallel()
	o := options(t, "fair")
	ctx, cancel := context.WithCancel(t.Context())
	r := start(o, "bench", time.Second)
	var c *child
	err := r.conclude(func() error {
		var err error
		if c, err = r.serve(ctx, raisedLimit); err != nil {
			return err
		}
		defer c.stop()
		cancel()
		_, err = r.measure(ctx, c, benchSubject.cell(1, time.Hour))
		return err
	}())
	if err == nil || !strings.Contains(err.Error(), "stopped before the end") {
		t.Errorf("%v, want an error that says the run was stopped", err)
	}
	select {
	case <-c.exited:
	default:
		t.Error("the server is still running")
	}
	if _, err := os.Stat(c.dir); !os.IsNotExist(err) {
		t.Errorf("its folder is still there: %v", err)
	}
}
