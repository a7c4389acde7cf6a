package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"holdfast/fault"
	"holdfast/ident"
)

// The form of an API key: the prefix and 64 hex digits. shownKey is how much of it is kept in the clear, to tell keys apart.
const (
	keyPrefix = "DE_"
	keyLength = len(keyPrefix) + 64
	shownKey  = len(keyPrefix) + 8
)

// The bounds of a merchant's keys.
const (
	MaxKeys    = 1000 // that are not revoked
	maxRevoked = 1000 // that are still listed: the oldest are forgotten beyond that
	maxKeyText = 1024 // bytes
)

// KeyRow is an API key as stored: its SHA-256, never itself.
type KeyRow struct {
	ID          string // a UUID
	Merchant    MerchantID
	Hash        string // hex SHA-256 of the whole key
	Prefix      string // of the key, to tell keys apart
	Description string
	Active      bool // false: revoked
	CreatedMS   int64
}

// KeyView reads API keys.
type KeyView interface {
	KeyByHash(hash string) (KeyRow, error)
	Key(id string) (KeyRow, error)
	Keys(merchant int64) ([]KeyRow, error) // oldest first; none is not an error
	ActiveKeys(merchant int64) (int64, error)
}

// KeyTx changes them.
type KeyTx interface {
	CreateKey(merchant int64, k KeyRow) error
	RevokeKey(id string) error // again does nothing
	// PruneKeys forgets the revoked keys of a merchant but the newest keep.
	PruneKeys(merchant int64, keep int) error
}

// newKey makes a random key and the row to keep of it.
func newKey(m MerchantID, description string, ms int64) (key string, row KeyRow) {
	key = keyPrefix + randomHex(32)
	return key, KeyRow{ID: newUUID(), Merchant: m, Hash: hashOf(key), Prefix: key[:shownKey], Description: description, Active: true, CreatedMS: ms}
}

// CreateKey makes an API key for a merchant and returns it: it is not shown again. Invalid for a description that is too long
// or a merchant that has MaxKeys keys, NotFound when there is no such merchant.
func (s *Service) CreateKey(ctx context.Context, id MerchantID, description string) (string, KeyRow, error) {
	const op = "CreateKey"
	if err := checkMerchant(op, id); err != nil {
		return "", KeyRow{}, err
	}
	if len(description) > maxKeyText {
		return "", KeyRow{}, invalid(op, "description is longer than %d bytes", maxKeyText)
	}
	key, row := newKey(id, description, s.nowMS())
	err := s.write(ctx, func(tx Tx) error {
		m, err := tx.Merchant(id)
		if err != nil {
			return err
		}
		active, err := tx.ActiveKeys(m.Key)
		if err != nil {
			return err
		}
		if active >= MaxKeys {
			return invalid(op, "the merchant has %d keys: revoke one first", active)
		}
		if err := tx.PruneKeys(m.Key, maxRevoked); err != nil {
			return err
		}
		return tx.CreateKey(m.Key, row)
	}, nil)
	if err != nil {
		return "", KeyRow{}, named(err, id)
	}
	return key, row, nil
}

// Keys lists a merchant's keys, revoked ones too, oldest first. NotFound when there is no such merchant.
func (s *Service) Keys(ctx context.Context, id MerchantID) (all []KeyRow, err error) {
	if err := checkMerchant("Keys", id); err != nil {
		return nil, err
	}
	err = s.storage.Read(ctx, func(v View) error {
		m, err := v.Merchant(id)
		if err != nil {
			return named(err, id)
		}
		all, err = v.Keys(m.Key)
		return err
	})
	return all, err
}

// RevokeKey makes a key useless at once; revoking it again changes nothing. The caller's credential must cover the key's
// merchant: Forbidden. NotFound when there is no such key.
func (s *Service) RevokeKey(ctx context.Context, p ident.Principal, id string) error {
	var row KeyRow
	return s.write(ctx, func(tx Tx) (err error) {
		if row, err = tx.Key(id); err != nil {
			if fault.KindOf(err) == fault.NotFound {
				return notFound("RevokeKey", "API key %s not found", clip(id))
			}
			return err
		}
		if err := s.Covers(p, row.Merchant); err != nil {
			return err
		}
		return tx.RevokeKey(id)
	}, func() { s.keys.forget([]KeyRow{row}) })
}

// apiKey returns the key and the merchant that a key's text stands for. Unauthenticated when it stands for none.
func (s *Service) apiKey(ctx context.Context, key string, now time.Time) (id string, m MerchantID, err error) {
	if len(key) != keyLength || !strings.HasPrefix(key, keyPrefix) {
		return "", "", errBadKey
	}
	var text [keyLength]byte // a conversion would allocate
	copy(text[:], key)
	hash := keyHash(sha256.Sum256(text[:]))
	known, generation := s.keys.find(hash, now)
	if known == nil {
		if known, err = s.lookUpKey(ctx, hash); err != nil {
			return "", "", err
		}
		known = s.keys.keep(hash, known, generation)
	}
	if known.id == "" {
		return "", "", errBadKey
	}
	return known.id, known.merchant, nil
}

// lookUpKey asks the store for a key. One that is not there or revoked has an empty id.
func (s *Service) lookUpKey(ctx context.Context, hash keyHash) (*keyEntry, error) {
	e := &keyEntry{until: s.options.Now().Add(absentFor)}
	err := s.storage.Read(ctx, func(v View) error {
		row, err := v.KeyByHash(hex.EncodeToString(hash[:]))
		if err == nil && row.Active {
			e = &keyEntry{id: row.ID, merchant: row.Merchant}
		}
		return err
	})
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return nil, err
	}
	return e, nil
}

// keyParts is how many parts the cache of keys has; each keeps at most keysMost keys, and as many that do not exist.
const (
	keyParts = 64
	keysMost = 2048
)

type keyHash [sha256.Size]byte

// keyEntry is what is known of a key.
type keyEntry struct {
	id       string // empty when there is no such key
	merchant MerchantID
	until    time.Time // of one that does not exist: when to look again
}

// keyCache remembers the keys that were shown lately, by their hashes. A key is forgotten when it is revoked, before the
// revocation is answered; a look-up that began before that does not bring it back.
type keyCache struct {
	seed  maphash.Seed
	parts [keyParts]keyPart
}

type keyPart struct {
	mu         sync.RWMutex // guards all below; held for a look-up
	good, bad  map[keyHash]*keyEntry
	generation uint64 // grows when keys are forgotten
}

func (c *keyCache) open() {
	c.seed = maphash.MakeSeed()
	for i := range c.parts {
		c.parts[i].good, c.parts[i].bad = map[keyHash]*keyEntry{}, map[keyHash]*keyEntry{}
	}
}

func (c *keyCache) part(h keyHash) *keyPart { return &c.parts[maphash.Comparable(c.seed, h)%keyParts] }

// find returns what is known of a key, nil when it has to be looked up; the generation goes to keep then.
func (c *keyCache) find(h keyHash, now time.Time) (e *keyEntry, generation uint64) {
	p := c.part(h)
	p.mu.RLock()
	defer p.mu.RUnlock()
	if e = p.good[h]; e == nil {
		if e = p.bad[h]; e != nil && !now.Before(e.until) {
			e = nil
		}
	}
	return e, p.generation
}

// keep remembers what a look-up found and returns it. When a key was forgotten since the look-up began, nothing is
// remembered. A full part forgets some: they cost a look-up each.
func (c *keyCache) keep(h keyHash, e *keyEntry, generation uint64) *keyEntry {
	p := c.part(h)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.generation != generation {
		return e
	}
	into := p.good
	if e.id == "" {
		into = p.bad
	} else {
		delete(p.bad, h)
	}
	for other := range into {
		if len(into) < keysMost {
			break
		}
		delete(into, other)
	}
	into[h] = e
	return e
}

// forget makes the keys be looked up again.
func (c *keyCache) forget(rows []KeyRow) {
	for i := range rows {
		var h keyHash
		if n, err := hex.Decode(h[:], []byte(rows[i].Hash)); err != nil || n != len(h) {
			continue // no key hashes to it
		}
		p := c.part(h)
		p.mu.Lock()
		delete(p.good, h)
		p.generation++
		p.mu.Unlock()
	}
}
