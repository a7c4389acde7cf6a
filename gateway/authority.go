package gateway

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"strings"
	"time"

	"holdfast/fault"
	"holdfast/ident"
)

// Credentials are what a caller shows: the values of three headers, and whether they were there at all.
type Credentials struct {
	Authorization, AdminSecret, APIKey string
	HasAuthorization, HasAdminSecret   bool
}

// The permissions a session may carry. An API key and the admin secret carry both.
const (
	PermissionRead  = "routing:read"
	PermissionWrite = "routing:write"
)

// The refusals of a credential. They say what was wrong with it and never repeat it.
var (
	errNoKey   = fault.New("gateway.Identify", fault.Unauthenticated, "an API key is required")
	errBadKey  = fault.New("gateway.Identify", fault.Unauthenticated, "the API key is unknown or revoked")
	errSecret  = fault.New("gateway.Identify", fault.Unauthenticated, "the admin secret is wrong or missing")
	errSession = fault.New("gateway.Identify", fault.Unauthenticated, "the session is invalid or has ended")
)

// Identify says who is asking. The first of these that applies decides, and a later one never rescues it: a bearer token, the
// admin secret, authentication being off, an API key. Unauthenticated when what was shown is not good. The principal's role
// tells what a session may: TenantAdmin reads and writes, Reader reads, NoRole neither.
func (s *Service) Identify(ctx context.Context, c Credentials, now time.Time) (ident.Principal, error) {
	if token, there := bearer(c); there {
		session, err := s.Session(token)
		if err != nil {
			return ident.Principal{}, err
		}
		return session.principal(), nil
	}
	switch {
	case c.HasAdminSecret:
		if err := s.CheckSecret(c.AdminSecret); err != nil {
			return ident.Principal{}, err
		}
		return ident.Principal{Kind: ident.Operator, ID: "operator"}, nil
	case s.options.Deployment.APIKeysOff:
		return ident.Principal{Kind: ident.DevMode}, nil
	case c.APIKey == "":
		return ident.Principal{}, errNoKey
	}
	id, merchant, err := s.apiKey(ctx, c.APIKey, now)
	if err != nil {
		return ident.Principal{}, err
	}
	return ident.Principal{Kind: ident.Token, ID: id, Scope: ident.Scope{Role: ident.TenantAdmin, Tenant: string(merchant)}}, nil
}

// bearer returns the token of an Authorization header that has that scheme. One with another scheme, such as what a proxy
// adds for itself, is as good as none.
func bearer(c Credentials) (token string, there bool) {
	if !c.HasAuthorization || !IsBearer(c.Authorization) {
		return "", false
	}
	_, token, _ = strings.Cut(strings.TrimLeft(c.Authorization, " "), " ")
	return strings.TrimSpace(token), true
}

// IsBearer reports whether the value of an Authorization header has the scheme of sessions, in any case.
func IsBearer(authorization string) bool {
	scheme, _, _ := strings.Cut(strings.TrimLeft(authorization, " "), " ")
	return strings.EqualFold(scheme, "bearer")
}

// Bearer opens the session of a caller whose route takes nothing else. Unauthenticated without a good one.
func (s *Service) Bearer(c Credentials) (Session, error) {
	token, there := bearer(c)
	if !there {
		return Session{}, errSession
	}
	return s.Session(token)
}

// CheckSecret returns Unauthenticated unless given is the admin secret. Without a configured secret nothing is.
func (s *Service) CheckSecret(given string) error {
	want, got := sha256.Sum256([]byte(s.options.AdminSecret)), sha256.Sum256([]byte(given))
	if subtle.ConstantTimeCompare(want[:], got[:]) == 0 || s.options.AdminSecret == "" {
		return errSecret
	}
	return nil
}

// Covers returns nil when the principal reaches the merchant: its own, or every one for the operator, a super admin's view,
// and where credentials are permissive or off. Otherwise it is Forbidden, whether or not the merchant exists.
func (s *Service) Covers(p ident.Principal, m MerchantID) error {
	switch {
	case p.Kind == ident.Operator, p.Kind == ident.DevMode:
		return nil
	case p.Kind != ident.Token:
		return errNoKey
	case p.Wide, s.options.Permissive, p.Scope.Tenant == string(m) && m != "":
		return nil
	}
	return fault.New("gateway.Covers", fault.Forbidden, "the credential belongs to another merchant than %s", clip(string(m)))
}

// Reads returns Forbidden when the principal's session lacks routing:read.
func Reads(p ident.Principal) error { return permits(p, ident.Reader, PermissionRead) }

// Writes returns Forbidden when the principal's session lacks routing:write.
func Writes(p ident.Principal) error { return permits(p, ident.TenantAdmin, PermissionWrite) }

func permits(p ident.Principal, least ident.Role, permission string) error {
	switch {
	case p.Kind == ident.Operator, p.Kind == ident.DevMode:
		return nil
	case p.Kind != ident.Token:
		return errNoKey
	case p.Scope.Role < least:
		return fault.New("gateway.Permits", fault.Forbidden, "the session lacks the permission %s", permission)
	}
	return nil
}
