package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/gateway"
	"holdfast/store/gateways"
)

// dial is a service's time that a test moves.
type dial struct{ ms atomic.Int64 }

func newDial() *dial {
	c := &dial{}
	c.ms.Store(1_800_000_000_000)
	return c
}

func (c *dial) now() time.Time          { return time.UnixMilli(c.ms.Load()) }
func (c *dial) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// question asks about a merchant's last stretch of time.
func (r *rig) question(m gateway.MerchantID, back time.Duration) gateway.Question {
	r.t.Helper()
	now := r.options.Now().UnixMilli()
	span, err := r.service.RangeOf("", gateway.Moments{StartMS: now - back.Milliseconds(), EndMS: now, HasStart: true, HasEnd: true})
	if err != nil {
		r.t.Fatal(err)
	}
	return gateway.Question{Merchant: m, Range: span}
}

func (r *rig) audit(q gateway.AuditQuery) *gateway.Audit {
	r.t.Helper()
	if q.Page.Size == 0 {
		q.Page = gateway.Page{Number: 1, Size: 50}
	}
	a, err := r.service.Audit(r.t.Context(), &q)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

func flowsOf(a *gateway.Audit) (flows []gateway.Flow) {
	for _, e := range a.Timeline {
		flows = append(flows, e.Flow)
	}
	return flows
}

func TestAuditShowsDecideAndFeedbackAndARestartKeepsThem(t *testing.T) {
	c := newDial()
	r := newRig(t, gateway.Options{Now: c.now})
	r.merchant("shop")
	g := r.decide(request("shop", "ord-1")).Gateway
	r.update("shop", "ord-1", g, "CHARGED")
	check := func(when string) {
		t.Helper()
		q := r.question("shop", time.Hour)
		a := r.audit(gateway.AuditQuery{Question: q, PaymentID: "ord-1"})
		if a.Total != 1 || a.Succeeded != 1 || len(a.Results) != 1 || a.Results[0].LatestGateway != g || !a.Complete {
			t.Fatalf("%s: audit %+v", when, a)
		}
		flows := flowsOf(a)
		if !slices.Contains(flows, gateway.FlowDecision) || !slices.Contains(flows, gateway.FlowUpdate) {
			t.Errorf("%s: flows %v", when, flows)
		}
		o, err := r.service.Overview(t.Context(), &q)
		if err != nil {
			t.Fatal(err)
		}
		if o.Decides != 1 || o.Updates != 1 || o.Succeeded != 1 || o.Errors != 0 || len(o.Scores) != 1 {
			t.Errorf("%s: overview %+v", when, o)
		}
	}
	check("at once")
	r.stop()
	r.start()
	check("after a restart")
}

// A second service on the same store sees what a process that was killed had stored: the roll-ups were never saved.
func TestKilledServiceCountsOnceAfterRestart(t *testing.T) {
	c := newDial()
	r := newRig(t, gateway.Options{Now: c.now})
	r.merchant("shop")
	for i := range 300 {
		if i == 100 || i == 200 {
			if err := r.service.SaveTallies(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		r.service.Post(&gateway.Event{TimeMS: c.ms.Load(), Merchant: "shop", Flow: gateway.FlowDecision, Gateway: "a", PaymentID: fmt.Sprint(i)})
	}
	q := r.question("shop", time.Hour)
	count := func(s *gateway.Service) int64 {
		t.Helper()
		d, err := s.DecisionStats(t.Context(), &q)
		if err != nil {
			t.Fatal(err)
		}
		return d.Decided
	}
	if n := count(r.service); n != 300 {
		t.Fatalf("counted %d, want 300", n)
	}
	second, err := gateway.Open(t.Context(), gateway.Options{Storage: gateways.New(r.db), Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	if n := count(second); n != 300 {
		t.Errorf("counted %d after the kill, want 300", n)
	}
	// Nothing is saved twice either.
	if err := second.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(r.service); n != 300 {
		t.Errorf("counted %d after the second service saved, want 300", n)
	}
}

func TestFullQueueNeverBlocks(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.merchant("shop")
	r.decide(request("shop", "ord-0")) // the merchant is in memory
	held, release := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- gateways.New(r.db).Write(t.Context(), gateway.Write{Change: func(gateway.Tx) error {
			close(held)
			<-release
			return nil
		}})
	}()
	<-held
	const posts = 30_000
	e := gateway.Event{TimeMS: time.Now().UnixMilli(), Merchant: "shop", Flow: gateway.FlowUpdate, Gateway: "a", PaymentID: "p"}
	for range posts {
		r.service.Post(&e) // would hang here until the test times out
	}
	dropped := r.service.Dropped()
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if dropped == 0 || dropped >= posts {
		t.Errorf("dropped %d of %d", dropped, posts)
	}
	stored := 0
	if err := r.service.Stored(t.Context(), "shop", func(e *gateway.Event) {
		if e.Flow == gateway.FlowUpdate {
			stored++
		}
	}); err != nil {
		t.Fatal(err)
	}
	if stored+r.service.Dropped() != posts {
		t.Errorf("%d stored and %d dropped of %d", stored, r.service.Dropped(), posts)
	}
}

// counts is what a recount and the panels must agree on.
type counts struct {
	Decides, Updates, Evaluates, Decided, Succeeded, Failed, Errors int64
	Approaches, Share, Currencies                                   map[string]int64
}

func newCounts() counts {
	return counts{Approaches: map[string]int64{}, Share: map[string]int64{}, Currencies: map[string]int64{}}
}

func (c *counts) note(e *gateway.Event) {
	switch e.Flow {
	case gateway.FlowDecision:
		c.Decides++
		c.Decided++
		c.Approaches[string(e.Approach)]++
		c.Share[string(e.Gateway)]++
	case gateway.FlowDecideError:
		c.Decides++
		c.Errors++
	case gateway.FlowUpdate:
		c.Updates++
		if e.Failed {
			c.Failed++
		} else if e.Status == "CHARGED" {
			c.Succeeded++
		}
	case gateway.FlowEvaluatePriority:
		c.Evaluates++
	}
}

func (r *rig) panels(q gateway.Question) counts {
	r.t.Helper()
	c := newCounts()
	o, err := r.service.Overview(r.t.Context(), &q)
	if err != nil {
		r.t.Fatal(err)
	}
	c.Decides, c.Updates, c.Evaluates, c.Decided = o.Decides, o.Updates, o.Evaluates, o.Decided
	c.Succeeded, c.Failed, c.Errors = o.Succeeded, o.Failed, o.Errors
	d, err := r.service.DecisionStats(r.t.Context(), &q)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, one := range d.Series {
		c.Approaches[one.Name] += one.Count
	}
	s, err := r.service.RoutingStats(r.t.Context(), &q)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, one := range s.Share {
		c.Share[one.Name] += one.Count
	}
	return c
}

// randomEvent is an event of one of three merchants in the last 70 days.
func randomEvent(random *rand.Rand, nowMS int64) gateway.Event {
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	e := gateway.Event{TimeMS: nowMS - random.Int64N(70*24*3600_000), Merchant: gateway.MerchantID(pick("one", "two", "three")),
		PaymentID: fmt.Sprint("p", random.IntN(500)), RequestID: fmt.Sprint("r", random.IntN(500)), Gateway: gateway.Name(pick("a", "b", "c")),
		MethodType: pick("CARD", "UPI"), Currency: pick("EUR", "USD"), BIN: pick("453210", "510000", ""), Saved: float64(random.IntN(3))}
	if random.IntN(3) > 0 {
		e.TimeMS = nowMS - random.Int64N(30*3600_000)
	}
	switch random.IntN(5) {
	case 0, 1:
		e.Flow, e.Approach = gateway.FlowDecision, gateway.Approach(pick("SR_SELECTION_V3_ROUTING", "SR_V3_HEDGING"))
	case 2:
		e.Flow, e.Status = gateway.FlowUpdate, pick("CHARGED", "FAILURE", "PENDING")
		e.Failed = e.Status == "FAILURE"
	case 3:
		e.Flow, e.Failed, e.ErrorCode = gateway.FlowDecideError, true, pick("GATEWAY_NOT_FOUND", "INVALID_INPUT")
	default:
		e.Flow = gateway.FlowEvaluatePriority
	}
	return e
}

func TestRollUpsEqualARecount(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random, c := rand.New(rand.NewPCG(seed, 7)), newDial()
			r := newRig(t, gateway.Options{Now: c.now, Trail: gateway.TrailOptions{Days: 1_000}})
			merchants := []gateway.MerchantID{"one", "two", "three"}
			for _, m := range merchants {
				r.merchant(m)
			}
			compare := func(when string) {
				t.Helper()
				for _, m := range merchants {
					want := newCounts()
					if err := r.service.Stored(t.Context(), m, want.note); err != nil {
						t.Fatal(err)
					}
					if got := r.panels(r.question(m, 500*24*time.Hour)); !reflect.DeepEqual(got, want) {
						t.Errorf("%s: %s: panels\n%+v\nrecount\n%+v", when, m, got, want)
					}
				}
			}
			for round, after := range []func() error{
				func() error { return nil },
				func() error { return r.service.SaveTallies(t.Context()) },
				func() error { r.stop(); r.start(); return nil },
				func() error { return r.service.SweepTrail(t.Context()) },
				func() error { c.advance(27 * time.Hour); return r.service.SweepTrail(t.Context()) },
				func() error { c.advance(40 * 24 * time.Hour); return r.service.SweepTrail(t.Context()) },
			} {
				for range 400 {
					e := randomEvent(random, c.ms.Load())
					r.service.Post(&e)
				}
				if err := after(); err != nil {
					t.Fatal(err)
				}
				compare(fmt.Sprint("round ", round))
			}
		})
	}
}

func TestOneMerchantNeverSeesAnother(t *testing.T) {
	c := newDial()
	r := newRig(t, gateway.Options{Now: c.now})
	for i, m := range []gateway.MerchantID{"left", "right"} {
		r.merchant(m)
		for n := range 20 {
			r.service.Post(&gateway.Event{TimeMS: c.ms.Load(), Merchant: m, Flow: gateway.FlowDecision, PaymentID: fmt.Sprint("same-", n),
				RequestID: "same", Gateway: gateway.Name(fmt.Sprint("gateway-of-", m)), Details: []byte(fmt.Sprintf(`{"of":%d}`, i))})
		}
	}
	for _, m := range []gateway.MerchantID{"left", "right"} {
		own := gateway.Name(fmt.Sprint("gateway-of-", m))
		for _, q := range []gateway.AuditQuery{{}, {PaymentID: "same-3"}, {RequestID: "same"}} {
			q.Question = r.question(m, time.Hour)
			a := r.audit(q)
			if len(a.Timeline) == 0 {
				t.Errorf("%s sees nothing of its own", m)
			}
			for _, e := range a.Timeline {
				if e.Merchant != m || e.Gateway != own {
					t.Errorf("%s sees %+v", m, e)
				}
			}
		}
		q := r.question(m, time.Hour)
		s, err := r.service.RoutingStats(t.Context(), &q)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.Available.Gateways, []string{string(own)}) || len(s.Share) != 1 || s.Share[0].Count != 20 {
			t.Errorf("%s sees %+v", m, s)
		}
	}
}

func TestPagesAndTotalsAreConsistent(t *testing.T) {
	c := newDial()
	r := newRig(t, gateway.Options{Now: c.now})
	r.merchant("shop")
	for n := range 57 {
		for step := range 3 {
			r.service.Post(&gateway.Event{TimeMS: c.ms.Load() + int64(step), Merchant: "shop", Flow: gateway.FlowUpdate, PaymentID: fmt.Sprint(n),
				Gateway: "a", Failed: n%3 == 0, ErrorCode: "51"})
		}
	}
	c.advance(time.Second)
	q := gateway.AuditQuery{Question: r.question("shop", time.Hour)}
	seen := map[string]int{}
	for page := 1; page <= 7; page++ {
		q.Page = gateway.Page{Number: page, Size: 10}
		a := r.audit(q)
		if a.Total != 57 || a.Failed != 19 || a.Succeeded != 38 {
			t.Errorf("page %d: totals %d %d %d", page, a.Total, a.Succeeded, a.Failed)
		}
		if want := min(10, max(0, 57-10*(page-1))); len(a.Results) != want || len(a.Timeline) != 3*want {
			t.Errorf("page %d: %d results and %d events, want %d and %d", page, len(a.Results), len(a.Timeline), want, 3*want)
		}
		for _, one := range a.Results {
			seen[one.LookupKey]++
			if one.Events != 3 {
				t.Errorf("%s has %d events", one.LookupKey, one.Events)
			}
		}
	}
	if len(seen) != 57 {
		t.Errorf("%d payments on all pages, want 57", len(seen))
	}
	q.Page, q.Status = gateway.Page{Number: 1 << 30, Size: 50}, "failure"
	if a := r.audit(q); a.Total != 19 || len(a.Results) != 0 {
		t.Errorf("beyond the last page: %d of %d", len(a.Results), a.Total)
	}
	logs, err := r.service.LogSummaries(t.Context(), &q.Question, gateway.Page{Number: 2, Size: 50})
	if err != nil {
		t.Fatal(err)
	}
	if logs.Total != 57 || len(logs.Samples) != 7 || len(logs.Errors) != 1 || logs.Errors[0].Count != 57 {
		t.Errorf("logs %+v", logs)
	}
}

func TestAuditFilters(t *testing.T) {
	c := newDial()
	r := newRig(t, gateway.Options{Now: c.now})
	r.merchant("shop")
	at := func(ms int64, e gateway.Event) {
		e.TimeMS, e.Merchant = c.ms.Load()+ms, "shop"
		r.service.Post(&e)
	}
	at(0, gateway.Event{Flow: gateway.FlowDecision, Stage: gateway.StageDecided, Route: "decide_gateway", PaymentID: "one", RequestID: "r1", Gateway: "a", Approach: "SR_V3_HEDGING", Currency: "EUR"})
	at(1, gateway.Event{Flow: gateway.FlowUpdate, Stage: gateway.StageUpdated, Route: "update_gateway", PaymentID: "one", RequestID: "r2", Gateway: "a", Failed: true, ErrorCode: "51", Currency: "EUR"})
	at(2, gateway.Event{Flow: gateway.FlowDecision, Stage: gateway.StageDecided, Route: "decide_gateway", PaymentID: "two", RequestID: "r3", Gateway: "b", Approach: "DEFAULT", Currency: "USD"})
	at(3, gateway.Event{Flow: gateway.FlowEvaluatePriority, Stage: gateway.StageRule, Route: "rule_evaluate", PaymentID: "three", RequestID: "r4", Rule: "big"})
	at(4, gateway.Event{Flow: gateway.FlowEvaluateError, Stage: gateway.StageInvalid, Route: "rule_evaluate", RequestID: "r5", Failed: true, ErrorCode: "X"})
	c.advance(time.Second)
	base := r.question("shop", time.Hour)
	for name, one := range map[string]struct {
		q    gateway.AuditQuery
		want string
	}{
		"everything": {gateway.AuditQuery{}, "r5 three two one"},
		"payment":    {gateway.AuditQuery{PaymentID: "one"}, "one"},
		"request":    {gateway.AuditQuery{RequestID: "r1"}, "one"},
		"no payment": {gateway.AuditQuery{RequestID: "r5"}, "r5"},
		"unknown":    {gateway.AuditQuery{PaymentID: "none"}, ""},
		"gateway":    {gateway.AuditQuery{Question: gateway.Question{Filter: gateway.Filter{Gateways: []gateway.Name{"b", "c"}}}}, "two"},
		"currency":   {gateway.AuditQuery{Question: gateway.Question{Filter: gateway.Filter{Currency: "EUR"}}}, "one"},
		"route":      {gateway.AuditQuery{Route: "decide_gateway"}, "two one"},
		"failure":    {gateway.AuditQuery{Status: "failure"}, "r5 one"},
		"success":    {gateway.AuditQuery{Status: "success"}, "three two"},
		"flow":       {gateway.AuditQuery{Flow: gateway.FlowUpdate}, "one"},
		"approach":   {gateway.AuditQuery{Approach: "DEFAULT"}, "two"},
		"exclude":    {gateway.AuditQuery{ExcludeApproach: "SR_V3_HEDGING"}, "r5 three two"},
		"code":       {gateway.AuditQuery{ErrorCode: "51"}, "one"},
		"previews":   {gateway.AuditQuery{Previews: true}, "r5 three"},
	} {
		t.Run(name, func(t *testing.T) {
			one.q.Merchant, one.q.Range = base.Merchant, base.Range
			got := ""
			for _, a := range r.audit(one.q).Results {
				got += " " + a.LookupKey
			}
			if got != "" {
				got = got[1:]
			}
			if got != one.want {
				t.Errorf("got %q, want %q", got, one.want)
			}
		})
	}
}

func TestRetentionDropsTheOldestEvents(t *testing.T) {
	c := newDial()
	r := newRig(t, gateway.Options{Now: c.now, Trail: gateway.TrailOptions{Days: 2, Bytes: 400_000}})
	r.merchant("shop")
	post := func(n int) {
		for i := range n {
			r.service.Post(&gateway.Event{TimeMS: c.ms.Load(), Merchant: "shop", Flow: gateway.FlowDecision, PaymentID: fmt.Sprint("p", i),
				Details: make([]byte, 100)})
		}
		if err := r.service.SaveTallies(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	left := func() (n int) {
		t.Helper()
		if err := r.service.SweepTrail(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.service.Stored(t.Context(), "shop", func(*gateway.Event) { n++ }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range 8 {
		post(1_000)
	}
	n := left()
	state, err := r.service.TrailState(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n == 0 || n == 8_000 || state.BundleBytes > 400_000 || state.BundleBytes < 200_000 {
		t.Errorf("%d events and %d bytes are left, at most 400,000 bytes may be", n, state.BundleBytes)
	}
	c.advance(49 * time.Hour)
	post(10)
	if n = left(); n != 10 {
		t.Errorf("%d events are left after two days, want 10", n)
	}
	q := r.question("shop", 100*time.Hour)
	d, err := r.service.DecisionStats(t.Context(), &q)
	if err != nil || d.Decided != 8_010 {
		t.Errorf("roll-ups count %d (%v), want 8010", d.Decided, err)
	}
}

// Light traffic makes many small bundles; they are put together without losing, repeating or mixing anything.
func TestSmallBundlesAreJoined(t *testing.T) {
	c := newDial()
	r := newRig(t, gateway.Options{Now: c.now})
	merchants := []gateway.MerchantID{"one", "two"}
	for _, m := range merchants {
		r.merchant(m)
	}
	for i := range 150 {
		for _, m := range merchants {
			r.service.Post(&gateway.Event{TimeMS: c.ms.Load() + int64(i), Merchant: m, Flow: gateway.FlowDecision, PaymentID: fmt.Sprint(m, i/2)})
		}
		r.service.Settled(t.Context())
	}
	look := func() (all []string, bundles int) {
		t.Helper()
		for _, m := range merchants {
			if err := r.service.Stored(t.Context(), m, func(e *gateway.Event) { all = append(all, fmt.Sprint(m, e.PaymentID, e.TimeMS)) }); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(all)
		bundles, err := r.service.Bundles(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return all, bundles
	}
	before, many := look()
	c.advance(time.Hour)
	if err := r.service.SweepTrail(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, few := look()
	if !slices.Equal(before, after) || many < 150 || few > 30 {
		t.Errorf("%d events in %d bundles became %d in %d", len(before), many, len(after), few)
	}
	a := r.audit(gateway.AuditQuery{Question: r.question("two", 2*time.Hour), PaymentID: "two33"})
	if a.Total != 1 || len(a.Timeline) != 2 || a.Timeline[0].ID == a.Timeline[1].ID {
		t.Errorf("audit %+v", a)
	}
	r.service.Post(&gateway.Event{TimeMS: c.ms.Load(), Merchant: "one", Flow: gateway.FlowDecision, PaymentID: "late"})
	r.stop()
	r.start()
	if again, _ := look(); len(again) != len(before)+1 {
		t.Errorf("%d events after a restart, want %d", len(again), len(before)+1)
	}
	if d := r.panels(r.question("one", 2*time.Hour)); d.Decided != 151 {
		t.Errorf("counted %d, want 151", d.Decided)
	}
}

func TestHostileTextsComeBackClean(t *testing.T) {
	c := newDial()
	r := newRig(t, gateway.Options{Now: c.now})
	r.merchant("shop")
	bad := "\xff\x00\"\\\u2028<script>" + string(make([]byte, 3_000))
	e := gateway.Event{TimeMS: c.ms.Load(), Merchant: "shop", Flow: gateway.Flow(bad), Stage: gateway.Stage(bad), Route: bad, PaymentID: bad, RequestID: bad,
		MethodType: bad, Method: bad, Network: bad, BIN: bad, Currency: bad, Country: bad, AuthType: bad, Gateway: gateway.Name(bad),
		Approach: gateway.Approach(bad), Rule: bad, Status: bad, ErrorCode: bad, ErrorMessage: bad, Failed: true, Details: []byte(bad)}
	r.service.Post(&e)
	a := r.audit(gateway.AuditQuery{Question: r.question("shop", time.Hour), PaymentID: bad})
	if a.Total != 1 || len(a.Timeline) != 1 {
		t.Fatalf("found %d payments, %d events", a.Total, len(a.Timeline))
	}
	got := a.Timeline[0]
	for _, text := range []string{got.PaymentID, string(got.Gateway), got.ErrorMessage, got.Rule, string(got.Flow)} {
		if len(text) > 1_024 || text[:3] != "\uFFFD" {
			t.Errorf("kept %q", text[:min(len(text), 40)])
		}
	}
}

func TestTrailMetrics(t *testing.T) {
	c := newDial()
	r := newRig(t, gateway.Options{Now: c.now})
	r.merchant("shop")
	for range 5 {
		r.service.Post(&gateway.Event{TimeMS: c.ms.Load(), Merchant: "shop", Flow: gateway.FlowUpdate})
	}
	r.service.Post(&gateway.Event{TimeMS: c.ms.Load(), Merchant: "shop", Flow: "made up"})
	r.service.Post(&gateway.Event{TimeMS: c.ms.Load(), Merchant: "nobody", Flow: gateway.FlowUpdate})
	r.service.Settled(t.Context())
	registry := prometheus.NewRegistry()
	registry.MustRegister(r.service.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += "/" + l.GetValue()
			}
			got[name] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	for name, want := range map[string]float64{"analytics_events_total/update_gateway_score_update": 5, "analytics_events_total/other": 1,
		"analytics_events_lost_total": 1, "analytics_events_dropped_total": 0} {
		if have, there := got[name]; have != want || !there {
			t.Errorf("%s is %v, want %v", name, have, want)
		}
	}
	if n := got["analytics_sink_writes_total"]; n < 1 || got["analytics_sink_write_latency_seconds"] != n {
		t.Errorf("%v writes, %v timed", n, got["analytics_sink_write_latency_seconds"])
	}
}

// BenchmarkAuditByPayment looks one payment up among 300,000 events of 100 merchants.
func BenchmarkAuditByPayment(b *testing.B) {
	r := newRig(b, gateway.Options{Now: time.Now})
	for i := range 100 {
		r.merchant(gateway.MerchantID(fmt.Sprint("shop-", i)))
	}
	for i := range 300_000 {
		if r.service.Post(&gateway.Event{TimeMS: time.Now().UnixMilli(), Flow: gateway.FlowDecision, Merchant: gateway.MerchantID(fmt.Sprint("shop-", i%100)),
			PaymentID: fmt.Sprint("ord-", i/200), RequestID: fmt.Sprint("req-", i), Gateway: "a"}); i%2_000 == 0 {
			r.service.Settled(b.Context())
		}
	}
	r.service.Settled(b.Context())
	q := gateway.AuditQuery{Question: r.question("shop-7", time.Hour), PaymentID: "ord-700"}
	all := gateway.AuditQuery{Question: q.Question}
	b.Run("id", func(b *testing.B) {
		for b.Loop() {
			if a := r.audit(q); a.Total != 1 || len(a.Timeline) != 2 {
				b.Fatalf("found %d payments, %d events", a.Total, len(a.Timeline))
			}
		}
	})
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			if a := r.audit(all); a.Total != 1_500 {
				b.Fatalf("found %d payments", a.Total)
			}
		}
	})
}

// BenchmarkTrail tells what an event costs from post to the disk, all goroutines of the process together.
func BenchmarkTrail(b *testing.B) {
	for _, merchants := range []int{1, 1_000} {
		b.Run(fmt.Sprint("merchants=", merchants), func(b *testing.B) {
			r := newRig(b, gateway.Options{})
			for i := range merchants {
				r.merchant(gateway.MerchantID(fmt.Sprint("shop-", i)))
				r.service.Post(&gateway.Event{Merchant: gateway.MerchantID(fmt.Sprint("shop-", i)), TimeMS: time.Now().UnixMilli()})
			}
			if err := r.service.SaveTallies(b.Context()); err != nil {
				b.Fatal(err)
			}
			events := make([]gateway.Event, 4_000)
			for i := range events {
				events[i] = gateway.Event{TimeMS: time.Now().UnixMilli(), Flow: gateway.FlowDecision, Stage: gateway.StageDecided, Route: "decide_gateway",
					Merchant: gateway.MerchantID(fmt.Sprint("shop-", i%merchants)), PaymentID: fmt.Sprintf("ord-%08d", i/2), RequestID: fmt.Sprintf("0b6f9f0e-6f1e-4d43-9d3d-%012d", i),
					MethodType: "CARD", Method: "CREDIT", Network: "VISA", BIN: "453210", Currency: "EUR", Country: "PT", AuthType: "THREE_DS",
					Gateway: gateway.Name([]string{"alphapay", "mercato", "kestrel"}[i%3]), Approach: gateway.ApproachSuccess, Status: "success",
					Scored: true, Score: 0.9, Details: []byte(`{"scores":{"alphapay":0.944,"kestrel":0.88,"mercato":0.976},"seed":"9208889582384224872","before_evaluation":"mercato"}`)}
			}
			var before, after syscall.Rusage
			start, err := r.service.TrailState(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
			n := 0
			for b.Loop() {
				for i := range events {
					r.service.Post(&events[i])
				}
				n += len(events)
				r.service.Settled(b.Context())
				if n%480_000 == 0 { // what comes in 30 s at 16,000 events/s
					if err := r.service.SaveTallies(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			}
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
			end, err := r.service.TrailState(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			cpu := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
			b.ReportMetric(float64(cpu.Microseconds())/float64(n), "cpu-µs/event")
			b.ReportMetric(float64(end.BundleBytes-start.BundleBytes)/float64(n), "bytes/event")
			if r.service.Dropped() > 0 {
				b.Errorf("dropped %d", r.service.Dropped())
			}
		})
	}
}
