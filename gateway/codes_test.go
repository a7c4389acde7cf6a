package gateway_test

import (
	"testing"
	"time"

	"holdfast/fault"
	"holdfast/gateway"
	"holdfast/ident"
)

func TestMerchantCodes(t *testing.T) {
	h := newHouse(t, func(o *gateway.Options) { o.Sessions.RedirectLife = time.Hour })
	h.merchant(t, "shop")
	_, err := h.MerchantCode(t.Context(), "nope")
	wantKind(t, "unknown merchant", err, fault.NotFound)
	code, err := h.MerchantCode(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.ExchangeCode(t.Context(), code+"x")
	wantKind(t, "another code", err, fault.Unauthenticated)
	in, err := h.ExchangeCode(t.Context(), code)
	if err != nil || in.Session.UserID != "hs_shop" || in.Session.Merchant != "shop" || in.Session.Kind != "hs_redirect" ||
		len(in.Members) != 1 || in.Session.Expires.Sub(in.Session.Issued) != time.Hour {
		t.Fatalf("%+v, %v", in, err)
	}
	_, err = h.ExchangeCode(t.Context(), code)
	wantKind(t, "twice", err, fault.Unauthenticated)
	p, err := h.Identify(t.Context(), asBearer(in.Token), h.now)
	if err != nil || p.Wide || p.Scope != (ident.Scope{Role: ident.TenantAdmin, Tenant: "shop"}) {
		t.Errorf("%+v, %v", p, err)
	}
	if me, err := h.Me(t.Context(), in.Session); err != nil || len(me.Members) != 1 || me.SuperAdmin {
		t.Errorf("%+v, %v", me, err)
	}
	_, err = h.SwitchMerchant(t.Context(), in.Session, "shop")
	wantKind(t, "it is no user", err, fault.NotFound)

	late, err := h.MerchantCode(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	h.now = h.now.Add(gateway.CodeLife)
	_, err = h.ExchangeCode(t.Context(), late)
	wantKind(t, "too late", err, fault.Unauthenticated)
}

func TestCodesAreBounded(t *testing.T) {
	h := newHouse(t, nil)
	h.merchant(t, "shop")
	for range 10_000 {
		if _, err := h.MerchantCode(t.Context(), "shop"); err != nil {
			t.Fatal(err)
		}
	}
	_, err := h.MerchantCode(t.Context(), "shop")
	wantKind(t, "one more", err, fault.Exhausted)
	h.now = h.now.Add(gateway.CodeLife)
	if _, err := h.MerchantCode(t.Context(), "shop"); err != nil {
		t.Errorf("once they are old: %v", err)
	}
}

func TestSuperAdmins(t *testing.T) {
	h := newHouse(t, func(o *gateway.Options) { o.Sessions.SuperAdmins = []string{" Boss@example.com "} })
	h.merchant(t, "Shop_Lisbon")
	h.merchant(t, "shop%")
	h.merchant(t, "own")
	boss, ana := h.user(t, "boss@example.com", "own"), h.user(t, "ana@example.com", "shop%")

	view, err := h.EnterMerchant(t.Context(), boss.Session, "Shop_Lisbon")
	if err != nil || view.Session.Merchant != "Shop_Lisbon" || !view.Session.View() {
		t.Fatalf("%+v, %v", view, err)
	}
	p, err := h.Identify(t.Context(), asBearer(view.Token), h.now)
	if err != nil || h.Covers(p, "Shop_Lisbon") != nil || h.Covers(p, "own") != nil || p.Scope.Tenant != "Shop_Lisbon" {
		t.Errorf("%+v, %v", p, err)
	}
	back, err := h.ExitMerchant(t.Context(), view.Session)
	if err != nil || back.Session.Merchant != "own" || back.Session.View() {
		t.Errorf("%+v, %v", back, err)
	}
	_, err = h.EnterMerchant(t.Context(), boss.Session, "nope")
	wantKind(t, "unknown merchant", err, fault.NotFound)

	for query, want := range map[string]int{"": 0, "  ": 0, "SHOP": 2, "lisbon": 1, "%": 1, "_": 1, "o": 3, "zzz": 0} {
		found, err := h.LookupMerchants(t.Context(), boss.Session, query)
		if err != nil || len(found) != want {
			t.Errorf("%q: %+v, %v", query, found, err)
		}
	}
	_, err = h.EnterMerchant(t.Context(), ana.Session, "shop%")
	wantKind(t, "another enters", err, fault.Forbidden)
	_, err = h.ExitMerchant(t.Context(), ana.Session)
	wantKind(t, "another exits", err, fault.Forbidden)
	_, err = h.LookupMerchants(t.Context(), ana.Session, "")
	wantKind(t, "another looks up", err, fault.Forbidden)
}
