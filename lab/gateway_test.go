package lab

import (
	"bytes"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/fault"
	"holdfast/lab/load"
)

// onePair is the traffic of one connection with its counters.
func onePair() (*pairWorker, pairs) {
	key := "DE_1"
	p := pairs{key: &key, wrong: &atomic.Uint64{}, said: &latencies{}}
	return p.traffic(load.Target{Host: "x"})(0).(*pairWorker), p
}

func TestPairsReportTheGatewayThatWasDecided(t *testing.T) {
	t.Parallel()
	w, p := onePair()
	ids := map[string]bool{}
	for i := range 40 {
		decide, kind := w.Next()
		_, body, _ := bytes.Cut(decide, []byte("\r\n\r\n"))
		_, id, _ := strings.Cut(string(body), `"paymentId":"`)
		id, _, _ = strings.Cut(id, `"`)
		if kind != 0 || ids[id] || len(id) != idLength || !strings.Contains(string(decide), "x-api-key: DE_1") {
			t.Fatalf("kind %d, payment %q: %s", kind, id, decide)
		}
		ids[id] = true
		w.Seen(0, load.Answer{Status: 200, Body: []byte(`{"decided_gateway":"mercato","latency":3,"multi_objective_info":null}`)})
		feedback, kind := w.Next()
		status := "CHARGED"
		if i%10 == 9 {
			status = "FAILURE"
		}
		for _, want := range []string{`"gateway":"mercato"`, `"paymentId":"` + id + `"`, `"status":"` + status + `"`} {
			if kind != 1 || !strings.Contains(string(feedback), want) {
				t.Errorf("kind %d without %s: %s", kind, want, feedback)
			}
		}
		w.Seen(1, load.Answer{Status: 200, Body: []byte(`{"applied":true}`)})
	}
	if n := p.wrong.Load(); n != 0 {
		t.Errorf("%d right answers were found wrong", n)
	}
	if mean, p95 := p.said.take(0.95); mean != 3 || p95 != 3 {
		t.Errorf("latencies of 3 ms have mean %v and p95 %v", mean, p95)
	}
	if mean, _ := p.said.take(0.95); !math.IsNaN(mean) {
		t.Errorf("what was taken is still there: %v", mean)
	}
}

func TestPairsFindWrongAnswers(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		kind   int
		answer load.Answer
	}{
		"an unknown gateway":      {0, load.Answer{Status: 200, Body: []byte(`{"decided_gateway":"other","latency":0,"x":1}`)}},
		"no gateway":              {0, load.Answer{Status: 200, Body: []byte(`{"latency":0,"x":1}`)}},
		"no latency":              {0, load.Answer{Status: 200, Body: []byte(`{"decided_gateway":"mercato"}`)}},
		"a latency of null":       {0, load.Answer{Status: 200, Body: []byte(`{"decided_gateway":"mercato","latency":null}`)}},
		"a refused decide":        {0, load.Answer{Status: 400, Body: []byte(`{"decided_gateway":"mercato","latency":0}`)}},
		"feedback not applied":    {1, load.Answer{Status: 200, Body: []byte(`{"applied":false}`)}},
		"feedback with an error":  {1, load.Answer{Status: 500, Body: []byte(`{"applied":true}`)}},
		"feedback without a word": {1, load.Answer{Status: 200}},
	} {
		w, p := onePair()
		w.Next()
		w.Seen(one.kind, one.answer)
		if p.wrong.Load() != 1 {
			t.Errorf("%s passed", name)
		}
	}
	w, p := onePair()
	for range payments { // the one with two gateways must not get the third
		w.Next()
		w.Seen(0, load.Answer{Status: 200, Body: []byte(`{"decided_gateway":"kestrel","latency":0}`)})
		w.waiting = false
	}
	if n := p.wrong.Load(); n != 1 {
		t.Errorf("%d of three payloads found the gateway that one of them does not name", n)
	}
}

func TestReconcileHoldsOutcomesToTheStore(t *testing.T) {
	t.Parallel()
	tally := load.NewTally([]string{kindDecideGateway, kindFeedback})
	if err := reconcile(sample{requests: map[route]uint64{}}, tally); err != nil {
		t.Error(err)
	}
	lost := sample{requests: map[route]uint64{}, outcomes: 1}
	if err := reconcile(lost, tally); err == nil || !strings.Contains(err.Error(), "outcomes in the store") {
		t.Errorf("an outcome that nobody reported passed: %v", err)
	}
	twice := sample{requests: map[route]uint64{}, routed: 1}
	if err := reconcile(twice, tally); err == nil || !strings.Contains(err.Error(), "routing decisions") {
		t.Errorf("a decision that nobody asked for passed: %v", err)
	}
}

func TestCheckoutDegradesAndRecovers(t *testing.T) {
	t.Parallel()
	for share, want := range map[float64]float64{0: 0.96, 0.2: 0.96, 0.5: 0.35, 0.7: 0.96, 1.5: 0.35, 1.9: 0.96} {
		if got := health(0, time.Duration(share*float64(sickCycle))); got != want {
			t.Errorf("after %.1f cycles the first gateway succeeds in %v, want %v", share, got, want)
		}
	}
	if down := health(0, sickCycle*32/100); down <= 0.35 || down >= 0.96 {
		t.Errorf("it falls at once, to %v", down)
	}
	if health(1, 0) != health(1, sickCycle/2) {
		t.Error("the second gateway is ill too")
	}
}

func TestImpossibleGatewayPlansAreRefused(t *testing.T) {
	t.Parallel()
	for name, plan := range map[string]GatewayOptions{
		"no part": {Only: []string{"lunch"}}, "no blocks": {Blocks: -1}, "no merchants": {Merchants: -1}, "no time": {Segment: -1},
	} {
		if err := Gateway(t.Context(), options(t, "fair"), plan); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
