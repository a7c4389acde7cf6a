package server

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
)

// The header of request ids, in the spelling of http.Header, and the most of one that is accepted.
const (
	requestIDHeader = "X-Request-Id"
	maxRequestID    = 128
)

// idsAtOnce is how many ids are made in one go: one read of the system's randomness and two allocations for all of them.
const idsAtOnce = 64

// idBytes of randomness make one id of twice as many hex digits.
const idBytes = 8

// requestIDs hands out fresh ids. It is not safe for concurrent use; each pooled response has its own.
type requestIDs struct{ left []string }

// next returns a header value with one fresh id of 16 hex digits.
func (r *requestIDs) next() []string {
	if len(r.left) == 0 {
		var random [idsAtOnce * idBytes]byte
		rand.Read(random[:])
		text := hex.EncodeToString(random[:])
		r.left = make([]string, idsAtOnce)
		for i := range r.left {
			r.left[i] = text[i*2*idBytes : (i+1)*2*idBytes]
		}
	}
	id := r.left[:1:1]
	r.left = r.left[1:]
	return id
}

// of returns the header value that a request's answer carries: the caller's own id if it is fit, else a fresh one.
func (r *requestIDs) of(h http.Header) []string {
	if given := h[requestIDHeader]; len(given) == 1 && validRequestID(given[0]) {
		return given
	}
	return r.next()
}

// validRequestID reports whether s is 1 to 128 printable ASCII characters without spaces.
func validRequestID(s string) bool {
	if s == "" || len(s) > maxRequestID {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
