package ident

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const operator = "the-operators-own-key"

func ring(t testing.TB, s Storage) (*Keyring, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	k, err := NewKeyring(t.Context(), Options{OperatorKey: operator, Storage: s, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return k, &log
}

func issue(t testing.TB, k *Keyring, ttl time.Duration) Issued {
	t.Helper()
	issued, err := k.Issue(t.Context(), Scope{Role: TenantAdmin, Tenant: "north"}, ttl, "for the shop")
	if err != nil {
		t.Fatal(err)
	}
	return issued
}

func TestAnEmptyOperatorKeyIsRefused(t *testing.T) {
	if _, err := NewKeyring(t.Context(), Options{Storage: &Memory{}}); !errors.Is(err, ErrOperatorKey) {
		t.Errorf("got %v", err)
	}
}

func TestTheOperator(t *testing.T) {
	k, _ := ring(t, &Memory{})
	p, ok := k.Verify(operator, time.Now())
	if !ok || p.Kind != Operator || p.ID != "operator" || !p.Allows(Need{Role: Admin}) {
		t.Errorf("got %+v, %v", p, ok)
	}
	for _, wrong := range []string{"", operator + "x", operator[1:], strings.Repeat("x", 500)} {
		if p, ok := k.Verify(wrong, time.Now()); ok || p != (Principal{}) {
			t.Errorf("%q is taken for %+v", wrong, p)
		}
	}
}

func TestATokensLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := &Memory{}
		k, _ := ring(t, storage)
		a, b := issue(t, k, 0), issue(t, k, 90*time.Second)
		if len(a.Secret) != 64 || len(a.Hash) != 64 || a.Secret == b.Secret || !a.ExpiresAt.IsZero() || b.ExpiresAt.Sub(b.CreatedAt) != 90*time.Second {
			t.Fatalf("issued %+v and %+v", a, b)
		}
		rows, _ := storage.Tokens(t.Context())
		for _, row := range rows {
			if strings.Contains(row.Hash+row.Scope+row.Label, a.Secret) {
				t.Error("the storage holds the token itself")
			}
		}
		again, _ := ring(t, storage) // a restart
		for _, k := range []*Keyring{k, again} {
			p, ok := k.Verify(a.Secret, time.Now())
			if !ok || p.Kind != Token || p.ID != a.Hash || p.Scope != a.Scope {
				t.Errorf("got %+v, %v", p, ok)
			}
			if len(k.List()) != 2 {
				t.Errorf("listed %+v", k.List())
			}
		}
		elapse(90*time.Second - 1)
		if _, ok := k.Verify(b.Secret, time.Now()); !ok {
			t.Error("expired too early")
		}
		elapse(1)
		if _, ok := k.Verify(b.Secret, time.Now()); ok {
			t.Error("an expired token works")
		}
		if list := k.List(); len(list) != 1 || list[0].Hash != a.Hash || list[0].Label != "for the shop" {
			t.Errorf("listed %+v", list)
		}
		if found, err := k.Revoke(t.Context(), a.Hash); !found || err != nil {
			t.Errorf("revoke: %v, %v", found, err)
		}
		if _, ok := k.Verify(a.Secret, time.Now()); ok {
			t.Error("a revoked token works")
		}
		for _, unknown := range []string{a.Hash, "", "nonsense", strings.ToUpper(b.Hash)} {
			if found, err := k.Revoke(t.Context(), unknown); found || err != nil {
				t.Errorf("revoking %q: %v, %v", unknown, found, err)
			}
		}
	})
}

func TestWhatCannotBeIssued(t *testing.T) {
	k, _ := ring(t, &Memory{})
	admin := Scope{Role: Admin}
	for name, c := range map[string]struct {
		scope Scope
		ttl   time.Duration
		label string
		want  error
	}{
		"negative ttl":     {admin, -time.Second, "", ErrTTL},
		"ttl in no second": {admin, time.Millisecond, "", ErrTTL},
		"ttl for ever":     {admin, MaxTTL + 1, "", ErrTTL},
		"long label":       {admin, 0, strings.Repeat("x", MaxLabel+1), ErrLabel},
		"label of bytes":   {admin, 0, "\xff", ErrLabel},
		"no role":          {Scope{}, 0, "", ErrScope},
		"no tenant":        {Scope{Role: TenantAdmin}, 0, "", ErrScope},
		"bad name":         {Scope{Role: TenantAdmin, Tenant: "a/b"}, 0, "", ErrScope},
	} {
		if _, err := k.Issue(t.Context(), c.scope, c.ttl, c.label); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if len(k.List()) != 0 {
		t.Errorf("issued all the same: %+v", k.List())
	}
}

func TestRowsThatDoNotReadBackAreNoTokens(t *testing.T) {
	storage := &Memory{}
	k, _ := ring(t, storage)
	good := issue(t, k, 0)
	for i, spoil := range []func(*Row){
		func(r *Row) { r.Hash = "short" },
		func(r *Row) { r.Hash = strings.Repeat("G", 64) },
		func(r *Row) { r.Hash, r.Scope = strings.Repeat("a", 64), `{"kind":"admin","x":1}` },
		func(r *Row) { r.Hash, r.Scope = strings.Repeat("b", 64), `` },
		func(r *Row) { r.Hash, r.ExpiresAt = strings.Repeat("c", 64), time.Unix(-5, 0) },
	} {
		row := Row{Hash: good.Hash, Scope: `{"kind":"admin"}`, CreatedAt: time.Now()}
		spoil(&row)
		if err := storage.SaveToken(t.Context(), row); err != nil {
			t.Fatal(i, err)
		}
	}
	again, log := ring(t, storage)
	if n := strings.Count(log.String(), "does not read back"); n != 5 {
		t.Errorf("%d rows logged, want 5:\n%s", n, log)
	}
	if list := again.List(); len(list) != 1 || list[0].Hash != good.Hash {
		t.Errorf("listed %+v", list)
	}
	if _, ok := again.Verify(operator, time.Now()); !ok {
		t.Error("the operator is locked out")
	}
}

// elapse lets the time of a synctest bubble pass: no real time does.
func elapse(d time.Duration) { <-time.After(d) }

// counting counts what is written, and can fail.
type counting struct {
	Memory
	mu      sync.Mutex
	touches int
	err     error
}

func (c *counting) TouchToken(ctx context.Context, hash string, used time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.touches++
	if c.err != nil {
		return c.err
	}
	return c.Memory.TouchToken(ctx, hash, used)
}

func (c *counting) written() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.touches
}

func (c *counting) SaveToken(ctx context.Context, row Row) error {
	if c.err != nil {
		return c.err
	}
	return c.Memory.SaveToken(ctx, row)
}

func (c *counting) DropToken(ctx context.Context, hash string) (bool, error) {
	if c.err != nil {
		return false, c.err
	}
	return c.Memory.DropToken(ctx, hash)
}

func TestUseIsWrittenOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := &counting{}
		k, _ := ring(t, storage)
		a := issue(t, k, 0)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { k.Run(ctx); close(done) }()
		begun := time.Now()
		for time.Since(begun) < 10*time.Minute {
			k.Verify(a.Secret, time.Now())
			elapse(time.Second)
		}
		synctest.Wait()
		if n := storage.written(); n < 9 || n > 11 {
			t.Errorf("written %d times in ten minutes", n)
		}
		if used := k.List()[0].LastUsedAt; time.Since(used) > time.Minute+time.Second {
			t.Errorf("the last use is said to be %v ago", time.Since(used))
		}
		elapse(2 * time.Minute)
		k.Verify(a.Secret, time.Now())
		last := k.List()[0].LastUsedAt
		stop()
		<-done
		rows, _ := storage.Tokens(t.Context())
		if !rows[0].LastUsedAt.Equal(last) {
			t.Errorf("stopped with %v written, the last use was %v", rows[0].LastUsedAt, last)
		}
	})
}

func TestStorageFailures(t *testing.T) {
	broken := errors.New("disk on fire")
	storage := &counting{}
	k, _ := ring(t, storage)
	a := issue(t, k, 0)
	storage.err = broken
	if _, err := k.Issue(t.Context(), Scope{Role: Admin}, 0, ""); !errors.Is(err, broken) || len(k.List()) != 1 {
		t.Errorf("issue: %v; listed %+v", err, k.List())
	}
	if _, err := k.Revoke(t.Context(), a.Hash); !errors.Is(err, broken) {
		t.Errorf("revoke: %v", err)
	}
	if _, ok := k.Verify(a.Secret, time.Now()); ok {
		t.Error("a token whose revocation could not be written still works")
	}
}

func TestVerifyWhileTokensChange(t *testing.T) {
	k, _ := ring(t, &Memory{})
	steady := issue(t, k, 0)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, ok := k.Verify(steady.Secret, time.Now()); !ok {
					t.Error("a good token was refused")
					return
				}
			}
		})
	}
	for range 50 {
		fresh := issue(t, k, 0)
		if _, ok := k.Verify(fresh.Secret, time.Now()); !ok {
			t.Error("a fresh token does not work")
		}
		if found, err := k.Revoke(t.Context(), fresh.Hash); !found || err != nil {
			t.Error(found, err)
		}
		if _, ok := k.Verify(fresh.Secret, time.Now()); ok {
			t.Error("a revoked token works")
		}
	}
	close(stop)
	all.Wait()
}

func TestVerifyAllocatesNothing(t *testing.T) {
	k, _ := ring(t, &Memory{})
	a, now := issue(t, k, 0), time.Now()
	for _, key := range []string{a.Secret, operator, "wrong"} {
		if n := testing.AllocsPerRun(1000, func() { k.Verify(key, now) }); n != 0 {
			t.Errorf("%v allocations, want none", n)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	k, _ := ring(b, &Memory{})
	a, now := issue(b, k, 0), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		k.Verify(a.Secret, now)
	}
}
