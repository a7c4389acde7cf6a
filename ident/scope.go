package ident

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
)

// Need is what a call asks of a scope: a role at least, at a place. The zero Need is satisfied by nobody but an admin.
type Need struct {
	Role                 Role   // Reader, TenantAdmin or Admin; the narrowest role that may
	Tenant, Job, Capsule string // the place; Job and Capsule matter to readers only
}

// Covers reports whether the scope satisfies n. A wider role does wherever its own place contains n's.
func (s Scope) Covers(n Need) bool {
	switch s.Role {
	case Admin:
		return true
	case TenantAdmin:
		return (n.Role == TenantAdmin || n.Role == Reader) && s.Tenant != "" && s.Tenant == n.Tenant
	case Reader:
		return n.Role == Reader && s.Tenant != "" && s.Job != "" && s.Capsule != "" &&
			s.Tenant == n.Tenant && s.Job == n.Job && s.Capsule == n.Capsule
	}
	return false
}

// Allows reports whether the principal may do what n asks for.
func (p Principal) Allows(n Need) bool {
	switch p.Kind {
	case DevMode, Operator:
		return true
	case Token:
		return p.Scope.Covers(n)
	}
	return false
}

// ErrScope is wrapped by every refusal of a scope's text or members; the wrapping text is fit for the caller.
var ErrScope = errors.New("invalid scope")

// nameBytes bounds the names of tenants, jobs and capsules.
const nameBytes = 128

// ValidName reports whether s can name a tenant, a job or a capsule: 1 to 128 of A-Z a-z 0-9 _ - and . where the first is
// not a dot.
func ValidName(s string) bool {
	if s == "" || len(s) > nameBytes || s[0] == '.' {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '.':
		default:
			return false
		}
	}
	return true
}

// scopeText is the foreign form of a Scope. Pointers tell an absent member from an empty one: both are refused where they
// do not belong.
type scopeText struct {
	Kind    string  `json:"kind"`
	Tenant  *string `json:"tenant,omitempty"`
	Job     *string `json:"job,omitempty"`
	Capsule *string `json:"capsule,omitempty"`
}

// The words for the three roles.
const (
	kindAdmin       = "admin"
	kindTenantAdmin = "tenant_admin"
	kindRead        = "read"
)

// MarshalJSON writes the scope in its one JSON form; a scope without a role is an error.
func (s Scope) MarshalJSON() ([]byte, error) {
	var t scopeText
	switch s.Role {
	case Admin:
		t.Kind = kindAdmin
	case TenantAdmin:
		t.Kind, t.Tenant = kindTenantAdmin, &s.Tenant
	case Reader:
		t = scopeText{Kind: kindRead, Tenant: &s.Tenant, Job: &s.Job, Capsule: &s.Capsule}
	default:
		return nil, fmt.Errorf("%w: it has no role", ErrScope)
	}
	return json.Marshal(&t)
}

// UnmarshalJSON reads exactly the forms that MarshalJSON writes: an unknown member, a member of another kind's form, a
// missing or a bad name are errors that wrap ErrScope.
func (s *Scope) UnmarshalJSON(text []byte) error {
	var t scopeText
	if bytes.Equal(bytes.TrimSpace(text), []byte("null")) {
		return fmt.Errorf("%w: it must be an object", ErrScope)
	}
	err := json.Unmarshal(text, &t, json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(false))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrScope, err)
	}
	scope, err := t.scope()
	if err != nil {
		return err
	}
	*s = scope
	return nil
}

// scope checks that exactly the members of the kind are there.
func (t *scopeText) scope() (Scope, error) {
	var s Scope
	want := 0
	switch t.Kind {
	case kindAdmin:
		s.Role = Admin
	case kindTenantAdmin:
		s.Role, want = TenantAdmin, 1
	case kindRead:
		s.Role, want = Reader, 3
	default:
		return Scope{}, fmt.Errorf("%w: unknown kind %q, use admin, tenant_admin or read", ErrScope, t.Kind)
	}
	for i, m := range []struct {
		name string
		from *string
		to   *string
	}{{"tenant", t.Tenant, &s.Tenant}, {"job", t.Job, &s.Job}, {"capsule", t.Capsule, &s.Capsule}} {
		switch {
		case i >= want && m.from != nil:
			return Scope{}, fmt.Errorf("%w: %s does not belong to kind %s", ErrScope, m.name, t.Kind)
		case i < want && m.from == nil:
			return Scope{}, fmt.Errorf("%w: kind %s needs %s", ErrScope, t.Kind, m.name)
		case i < want && !ValidName(*m.from):
			return Scope{}, fmt.Errorf("%w: %s is not a valid name", ErrScope, m.name)
		case i < want:
			*m.to = *m.from
		}
	}
	return s, nil
}
