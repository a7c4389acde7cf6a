package gateway_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/fault"
	"holdfast/gateway"
	"holdfast/store"
	"holdfast/store/gateways"
)

// rig is a service on a real store that a test can stop and start again.
type rig struct {
	t       testing.TB
	path    string
	options gateway.Options
	db      *store.DB
	service *gateway.Service
	full    atomic.Bool // the disk has no room
}

func newRig(t testing.TB, o gateway.Options) *rig {
	t.Helper()
	r := &rig{t: t, path: filepath.Join(t.TempDir(), "gateways.db"), options: o}
	r.start()
	t.Cleanup(r.stop)
	return r
}

func (r *rig) start() {
	r.t.Helper()
	var err error
	r.db, err = store.Open(r.t.Context(), store.Options{Path: r.path, Migrations: gateways.Migrations(), MinFree: 1 << 20,
		Free: func() (int64, error) {
			if r.full.Load() {
				return 0, nil
			}
			return 1 << 40, nil
		}})
	if err != nil {
		r.t.Fatal(err)
	}
	o := r.options
	o.Storage = gateways.New(r.db)
	if r.service, err = gateway.Open(r.t.Context(), o); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) stop() {
	if r.db == nil {
		return
	}
	ctx := context.WithoutCancel(r.t.Context())
	if err := r.service.Close(ctx); err != nil {
		r.t.Error(err)
	}
	if err := r.db.Close(ctx); err != nil {
		r.t.Error(err)
	}
	r.db = nil
}

// merchant creates a merchant.
func (r *rig) merchant(id gateway.MerchantID) {
	r.t.Helper()
	err := gateways.New(r.db).Write(r.t.Context(), gateway.Write{Change: func(tx gateway.Tx) error {
		_, err := tx.CreateMerchant(gateway.MerchantRow{ID: id, Enabled: true})
		return err
	}})
	if err != nil {
		r.t.Fatal(err)
	}
}

// request asks for a decision among three gateways.
func request(m gateway.MerchantID, payment string) *gateway.Request {
	return &gateway.Request{Merchant: m, Eligible: []gateway.Name{"alphapay", "mercato", "kestrel"}, Ranking: gateway.RankSuccess,
		Payment: gateway.Payment{ID: payment, Amount: 42.5, Currency: "EUR", OrderType: "ORDER_PAYMENT", MethodType: "CARD", Method: "CREDIT",
			CardType: "CREDIT", Network: "VISA", BIN: "453210"}}
}

func (r *rig) decide(q *gateway.Request) *gateway.Answer {
	r.t.Helper()
	a := &gateway.Answer{}
	if err := r.service.Decide(r.t.Context(), q, a); err != nil {
		r.t.Fatal(err)
	}
	return a
}

func (r *rig) update(m gateway.MerchantID, payment string, g gateway.Name, status gateway.Status) gateway.FeedbackAnswer {
	r.t.Helper()
	a, err := r.service.Update(r.t.Context(), &gateway.Feedback{Merchant: m, PaymentID: payment, Gateway: g, Status: status, Latency: -1})
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// scores reads the window means through a decision.
func (r *rig) scores(m gateway.MerchantID) map[gateway.Name]float64 {
	r.t.Helper()
	means := map[gateway.Name]float64{}
	for _, s := range r.decide(request(m, "probe")).Ranked {
		means[s.Gateway] = s.Score
	}
	return means
}

func TestFirstDecisionTakesTheCallersOrder(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.merchant("shop")
	a := r.decide(request("shop", "p1"))
	if a.Gateway != "alphapay" || fmt.Sprint(a.Fallbacks) != "[mercato kestrel]" || a.Approach != gateway.ApproachSuccess {
		t.Errorf("decided %q, then %v, by %s", a.Gateway, a.Fallbacks, a.Approach)
	}
	if a.Dimension != "ORDER_PAYMENT, CARD, CREDIT, CREDIT" || a.Level != "CARD_LEVEL" || a.Reset != gateway.NoReset {
		t.Errorf("dimension %q, level %q, reset %q", a.Dimension, a.Level, a.Reset)
	}
}

func TestFeedbackMovesTheNextDecision(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.merchant("shop")
	r.decide(request("shop", "p1"))
	if a := r.update("shop", "p1", "alphapay", "FAILURE"); !a.Applied {
		t.Fatalf("not applied: %s", a.Reason)
	}
	a := r.decide(request("shop", "p2"))
	if a.Gateway != "mercato" || a.Fallbacks[1] != "alphapay" {
		t.Errorf("decided %q, then %v", a.Gateway, a.Fallbacks)
	}
	if got := r.scores("shop")["alphapay"]; got != 124.0/125 {
		t.Errorf("one failure in a fresh window of 125 gives %v", got)
	}
}

func TestAnAttemptCountsOnce(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.merchant("shop")
	r.decide(request("shop", "p1"))
	var wait sync.WaitGroup
	applied := make(chan bool, 16)
	for range cap(applied) {
		wait.Go(func() {
			a, err := r.service.Update(t.Context(), &gateway.Feedback{Merchant: "shop", PaymentID: "p1", Gateway: "alphapay", Status: "FAILURE", Latency: -1})
			applied <- err == nil && a.Applied
		})
	}
	wait.Wait()
	close(applied)
	n := 0
	for ok := range applied {
		if ok {
			n++
		}
	}
	if got := r.scores("shop")["alphapay"]; n != 1 || got != 124.0/125 {
		t.Errorf("applied %d times, mean %v", n, got)
	}
	if a := r.update("shop", "p1", "alphapay", "CHARGED"); !a.Applied {
		t.Errorf("a later outcome did not replace the first: %s", a.Reason)
	}
	if got := r.scores("shop")["alphapay"]; got != 1 {
		t.Errorf("after the replacement the mean is %v", got)
	}
	r.stop()
	r.start()
	if a := r.update("shop", "p1", "alphapay", "CHARGED"); a.Applied || a.Reason != gateway.ReasonDuplicate {
		t.Errorf("after a restart the same outcome was counted again: %+v", a)
	}
	if a := r.update("shop", "p1", "alphapay", "FAILURE"); !a.Applied {
		t.Errorf("after a restart a later outcome did not replace the first: %s", a.Reason)
	}
	if got := r.scores("shop")["alphapay"]; got != 124.0/125 {
		t.Errorf("after the second replacement the mean is %v", got)
	}
}

func TestFeedbackWithoutItsDecisionChangesNothing(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.merchant("shop")
	r.merchant("other")
	r.decide(request("shop", "p1"))
	for _, c := range []struct {
		m      gateway.MerchantID
		id     string
		reason string
	}{{"shop", "p2", gateway.ReasonSnapshot}, {"other", "p1", gateway.ReasonSnapshot}, {"nobody", "p1", gateway.ReasonMerchant}} {
		if a := r.update(c.m, c.id, "alphapay", "FAILURE"); a.Applied || a.Reason != c.reason {
			t.Errorf("%s %s: %+v, want %s", c.m, c.id, a, c.reason)
		}
	}
	if _, err := r.service.Update(t.Context(), &gateway.Feedback{Merchant: "shop", PaymentID: "p1", Gateway: "alphapay", Status: "success"}); err == nil {
		t.Error("a status outside the list was accepted")
	}
}

func TestScoresAfterARestartEqualThoseBefore(t *testing.T) {
	clock := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	now := func() time.Time { mu.Lock(); defer mu.Unlock(); return clock }
	r := newRig(t, gateway.Options{Now: now})
	r.merchant("shop")
	for i := range 700 {
		id := fmt.Sprint("p", i)
		a := r.decide(request("shop", id))
		status := gateway.Status("CHARGED")
		if (i*7+len(a.Gateway))%3 == 0 {
			status = "FAILURE"
		}
		r.update("shop", id, a.Gateway, status)
		mu.Lock()
		clock = clock.Add(time.Second)
		mu.Unlock()
	}
	before := r.scores("shop")
	r.stop()
	r.start()
	if after := r.scores("shop"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("before %v, after %v", before, after)
	}
}

func TestUnknownMerchantAndNoGateways(t *testing.T) {
	r := newRig(t, gateway.Options{})
	err := r.service.Decide(t.Context(), request("nobody", "p"), &gateway.Answer{})
	if d, ok := err.(*gateway.DecisionError); !ok || d.InfoCode != "MERCHANT_NOT_FOUND" {
		t.Errorf("unknown merchant: %v", err)
	}
	r.merchant("shop")
	q := request("shop", "p")
	q.Eligible = nil
	err = r.service.Decide(t.Context(), q, &gateway.Answer{})
	if d, ok := err.(*gateway.DecisionError); !ok || d.InfoCode != "GATEWAY_NOT_FOUND" {
		t.Errorf("no gateways: %v", err)
	}
}

func TestDecisionsGoOnWhileTheDiskIsFull(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.merchant("warm")
	r.merchant("cold")
	r.decide(request("warm", "p1"))
	r.full.Store(true)
	for _, m := range []gateway.MerchantID{"warm", "cold"} {
		if a := r.decide(request(m, "p2")); a.Gateway != "alphapay" {
			t.Errorf("%s: decided %q", m, a.Gateway)
		}
		f := &gateway.Feedback{Merchant: m, PaymentID: "p2", Gateway: "alphapay", Status: "FAILURE", Latency: -1}
		if a, err := r.service.Update(t.Context(), f); fault.KindOf(err) != fault.Unavailable || fault.RetryAfter(err) <= 0 || a.Applied {
			t.Errorf("%s: feedback on a full disk: %+v, %v", m, a, err)
		}
	}
	err := r.service.Decide(t.Context(), request("nobody", "p"), &gateway.Answer{})
	if d, ok := err.(*gateway.DecisionError); !ok || d.InfoCode != "MERCHANT_NOT_FOUND" {
		t.Errorf("unknown merchant on a full disk: %v", err)
	}
	r.full.Store(false)
	for _, m := range []gateway.MerchantID{"warm", "cold"} {
		if a := r.update(m, "p2", "alphapay", "FAILURE"); !a.Applied {
			t.Errorf("%s: with room again: %s", m, a.Reason)
		}
		if got := r.scores(m)["alphapay"]; got != 124.0/125 {
			t.Errorf("%s: mean %v", m, got)
		}
	}
}
