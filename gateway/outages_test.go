package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/fault"
	"holdfast/gateway"
	"holdfast/ident"
)

// planned is an outage of alphapay around now.
func planned(m gateway.MerchantID) gateway.Outage {
	now := time.Now()
	return gateway.Outage{Gateway: "alphapay", Merchant: m, StartMS: now.Add(-time.Hour).UnixMilli(), EndMS: now.Add(time.Hour).UnixMilli()}
}

func TestOutagesLowerScoresAtOnce(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.create("shop")
	r.create("other")
	r.decide(request("shop", "p0"))
	o, err := r.service.CreateOutage(t.Context(), operator, planned("shop"))
	r.must(err)
	for range 2 {
		a := r.decide(request("shop", "p1"))
		if a.Gateway != "mercato" || !a.Outage || r.scores("shop")["alphapay"] != 0.1 {
			t.Errorf("decided %q, outage %t, scores %v", a.Gateway, a.Outage, r.scores("shop"))
		}
		if a := r.decide(request("other", "p1")); a.Gateway != "alphapay" || a.Outage {
			t.Errorf("another merchant: %q, outage %t", a.Gateway, a.Outage)
		}
		r.stop()
		r.start()
	}
	r.must(r.service.EndOutage(t.Context(), operator, o.ID))
	r.must(r.service.EndOutage(t.Context(), operator, o.ID))
	if a := r.decide(request("shop", "p2")); a.Gateway != "alphapay" || a.Outage {
		t.Errorf("after its end: %q, outage %t", a.Gateway, a.Outage)
	}
	for range 2 {
		all, err := r.service.CreateOutage(t.Context(), operator, planned(""))
		r.must(err)
		for _, m := range []gateway.MerchantID{"shop", "other"} {
			if a := r.decide(request(m, "p3")); a.Gateway != "mercato" || !a.Outage {
				t.Errorf("one for all: %s got %q", m, a.Gateway)
			}
		}
		r.must(r.service.EndOutage(t.Context(), operator, all.ID))
	}
	if a := r.decide(request("other", "p4")); a.Outage {
		t.Error("one for all goes on after its end")
	}
	// One of a gateway that is not eligible adds nothing to the answer.
	stranger := planned("shop")
	stranger.Gateway = "nobody"
	_, err = r.service.CreateOutage(t.Context(), operator, stranger)
	r.must(err)
	if a := r.decide(request("shop", "p5")); a.Outage || len(a.Ranked) != 3 {
		t.Errorf("one of a gateway that is not eligible: %+v", a.Ranked)
	}
}

func TestOutagesMatch(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.create("shop")
	q := request("shop", "p")
	q.Payment.Issuer, q.Payment.Source, q.Payment.Metadata = "BPI", "src", `{"app":"gpay","handle":"\u006fkbpi","n":1}`
	upi := *q
	upi.Payment.MethodType = "UPI"
	for name, c := range map[string]struct {
		change func(*gateway.Outage)
		q      *gateway.Request
		want   bool
	}{
		"nothing else":            {func(*gateway.Outage) {}, q, true},
		"bank":                    {func(o *gateway.Outage) { o.Bank = "BPI" }, q, true},
		"other bank":              {func(o *gateway.Outage) { o.Bank = "bpi" }, q, false},
		"method":                  {func(o *gateway.Outage) { o.Method = "CREDIT" }, q, true},
		"other method":            {func(o *gateway.Outage) { o.Method = "DEBIT" }, q, false},
		"type and method":         {func(o *gateway.Outage) { o.MethodType, o.Method = "CARD", "CREDIT" }, q, true},
		"other type":              {func(o *gateway.Outage) { o.MethodType, o.Method = "UPI", "CREDIT" }, q, false},
		"type alone":              {func(o *gateway.Outage) { o.MethodType = "CARD" }, q, false},
		"type alone, UPI":         {func(o *gateway.Outage) { o.MethodType = "UPI" }, &upi, true},
		"type alone, UPI, a card": {func(o *gateway.Outage) { o.MethodType = "UPI" }, q, false},
		"card type":               {func(o *gateway.Outage) { o.Metadata.CardType = "CREDIT" }, q, true},
		"other card type":         {func(o *gateway.Outage) { o.Metadata.CardType = "DEBIT" }, q, false},
		"transaction type":        {func(o *gateway.Outage) { o.Metadata.TransactionType = "ORDER_PAYMENT" }, q, true},
		"other transaction type":  {func(o *gateway.Outage) { o.Metadata.TransactionType = "VAN_PAYMENT" }, q, false},
		"source":                  {func(o *gateway.Outage) { o.Metadata.Source = "src" }, q, true},
		"other source":            {func(o *gateway.Outage) { o.Metadata.Source = "x" }, q, false},
		"app and handle":          {func(o *gateway.Outage) { o.Metadata.App, o.Metadata.Handle = "gpay", "okbpi" }, q, true},
		"other handle":            {func(o *gateway.Outage) { o.Metadata.App, o.Metadata.Handle = "gpay", "ok" }, q, false},
		"app of no metadata":      {func(o *gateway.Outage) { o.Metadata.App = "gpay" }, request("shop", "p"), false},
		"not yet": {func(o *gateway.Outage) {
			o.StartMS, o.EndMS = time.Now().Add(time.Hour).UnixMilli(), time.Now().Add(2*time.Hour).UnixMilli()
		}, q, false},
		"no longer": {func(o *gateway.Outage) {
			o.StartMS, o.EndMS = time.Now().Add(-2*time.Hour).UnixMilli(), time.Now().Add(-time.Hour).UnixMilli()
		}, q, false},
	} {
		o := planned("shop")
		c.change(&o)
		o, err := r.service.CreateOutage(t.Context(), operator, o)
		r.must(err)
		if a := r.decide(c.q); a.Outage != c.want {
			t.Errorf("%s: %t, want %t", name, a.Outage, c.want)
		}
		r.must(r.service.EndOutage(t.Context(), operator, o.ID))
	}
}

func TestOutagesAreRefused(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.create("shop")
	for name, change := range map[string]func(*gateway.Outage){
		"no gateway":       func(o *gateway.Outage) { o.Gateway = "" },
		"a long gateway":   func(o *gateway.Outage) { o.Gateway = gateway.Name(strings.Repeat("g", 257)) },
		"an end before":    func(o *gateway.Outage) { o.EndMS = o.StartMS },
		"24 hours":         func(o *gateway.Outage) { o.EndMS = o.StartMS + 86_400_000 },
		"a long bank":      func(o *gateway.Outage) { o.Bank = strings.Repeat("b", 257) },
		"a control in app": func(o *gateway.Outage) { o.Metadata.App = "a\x00" },
	} {
		o := planned("shop")
		change(&o)
		_, err := r.service.CreateOutage(t.Context(), operator, o)
		r.refused(name, err, fault.Invalid)
	}
	long := planned("shop")
	long.EndMS = long.StartMS + 86_399_999
	if _, err := r.service.CreateOutage(t.Context(), operator, long); err != nil {
		t.Errorf("a millisecond less than 24 hours: %v", err)
	}
	_, err := r.service.CreateOutage(t.Context(), operator, planned("nobody"))
	r.refused("of nobody", err, fault.NotFound)
	r.refused("an unknown id", r.service.EndOutage(t.Context(), operator, "x"), fault.NotFound)
}

func TestOutagesBelongToTheirMerchant(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.create("shop")
	r.create("other")
	shop := ident.Principal{Kind: ident.Token, Scope: ident.Scope{Role: ident.TenantAdmin, Tenant: "shop"}}
	other := ident.Principal{Kind: ident.Token, Scope: ident.Scope{Role: ident.TenantAdmin, Tenant: "other"}}
	nowhere := ident.Principal{Kind: ident.Token, Scope: ident.Scope{Role: ident.TenantAdmin}}
	own, err := r.service.CreateOutage(t.Context(), shop, planned("shop"))
	r.must(err)
	all, err := r.service.CreateOutage(t.Context(), operator, planned(""))
	r.must(err)
	_, err = r.service.CreateOutage(t.Context(), shop, planned(""))
	r.refused("one for all by a merchant", err, fault.Forbidden)
	_, err = r.service.CreateOutage(t.Context(), other, planned("shop"))
	r.refused("one for another", err, fault.Forbidden)
	r.refused("the end of another's", r.service.EndOutage(t.Context(), other, own.ID), fault.Forbidden)
	r.refused("the end of one for all", r.service.EndOutage(t.Context(), shop, all.ID), fault.Forbidden)
	for _, c := range []struct {
		p    ident.Principal
		q    gateway.OutageQuery
		want int
	}{{shop, gateway.OutageQuery{}, 2}, {other, gateway.OutageQuery{}, 1}, {operator, gateway.OutageQuery{}, 2}, {operator, gateway.OutageQuery{Merchant: "other"}, 1},
		{shop, gateway.OutageQuery{Merchant: "shop", Running: gateway.Yes}, 2}} {
		if got, err := r.service.Outages(t.Context(), c.p, c.q); err != nil || len(got) != c.want {
			t.Errorf("%+v asks %+v: %d, %v", c.p.Scope, c.q, len(got), err)
		}
	}
	_, err = r.service.Outages(t.Context(), other, gateway.OutageQuery{Merchant: "shop"})
	r.refused("a list of another's", err, fault.Forbidden)
	_, err = r.service.Outages(t.Context(), nowhere, gateway.OutageQuery{})
	r.refused("a list of who is nowhere", err, fault.Forbidden)
	r.must(r.service.EndOutage(t.Context(), shop, own.ID))
	if got, err := r.service.Outages(t.Context(), shop, gateway.OutageQuery{Running: gateway.Yes}); err != nil || len(got) != 1 || got[0].ID != all.ID {
		t.Errorf("running: %+v, %v", got, err)
	}
}

func TestOutagesAreBounded(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.create("shop")
	r.create("other")
	for i := range gateway.MaxOutages {
		o := planned("shop")
		o.Gateway = gateway.Name(fmt.Sprint("g", i))
		_, err := r.service.CreateOutage(t.Context(), operator, o)
		r.must(err)
	}
	_, err := r.service.CreateOutage(t.Context(), operator, planned("shop"))
	r.refused("one too many", err, fault.Invalid)
	if _, err := r.service.CreateOutage(t.Context(), operator, planned("other")); err != nil {
		t.Errorf("another merchant: %v", err)
	}
}
