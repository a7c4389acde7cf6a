package server

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"slices"
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
type requestIDs struct{ left, uuids []string }

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

// nextUUID returns a header value with one fresh random UUID.
func (r *requestIDs) nextUUID() []string {
	if len(r.uuids) == 0 {
		const bytes, text = 16, 36
		var random [idsAtOnce * bytes]byte
		rand.Read(random[:])
		all := make([]byte, 0, idsAtOnce*text)
		for b := range slices.Chunk(random[:], bytes) {
			b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // version 4, the variant of RFC 9562
			for _, part := range [...][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
				if len(all)%text != 0 {
					all = append(all, '-')
				}
				all = hex.AppendEncode(all, part)
			}
		}
		made := string(all)
		r.uuids = make([]string, idsAtOnce)
		for i := range r.uuids {
			r.uuids[i] = made[i*text : (i+1)*text]
		}
	}
	id := r.uuids[:1:1]
	r.uuids = r.uuids[1:]
	return id
}

// of returns the header value that a request's answer carries: the caller's own id if it is fit, else a fresh one.
func (r *requestIDs) of(h http.Header, uuid bool) []string {
	lowest := byte('!')
	if uuid {
		lowest = ' '
	}
	if given := h[requestIDHeader]; len(given) == 1 && validRequestID(given[0], lowest) {
		return given
	}
	if uuid {
		return r.nextUUID()
	}
	return r.next()
}

// validRequestID reports whether s is 1 to 128 printable ASCII characters from lowest on.
func validRequestID(s string, lowest byte) bool {
	if s == "" || len(s) > maxRequestID {
		return false
	}
	for i := range len(s) {
		if s[i] < lowest || s[i] > '~' {
			return false
		}
	}
	return true
}
