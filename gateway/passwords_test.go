package gateway

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"golang.org/x/crypto/bcrypt"

	"holdfast/fault"
)

func TestPasswordRule(t *testing.T) {
	for password, ok := range map[string]bool{
		"Correct-Horse-7":                  true,
		"Aa1-567890":                       true,
		"Aa1-56789":                        false, // nine
		"aa1-567890":                       false,
		"AA1-567890":                       false,
		"Aaa-bcdefg":                       false,
		"Aa15678901":                       false,
		"Aa1 567890":                       false, // a space is no symbol
		"Äö1-äöüßäö":                       true,
		"Äö1-äöüßä":                        false, // nine characters in more bytes
		"":                                 false,
		"Aa1-\x00567890":                   false,
		"Aa1-\xff567890":                   false,
		"Aa1-" + strings.Repeat("x", 1020): true,
		"Aa1-" + strings.Repeat("x", 1021): false,
	} {
		if err := checkPassword(password); (err == nil) != ok || err != nil && fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: %v", password, err)
		}
	}
	seen := map[string]bool{}
	for range 100 {
		made := madePassword()
		if err := checkPassword(made); err != nil || seen[made] {
			t.Errorf("made %q: %v", made, err)
		}
		seen[made] = true
	}
}

func newHasher(o SessionOptions) *hasher {
	h := &hasher{}
	h.open(o)
	return h
}

func TestHashing(t *testing.T) {
	h := newHasher(SessionOptions{PasswordCost: bcrypt.MinCost})
	long := "Aa1-" + strings.Repeat("x", 100)
	for _, password := range []string{goodOne, long, strings.Repeat("ä", 36), strings.Repeat("ä", 36) + "b"} {
		hash, err := h.hash(t.Context(), password)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(hash, password) || !strings.HasPrefix(hash, "$2a$04$") {
			t.Errorf("kept %q", hash)
		}
		for _, try := range []string{password, password + "y", password[:len(password)-1], strings.ToLower(password) + "Z", ""} {
			ok, err := h.matches(t.Context(), hash, try)
			if err != nil || ok != (try == password) {
				t.Errorf("%q against %q: %v, %v", try, password, ok, err)
			}
		}
		if ok, err := h.matches(t.Context(), "", password); ok || err != nil {
			t.Errorf("no hash: %v, %v", ok, err)
		}
	}
	if ok, err := h.matches(t.Context(), "not a hash", goodOne); ok || err == nil {
		t.Errorf("a damaged hash: %v, %v", ok, err)
	}
}

const goodOne = "Correct-Horse-7"

// A user who does not exist costs what one who does costs: the hash that stands in has the same cost, and bcrypt takes it.
func TestNobodyCostsAHash(t *testing.T) {
	for _, cost := range []int{0, 4, 10} {
		h := newHasher(SessionOptions{PasswordCost: cost})
		want := cost
		if cost == 0 {
			want = 12
		}
		if got, err := bcrypt.Cost(h.nobody); err != nil || got != want || h.cost != want {
			t.Errorf("cost %d: %d, %v", want, got, err)
		}
	}
	h := newHasher(SessionOptions{PasswordCost: bcrypt.MinCost})
	if err := bcrypt.CompareHashAndPassword(h.nobody, []byte(goodOne)); err != bcrypt.ErrMismatchedHashAndPassword {
		t.Errorf("refused before it was hashed: %v", err)
	}
}

func TestHashesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const atOnce = 2
		h := newHasher(SessionOptions{Hashes: atOnce})
		var mu sync.Mutex
		running, most, done := 0, 0, 0
		release := make(chan struct{})
		work := func() {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			<-release
			mu.Lock()
			running--
			done++
			mu.Unlock()
		}
		var all sync.WaitGroup
		for range atOnce + hashLine - 1 {
			all.Go(func() {
				if err := h.turn(context.Background(), work); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(context.Background())
		all.Go(func() {
			if err := h.turn(ctx, work); fault.KindOf(err) != fault.Unavailable {
				t.Errorf("given up: %v", err)
			}
		})
		synctest.Wait()
		err := h.turn(context.Background(), work)
		if fault.KindOf(err) != fault.Exhausted || fault.RetryAfter(err) <= 0 || most != atOnce {
			t.Errorf("a full line: %v after %v, %d at once", err, fault.RetryAfter(err), most)
		}
		cancel()
		synctest.Wait()
		all.Go(func() { // the place of the one who gave up is free again
			if err := h.turn(context.Background(), work); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		close(release)
		all.Wait()
		if most != atOnce || done != atOnce+hashLine || h.waiting.Load() != 0 || len(h.turns) != 0 {
			t.Errorf("%d at once, %d done, %d waiting, %d held", most, done, h.waiting.Load(), len(h.turns))
		}
	})
}

func TestATurnThatPanicsIsGivenBack(t *testing.T) {
	h := newHasher(SessionOptions{})
	func() {
		defer func() { _ = recover() }()
		_ = h.turn(t.Context(), func() { panic("x") })
	}()
	if len(h.turns) != 0 {
		t.Error("the turn is lost")
	}
}
