package server

import (
	"net/http"
	"sync/atomic"
	"time"

	"holdfast/fault"
)

// smallBody is what every request may hold of its body. What goes beyond is taken from a room that all large bodies share:
// a body is read before its sender is known, so without one a few thousand strangers could fill the memory of the machine.
const smallBody = 64 << 10

// strangersShare is the part of the room for large bodies that senders without a valid credential may fill, so that they
// cannot keep known callers out.
const strangersShare = 4

// room is memory for large bodies.
type room struct{ left atomic.Int64 }

// take reserves n bytes; it reports false, and reserves nothing, when they are not there.
func (r *room) take(n int64) bool {
	if r.left.Add(-n) < 0 {
		r.left.Add(n)
		return false
	}
	return true
}

// rooms are the two parts of the room for large bodies.
type rooms struct{ callers, strangers room }

func newRooms(bytes int64) *rooms {
	r := new(rooms)
	r.strangers.left.Store(bytes / strangersShare)
	r.callers.left.Store(bytes - bytes/strangersShare)
	return r
}

// lease is what one request holds of a room.
type lease struct {
	room *room
	held int64
}

// extend makes the lease cover a body of size bytes.
func (l *lease) extend(size int64) bool {
	more := size - smallBody - l.held
	if more <= 0 {
		return true
	}
	if !l.room.take(more) {
		return false
	}
	l.held += more
	return true
}

// end gives everything back.
func (l *lease) end() {
	if l.held > 0 {
		l.room.left.Add(l.held)
		l.held = 0
	}
}

// roomFor is the part of the room that the sender of a large body may use.
func (s *Server) roomFor(h http.Header, now time.Time) *room {
	if s.dev {
		return &s.rooms.callers
	}
	if _, known := s.keys.Verify(credential(h), now); known {
		return &s.rooms.callers
	}
	return &s.rooms.strangers
}

// noRoom is the refusal of a large body while others fill the room.
func noRoom() error {
	return &fault.Error{Op: "server.readBody", Kind: fault.Unavailable, RetryAfter: time.Second,
		Msg: "too many large bodies are on their way; try again later"}
}
