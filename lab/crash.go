package lab

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"holdfast/fault"
	"holdfast/lab/history"
	"holdfast/lab/load"
	"holdfast/lab/report"
)

// CrashOptions is the plan of Crash. Zero values choose the defaults.
type CrashOptions struct {
	Cycles int           // how often the server is killed; 0 means 20
	Load   time.Duration // at most, before each kill; 0 means 500 ms
	Seed   uint64        // of the moments
}

// crashSubject is the capsule that is written to while the server is killed.
var crashSubject = subject{name: "crash", capsule: "crash", setUp: "PUT /spec", content: threeActions, decide: "/decide",
	body: `{"context":{"plan":"pro"},"durable":true,"eventId":"{event}"}`}

// Crash kills a server under load with SIGKILL, again and again at random moments, starts it on the same store, and holds the
// store to what callers were told: every acknowledged durable decision and every acknowledged reward is there, none twice,
// and nothing is there that was never sent.
func Crash(ctx context.Context, o Options, plan CrashOptions) error {
	if plan.Cycles == 0 {
		plan.Cycles = 20
	}
	if plan.Load == 0 {
		plan.Load = 500 * time.Millisecond
	}
	if plan.Cycles < 1 || plan.Load < time.Millisecond {
		return fault.New("lab.Crash", fault.Invalid, "%d cycles of %v: use at least one cycle and a millisecond", plan.Cycles, plan.Load)
	}
	r := start(o, "Holdfast lab: crash", time.Duration(plan.Cycles)*plan.Load)
	return r.conclude(r.crash(ctx, plan))
}

// crashes is what the cycles share.
type crashes struct {
	decisions, rewards *history.History
	number             atomic.Uint64
	run                string
	fresh              []string // ids sent since the last audit
	found              []string // rewards found by earlier audits; the last audit looks at all again
}

func (r *run) crash(ctx context.Context, plan CrashOptions) error {
	all := &crashes{decisions: history.New(), rewards: history.New(), run: newRun()}
	store, err := r.serve(ctx, raisedLimit)
	if err != nil {
		return err
	}
	defer store.stop()
	if _, err = crashSubject.create(ctx, store.control()); err != nil {
		return err
	}
	table := report.Table{Name: "cycles", Title: "Kills under load", Columns: []report.Column{{Key: "cycle", Title: "cycle"},
		{Key: "load_ms", Title: "load ms"}, {Key: "acknowledged", Title: "acknowledged"}, {Key: "unknown", Title: "unknown"},
		{Key: "back_ms", Title: "back after ms"}}, Note: "Unknown: requests that were under way when the server was killed, or met no server any more."}
	random := rand.New(rand.NewPCG(plan.Seed, 0xC4A5))
	for cycle := range plan.Cycles {
		r.step("crash: cycle %d of %d", cycle+1, plan.Cycles)
		d := plan.Load/10 + time.Duration(random.Int64N(int64(plan.Load-plan.Load/10)))
		m, err := r.loadAndKill(ctx, store, all, d)
		if err != nil {
			return err
		}
		begin := time.Now()
		if err := store.again(ctx, r); err != nil {
			return err
		}
		table.Add(cycle+1, int(d.Milliseconds()), m.Total().Class(load.Accepted), m.Total().Errors+m.Total().Stopped,
			int(time.Since(begin).Milliseconds()))
		if cycle == plan.Cycles-1 {
			all.found, all.fresh = nil, all.since(0)
		}
		if err := r.audit(ctx, store, all, cycle+1); err != nil {
			return err
		}
	}
	r.doc.Tables = append(r.doc.Tables, table)
	if r.doc.Worst() < report.Broken {
		decided, _, _ := all.decisions.Counts()
		rewarded, _, unknown := all.rewards.Counts()
		r.doc.Find(report.Met, "%d acknowledged decisions and %d acknowledged rewards outlived %d kills, each stored once; the outcome of %d rewards was unknown.",
			decided, rewarded, plan.Cycles, unknown)
	}
	return nil
}

// loadAndKill drives eight writers and kills the server after d.
func (r *run) loadAndKill(ctx context.Context, store *child, all *crashes, d time.Duration) (*load.Result, error) {
	first := all.number.Load()
	driven, cancel := context.WithCancel(ctx)
	defer cancel()
	killed := make(chan struct{})
	timer := time.AfterFunc(d, func() {
		defer close(killed)
		_ = store.cmd.Process.Kill() // it may have died by itself: the audit will tell
		<-store.exited
		cancel()
	})
	target := store.target(store.key)
	result, err := load.Run(driven, load.Plan{Dial: load.Dialer(store.addr), Workers: 8, Kinds: []string{"decide", "reward"},
		Traffic: func(int) load.Traffic { return &writer{all: all, target: target} }})
	if timer.Stop() {
		return nil, err // the caller gave up before the kill
	}
	<-killed
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r.done += d
	all.fresh = all.since(first)
	return result, nil
}

// since returns the ids sent from number first on.
func (c *crashes) since(first uint64) []string {
	var ids []string
	for n := first; n < c.number.Load(); n++ {
		ids = append(ids, eventName(c.run, n))
	}
	return ids
}

// writer decides durably under a new id, then rewards that decision, and notes what it is told.
type writer struct {
	all    *crashes
	target load.Target
	id     string // the decision under way
	reward bool   // it is acknowledged, so its reward comes next
	buf    []byte
}

var _ load.Traffic = (*writer)(nil)

// Next sends the reward of an acknowledged decision, else a new decision.
func (w *writer) Next() ([]byte, int) {
	if w.reward {
		w.reward = false
		w.all.rewards.Begin(w.id)
		w.compose("/reward", `{"decisionId":"`+w.id+`","reward":1}`)
		return w.buf, 1
	}
	w.id = eventName(w.all.run, w.all.number.Add(1)-1)
	w.all.decisions.Begin(w.id)
	w.compose(crashSubject.decide, `{"context":{"plan":"pro"},"durable":true,"eventId":"`+w.id+`"}`)
	return w.buf, 0
}

func (w *writer) compose(suffix, body string) {
	w.buf = append(w.target.AppendHead(w.buf[:0], "POST "+capsulePath(crashSubject.capsule)+suffix, len(body)), body...)
}

// Seen notes the outcome. A 503 may be a commit that came too late to be confirmed, so it proves nothing.
func (w *writer) Seen(kind int, answer load.Answer) {
	outcome := history.Refused
	switch {
	case load.ClassOf(answer.Status) == load.Accepted:
		outcome = history.Acked
	case answer.Status >= 500:
		outcome = history.Unknown
	}
	if kind == 0 {
		w.all.decisions.End(w.id, outcome)
		w.reward = outcome == history.Acked
		return
	}
	w.all.rewards.End(w.id, outcome)
}

// again starts the server on the same store and port.
func (c *child) again(ctx context.Context, r *run) error {
	cmd := r.command(c.env)
	return c.launch(ctx, cmd, r.Serve(filepath.Join(c.dir, "data"), c.addr))
}

// audit holds the store to the histories: all decisions by listing them, the rewards of fresh decisions one by one.
func (r *run) audit(ctx context.Context, store *child, all *crashes, cycle int) error {
	control := store.control()
	var failed error
	ours := func(yield func(string) bool) {
		failed = control.decisions(ctx, func(id string) bool { return !strings.HasPrefix(id, "lab-"+all.run+"-") || yield(id) })
	}
	verdict := all.decisions.Check(ours)
	if failed != nil {
		return failed
	}
	if err := verdict.Err(); err != nil {
		r.doc.Find(report.Broken, "cycle %d, decisions: %s", cycle, text(err))
	}
	if err := control.rewards(ctx, all); err != nil {
		return err
	}
	if err := all.rewards.Check(slices.Values(all.found)).Err(); err != nil {
		r.doc.Find(report.Broken, "cycle %d, rewards: %s", cycle, text(err))
	}
	return nil
}

// decisions calls each with every decision id of the crash capsule, oldest first, until it returns false.
func (c *control) decisions(ctx context.Context, each func(id string) bool) error {
	after := ""
	for {
		var page struct {
			Decisions []struct {
				DecisionID string `json:"decisionId"`
			} `json:"decisions"`
			Next *string `json:"next"`
		}
		if err := c.ask(ctx, "GET "+capsulePath(crashSubject.capsule)+"/decisions?limit=1000"+after, "", &page); err != nil {
			return err
		}
		for _, d := range page.Decisions {
			if !each(d.DecisionID) {
				return nil
			}
		}
		if page.Next == nil {
			return nil
		}
		after = "&after=" + *page.Next
	}
}

// rewards adds the fresh decisions that have a reward to those found, each as often as it has one.
func (c *control) rewards(ctx context.Context, all *crashes) error {
	for _, id := range all.fresh {
		var one struct {
			Rewards []struct {
				Seq uint64 `json:"seq"`
			} `json:"rewards"`
		}
		err := c.ask(ctx, "GET "+capsulePath(crashSubject.capsule)+"/decisions/"+id, "", &one)
		if err != nil && fault.KindOf(err) != fault.NotFound {
			return err
		}
		for range one.Rewards {
			all.found = append(all.found, id)
		}
	}
	return nil
}
