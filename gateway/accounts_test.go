package gateway_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/fault"
	"holdfast/gateway"
	"holdfast/ident"
)

var operator = ident.Principal{Kind: ident.Operator}

// create makes a merchant as the API does.
func (r *rig) create(id gateway.MerchantID) (key string) {
	r.t.Helper()
	key, err := r.service.CreateMerchant(r.t.Context(), gateway.NewMerchant{ID: id})
	if err != nil {
		r.t.Fatal(err)
	}
	return key
}

// must fails the test when there is an error.
func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// refused checks an error's kind.
func (r *rig) refused(what string, err error, want fault.Kind) {
	r.t.Helper()
	if err == nil || fault.KindOf(err) != want {
		r.t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// identify shows an API key.
func (r *rig) identify(key string) (ident.Principal, error) {
	return r.service.Identify(r.t.Context(), gateway.Credentials{APIKey: key}, time.Now())
}

func TestMerchantsAreMadeOnce(t *testing.T) {
	r := newRig(t, gateway.Options{})
	key := r.create("shop")
	if len(key) != 67 || !strings.HasPrefix(key, "DE_") {
		t.Errorf("key %q", key)
	}
	_, err := r.service.CreateMerchant(t.Context(), gateway.NewMerchant{ID: "shop"})
	r.refused("a second of that id", err, fault.Invalid)
	var wait sync.WaitGroup
	made := make(chan error, 8)
	for range cap(made) {
		wait.Go(func() {
			_, err := r.service.CreateMerchant(t.Context(), gateway.NewMerchant{ID: "race"})
			made <- err
		})
	}
	wait.Wait()
	close(made)
	n := 0
	for err := range made {
		if err == nil {
			n++
		}
	}
	if n != 1 {
		t.Errorf("one id was made %d times", n)
	}
}

func TestMerchantIDs(t *testing.T) {
	r := newRig(t, gateway.Options{})
	for _, id := range []gateway.MerchantID{"", gateway.MerchantID(strings.Repeat("x", 257)), "a\nb", "a\x00", "\u0085", "\xff"} {
		_, err := r.service.CreateMerchant(t.Context(), gateway.NewMerchant{ID: id})
		r.refused("create "+string(id), err, fault.Invalid)
		_, err = r.service.Account(t.Context(), id)
		r.refused("read "+string(id), err, fault.Invalid)
		r.refused("delete "+string(id), r.service.DeleteMerchant(t.Context(), id), fault.Invalid)
	}
	for _, id := range []gateway.MerchantID{"a", "créme brûlée/100%", gateway.MerchantID(strings.Repeat("x", 256)), `"'; --`} {
		r.create(id)
		if a, err := r.service.Account(t.Context(), id); err != nil || a.ID != id {
			t.Errorf("%q: %+v, %v", id, a, err)
		}
	}
}

// A look-up in vain is remembered, and the creation is seen all the same.
func TestCreationIsSeenAfterALookUpInVain(t *testing.T) {
	r := newRig(t, gateway.Options{})
	for range 2 {
		_, err := r.service.Account(t.Context(), "shop")
		r.refused("before", err, fault.NotFound)
	}
	r.create("shop")
	if _, err := r.service.Account(t.Context(), "shop"); err != nil {
		t.Error(err)
	}
}

func TestDeciderInput(t *testing.T) {
	r := newRig(t, gateway.Options{})
	for _, c := range []struct{ id, input, want string }{
		{"none", "", ""}, {"other", `{"mode":"x"}`, `{"mode":"x"}`}, {"text", "as it was", "as it was"},
		{"config", `{"threshold":0.35}`, `{"threshold":0.35,"txnLatency":null}`},
	} {
		_, err := r.service.CreateMerchant(t.Context(), gateway.NewMerchant{ID: gateway.MerchantID(c.id), Input: []byte(c.input)})
		r.must(err)
		if a, err := r.service.Account(t.Context(), gateway.MerchantID(c.id)); err != nil || a.Input != c.want {
			t.Errorf("%s: %q, %v, want %q", c.id, a.Input, err, c.want)
		}
	}
	if _, err := r.service.Config(t.Context(), "config", gateway.ConfigElimination); err != nil {
		t.Errorf("an input of that form is the elimination config: %v", err)
	}
	_, err := r.service.Config(t.Context(), "other", gateway.ConfigElimination)
	r.refused("another form", err, fault.NotFound)
	_, err = r.service.CreateMerchant(t.Context(), gateway.NewMerchant{ID: "bad", Input: []byte(`{"threshold":2}`)})
	r.refused("a threshold above 1", err, fault.Invalid)
	_, err = r.service.CreateMerchant(t.Context(), gateway.NewMerchant{ID: "big", Input: bytes.Repeat([]byte("x"), 65<<10)})
	r.refused("a long input", err, fault.Invalid)
}

// Whatever a merchant had is gone with it, also after a restart, and one that takes its name starts afresh.
func TestDeletedMerchantsLeaveNothing(t *testing.T) {
	r := newRig(t, gateway.Options{})
	key := r.create("shop")
	r.must(r.service.SetDebitRouting(t.Context(), "shop", gateway.Yes))
	_, err := r.service.SetFeature(t.Context(), "shop", gateway.FeatureElimination, gateway.Switch{On: true})
	r.must(err)
	bucket := 10
	r.must(r.service.CreateConfig(t.Context(), "shop", &gateway.SuccessData{Bucket: &bucket}))
	r.must(r.service.SetDimensions(t.Context(), "shop", gateway.DimensionData{Fields: []string{"currency"}}))
	now := time.Now()
	o, err := r.service.CreateOutage(t.Context(), operator, gateway.Outage{Gateway: "alphapay", Merchant: "shop", StartMS: now.Add(-time.Hour).UnixMilli(),
		EndMS: now.Add(time.Hour).UnixMilli()})
	r.must(err)
	row, _, err := r.service.CreateAlgorithm(t.Context(), gateway.NewAlgorithm{Owner: "shop", Name: "n",
		Algorithm: []byte(`{"type":"single","data":{"gateway_name":"kestrel","gateway_id":null}}`)})
	r.must(err)
	r.must(r.service.ActivateAlgorithm(t.Context(), "shop", row.ID))
	r.decide(request("shop", "p1"))
	r.update("shop", "p1", "alphapay", "FAILURE")
	if _, err := r.identify(key); err != nil {
		t.Fatal(err)
	}

	r.must(r.service.DeleteMerchant(t.Context(), "shop"))
	r.refused("again", r.service.DeleteMerchant(t.Context(), "shop"), fault.NotFound)
	_, err = r.service.Account(t.Context(), "shop")
	r.refused("reading it", err, fault.NotFound)
	_, err = r.identify(key)
	r.refused("its key", err, fault.Unauthenticated)
	if err := r.service.Decide(t.Context(), request("shop", "p2"), &gateway.Answer{}); err == nil {
		t.Error("a decision for a merchant that is gone")
	}
	r.stop()
	r.start()
	_, err = r.identify(key)
	r.refused("its key after a restart", err, fault.Unauthenticated)

	r.create("shop")
	if on, err := r.service.DebitRouting(t.Context(), "shop"); err != nil || on {
		t.Errorf("debit routing %t, %v", on, err)
	}
	all, err := r.service.Features(t.Context(), "shop")
	for _, f := range all {
		if err != nil || f.Enabled {
			t.Errorf("feature %+v, %v", f, err)
		}
	}
	_, err = r.service.Config(t.Context(), "shop", gateway.ConfigSuccess)
	r.refused("its config", err, fault.NotFound)
	if d, err := r.service.Dimensions(t.Context(), "shop"); err != nil || d.Fields != nil {
		t.Errorf("dimensions %+v, %v", d, err)
	}
	r.refused("its outage", r.service.EndOutage(t.Context(), operator, o.ID), fault.NotFound)
	if rows, err := r.service.Algorithms(t.Context(), "shop"); err != nil || len(rows) != 0 {
		t.Errorf("algorithms %+v, %v", rows, err)
	}
	if keys, err := r.service.Keys(t.Context(), "shop"); err != nil || len(keys) != 1 {
		t.Errorf("keys %+v, %v", keys, err)
	}
	if got := r.scores("shop")["alphapay"]; got != 1 {
		t.Errorf("score %v", got)
	}
	if a := r.update("shop", "p1", "alphapay", "FAILURE"); a.Applied {
		t.Error("feedback for a payment of the merchant that is gone was counted for the new one")
	}
}

func TestGatewayPriorityRanksWithoutARule(t *testing.T) {
	r := newRig(t, gateway.Options{})
	_, err := r.service.CreateMerchant(t.Context(), gateway.NewMerchant{ID: "shop", Priority: " kestrel, mercato ,"})
	r.must(err)
	q := request("shop", "p1")
	q.Ranking = gateway.RankPriority
	if a := r.decide(q); a.Gateway != "kestrel" || a.Approach != gateway.ApproachPriority {
		t.Errorf("decided %q by %s", a.Gateway, a.Approach)
	}
}

// logged is a service's log.
func logged(o *gateway.Options) *bytes.Buffer {
	text := &bytes.Buffer{}
	o.Log = slog.New(slog.NewTextHandler(text, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return text
}
