package server

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"holdfast/fault"
)

// The sizes of the body buffers that are kept between requests. What is kept belongs to no request, so it is never large.
const (
	firstBuffer = 4 << 10
	keptBuffer  = smallBody
)

// The bounds of linger.
const (
	lingerBytes = 16 << 20
	lingerTime  = 2 * time.Second
)

// linger takes what the client is still sending of a body that was refused for its size, or for want of room. Closing on it at once would reset
// the connection, and most clients would report that instead of the answer. One that asked first, by Expect, sends nothing.
func (w *response) linger(r *http.Request) {
	if len(r.Header["Expect"]) > 0 {
		return
	}
	c := http.NewResponseController(w.ResponseWriter)
	if c.Flush() == nil && c.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.CopyN(io.Discard, r.Body, lingerBytes) // whatever is left then is the client's loss
	}
}

// readBody reads the whole body into the pooled buffer. A declared length over the limit is refused unread; a chunked body
// is cut off one byte past it; one that takes longer than the limit's time ends in a Timeout. After an error the
// connection is closed behind the answer, for what is left of the body cannot be told from a next request.
func (w *response) readBody(r *http.Request, limit int64) error {
	w.call.Body = w.body[:0]
	if r.ContentLength == 0 || r.Body == http.NoBody {
		return nil
	}
	if r.ContentLength > limit {
		w.Header()["Connection"] = closing
		w.unread = true
		return tooLarge(limit)
	}
	deadline, timed := w.ResponseWriter.(interface{ SetReadDeadline(time.Time) error })
	if timed {
		if err := deadline.SetReadDeadline(w.start.Add(w.handler.server.limits.BodyTime)); err != nil {
			return fault.Wrap("server.readBody", fault.Internal, err, "")
		}
	}
	err := w.fill(r, limit)
	if err != nil {
		w.Header()["Connection"] = closing // and the deadline stays: net/http may not wait for the rest either
		w.unread = fault.KindOf(err) == fault.TooLarge || fault.KindOf(err) == fault.Unavailable
		return err
	}
	if timed {
		if err := deadline.SetReadDeadline(time.Time{}); err != nil {
			return fault.Wrap("server.readBody", fault.Internal, err, "")
		}
	}
	w.call.Body = w.body
	return nil
}

// fill reads until the body ends or passes the limit. The buffer doubles with what has arrived, up to what was announced,
// so that a header alone holds no memory.
func (w *response) fill(r *http.Request, limit int64) error {
	buf := w.body[:0]
	if cap(buf) == 0 {
		buf = make([]byte, 0, firstBuffer)
	}
	defer func() { w.body = buf }()
	most := max(limit, firstBuffer) + 1
	if r.ContentLength > 0 {
		most = r.ContentLength + 1 // one more to see the end
	}
	for {
		if len(buf) == cap(buf) {
			size := min(2*int64(cap(buf)), most)
			if !w.widen(r, size) {
				return noRoom()
			}
			buf = append(make([]byte, 0, size), buf...)
		}
		n, err := r.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			return tooLarge(limit)
		case err == io.EOF:
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return fault.Wrap("server.readBody", fault.Timeout, err, "the body took too long to arrive")
		case err != nil:
			return fault.Wrap("server.readBody", fault.Invalid, err, "the body cannot be read: it ends early or is not framed as HTTP demands")
		}
	}
}

// widen makes room for a body of size bytes.
func (w *response) widen(r *http.Request, size int64) bool {
	if size > smallBody && w.lease.room == nil {
		w.lease.room = w.handler.server.roomFor(r.Header, w.start)
	}
	return w.lease.extend(size)
}

func tooLarge(limit int64) error {
	return fault.New("server.readBody", fault.TooLarge, "payload too large: at most %d bytes are accepted here", limit)
}
