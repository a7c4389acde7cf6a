package decisions_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/fault"
	"holdfast/ident"
	"holdfast/store/decisions"
)

func TestTokens(t *testing.T) {
	ctx := t.Context()
	k := decisions.NewTokens(database(t))
	at := time.Unix(1790000000, 0).UTC()
	one := ident.Row{Hash: strings.Repeat("a", 64), Scope: `{"kind":"admin"}`, Label: "naïve", CreatedAt: at, ExpiresAt: at.Add(time.Hour)}
	two := ident.Row{Hash: strings.Repeat("b", 64), Scope: "unreadable", CreatedAt: at}
	for _, row := range []ident.Row{two, one} {
		if err := k.SaveToken(ctx, row); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.SaveToken(ctx, one); fault.KindOf(err) != fault.Conflict {
		t.Errorf("the same hash again: %v", err)
	}
	used := at.Add(time.Minute)
	for _, hash := range []string{one.Hash, strings.Repeat("c", 64)} {
		if err := k.TouchToken(ctx, hash, used); err != nil {
			t.Errorf("touch %s: %v", hash, err)
		}
	}
	one.LastUsedAt = used
	if diff := cmp.Diff([]ident.Row{one, two}, tokenRows(t, k)); diff != "" {
		t.Error(diff)
	}
	for i, want := range []bool{true, false} {
		if found, err := k.DropToken(ctx, one.Hash); err != nil || found != want {
			t.Errorf("drop %d: %v, %v", i, found, err)
		}
	}
	if diff := cmp.Diff([]ident.Row{two}, tokenRows(t, k)); diff != "" {
		t.Error(diff)
	}
}

func tokenRows(t *testing.T, k *decisions.Tokens) []ident.Row {
	t.Helper()
	rows, err := k.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestTokensOutliveTheProcess issues through the keyring and verifies through another one on the reopened file.
func TestTokensOutliveTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.db")
	ring := func() *ident.Keyring {
		t.Helper()
		k, err := ident.NewKeyring(t.Context(), ident.Options{OperatorKey: "operator", Storage: decisions.NewTokens(reopen(t, path)),
			Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	first := ring()
	kept, err := first.Issue(t.Context(), ident.Scope{Role: ident.TenantAdmin, Tenant: "north"}, 0, "kept")
	if err != nil {
		t.Fatal(err)
	}
	revoked, err := first.Issue(t.Context(), ident.Scope{Role: ident.Admin}, time.Hour, "revoked")
	if err != nil {
		t.Fatal(err)
	}
	if found, err := first.Revoke(t.Context(), revoked.Hash); err != nil || !found {
		t.Fatalf("revoke: %v, %v", found, err)
	}
	second := ring()
	if who, ok := second.Verify(kept.Secret, time.Now()); !ok || who.Scope != kept.Scope {
		t.Errorf("the kept token: %+v, %v", who, ok)
	}
	if _, ok := second.Verify(revoked.Secret, time.Now()); ok {
		t.Error("the revoked token works")
	}
}
