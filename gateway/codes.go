package gateway

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/fault"
)

// The bounds of merchant-token codes and of a look-up.
const (
	CodeLife   = time.Minute // how long a code may be exchanged
	codesMost  = 10_000      // codes that wait to be exchanged
	lookupMost = 50          // merchants that one look-up finds
)

// codes are the merchant-token codes that wait to be exchanged. They live in memory only: a restart costs whoever holds one
// another call.
type codes struct {
	mu   sync.Mutex // guards open; held for a look-up, or for one sweep when the list is full
	open map[[sha256.Size]byte]code
}

type code struct {
	merchant MerchantID
	until    time.Time
}

// put keeps a code; false when too many wait.
func (c *codes) put(text string, one code, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[[sha256.Size]byte]code{}
	}
	if len(c.open) >= codesMost {
		for key, old := range c.open {
			if !now.Before(old.until) {
				delete(c.open, key)
			}
		}
	}
	if len(c.open) >= codesMost {
		return false
	}
	c.open[sha256.Sum256([]byte(text))] = one
	return true
}

// take returns the merchant of a code and forgets the code.
func (c *codes) take(text string, now time.Time) (MerchantID, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := sha256.Sum256([]byte(text))
	one, there := c.open[key]
	delete(c.open, key)
	return one.merchant, there && now.Before(one.until)
}

// MerchantCode makes a code that opens one session at the merchant within CodeLife; the caller has shown the admin secret.
// NotFound when there is no such merchant, Exhausted when too many codes wait.
func (s *Service) MerchantCode(ctx context.Context, m MerchantID) (string, error) {
	if _, err := s.merchantRow(ctx, m); err != nil {
		return "", err
	}
	text, now := randomHex(32), s.options.Now()
	if !s.sessions.codes.put(text, code{m, now.Add(CodeLife)}, now) {
		return "", &fault.Error{Op: "gateway.MerchantCode", Kind: fault.Exhausted, Msg: "too many codes wait to be exchanged", RetryAfter: CodeLife}
	}
	return text, nil
}

// merchantRow reads a merchant without keeping its settings in memory.
func (s *Service) merchantRow(ctx context.Context, m MerchantID) (row MerchantRow, err error) {
	err = s.storage.Read(ctx, func(v View) (err error) {
		row, err = v.Merchant(m)
		return named(err, m)
	})
	return row, err
}

// ExchangeCode opens the session that a code stands for: an admin's at its merchant, of a user named after the merchant.
// Unauthenticated when the code is unknown, used or too old.
func (s *Service) ExchangeCode(ctx context.Context, text string) (SignedIn, error) {
	m, ok := s.sessions.codes.take(text, s.options.Now())
	if !ok {
		return SignedIn{}, fault.New("gateway.ExchangeCode", fault.Unauthenticated, "the code is unknown, used or expired")
	}
	row, err := s.merchantRow(ctx, m)
	if err != nil {
		return SignedIn{}, err
	}
	return s.signed(Session{UserID: "hs_" + string(m), Merchant: m, Role: RoleAdmin, Kind: sessionRedirect},
		[]Membership{membershipOf(row, RoleAdmin)})
}

// superAdmin reports whether an e-mail is on the roster. Nobody signs up or is invited with such an e-mail without the admin
// secret, so whoever has a session with it is the one.
func (s *Service) superAdmin(email string) bool {
	return email != "" && slices.ContainsFunc(s.sessions.options.SuperAdmins, func(one string) bool {
		return strings.EqualFold(strings.TrimSpace(one), email)
	})
}

var errSuperAdmin = fault.New("gateway.SuperAdmin", fault.Forbidden, "only a super admin may do this")

// EnterMerchant opens a super admin's view of any merchant. Forbidden for everybody else, NotFound when there is no such
// merchant.
func (s *Service) EnterMerchant(ctx context.Context, session Session, m MerchantID) (SignedIn, error) {
	if !s.superAdmin(session.Email) {
		return SignedIn{}, errSuperAdmin
	}
	if _, err := s.merchantRow(ctx, m); err != nil {
		return SignedIn{}, err
	}
	members, err := s.memberships(ctx, session.UserID)
	if err != nil {
		return SignedIn{}, err
	}
	session.Kind, session.Merchant, session.Role = sessionView, m, RoleAdmin
	return s.signed(session, members)
}

// ExitMerchant opens the super admin's own session again, at the merchant it joined first. Forbidden for everybody else.
func (s *Service) ExitMerchant(ctx context.Context, session Session) (SignedIn, error) {
	if !s.superAdmin(session.Email) {
		return SignedIn{}, errSuperAdmin
	}
	session.Merchant = ""
	return s.signIn(ctx, session)
}

// LookupMerchants finds merchants by a part of their id or name, in any case, at most 50 of them, ordered by id; none for an
// empty query. Forbidden for all but super admins.
func (s *Service) LookupMerchants(ctx context.Context, session Session, query string) (found []Membership, err error) {
	if !s.superAdmin(session.Email) {
		return nil, errSuperAdmin
	}
	if query = strings.TrimSpace(query); query == "" || len(query) > nameMost {
		return nil, nil
	}
	err = s.storage.Read(ctx, func(v View) (err error) {
		found, err = v.FindMerchants(query, lookupMost)
		return err
	})
	return found, err
}
