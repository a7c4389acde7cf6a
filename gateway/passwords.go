package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/bcrypt"

	"holdfast/fault"
)

// The bounds of a password.
const (
	passwordLeast = 10   // characters
	passwordMost  = 1024 // bytes
	bcryptMost    = 72   // bytes that bcrypt looks at
)

// hashLine is how many callers may wait for a password to be hashed; the next one is refused at once. Together with
// SessionOptions.Hashes it bounds both what guessing costs this machine and how fast anybody can guess.
const hashLine = 16

// hasher hashes passwords, so many at once: a hash is meant to be dear, and decisions need the cores.
type hasher struct {
	cost    int
	turns   chan struct{} // one element per hash that runs
	waiting atomic.Int64
	nobody  []byte // a hash that no password has, for users that do not exist
}

func (h *hasher) open(o SessionOptions) {
	h.cost = o.PasswordCost
	if h.cost == 0 {
		h.cost = 12
	}
	h.cost = min(max(h.cost, bcrypt.MinCost), bcrypt.MaxCost)
	h.turns = make(chan struct{}, max(1, o.Hashes))
	h.nobody = fmt.Appendf(nil, "$2a$%02d$%s", h.cost, strings.Repeat(".", 53))
}

// turn runs work when it may, on the caller's goroutine. Exhausted, with the time to come back after, when the line is full;
// Unavailable when ctx ends first.
func (h *hasher) turn(ctx context.Context, work func()) error {
	select {
	case h.turns <- struct{}{}:
	default:
		if h.waiting.Add(1) > hashLine {
			h.waiting.Add(-1)
			return &fault.Error{Op: "gateway.hash", Kind: fault.Exhausted, Msg: "too many passwords are being checked; come back later",
				RetryAfter: h.wait()}
		}
		defer h.waiting.Add(-1)
		select {
		case h.turns <- struct{}{}:
		case <-ctx.Done():
			return fault.Wrap("gateway.hash", fault.Unavailable, ctx.Err(), "the request was given up")
		}
	}
	defer func() { <-h.turns }()
	work()
	return nil
}

// wait is about how long a full line takes: a hash of cost 12 is 280 ms of a core, and every step of the cost doubles it.
func (h *hasher) wait() time.Duration {
	one := 280 * time.Millisecond
	for c := h.cost; c > 12; c-- {
		one *= 2
	}
	for c := h.cost; c < 12; c++ {
		one /= 2
	}
	return one * hashLine / time.Duration(cap(h.turns))
}

// hash returns what is kept of a password.
func (h *hasher) hash(ctx context.Context, password string) (hash string, err error) {
	text, failed := []byte(nil), error(nil)
	if err := h.turn(ctx, func() { text, failed = bcrypt.GenerateFromPassword(digestible(password), h.cost) }); err != nil {
		return "", err
	}
	if failed != nil {
		return "", fmt.Errorf("gateway.hash: %w", failed)
	}
	return string(text), nil
}

// matches reports whether a password has the hash. An empty hash, of a user that does not exist or may not come in, matches
// nothing and takes the same time.
func (h *hasher) matches(ctx context.Context, hash, password string) (ok bool, err error) {
	against := []byte(hash)
	if hash == "" {
		against = h.nobody
	}
	failed := error(nil)
	if err := h.turn(ctx, func() { failed = bcrypt.CompareHashAndPassword(against, digestible(password)) }); err != nil {
		return false, err
	}
	switch {
	case failed == nil:
		return hash != "", nil
	case errors.Is(failed, bcrypt.ErrMismatchedHashAndPassword):
		return false, nil
	}
	return false, fmt.Errorf("gateway.hash: %w", failed)
}

// digestible is what bcrypt gets to see of a password. It refuses more than 72 bytes, and cutting them off would let two
// passwords be one; so a long one is its SHA-256, as text, since bcrypt stops at a zero byte.
func digestible(password string) []byte {
	if len(password) <= bcryptMost {
		return []byte(password)
	}
	sum := sha256.Sum256([]byte(password))
	return base64.StdEncoding.AppendEncode(nil, sum[:])
}

// checkPassword refuses a password that is easily guessed: it needs at least 10 characters, an upper-case and a lower-case
// letter, a digit and a symbol.
func checkPassword(password string) error {
	if len(password) > passwordMost || !utf8.ValidString(password) || strings.ContainsRune(password, 0) {
		return invalid("password", "the password must be text of at most %d bytes", passwordMost)
	}
	var upper, lower, digit, symbol bool
	for _, r := range password {
		switch {
		case unicode.IsUpper(r):
			upper = true
		case unicode.IsLower(r):
			lower = true
		case unicode.IsDigit(r):
			digit = true
		case unicode.IsPunct(r), unicode.IsSymbol(r):
			symbol = true
		}
	}
	if !upper || !lower || !digit || !symbol || utf8.RuneCountInString(password) < passwordLeast {
		return invalid("password",
			"the password must have at least %d characters, among them an upper-case letter, a lower-case letter, a digit and a symbol", passwordLeast)
	}
	return nil
}

// madePassword makes a password that the rule accepts, with 128 random bits.
func madePassword() string { return "Aa1-" + rand.Text() }
