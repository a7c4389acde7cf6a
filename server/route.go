package server

import (
	"net/http"
	"time"

	"holdfast/admission"
	"holdfast/ident"
)

// Access says whose credential opens a route. The place that a scope must cover is named by the path's own parameters
// {tenant}, {job} and {capsule}.
type Access uint8

// The kinds of access, closed by default: the zero value is for administrators only.
const (
	Admins       Access = iota // the operator, or an admin token
	TenantAdmins               // besides, the tenant_admin token of {tenant}
	Readers                    // besides, the read token of {tenant}, {job} and {capsule}
	Credential                 // anyone with a valid credential; the handler looks closer
	Public                     // nobody is asked who they are
)

// Handler answers one admitted request. c and all it holds belong to the server again when the handler returns. A route
// whose calls enter the decide histogram sets c.Handled before it writes.
type Handler func(w http.ResponseWriter, r *http.Request, c *ident.Call)

// Refusal answers a request with an error, in the words of one wire format.
type Refusal func(w http.ResponseWriter, r *http.Request, err error)

// Identify finds out who is asking, from the headers of a request alone. What it returns as an error is the refusal.
type Identify func(r *http.Request, now time.Time) (ident.Principal, error)

// Tally is told of every answer of a route, once, when its status is sent: the status and the time since the request's turn
// began. It must not block.
type Tally func(status int, took time.Duration)

// Route is one row of a route table.
type Route struct {
	Method string // one method; a GET route answers HEAD as well
	// Path begins with a slash. A segment {name} matches one segment that is not empty, {name...} at the end matches the
	// rest of the path, slashes included, empty or not. A literal segment wins over a {name}.
	Path    string
	Label   string          // the value of the metric label route
	Class   admission.Class // who is shed first when there is too much to do
	Access  Access
	Infra   bool    // answers without a rate, such as /health
	MaxBody int64   // bytes, inclusive; 0 is Limits.MaxBody
	Job     string  // the {job} of a Readers path that has none
	Refuse  Refusal // nil takes the table's
	Handler Handler

	Identify Identify        // nil asks the keyring, and everybody may in dev mode
	Gate     *admission.Gate // nil takes the table's
	Tally    Tally           // beside the count under Label; may be nil
	UUIDs    bool            // a request id made here is a UUID, and the caller's may have spaces
}

// Table is everything one listener answers.
type Table struct {
	Routes []Route
	Refuse Refusal // for what no route matched, and for routes without their own
	// Twins is a path prefix, such as "/v1". A route under it also answers on its path without the prefix, unless a row has
	// that path itself; the answer then says that it is deprecated and what succeeds it.
	Twins string
	Gate  *admission.Gate // nil admits everything, always
	// Identify and UUIDs are as in Route, for what no route matches.
	Identify Identify
	UUIDs    bool
}
