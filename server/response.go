package server

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"holdfast/admission"
	"holdfast/ident"
)

// response is the state of one request: the writer that a handler sees, its Call, and the buffers behind both. It comes
// from a pool and goes back when the handler has returned, which is why a handler must keep nothing of it.
type response struct {
	exchange
	scratch
}

// exchange is what belongs to one request only.
type exchange struct {
	http.ResponseWriter
	handler  *listener
	request  *http.Request
	entry    *entry
	series   *series   // whose counter the answer goes to
	wrong    *node     // see match
	start    time.Time // when the handler's turn began: the one clock read of the way in
	end      time.Time // when the status was sent: the one clock read of the way out
	status   int       // 0 until it is sent
	hijacked bool
	unread   bool // the client may still be sending a body that was refused
	lease    lease
	ticket   admission.Ticket
	call     ident.Call
}

// scratch is room that requests use one after the other; it is never cleared, which would cost more than it is worth.
type scratch struct {
	body     []byte // behind call.Body
	ids      requestIDs
	params   [maxParams]string
	segments [maxDepth]string
}

var (
	_ http.Flusher  = (*response)(nil)
	_ http.Hijacker = (*response)(nil)
	_ io.ReaderFrom = (*response)(nil)
)

// Unwrap lets http.ResponseController reach what is not here.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader counts the answer and stamps it, then sends it. Counting comes first, so that nobody who has read an answer
// can find it missing from the metrics.
func (w *response) WriteHeader(status int) {
	if w.status != 0 {
		w.ResponseWriter.WriteHeader(status) // net/http logs the superfluous call
		return
	}
	if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		w.ResponseWriter.WriteHeader(status) // informational: the answer is still to come
		return
	}
	w.commit(status)
	w.ResponseWriter.WriteHeader(status)
}

// Write sends the status 200 if none was sent, then the bytes.
func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// ReadFrom is Write for a reader; it lets net/http copy in its own way.
func (w *response) ReadFrom(r io.Reader) (int64, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return io.Copy(w.ResponseWriter, r)
}

// Flush sends what is buffered.
func (w *response) Flush() {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack hands the connection over; it counts as an answer with the status 101.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.hijacked = true
		if w.status == 0 {
			w.commit(http.StatusSwitchingProtocols)
		}
	}
	return conn, rw, err
}

// commit notes that status is what the caller gets, and sets the headers that depend on it. The ticket goes back here and
// not when the handler returns: what follows is copying, and a stream must not hold one for its life.
func (w *response) commit(status int) {
	w.status = status
	w.series.count(status)
	if w.call.Handled > 0 && status >= 200 && status < 300 {
		w.handler.server.metrics.observe(w.call.Handled)
	}
	w.end = time.Now()
	w.ticket.Release(w.end)
	if tally := w.entry.route.Tally; tally != nil {
		tally(status, w.end.Sub(w.start))
	}
	h := w.Header()
	if w.handler.server.leaving.Load() {
		h["Connection"] = closing
	}
	h["Server-Timing"] = timing(w.end.Sub(w.start))
	switch {
	case status == http.StatusMethodNotAllowed && w.wrong != nil:
		h["Allow"] = []string{w.wrong.methods()}
	case status == http.StatusUnauthorized:
		h["Www-Authenticate"] = bearer
	}
}

// finish is called when the handler is done: an answer nobody wrote is an empty 200, as net/http sends it.
func (w *response) finish() {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
}

// Header values that never change.
var (
	bearer     = []string{"Bearer"}
	deprecated = []string{"true"}
	closing    = []string{"close"}
)

// deprecate marks the answer of a path that has a successor under prefix.
func deprecate(h http.Header, u *url.URL, prefix string) {
	target := prefix + u.EscapedPath()
	if u.RawQuery != "" {
		target += "?" + u.RawQuery
	}
	h["Deprecation"] = deprecated
	h["Link"] = []string{"<" + linkEscaper.Replace(target) + `>; rel="successor-version"`}
}

// linkEscaper keeps a query from ending the link that it stands in.
var linkEscaper = strings.NewReplacer("<", "%3C", ">", "%3E", `"`, "%22", " ", "%20")

// timings holds the Server-Timing values of whole microseconds up to timingsEnd, where nearly all answers lie.
var timings = func() []string {
	all := make([]string, timingsEnd)
	for i := range all {
		all[i] = timingText(time.Duration(i) * time.Microsecond)
	}
	return all
}()

const timingsEnd = 4096

// timing returns the Server-Timing header of a request that took d: milliseconds from the moment its body was being read
// to the moment its status was sent.
func timing(d time.Duration) []string {
	if i := int(max(0, d/time.Microsecond)); i < timingsEnd {
		return timings[i : i+1 : i+1]
	}
	return []string{timingText(d)}
}

func timingText(d time.Duration) string {
	return "app;dur=" + strconv.FormatFloat(float64(d/time.Microsecond)/1000, 'f', 3, 64)
}
