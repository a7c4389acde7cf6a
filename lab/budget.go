package lab

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"holdfast/fault"
	"holdfast/lab/load"
	"holdfast/lab/report"
	"holdfast/lab/stats"
)

// BudgetOptions is the plan of Budget. Zero values choose the defaults.
type BudgetOptions struct {
	Blocks  int           // ABBA blocks per comparison; 0 means 6
	Segment time.Duration // one of a block's four measurements; 0 means 2 s
	Only    []string      // parts to run, see Parts; nil means all
	timing  timing
}

// timing is the plan of the parts that are not comparisons.
type timing struct {
	steps   []int         // connections, doubling from the number of processors of a small machine upwards
	passes  int           // over the steps, up and down in turn
	each    time.Duration // per step
	limiter time.Duration
	collect time.Duration // at most, to make decisions to reward
	ids     uint64        // at most
	reward  time.Duration // rewards alone
	mixed   time.Duration // rewards beside decides, twice
}

func usualTiming() timing {
	return timing{steps: []int{2, 4, 8, 16, 32, 64}, passes: 4, each: 2 * time.Second, limiter: 10 * time.Second,
		collect: 12 * time.Second, ids: 300_000, reward: 5 * time.Second, mixed: 5 * time.Second}
}

// Parts are the names of the budget's parts, in the order they run.
func Parts() []string {
	return []string{"small", "wide", "event", "governed", "writes", "connections", "limiter"}
}

// Budget measures the decision service against its budgets: throughput and processor time as ratios to a bare net/http
// handler that reads the same body and answers a constant of the same size, in counterbalanced blocks of the same run;
// durable rewards; decides beside them; more connections; the limiter. A missed goal is reported and is no error.
func Budget(ctx context.Context, o Options, plan BudgetOptions) error {
	if plan.Blocks == 0 {
		plan.Blocks = 6
	}
	if plan.Segment == 0 {
		plan.Segment = 2 * time.Second
	}
	if plan.Only == nil {
		plan.Only = Parts()
	}
	if plan.timing.steps == nil {
		plan.timing = usualTiming()
	}
	if plan.Blocks < 1 || plan.Segment < 0 {
		return fault.New("lab.Budget", fault.Invalid, "%d blocks of %v segments: both must be above 0", plan.Blocks, plan.Segment)
	}
	total := time.Duration(0)
	for _, part := range plan.Only {
		if !slices.Contains(Parts(), part) {
			return fault.New("lab.Budget", fault.Invalid, "unknown part %q; there are %s", part, strings.Join(Parts(), ", "))
		}
		total += plan.takes(part)
	}
	r := start(o, "Holdfast lab: budgets of the decision service", total)
	return r.conclude(r.budget(ctx, plan))
}

// takes is the time a part's measurements are planned to take.
func (plan BudgetOptions) takes(part string) time.Duration {
	t := plan.timing
	switch part {
	case "writes":
		return t.collect + t.reward + 2*t.mixed
	case "connections":
		return time.Duration(t.passes*len(t.steps)) * t.each
	case "limiter":
		return t.limiter
	}
	return time.Duration(4*plan.Blocks+2) * plan.Segment
}

// budgets collects the results.
type budgets struct {
	plan   BudgetOptions
	server *child
	table  report.Table
	blocks report.Table
	ratios report.Chart

	connections int         // of a comparison; 0 means 8
	found       []*measured // of the newest comparison, bare handler first in each block
}

func (r *run) budget(ctx context.Context, plan BudgetOptions) error {
	r.step("start: a server on a throwaway store")
	server, err := r.serve(ctx, raisedLimit)
	if err != nil {
		return err
	}
	defer server.stop()
	b := newBudgets(plan, server)
	if err := r.parts(ctx, b); err != nil {
		return err
	}
	if err := r.logged(ctx, b); err != nil {
		return err
	}
	r.show(b)
	return nil
}

// show adds the tables to the report.
func (r *run) show(b *budgets) {
	r.doc.Tables = append(r.doc.Tables, b.table)
	if len(b.blocks.Rows) > 0 {
		r.doc.Tables = append(r.doc.Tables, b.blocks)
		r.doc.Charts = append(r.doc.Charts, b.ratios)
	}
}

// newBudgets returns empty tables.
func newBudgets(plan BudgetOptions, server *child) *budgets {
	return &budgets{plan: plan, server: server,
		table: report.Table{Name: "budgets", Title: "Budgets", Columns: []report.Column{{Key: "budget", Title: "budget"},
			{Key: "goal", Title: "goal"}, {Key: "measured", Title: "measured", Digits: 3}, {Key: "lower", Title: "from", Digits: 3},
			{Key: "upper", Title: "to", Digits: 3}, {Key: "grade", Title: "result"}},
			Note: "Ratios are medians over ABBA blocks with their 95 % bootstrap interval; the bare handler is a child process of the same binary."},
		blocks: report.Table{Name: "blocks", Title: "ABBA blocks (bare handler, decide, decide, bare handler; 8 kept connections)",
			Columns: []report.Column{{Key: "subject", Title: "subject"}, {Key: "block", Title: "block"},
				{Key: "rate_ratio", Title: "rate ratio", Digits: 3}, {Key: "cpu_ratio", Title: "CPU ratio", Digits: 3},
				{Key: "bare_per_s", Title: "bare/s"}, {Key: "decide_per_s", Title: "decides/s"},
				{Key: "bare_cpu_us", Title: "bare CPU-µs", Digits: 1}, {Key: "decide_cpu_us", Title: "decide CPU-µs", Digits: 1},
				{Key: "client_cpu_us", Title: "client CPU-µs", Digits: 1}, {Key: "decide_p99_ms", Title: "p99 ms", Digits: 2}}},
		ratios: report.Chart{Title: "Throughput against the bare handler", X: "block", Y: "ratio", Goal: 0.65}}
}

func (r *run) parts(ctx context.Context, b *budgets) error {
	for _, part := range b.plan.Only {
		var err error
		switch part {
		case "small":
			err = r.compare(ctx, b, comparison{smallSubject, 0.65, 1.6})
		case "wide":
			err = r.compare(ctx, b, comparison{wideSubject, 0.5, 0})
		case "event":
			err = r.compare(ctx, b, comparison{eventSubject, 0.5, 0})
		case "governed":
			err = r.compare(ctx, b, comparison{governedSubject, 0, 0})
		case "writes":
			err = r.writes(ctx, b)
		case "connections":
			err = r.connections(ctx, b)
		case "limiter":
			err = r.limiter(ctx, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// limiter saturates a server under the limiter's default.
func (r *run) limiter(ctx context.Context, b *budgets) error {
	d := b.plan.timing.limiter
	m, _, err := r.limited(ctx, d)
	if err != nil {
		return err
	}
	r.note("limiter", m)
	g, _ := admitted(m, defaultLimit, d)
	b.row(fmt.Sprintf("accepted in %.1f s of saturating load", d.Seconds()), fmt.Sprintf("%.0f ± 1 %%", defaultLimit.within(d)),
		one(float64(m.Total().Class(load.Accepted))), g)
	return nil
}

// one is a value without an interval.
func one(v float64) stats.Interval {
	return stats.Interval{Estimate: v, Lower: math.NaN(), Upper: math.NaN()}
}

func grade(met bool) report.Grade {
	if met {
		return report.Met
	}
	return report.Missed
}

// row adds a budget, what was measured, and whether that is good enough.
func (b *budgets) row(budget, goal string, v stats.Interval, g report.Grade) {
	b.table.Add(budget, goal, v.Estimate, v.Lower, v.Upper, g.String())
}

// comparison is something to measure with its goals; 0 sets none.
type comparison struct {
	measurable
	rate float64 // least ratio of throughput to the bare handler's
	cpu  float64 // greatest ratio of processor time per request
}

// measurable is load that a bare handler can stand for.
type measurable interface {
	title() string
	// create prepares the server and returns the size in bytes of an answer.
	create(ctx context.Context, c *control) (int, error)
	cell(connections int, d time.Duration) cell
}

// compare runs the ABBA blocks of one subject. Both servers are up all the time; the one not measured is idle.
func (r *run) compare(ctx context.Context, b *budgets, c comparison) error {
	size, err := c.create(ctx, b.server.control())
	if err != nil {
		return err
	}
	bare, err := r.null(ctx, size)
	if err != nil {
		return err
	}
	defer bare.stop()
	sides := map[stats.Side]*child{stats.A: bare, stats.B: b.server}
	connections := cmp.Or(b.connections, 8)
	for _, side := range []stats.Side{stats.A, stats.B} { // warms caches and grows heaps; not looked at
		r.step("%s: warming up", c.title())
		if _, err := r.measure(ctx, sides[side], c.cell(connections, b.plan.Segment)); err != nil {
			return err
		}
	}
	var found []*measured
	for i, side := range stats.Schedule(b.plan.Blocks) {
		r.step("%s: block %d of %d", c.title(), i/4+1, b.plan.Blocks)
		m, err := r.measure(ctx, sides[side], c.cell(connections, b.plan.Segment))
		if err != nil {
			return err
		}
		if side == stats.B {
			r.note(c.title(), m)
		}
		found = append(found, m)
	}
	b.found = found
	r.compared(b, c, found)
	return nil
}

// compared adds what the blocks of one subject say.
func (r *run) compared(b *budgets, c comparison, found []*measured) {
	var rates, costs []float64
	for _, m := range found {
		answers := m.Total().Class(load.Accepted)
		rates = append(rates, m.perSecond(answers))
		costs = append(costs, perRequest(m.server, answers))
	}
	rateRatios, costRatios := stats.Ratios(rates), stats.Ratios(costs)
	series := report.Series{Name: c.title()}
	for i := 0; i+4 <= len(found) && i/4 < len(rateRatios); i += 4 {
		n := i / 4
		cost, client := math.NaN(), found[i+1].Total()
		if n < len(costRatios) {
			cost = costRatios[n]
		}
		b.blocks.Add(c.title(), n+1, rateRatios[n], cost, (rates[i]+rates[i+3])/2, (rates[i+1]+rates[i+2])/2,
			(costs[i]+costs[i+3])/2, (costs[i+1]+costs[i+2])/2, perRequest(found[i+1].client, client.Answers()),
			report.Milliseconds(client.Times(load.Accepted).Quantile(load.FromIntended, 0.99)))
		series.Points = append(series.Points, report.Point{X: float64(n + 1), Y: rateRatios[n]})
	}
	b.ratios.Series = append(b.ratios.Series, series)
	rate, cost := stats.Bootstrap(rateRatios), stats.Bootstrap(costRatios)
	r.screen.Line(fmt.Sprintf("%s: throughput %.3f and CPU %.2f of the bare handler's", c.title(), rate.Estimate, cost.Estimate))
	goal, g := "none", report.Note
	if c.rate > 0 {
		goal, g = fmt.Sprintf("≥ %.2f", c.rate), grade(rate.Estimate >= c.rate)
	}
	b.row(c.title()+": throughput, ratio to bare handler", goal, rate, g)
	goal, g = "none", report.Note
	if c.cpu > 0 {
		goal, g = fmt.Sprintf("≤ %.2f", c.cpu), grade(cost.Estimate <= c.cpu)
	}
	b.row(c.title()+": CPU per request, ratio to bare handler", goal, cost, g)
}

// connections climbs and descends the steps, so that a drift of the machine falls on all of them.
func (r *run) connections(ctx context.Context, b *budgets) error {
	if _, err := smallSubject.create(ctx, b.server.control()); err != nil {
		return err
	}
	t := b.plan.timing
	rates := map[int][]float64{}
	for pass := range t.passes {
		steps := slices.Clone(t.steps)
		if pass%2 == 1 {
			slices.Reverse(steps)
		}
		for _, n := range steps {
			r.step("connections: %d, pass %d of %d", n, pass+1, t.passes)
			m, err := r.measure(ctx, b.server, smallSubject.cell(n, t.each))
			if err != nil {
				return err
			}
			r.note("connections", m)
			rates[n] = append(rates[n], m.perSecond(m.Total().Class(load.Accepted)))
		}
	}
	worst, where := math.Inf(1), ""
	series := report.Series{Name: "decides/s"}
	for i, n := range t.steps {
		v := stats.Bootstrap(rates[n])
		series.Points = append(series.Points, report.Point{X: float64(n), Y: v.Estimate, Lower: v.Lower, Upper: v.Upper})
		if i > 0 {
			if change := v.Estimate / stats.Median(rates[t.steps[i-1]]); change < worst {
				worst, where = change, fmt.Sprintf("%d to %d", t.steps[i-1], n)
			}
		}
	}
	r.doc.Charts = append(r.doc.Charts, report.Chart{Title: "Throughput over connections", X: "connections", Y: "decides/s", Log2: true,
		Series: []report.Series{series}})
	b.row("throughput when connections double, worst step ("+where+")", "≥ 0.97", one(worst), grade(worst >= 0.97))
	return nil
}

// logged compares the number of decisions the server says it committed with the number it accepted, over the whole run.
func (r *run) logged(ctx context.Context, b *budgets) error {
	var s sample
	var accepted uint64
	for range 40 {
		var err error
		if s, err = b.server.control().metrics(ctx); err != nil {
			return err
		}
		accepted = s.decides
		if s.logged == accepted {
			break
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	switch {
	case s.logged != accepted || s.lost != 0:
		r.doc.Find(report.Broken, "%d decides were accepted, %d decisions are in the log, %d events were lost.", accepted, s.logged, s.lost)
	default:
		r.doc.Find(report.Met, "All %d accepted decides are committed to the log; no event was lost.", accepted)
	}
	return nil
}
