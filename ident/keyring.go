package ident

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json/v2"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Row is one issued token as it is kept. It never holds the token itself.
type Row struct {
	Hash       string    // SHA-256 of the token, 64 lower-case hex digits
	Scope      string    // JSON, as Scope.MarshalJSON writes it
	Label      string    // what the operator calls it; may be empty
	CreatedAt  time.Time // whole seconds
	ExpiresAt  time.Time // whole seconds; zero when it never expires
	LastUsedAt time.Time // whole seconds, at most a minute behind; zero when never used
}

// Storage keeps issued tokens. A method that returns nil has made its change durable.
type Storage interface {
	// Tokens returns every kept row, expired ones and unreadable ones included.
	Tokens(ctx context.Context) ([]Row, error)
	// SaveToken keeps a new row.
	SaveToken(ctx context.Context, row Row) error
	// DropToken removes the row of that hash and reports whether there was one.
	DropToken(ctx context.Context, hash string) (bool, error)
	// TouchToken notes when the token was last used. A row that is gone is not an error.
	TouchToken(ctx context.Context, hash string, used time.Time) error
}

// Info describes an issued token to an administrator.
type Info struct {
	Hash       string
	Scope      Scope
	Label      string
	CreatedAt  time.Time
	ExpiresAt  time.Time // zero when it never expires
	LastUsedAt time.Time // zero when never used
}

// Issued is a fresh token: Secret is shown once and kept nowhere.
type Issued struct {
	Info
	Secret string // 64 lower-case hex digits
}

// Options configures a Keyring.
type Options struct {
	OperatorKey string // never empty
	Storage     Storage
	Log         *slog.Logger
}

// The bounds of what an administrator may ask for.
const (
	MaxLabel = 256                        // bytes of a token's label
	MaxTTL   = 100 * 365 * 24 * time.Hour // of a token
)

// touchEvery is how often the use of one token is written down.
const touchEvery = time.Minute

// Errors a caller may compare with errors.Is.
var (
	ErrOperatorKey = errors.New("the operator key must not be empty")
	ErrTTL         = errors.New("ttlSeconds must be between 1 and 3153600000")
	ErrLabel       = errors.New("label must be valid text of at most 256 bytes")
)

type digest = [sha256.Size]byte

// token is one usable credential. All but used and noted are fixed.
type token struct {
	info  Info
	who   Principal
	until int64        // Unix seconds; 0 for ever
	used  atomic.Int64 // Unix seconds of the newest use, moved at most once a minute
	noted atomic.Int64 // the value of used that the storage has
}

// Keyring tells who a credential belongs to, and issues and revokes tokens. Verify takes no lock: it reads one snapshot
// that issuing and revoking replace.
type Keyring struct {
	operator digest
	storage  Storage
	log      *slog.Logger
	tokens   atomic.Pointer[map[digest]*token]
	change   sync.Mutex // serialises replacing tokens; held across Storage so that the order of changes is the same in both
}

// NewKeyring reads the kept tokens. A row that does not read back is no token: it is logged and left where it is.
func NewKeyring(ctx context.Context, o Options) (*Keyring, error) {
	if o.OperatorKey == "" {
		return nil, ErrOperatorKey
	}
	k := &Keyring{operator: sha256.Sum256([]byte(o.OperatorKey)), storage: o.Storage, log: o.Log}
	rows, err := o.Storage.Tokens(ctx)
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	tokens := make(map[digest]*token, len(rows))
	for i := range rows {
		sum, t, err := read(&rows[i])
		if err != nil {
			k.log.Error("a stored token does not read back and is refused", "row", i, "error", err)
			continue
		}
		tokens[sum] = t
	}
	k.tokens.Store(&tokens)
	return k, nil
}

// Verify returns the principal that credential belongs to; ok is false for an unknown, revoked or expired one. It takes no
// lock, allocates nothing and costs about two SHA-256 blocks.
func (k *Keyring) Verify(credential string, now time.Time) (p Principal, ok bool) {
	if credential == "" {
		return Principal{}, false
	}
	sum := sum256(credential)
	if subtle.ConstantTimeCompare(sum[:], k.operator[:]) == 1 {
		return Principal{Kind: Operator, ID: "operator", Scope: Scope{Role: Admin}}, true
	}
	// The map compares hashes of random secrets, so what its timing tells about a hash tells nothing about a secret.
	t := (*k.tokens.Load())[sum]
	if t == nil {
		return Principal{}, false
	}
	second := now.Unix()
	if t.expired(second) {
		return Principal{}, false
	}
	if used := t.used.Load(); second-used >= int64(touchEvery/time.Second) {
		t.used.CompareAndSwap(used, second)
	}
	return t.who, true
}

// Issue makes a token of 32 random bytes. A ttl of 0 never expires; otherwise 1 s to MaxTTL.
func (k *Keyring) Issue(ctx context.Context, scope Scope, ttl time.Duration, label string) (Issued, error) {
	if ttl != 0 && (ttl < time.Second || ttl > MaxTTL) {
		return Issued{}, ErrTTL
	}
	if len(label) > MaxLabel || strings.ToValidUTF8(label, "") != label {
		return Issued{}, ErrLabel
	}
	text, err := json.Marshal(scope)
	if err != nil {
		return Issued{}, err
	}
	var secret [32]byte
	rand.Read(secret[:])
	out := Issued{Secret: hex.EncodeToString(secret[:])}
	sum := sum256(out.Secret)
	row := Row{Hash: hex.EncodeToString(sum[:]), Scope: string(text), Label: label, CreatedAt: time.Now().UTC().Truncate(time.Second)}
	if ttl != 0 {
		row.ExpiresAt = row.CreatedAt.Add(ttl.Truncate(time.Second))
	}
	_, t, err := read(&row) // what was written must read back; it also checks the scope's names
	if err != nil {
		return Issued{}, err
	}
	out.Info = t.info
	k.change.Lock()
	defer k.change.Unlock()
	if err := k.storage.SaveToken(ctx, row); err != nil {
		return Issued{}, fmt.Errorf("save token: %w", err)
	}
	k.replace(func(m map[digest]*token) { m[sum] = t })
	return out, nil
}

// Revoke makes the token of that hash unusable at once and reports whether there was one. Should the storage fail, the
// token stays unusable in this process and the error says that it may come back after a restart.
func (k *Keyring) Revoke(ctx context.Context, hash string) (bool, error) {
	sum, err := parseDigest(hash)
	if err != nil {
		return false, nil // not a hash: nothing has it
	}
	k.change.Lock()
	defer k.change.Unlock()
	k.replace(func(m map[digest]*token) { delete(m, sum) })
	found, err := k.storage.DropToken(ctx, hash)
	if err != nil {
		return false, fmt.Errorf("the token is refused now but may return after a restart: drop token: %w", err)
	}
	return found, nil
}

// List returns the unexpired tokens, oldest first.
func (k *Keyring) List() []Info {
	second := time.Now().Unix()
	tokens := *k.tokens.Load()
	list := make([]Info, 0, len(tokens))
	for _, t := range tokens {
		if t.expired(second) {
			continue
		}
		info := t.info
		if used := t.used.Load(); used != 0 {
			info.LastUsedAt = time.Unix(used, 0).UTC()
		}
		list = append(list, info)
	}
	slices.SortFunc(list, func(a, b Info) int {
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.Hash, b.Hash)
	})
	return list
}

// Run writes down when tokens were used, at most once a minute each, until ctx ends; then once more. The caller owns the
// goroutine it runs on.
func (k *Keyring) Run(ctx context.Context) {
	tick := time.NewTicker(touchEvery / 4)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			k.touch(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			k.touch(last)
			return
		}
	}
}

// touch writes the uses that the storage does not have yet. A failure is logged and tried again at the next turn: a use
// that is noted late is no reason to refuse anyone.
func (k *Keyring) touch(ctx context.Context) {
	for _, t := range *k.tokens.Load() {
		used := t.used.Load()
		if used == t.noted.Load() {
			continue
		}
		if err := k.storage.TouchToken(ctx, t.info.Hash, time.Unix(used, 0).UTC()); err != nil {
			k.log.Warn("the last use of a token was not written down", "token", t.info.Hash, "error", err)
			return
		}
		t.noted.Store(used)
	}
}

// replace swaps in a changed copy of the tokens. The caller holds change.
func (k *Keyring) replace(edit func(map[digest]*token)) {
	old := *k.tokens.Load()
	next := make(map[digest]*token, len(old)+1)
	second := time.Now().Unix()
	for sum, t := range old {
		if !t.expired(second) { // expired ones never work again; dropping them here bounds the snapshot
			next[sum] = t
		}
	}
	edit(next)
	k.tokens.Store(&next)
}

// read turns a kept row into a usable token, or says why it is none.
func read(row *Row) (digest, *token, error) {
	sum, err := parseDigest(row.Hash)
	if err != nil {
		return digest{}, nil, err
	}
	var scope Scope
	if err := scope.UnmarshalJSON([]byte(row.Scope)); err != nil {
		return digest{}, nil, err
	}
	t := &token{
		info: Info{Hash: row.Hash, Scope: scope, Label: row.Label, CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt, LastUsedAt: row.LastUsedAt},
		who:  Principal{Kind: Token, ID: row.Hash, Scope: scope},
	}
	if !row.ExpiresAt.IsZero() {
		t.until = row.ExpiresAt.Unix()
		if t.until <= 0 {
			return digest{}, nil, errors.New("the expiry lies before 1970")
		}
	}
	if !row.LastUsedAt.IsZero() {
		t.used.Store(row.LastUsedAt.Unix())
		t.noted.Store(row.LastUsedAt.Unix())
	}
	return sum, t, nil
}

func (t *token) expired(second int64) bool { return t.until != 0 && second >= t.until }

// parseDigest reads the one accepted spelling of a hash.
func parseDigest(hash string) (sum digest, err error) {
	if len(hash) != 2*len(sum) || strings.ToLower(hash) != hash {
		return digest{}, errors.New("the hash is not 64 lower-case hex digits")
	}
	_, err = hex.Decode(sum[:], []byte(hash))
	return sum, err
}

// sum256 hashes without allocating: a credential of the usual size is copied to the stack.
func sum256(s string) digest {
	var room [128]byte
	if len(s) <= len(room) {
		return sha256.Sum256(room[:copy(room[:], s)])
	}
	return sha256.Sum256([]byte(s))
}
