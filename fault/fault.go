// Package fault is the one error type of Holdfast: what failed, of which kind, and what the caller may be told.
//
// A service returns *Error; wire/reply alone turns a Kind into a status of its dialect. An error that is not an *Error is
// Internal: its text stays in the log. Msg is written for the caller and never holds a credential or a payload.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what sort of failure it was; it decides the status a caller sees.
type Kind uint8

// The kinds. The comment gives the status that HTTP dialects use unless their spec says otherwise.
const (
	Internal        Kind = iota // 500: our fault; the text stays in the log
	Invalid                     // 400: the request is wrong
	Unauthenticated             // 401: no credential, or an unknown one
	Forbidden                   // 403: the credential does not cover it
	NotFound                    // 404: no such thing
	Timeout                     // 408: the caller was too slow
	Conflict                    // 409: it contradicts what is stored
	TooLarge                    // 413: more than is accepted at once
	Exhausted                   // 429: refused by rate or budget; see RetryAfter
	Unavailable                 // 503: cannot be done now, may work later; see RetryAfter
	NotAllowed                  // 405: the path exists, the method does not; 404 where a dialect says so
	Unsupported                 // 415: a body of a type that is not taken
	Unfit                       // 422: well-formed, but not of the form asked for; 400 where a dialect says so
)

var names = [...]string{"internal", "invalid", "unauthenticated", "forbidden", "not found", "timeout", "conflict",
	"too large", "exhausted", "unavailable", "not allowed", "unsupported", "unfit"}

// String returns the kind's name in lower case.
func (k Kind) String() string {
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// Error is a failure with a kind and a message for the caller.
type Error struct {
	Op         string        // the operation that failed, such as "decision.Decide"
	Kind       Kind          // decides the status
	Msg        string        // for the caller; empty falls back to the kind's name
	RetryAfter time.Duration // when to come back; 0 when unknown or pointless
	Err        error         // the cause, for the log; may be nil
}

// New returns an Error of the given kind whose message is formatted for the caller.
func New(op string, kind Kind, format string, args ...any) *Error {
	msg := format
	if len(args) > 0 {
		msg = fmt.Sprintf(format, args...)
	}
	return &Error{Op: op, Kind: kind, Msg: msg}
}

// Wrap returns an Error of the given kind that keeps cause for the log and tells the caller msg.
func Wrap(op string, kind Kind, cause error, msg string) *Error {
	return &Error{Op: op, Kind: kind, Msg: msg, Err: cause}
}

// Error describes the failure for the log, the cause included.
func (e *Error) Error() string {
	text := e.Op + ": " + e.Message()
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Message is what the caller may be told.
func (e *Error) Message() string {
	if e.Msg != "" {
		return e.Msg
	}
	return e.Kind.String()
}

// KindOf returns the kind of the first *Error in err's chain, Internal when there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// RetryAfter returns when the caller should come back, or 0 when err does not say.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// MessageOf returns what a caller may be told of err: the message of the first *Error in its chain, "internal" without one.
func MessageOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Message()
	}
	return Internal.String()
}
