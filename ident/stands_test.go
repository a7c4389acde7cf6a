package ident

import (
	"log/slog"
	"testing"
	"time"
)

func TestStands(t *testing.T) {
	k, err := NewKeyring(t.Context(), Options{OperatorKey: "op", Storage: &Memory{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	issued, err := k.Issue(t.Context(), Scope{Role: TenantAdmin, Tenant: "north"}, time.Hour, "")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	p, ok := k.Verify(issued.Secret, now)
	if !ok || !k.Stands(p, now) {
		t.Fatalf("a fresh token does not stand: %+v", p)
	}
	if k.Stands(p, now.Add(2*time.Hour)) {
		t.Error("an expired token stands")
	}
	if _, err := k.Revoke(t.Context(), issued.Hash); err != nil {
		t.Fatal(err)
	}
	if k.Stands(p, now) {
		t.Error("a revoked token stands")
	}
	if op, _ := k.Verify("op", now); !k.Stands(op, now) {
		t.Error("the operator does not stand")
	}
	for _, p := range []Principal{{}, {Kind: Token}, {Kind: Token, ID: "operator"}} {
		if k.Stands(p, now) {
			t.Errorf("%+v stands", p)
		}
	}
}
