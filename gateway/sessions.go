package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"holdfast/fault"
	"holdfast/ident"
)

// SessionOptions are what users and their sessions go by; zero values take the defaults named.
type SessionOptions struct {
	Life              time.Duration // 24 h
	RedirectLife      time.Duration // of a session that a merchant-token code was exchanged for; Life
	PasswordCost      int           // bcrypt's, 4 to 31; 12
	Hashes            int           // passwords hashed at once, each for about 280 ms of one core at cost 12; 1
	EmailVerification bool          // e-mails of new users count as unverified until a token shows that they are read
	OpenSignup        bool          // sign-up needs no admin secret: anybody may join any merchant; for development only
	SuperAdmins       []string      // e-mails of users who may look into every merchant
}

// tokenBytes bounds a session's token as sent.
const tokenBytes = 8192

// The kinds of session; the text is the wire's token_type.
const (
	sessionStandard = "standard"
	sessionRedirect = "hs_redirect"
	sessionView     = "super_admin_view"
)

// Session is what a valid token says about its bearer.
type Session struct {
	ID       string // names the session in the deny list
	UserID   string
	Email    string
	Merchant MerchantID // empty while the user belongs to none
	Role     Role
	Kind     string   // standard, hs_redirect or super_admin_view
	Perms    []string // what it may; nil is everything
	Issued   time.Time
	Expires  time.Time
}

// View reports whether a super admin looks into a merchant with it.
func (s Session) View() bool { return s.Kind == sessionView }

// Allows reports whether the session carries a permission.
func (s Session) Allows(permission string) bool {
	return s.Perms == nil || slices.Contains(s.Perms, permission)
}

// Permissions lists what the session may.
func (s Session) Permissions() []string {
	if s.Perms == nil {
		return []string{PermissionRead, PermissionWrite}
	}
	return s.Perms
}

func (s Session) principal() ident.Principal {
	p := ident.Principal{Kind: ident.Token, ID: s.UserID, Wide: s.View()}
	p.Scope.Tenant = string(s.Merchant)
	switch {
	case !s.Allows(PermissionRead):
	case s.Allows(PermissionWrite):
		p.Scope.Role = ident.TenantAdmin
	default:
		p.Scope.Role = ident.Reader
	}
	return p
}

// claims is a session on the wire. A member that other makers of tokens leave out has a meaning of its own: no token_type is
// a standard session, no perms are all, no user_id is sub.
type claims struct {
	jwt.RegisteredClaims
	UserID   string   `json:"user_id"`
	Email    string   `json:"email"`
	Merchant string   `json:"merchant_id"`
	Role     string   `json:"role"`
	Kind     string   `json:"token_type,omitempty"`
	Perms    []string `json:"perms,omitempty"`
	Grant    any      `json:"grant,omitempty"` // others' business: taken in any form
}

// sessionKeeper signs and checks tokens, and knows which sessions ended early.
type sessionKeeper struct {
	options SessionOptions
	secret  []byte
	parser  *jwt.Parser
	ended   endings
	codes   codes
	hashes  hasher
}

func (k *sessionKeeper) open(all *Options) {
	o := all.Sessions
	if k.secret = all.SessionSecret; len(k.secret) == 0 {
		k.secret = make([]byte, 32)
		_, _ = rand.Read(k.secret) // never fails
	}
	if o.Life <= 0 {
		o.Life = 24 * time.Hour
	}
	if o.RedirectLife <= 0 {
		o.RedirectLife = o.Life
	}
	k.options = o
	k.parser = jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithExpirationRequired(), jwt.WithTimeFunc(all.Now))
	k.ended.open()
	k.hashes.open(o)
}

// loadEndings puts into effect what was ended before the last stop.
func (s *Service) loadEndings(v View) error {
	now := s.options.Now()
	all, err := v.Endings(now.Unix())
	for _, one := range all {
		s.sessions.ended.add(one, now)
	}
	return err
}

// Session opens a token: Unauthenticated unless it was signed here, has not expired and has not been ended.
func (s *Service) Session(token string) (Session, error) {
	session, err := s.parse(token)
	if err != nil {
		return Session{}, err
	}
	if s.sessions.ended.covers(&session) {
		return Session{}, errSession
	}
	return session, nil
}

// parse is Session without the deny list.
func (s *Service) parse(token string) (Session, error) {
	if token == "" || len(token) > tokenBytes {
		return Session{}, errSession
	}
	var c claims
	_, err := s.sessions.parser.ParseWithClaims(token, &c, func(*jwt.Token) (any, error) { return s.sessions.secret, nil })
	if err != nil {
		if errors.Is(err, jwt.ErrTokenExpired) {
			return Session{}, errExpired
		}
		return Session{}, errSession
	}
	session := Session{ID: c.ID, UserID: c.UserID, Email: c.Email, Merchant: MerchantID(c.Merchant), Role: roleOf(c.Role), Kind: c.Kind,
		Perms: c.Perms, Expires: c.ExpiresAt.Time}
	if c.IssuedAt != nil {
		session.Issued = c.IssuedAt.Time
	}
	if session.UserID == "" {
		session.UserID = c.Subject
	}
	if session.ID == "" { // it can still be ended: by what it is
		sum := sha256.Sum256([]byte(token))
		session.ID = "sha256:" + hex.EncodeToString(sum[:])
	}
	switch session.Kind {
	case "":
		session.Kind = sessionStandard
	case sessionStandard, sessionRedirect, sessionView:
	default:
		return Session{}, errSession
	}
	if session.UserID == "" || len(session.ID) > MaxName || len(session.UserID) > MaxName {
		return Session{}, errSession
	}
	return session, nil
}

var errExpired = fault.New("gateway.Identify", fault.Unauthenticated, "the session has expired")

// sign makes the token of a new session, and fills what the session does not say yet: its id, its times and its kind.
func (s *Service) sign(session *Session) (string, error) {
	now, life := s.options.Now(), s.sessions.options.Life
	if session.Kind == "" {
		session.Kind = sessionStandard
	}
	if session.Kind == sessionRedirect {
		life = s.sessions.options.RedirectLife
	}
	session.ID = newUUID()
	session.Issued = s.sessions.ended.after(session, now)
	session.Expires = now.Add(life).Truncate(time.Second)
	return jwt.NewWithClaims(jwt.SigningMethodHS256, &claims{
		RegisteredClaims: jwt.RegisteredClaims{Subject: session.UserID, ID: session.ID,
			IssuedAt: jwt.NewNumericDate(session.Issued), ExpiresAt: jwt.NewNumericDate(session.Expires)},
		UserID: session.UserID, Email: session.Email, Merchant: string(session.Merchant), Role: string(session.Role),
		Kind: session.Kind, Perms: session.Perms,
	}).SignedString(s.sessions.secret)
}

// Logout ends the session of a token for good. It may be repeated with the same token. Unauthenticated when the token was
// never good.
func (s *Service) Logout(ctx context.Context, c Credentials) error {
	token, there := bearer(c)
	if !there {
		return errSession
	}
	session, err := s.parse(token)
	if err != nil {
		return err
	}
	if s.sessions.ended.covers(&session) {
		return nil
	}
	return s.end(ctx, s.sessions.ended.one(&session))
}

// end puts an ending on disk and, once it is there, into effect.
func (s *Service) end(ctx context.Context, e Ending) error {
	return s.write(ctx, func(tx Tx) error { return s.storeEnding(tx, e) }, func() { s.sessions.ended.add(e, s.options.Now()) })
}

func (s *Service) storeEnding(tx Tx, e Ending) error {
	if err := tx.DropEndings(s.options.Now().Unix()); err != nil {
		return err
	}
	old, err := tx.Ending(e.Key)
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return err
	}
	return tx.PutEnding(old.with(e))
}
