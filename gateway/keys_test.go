package gateway_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/fault"
	"holdfast/gateway"
	"holdfast/ident"
)

func TestKeysOpenTheirMerchant(t *testing.T) {
	r := newRig(t, gateway.Options{})
	first := r.create("shop")
	r.create("other")
	key, row, err := r.service.CreateKey(t.Context(), "shop", "checkout")
	r.must(err)
	if row.Prefix != key[:11] || row.Description != "checkout" || strings.Contains(row.Hash, key[3:]) {
		t.Errorf("row %+v of %s", row, key)
	}
	p, err := r.identify(key)
	if err != nil || p.Kind != ident.Token || p.ID != row.ID || p.Scope.Tenant != "shop" || p.Scope.Role != ident.TenantAdmin {
		t.Errorf("principal %+v, %v", p, err)
	}
	all, err := r.service.Keys(t.Context(), "shop")
	if err != nil || len(all) != 2 || all[0].Prefix != first[:11] || all[1].ID != row.ID || !all[1].Active {
		t.Errorf("listed %+v, %v", all, err)
	}
	_, err = r.service.Keys(t.Context(), "nobody")
	r.refused("keys of nobody", err, fault.NotFound)
	_, _, err = r.service.CreateKey(t.Context(), "nobody", "")
	r.refused("a key for nobody", err, fault.NotFound)
	_, _, err = r.service.CreateKey(t.Context(), "shop", strings.Repeat("x", 1025))
	r.refused("a long description", err, fault.Invalid)
	for _, bad := range []string{"", "x", key + "0", strings.ToUpper(key), "DE_" + strings.Repeat("0", 64), key[:66]} {
		_, err := r.identify(bad)
		r.refused("the key "+bad, err, fault.Unauthenticated)
	}
	r.stop()
	r.start()
	if _, err := r.identify(key); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

func TestRevocationBitesAtOnce(t *testing.T) {
	r := newRig(t, gateway.Options{})
	kept := r.create("shop")
	r.create("other")
	key, row, err := r.service.CreateKey(t.Context(), "shop", "")
	r.must(err)
	if _, err := r.identify(key); err != nil {
		t.Fatal(err)
	}
	other := ident.Principal{Kind: ident.Token, Scope: ident.Scope{Role: ident.TenantAdmin, Tenant: "other"}}
	r.refused("by another merchant", r.service.RevokeKey(t.Context(), other, row.ID), fault.Forbidden)
	if _, err := r.identify(key); err != nil {
		t.Errorf("after a revocation that was refused: %v", err)
	}
	for range 2 { // again is as good
		r.must(r.service.RevokeKey(t.Context(), operator, row.ID))
		_, err = r.identify(key)
		r.refused("revoked", err, fault.Unauthenticated)
	}
	r.refused("an unknown id", r.service.RevokeKey(t.Context(), operator, "nothing"), fault.NotFound)
	if _, err := r.identify(kept); err != nil {
		t.Errorf("the other key: %v", err)
	}
	if all, err := r.service.Keys(t.Context(), "shop"); err != nil || len(all) != 2 || all[1].Active {
		t.Errorf("listed %+v, %v", all, err)
	}
}

// However many look a key up while it is being revoked, none finds it afterwards.
func TestRevocationBitesDuringLookUps(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.create("shop")
	for range 20 {
		key, row, err := r.service.CreateKey(t.Context(), "shop", "")
		r.must(err)
		var wait sync.WaitGroup
		stop := make(chan struct{})
		for range 4 {
			wait.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						_, _ = r.identify(key)
					}
				}
			})
		}
		r.must(r.service.RevokeKey(t.Context(), operator, row.ID))
		_, err = r.identify(key)
		r.refused("revoked", err, fault.Unauthenticated)
		close(stop)
		wait.Wait()
		_, err = r.identify(key)
		r.refused("revoked, after the others", err, fault.Unauthenticated)
	}
}

func TestKeysAreBounded(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.create("shop")
	var last string
	var wait sync.WaitGroup
	for range gateway.MaxKeys - 2 {
		wait.Go(func() {
			_, _, err := r.service.CreateKey(t.Context(), "shop", "")
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	_, row, err := r.service.CreateKey(t.Context(), "shop", "")
	r.must(err)
	last = row.ID
	_, _, err = r.service.CreateKey(t.Context(), "shop", "")
	r.refused("one too many", err, fault.Invalid)
	r.must(r.service.RevokeKey(t.Context(), operator, last))
	if _, _, err := r.service.CreateKey(t.Context(), "shop", ""); err != nil {
		t.Errorf("after a revocation: %v", err)
	}
}

// A key costs no I/O once it was shown: it opens its merchant although the store is closed.
func TestKnownKeysCostNoLookUp(t *testing.T) {
	r := newRig(t, gateway.Options{})
	key := r.create("shop")
	_, err := r.identify(key)
	r.must(err)
	unknown := "DE_" + strings.Repeat("1", 64)
	_, err = r.identify(unknown)
	r.refused("unknown", err, fault.Unauthenticated)
	service := r.service
	r.stop()
	if _, err := service.Identify(t.Context(), gateway.Credentials{APIKey: key}, time.Now()); err != nil {
		t.Errorf("a known key asked the store: %v", err)
	}
	_, err = service.Identify(t.Context(), gateway.Credentials{APIKey: unknown}, time.Now())
	r.refused("a known unknown key", err, fault.Unauthenticated)
	if _, err := service.Identify(t.Context(), gateway.Credentials{APIKey: unknown}, time.Now().Add(time.Minute)); fault.KindOf(err) == fault.Unauthenticated {
		t.Errorf("that a key is unknown is remembered for ever: %v", err)
	}
}
