package gateway_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"holdfast/gateway"
)

// clock is a time that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func TestFeedbackGuards(t *testing.T) {
	c := newClock()
	r := newRig(t, gateway.Options{Now: c.now})
	r.merchant("shop")
	const full, once = 1.0, 124.0 / 125
	for i, step := range []struct {
		name    string
		after   time.Duration
		status  gateway.Status
		enforce bool
		applied bool
		reason  string
		mean    float64 // of alphapay afterwards, in a window of its own
	}{
		{"success", time.Second, "CHARGED", false, true, "", full},
		{"failure", time.Second, "FAILURE", false, true, "", once},
		{"declined is a failure", time.Second, "DECLINED", false, true, "", once},
		{"pending early", time.Second, "PENDING", false, false, gateway.ReasonPending, full},
		{"started early without elimination", time.Second, "STARTED", false, false, gateway.ReasonPending, full},
		{"pending at the threshold", 300 * time.Second, "PENDING", false, true, "", once},
		{"pending before the threshold", 299 * time.Second, "PENDING", false, false, gateway.ReasonPending, full},
		{"enforced failure", time.Second, "CHARGED", true, true, "", once},
		{"ten minutes", 10 * time.Minute, "FAILURE", false, true, "", once},
		{"later than ten minutes", 10*time.Minute + time.Millisecond, "FAILURE", false, false, gateway.ReasonLate, full},
		{"success later than ten minutes", 11 * time.Minute, "CHARGED", false, false, gateway.ReasonLate, full},
		{"after half an hour", 30*time.Minute + time.Millisecond, "FAILURE", false, false, gateway.ReasonSnapshot, full},
	} {
		id := fmt.Sprint("p", i)
		q := request("shop", id)
		q.Payment.Method = fmt.Sprint("M", i)
		r.decide(q)
		c.pass(step.after)
		a, err := r.service.Update(t.Context(), &gateway.Feedback{Merchant: "shop", PaymentID: id, Gateway: "alphapay", Status: step.status,
			EnforceFailure: step.enforce, Latency: -1})
		if err != nil || a.Applied != step.applied || a.Reason != step.reason {
			t.Errorf("%s: %+v, %v", step.name, a, err)
		}
		q.Payment.ID = "probe"
		for _, s := range r.decide(q).Ranked {
			if s.Gateway == "alphapay" && s.Score != step.mean {
				t.Errorf("%s: mean %v, want %v", step.name, s.Score, step.mean)
			}
		}
	}
}

func TestEliminationTakesAGatewayOut(t *testing.T) {
	c := newClock()
	r := newRig(t, gateway.Options{Now: c.now})
	r.merchant("shop")
	ask := func(id string) *gateway.Answer {
		q := request("shop", id)
		q.Elimination = gateway.Yes
		return r.decide(q)
	}
	// The threshold is 0.05: 0.95 to the 58th is above it, to the 59th below.
	for i := range 59 {
		if a := ask(fmt.Sprint("p", i)); a.Approach != gateway.ApproachSuccess {
			t.Fatalf("after %d penalties: %s", i, a.Approach)
		}
		if a := r.update("shop", fmt.Sprint("p", i), "kestrel", "STARTED"); !a.Applied {
			t.Fatalf("penalty %d: %s", i, a.Reason)
		}
		c.pass(time.Second)
	}
	check := func(when string) {
		a := ask("q")
		last := a.Ranked[len(a.Ranked)-1]
		if a.Approach != gateway.ApproachDown || last.Gateway != "kestrel" || last.Score != 0.2 || a.Before != "alphapay" {
			t.Errorf("%s: %s, %+v, before %s", when, a.Approach, a.Ranked, a.Before)
		}
	}
	check("after 59 penalties")
	r.stop()
	r.start()
	check("after a restart")
	if got := r.decide(request("shop", "off")); got.Approach != gateway.ApproachSuccess {
		t.Errorf("with elimination off: %s", got.Approach)
	}
	// The other two fall as well: nobody is up.
	for _, g := range []gateway.Name{"alphapay", "mercato"} {
		for i := range 59 {
			id := fmt.Sprint(g, i)
			ask(id)
			r.update("shop", id, g, "PENDING_VBV")
		}
	}
	if a := ask("all"); a.Approach != gateway.ApproachAllDown {
		t.Errorf("with all of them down: %s", a.Approach)
	}
	// One success undoes one penalty; the life of a score is two and a half hours.
	ask("up")
	if a := r.update("shop", "up", "kestrel", "CHARGED"); !a.Applied {
		t.Fatal(a.Reason)
	}
	if a := ask("x"); a.Approach != gateway.ApproachDown {
		t.Errorf("after one reward: %s", a.Approach)
	}
	c.pass(9_001 * time.Second)
	if a := ask("y"); a.Approach != gateway.ApproachSuccess {
		t.Errorf("after the life of the scores: %s", a.Approach)
	}
}

func TestAGatewayIsDownForAllWhenTheTopMerchantsSayso(t *testing.T) {
	r := newRig(t, gateway.Options{})
	for _, m := range []gateway.MerchantID{"one", "two", "three"} {
		r.merchant(m)
	}
	ask := func(m gateway.MerchantID, id string) *gateway.Answer {
		q := request(m, id)
		q.Elimination = gateway.Yes
		return r.decide(q)
	}
	for _, m := range []gateway.MerchantID{"one", "two"} {
		for i := range 59 {
			ask(m, fmt.Sprint(i))
			r.update(m, fmt.Sprint(i), "kestrel", "FAILURE")
		}
		if m == "one" {
			if a := ask("three", "early"); a.Approach != gateway.ApproachSuccess {
				t.Errorf("one merchant is not all: %s", a.Approach)
			}
		}
	}
	if a := ask("three", "q"); a.Approach != gateway.ApproachGlobalDown || a.Ranked[2].Gateway != "kestrel" {
		t.Errorf("decided by %s, %+v", a.Approach, a.Ranked)
	}
	r.stop()
	r.start()
	if a := ask("three", "q"); a.Approach != gateway.ApproachGlobalDown {
		t.Errorf("after a restart decided by %s", a.Approach)
	}
}

func TestPreferredGateway(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.merchant("shop")
	q := request("shop", "p")
	q.Eligible, q.Payment.Preferred = []gateway.Name{"mercato", "mercato"}, "mercato"
	if a := r.decide(q); a.Gateway != "mercato" || a.Approach != gateway.ApproachPreference || a.Logic != nil || a.Dimension != "" || a.Ranked[0].Score != 1 {
		t.Errorf("decided %+v", a)
	}
	q.Payment.Preferred = "kestrel"
	if err := r.service.Decide(t.Context(), q, &gateway.Answer{}); err == nil {
		t.Error("another preferred gateway than the only one was accepted")
	}
	q.Payment.Preferred = ""
	if a := r.decide(q); a.Approach != gateway.ApproachDefault || len(a.Logic.Gateways) != 2 {
		t.Errorf("decided %+v", a)
	}
	q = request("shop", "p")
	q.Ranking, q.Payment.Preferred = gateway.RankPriority, "kestrel"
	if a := r.decide(q); a.Gateway != "kestrel" || a.Approach != gateway.ApproachPriority || a.Ranked[1].Gateway != "alphapay" || a.Ranked[1].Score != 0.9 {
		t.Errorf("decided %+v", a)
	}
	q.Ranking = gateway.RankSuccess
	if a := r.decide(q); a.Gateway != "alphapay" {
		t.Errorf("a preference moved the ranking by success: %s", a.Gateway)
	}
}

func TestAReDecidedPaymentCountsItsNewAttempt(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.merchant("shop")
	for i := range 3 {
		r.decide(request("shop", "same"))
		if a := r.update("shop", "same", "alphapay", "FAILURE"); !a.Applied {
			t.Errorf("attempt %d: %s", i, a.Reason)
		}
		if a := r.update("shop", "same", "alphapay", "FAILURE"); a.Applied || a.Reason != gateway.ReasonDuplicate {
			t.Errorf("attempt %d again: %+v", i, a)
		}
	}
	if got := r.scores("shop")["alphapay"]; got != 122.0/125 {
		t.Errorf("mean %v", got)
	}
	// Several gateways of one payment share its decision.
	r.decide(request("shop", "retried"))
	for _, g := range []gateway.Name{"mercato", "kestrel", "alphapay"} {
		if a := r.update("shop", "retried", g, "FAILURE"); !a.Applied {
			t.Errorf("%s: %s", g, a.Reason)
		}
		if a := r.update("shop", "retried", g, "FAILURE"); a.Applied {
			t.Errorf("%s counted twice", g)
		}
	}
}
