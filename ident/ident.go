// Package ident says who is asking: the principal behind a credential, what its scope covers, and one call as the server
// hands it to a wire handler.
//
// It refuses by default: the zero Principal is anonymous and covers nothing. Credentials are random and are kept and
// compared as SHA-256 hashes only. It knows no routes and no errors of a wire format: it answers who and whether.
//
// It starts no goroutine: whoever calls Keyring.Run gives it one, and stops it through the context.
package ident

// Kind says how a principal proved who it is.
type Kind uint8

// The kinds of principal.
const (
	Anonymous Kind = iota // no credential was checked: only public routes
	DevMode               // authentication is switched off on a loopback listener
	Operator              // the operator key
	Token                 // an issued token
)

// Role is how far a scope reaches.
type Role uint8

// The roles, widest last.
const (
	NoRole      Role = iota
	Reader           // one capsule: decide, reward and read
	TenantAdmin      // everything inside one tenant
	Admin            // everything
)

// Scope is what a credential covers. Tenant is set for TenantAdmin and Reader, Job and Capsule for Reader only.
type Scope struct {
	Role                 Role
	Tenant, Job, Capsule string
}

// Principal is who is asking.
type Principal struct {
	Kind  Kind
	ID    string // token hash in hex, "operator", or empty
	Scope Scope
	Wide  bool // a view of everything: Scope.Tenant is what it looks at, not what bounds it
}

// Call is one admitted request as a wire handler sees it, beside net/http's own two values. The server fills it and owns
// Body: the handler must not keep a reference after it returns.
type Call struct {
	Principal Principal
	RequestID string   // the caller's, or 16 fresh hex digits
	Params    []string // the percent-decoded values of the route's {names}, in order
	Body      []byte   // the whole body, already within the route's limit
	// Handled is set by a handler whose route has its own latency histogram: nanoseconds from parsed body to queued record.
	Handled int64
}
