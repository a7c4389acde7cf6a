package lab

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"holdfast/fault"
	"holdfast/lab/load"
	"holdfast/lab/report"
	"holdfast/lab/stats"
)

// GatewayParts are the names of the gateway scenario's parts, in the order they run.
func GatewayParts() []string {
	return []string{"pairs", "evaluate", "connections", "users", "merchants"}
}

// GatewayOptions is the plan of Gateway. Zero values choose the defaults.
type GatewayOptions struct {
	Blocks    int           // ABBA blocks per comparison; 0 means 6
	Segment   time.Duration // one of a block's four measurements; 0 means 2 s
	Merchants int           // of the part merchants; 0 means 100,000
	Only      []string      // parts to run; nil means all
}

// pairConnections is how many connections the budget of pairs is for.
const pairConnections = 20

// Gateway measures the gateway service against its budgets: pairs of a decide and its feedback, each feedback on disk when
// acknowledged, and evaluations of a rule, both against a bare handler in counterbalanced blocks of the same run; more
// connections; users who think; very many merchants. A missed goal is reported and is no error.
func Gateway(ctx context.Context, o Options, plan GatewayOptions) error {
	if plan.Blocks == 0 {
		plan.Blocks = 6
	}
	if plan.Segment == 0 {
		plan.Segment = 2 * time.Second
	}
	if plan.Merchants == 0 {
		plan.Merchants = 100_000
	}
	if plan.Only == nil {
		plan.Only = GatewayParts()
	}
	if plan.Blocks < 1 || plan.Segment < 0 || plan.Merchants < 1 {
		return fault.New("lab.Gateway", fault.Invalid, "%d blocks of %v segments, %d merchants: all must be above 0", plan.Blocks, plan.Segment, plan.Merchants)
	}
	for _, part := range plan.Only {
		if !slices.Contains(GatewayParts(), part) {
			return fault.New("lab.Gateway", fault.Invalid, "unknown part %q; there are %s", part, strings.Join(GatewayParts(), ", "))
		}
	}
	r := start(o, "Holdfast lab: budgets of the gateway service", time.Duration(len(plan.Only)*(4*plan.Blocks+2))*plan.Segment)
	return r.conclude(r.gateway(ctx, plan))
}

// gatewayRun is what the parts share.
type gatewayRun struct {
	*budgets
	plan  GatewayOptions
	pairs pairs
	wrong atomic.Uint64 // answers
	key   string
}

func (r *run) gateway(ctx context.Context, plan GatewayOptions) error {
	r.step("start: a server on a throwaway store")
	server, err := r.serve(ctx, raisedLimit)
	if err != nil {
		return err
	}
	defer server.stop()
	g := &gatewayRun{plan: plan, budgets: newBudgets(BudgetOptions{Blocks: plan.Blocks, Segment: plan.Segment}, server)}
	g.pairs = pairs{key: &g.key, wrong: &g.wrong, said: &latencies{}}
	for _, part := range plan.Only {
		switch part {
		case "pairs":
			err = r.pairs(ctx, g)
		case "evaluate":
			err = r.evaluations(ctx, g)
		case "connections":
			err = r.gatewayConnections(ctx, g)
		case "users":
			err = r.users(ctx, g)
		case "merchants":
			err = r.merchants(ctx, g)
		}
		if err != nil {
			return err
		}
	}
	if n := g.wrong.Load(); n > 0 {
		r.doc.Find(report.Broken, "%d answers were not what they had to be", n)
	} else {
		r.doc.Find(report.Met, "Every decide named an eligible gateway and its latency, every feedback was applied; accepted, stored and counted are the same.")
	}
	r.show(g.budgets)
	return nil
}

// serverQuantiles are those of the time in the server that are told.
var serverQuantiles = [3]float64{0.5, 0.95, 0.99}

// pairs compares decide and feedback with the bare handler, and looks closer at the blocks of the server.
func (r *run) pairs(ctx context.Context, g *gatewayRun) error {
	g.connections = pairConnections
	defer func() { g.connections = 0 }()
	if err := r.compare(ctx, g.budgets, comparison{g.pairs, 0.25, 0}); err != nil {
		return err
	}
	perSync, err := syncCost(g.server.dir)
	if err != nil {
		return err
	}
	g.pairs.said.take(0)
	var rates, costs, beside, syncs []float64
	var times [3][]float64
	for _, m := range g.found {
		if m.delta.routed == 0 {
			continue // the bare handler's
		}
		done := m.Kinds[1].Class(load.Accepted)
		rates = append(rates, m.perSecond(done))
		cost := perRequest(m.server, done)
		costs = append(costs, cost)
		each := float64(m.delta.syncs) / float64(done)
		syncs = append(syncs, each)
		beside = append(beside, cost-each*perSync)
		all := m.Total().Times(load.Accepted)
		for i, q := range serverQuantiles {
			times[i] = append(times[i], report.Milliseconds(all.Quantile(load.ServerTimer, q)))
		}
	}
	rate, cost := stats.Bootstrap(rates), stats.Bootstrap(beside)
	g.row(fmt.Sprintf("pairs per second at %d connections, each feedback on disk", pairConnections), "≥ 8,000", rate, grade(rate.Estimate >= 8000))
	g.row("CPU-µs per pair beside the sync", "≤ 60", cost, grade(cost.Estimate <= 60))
	g.row("CPU-µs per pair with it", "none", stats.Bootstrap(costs), report.Note)
	g.row("file syncs per pair", "none", stats.Bootstrap(syncs), report.Note)
	for i, q := range serverQuantiles[:2] {
		g.row(fmt.Sprintf("p%.0f in the server, decide and feedback, ms", 100*q), "none", stats.Bootstrap(times[i]), report.Note)
	}
	tail := stats.Bootstrap(times[2])
	g.row("p99 in the server, decide and feedback, ms", "≤ 2", tail, grade(tail.Estimate <= 2))
	return nil
}

// syncCost returns the processor time in µs that one append and sync costs here.
func syncCost(dir string) (float64, error) {
	f, err := os.CreateTemp(dir, "sync-")
	if err != nil {
		return 0, fault.Wrap("lab.Sync", fault.Unavailable, err, "no place for a file")
	}
	defer f.Close()
	page := make([]byte, 4096)
	before, n := ownProcessorTime(), uint64(0)
	for end := time.Now().Add(time.Second); time.Now().Before(end); n++ {
		if _, err := f.Write(page); err != nil {
			return 0, fault.Wrap("lab.Sync", fault.Unavailable, err, "cannot write")
		}
		if err := f.Sync(); err != nil {
			return 0, fault.Wrap("lab.Sync", fault.Unavailable, err, "cannot sync")
		}
	}
	return perRequest(spent(before, ownProcessorTime()), n), nil
}

// ruleProgram is a rule of six conditions for the comparison of evaluations.
const ruleProgram = `{"name":"lab","created_by":"` + labMerchant + `","algorithm_for":"payment","algorithm":{"type":"advanced","data":{"globals":{},` +
	`"default_selection":{"priority":[{"gateway_name":"alphapay","gateway_id":null}]},"metadata":{},"rules":[{"name":"six","routing_type":"priority",` +
	`"output":{"priority":[{"gateway_name":"mercato","gateway_id":"acc_7"},{"gateway_name":"kestrel","gateway_id":null}]},"statements":[{"condition":[` +
	`{"lhs":"payment_method","comparison":"equal","value":{"type":"enum_variant","value":"card"},"metadata":{}},` +
	`{"lhs":"amount","comparison":"greater_than","value":{"type":"number","value":5000},"metadata":{}},` +
	`{"lhs":"currency","comparison":"equal","value":{"type":"enum_variant","value":"EUR"},"metadata":{}},` +
	`{"lhs":"card_network","comparison":"equal","value":{"type":"enum_variant","value":"Visa"},"metadata":{}},` +
	`{"lhs":"authentication_type","comparison":"equal","value":{"type":"enum_variant","value":"three_ds"},"metadata":{}},` +
	`{"lhs":"capture_method","comparison":"not_equal","value":{"type":"enum_variant","value":"manual"},"metadata":{}}]}]}]}}}`

// ruleParameters meet all six conditions.
const ruleParameters = `{"payment_id":"ord-7741-1","created_by":"` + labMerchant + `","fallback_output":[{"gateway_name":"alphapay","gateway_id":null}],` +
	`"parameters":{"payment_method":{"type":"enum_variant","value":"card"},"amount":{"type":"number","value":9900},` +
	`"currency":{"type":"enum_variant","value":"EUR"},"card_network":{"type":"enum_variant","value":"Visa"},` +
	`"authentication_type":{"type":"enum_variant","value":"three_ds"},"capture_method":{"type":"enum_variant","value":"automatic"}}}`

// evaluation is the evaluation of that rule.
type evaluation struct {
	key   *string
	wrong *atomic.Uint64
}

func (e evaluation) title() string { return "routing evaluate" }

func (e evaluation) create(ctx context.Context, c *control) (int, error) {
	key, err := newMerchant(ctx, c, labMerchant)
	if err != nil {
		return 0, err
	}
	*e.key = key
	with := c.as("x-api-key", key)
	var rule struct {
		ID string `json:"rule_id"`
	}
	if err := with.ask(ctx, "POST /routing/create", ruleProgram, &rule); err != nil {
		return 0, err
	}
	if err := with.ask(ctx, "POST /routing/activate", fmt.Sprintf(`{"created_by":%q,"routing_algorithm_id":%q}`, labMerchant, rule.ID), nil); err != nil {
		return 0, err
	}
	raw, err := with.raw(ctx, "POST /routing/evaluate", ruleParameters)
	if err == nil && !strings.Contains(string(raw), `"gateway_name":"mercato"`) {
		return 0, fault.New("lab.Gateway", fault.Internal, "the rule did not match: %s", raw)
	}
	return len(raw), err
}

func (e evaluation) cell(connections int, d time.Duration) cell {
	return cell{connections: connections, duration: d, kinds: []string{kindEvaluate}, traffic: func(t load.Target) func(int) load.Traffic {
		t.Key, t.Header = "", "x-api-key: "+*e.key
		whole := t.Request("POST", "/routing/evaluate", []byte(ruleParameters))
		return func(int) load.Traffic { return checked{load.Fixed(whole), []byte(`"status":"success"`), e.wrong} }
	}}
}

// checked sends the same request for ever and counts the answers that do not say what they must.
type checked struct {
	load.Fixed
	want  []byte
	wrong *atomic.Uint64
}

// Seen looks for the text, except in an answer of the bare handler.
func (c checked) Seen(_ int, a load.Answer) {
	if len(a.Body) > 0 && a.Body[0] != ' ' && !bytes.Contains(a.Body, c.want) {
		c.wrong.Add(1)
	}
}

// evaluations compares the evaluation of a rule with the bare handler.
func (r *run) evaluations(ctx context.Context, g *gatewayRun) error {
	if err := r.compare(ctx, g.budgets, comparison{evaluation{&g.key, &g.wrong}, 0.6, 0}); err != nil {
		return err
	}
	var costs []float64
	for i, m := range g.found {
		if side := stats.Schedule(g.plan.Blocks)[i]; side == stats.B {
			costs = append(costs, perRequest(m.server, m.Total().Class(load.Accepted)))
		}
	}
	v := stats.Bootstrap(costs)
	g.row("CPU-µs per evaluation of six conditions", "≤ 30", v, grade(v.Estimate <= 30))
	return nil
}

// gatewayConnections climbs and descends from 5 to 500 connections.
func (r *run) gatewayConnections(ctx context.Context, g *gatewayRun) error {
	if _, err := g.pairs.create(ctx, g.server.control()); err != nil {
		return err
	}
	steps := []int{5, 20, 50, 100, 200, 300, 500}
	rates, waits := map[int][]float64{}, map[int][]float64{}
	const passes = 4
	for pass := range passes {
		order := slices.Clone(steps)
		if pass%2 == 1 {
			slices.Reverse(order)
		}
		for _, n := range order {
			r.step("connections: %d, pass %d of %d", n, pass+1, passes)
			m, err := r.measure(ctx, g.server, g.pairs.cell(n, g.plan.Segment))
			if err != nil {
				return err
			}
			r.note(fmt.Sprintf("%d connections", n), m)
			rates[n] = append(rates[n], m.perSecond(m.Kinds[1].Class(load.Accepted)))
			waits[n] = append(waits[n], report.Milliseconds(m.Total().Times(load.Accepted).Quantile(load.FromIntended, 0.99)))
		}
	}
	table := report.Table{Name: "connections", Title: "Pairs over connections", Columns: []report.Column{{Key: "connections", Title: "conns"},
		{Key: "pairs_per_s", Title: "pairs/s"}, {Key: "lower", Title: "from"}, {Key: "upper", Title: "to"}, {Key: "p99_ms", Title: "p99 ms", Digits: 2}}}
	for _, n := range steps {
		v := stats.Bootstrap(rates[n])
		table.Add(n, v.Estimate, v.Lower, v.Upper, stats.Bootstrap(waits[n]).Estimate)
	}
	r.doc.Tables = append(r.doc.Tables, table)
	kept := stats.Bootstrap(rates[300]).Estimate / stats.Bootstrap(rates[20]).Estimate
	g.row("pairs/s at 300 connections against 20", "≥ 0.97", one(kept), grade(kept >= 0.97))
	return nil
}

// users are people who think for 100 ms between an answer and their next request.
func (r *run) users(ctx context.Context, g *gatewayRun) error {
	if _, err := g.pairs.create(ctx, g.server.control()); err != nil {
		return err
	}
	table := report.Table{Name: "users", Title: "Users who think for 100 ms", Columns: []report.Column{{Key: "users", Title: "users"},
		{Key: "requests_per_s", Title: "req/s", Digits: 0}, {Key: "mean_ms", Title: "mean ms", Digits: 2}, {Key: "p95_ms", Title: "p95 ms", Digits: 2},
		{Key: "server_mean_ms", Title: "server mean ms", Digits: 3}, {Key: "server_p95_ms", Title: "server p95 ms", Digits: 3},
		{Key: "latency_mean_ms", Title: "latency mean", Digits: 2}, {Key: "latency_p95_ms", Title: "latency p95", Digits: 0}},
		Note: "Server: its Server-Timing header. Latency: the member latency of decides, in whole ms."}
	for _, n := range []int{5, 20, 50} {
		r.step("users: %d", n)
		one := g.pairs.cell(n, g.plan.Segment)
		one.think = 100 * time.Millisecond
		g.pairs.said.take(0)
		m, err := r.measure(ctx, g.server, one)
		if err != nil {
			return err
		}
		r.note(fmt.Sprintf("%d users", n), m)
		t := m.Total().Times(load.Accepted)
		mean, high := g.pairs.said.take(0.95)
		table.Add(n, m.perSecond(m.Total().Class(load.Accepted)), report.Milliseconds(t.Mean(load.FromSent)), report.Milliseconds(t.Quantile(load.FromSent, 0.95)),
			report.Milliseconds(t.Mean(load.ServerTimer)), report.Milliseconds(t.Quantile(load.ServerTimer, 0.95)), mean, high)
	}
	r.doc.Tables = append(r.doc.Tables, table)
	return nil
}

// manyMerchant names one of very many merchants.
func manyMerchant(i int) string { return fmt.Sprintf("lab_m%06d", i) }

// merchants compares a decide among very many merchants with one of a single merchant, and weighs an idle merchant.
func (r *run) merchants(ctx context.Context, g *gatewayRun) error {
	c := g.server.control()
	if _, err := g.pairs.create(ctx, c); err != nil {
		return err
	}
	few, err := r.decides(ctx, g, 1)
	if err != nil {
		return err
	}
	before := residentBytes(g.server.cmd.Process.Pid)
	if err := r.createMerchants(ctx, g); err != nil {
		return err
	}
	if _, err := r.decides(ctx, g, g.plan.Merchants); err != nil { // brings them into memory
		return err
	}
	many, err := r.decides(ctx, g, g.plan.Merchants)
	if err != nil {
		return err
	}
	after := residentBytes(g.server.cmd.Process.Pid)
	g.row(fmt.Sprintf("CPU per decide among %d merchants against one", g.plan.Merchants), "≤ 1.3", one(many/few), grade(many/few <= 1.3))
	g.row("resident bytes per merchant, with the decisions it made", "none", one((after-before)/float64(g.plan.Merchants)), report.Note)
	return nil
}

// decides measures decides alone and returns the server's CPU-µs each.
func (r *run) decides(ctx context.Context, g *gatewayRun, merchants int) (float64, error) {
	p := g.pairs
	p.think = true
	if merchants > 1 {
		p.merchants, p.key = merchants, &g.server.key
	}
	r.step("decides among %d merchants", merchants)
	m, err := r.measure(ctx, g.server, p.cell(pairConnections, 2*g.plan.Segment))
	if err != nil {
		return math.NaN(), err
	}
	r.note(fmt.Sprintf("decides among %d merchants", merchants), m)
	return perRequest(m.server, m.Total().Class(load.Accepted)), nil
}

// createMerchants creates the merchants over a few connections.
func (r *run) createMerchants(ctx context.Context, g *gatewayRun) error {
	r.step("creating %d merchants", g.plan.Merchants)
	number := &atomic.Uint64{}
	t := load.Target{Host: g.server.addr, Header: "x-admin-secret: " + g.server.key}
	result, err := load.Run(ctx, load.Plan{Dial: load.Dialer(t.Host), Workers: 64, Kinds: []string{"create"}, Traffic: func(int) load.Traffic {
		return &load.Fill{Number: number, Make: func(dst []byte, n uint64) []byte {
			if n >= uint64(g.plan.Merchants) {
				return nil
			}
			body := fmt.Appendf(nil, `{"merchant_id":%q,"gateway_success_rate_based_decider_input":null}`, manyMerchant(int(n)))
			return append(t.AppendHead(dst, "POST /merchant-account/create", len(body)), body...)
		}}
	}})
	if err != nil {
		return err
	}
	if n := result.Total().Class(load.Accepted); n != uint64(g.plan.Merchants) {
		return fault.New("lab.Gateway", fault.Internal, "%d of %d merchants were created (%s)", n, g.plan.Merchants, statuses(result.Total()))
	}
	return nil
}
