package load

import (
	"strconv"
	"sync/atomic"
)

// Target is where requests go and under which credential.
type Target struct {
	Host string // host:port, sent as the Host header
	Key  string // bearer credential; empty sends none
	// Header is one more header line, such as "x-api-key: DE_1f"; empty sends none.
	Header string
}

// Request returns the bytes of one HTTP/1.1 request with a body of known length. GET requests have none.
func (t Target) Request(method, path string, body []byte) []byte {
	return append(t.AppendHead(nil, method+" "+path, len(body)), body...)
}

// AppendHead appends the request line and headers for "METHOD path" and a body of the given length in bytes.
func (t Target) AppendHead(dst []byte, line string, length int) []byte {
	dst = append(dst, line...)
	dst = append(dst, " HTTP/1.1\r\nHost: "...)
	dst = append(dst, t.Host...)
	if t.Key != "" {
		dst = append(dst, "\r\nAuthorization: Bearer "...)
		dst = append(dst, t.Key...)
	}
	if t.Header != "" {
		dst = append(append(dst, "\r\n"...), t.Header...)
	}
	if length > 0 {
		dst = append(dst, "\r\nContent-Type: application/json\r\nContent-Length: "...)
		dst = strconv.AppendInt(dst, int64(length), 10)
	}
	return append(dst, "\r\n\r\n"...)
}

// Fixed is traffic that sends the same bytes for ever.
type Fixed []byte

var _ Traffic = Fixed(nil)

// Next returns the same request every time, kind 0.
func (f Fixed) Next() ([]byte, int) { return f, 0 }

// Seen ignores the answer.
func (f Fixed) Seen(int, Answer) {}

// Fill is traffic whose every request carries a number of its own, counted by Number across all workers.
type Fill struct {
	Number *atomic.Uint64
	Make   func(dst []byte, n uint64) []byte // builds request n in dst; nil ends the worker
	After  func(answer Answer)               // sees each answer; may be nil
	buf    []byte
}

var _ Traffic = (*Fill)(nil)

// Next builds the next request, kind 0.
func (f *Fill) Next() ([]byte, int) {
	request := f.Make(f.buf[:0], f.Number.Add(1)-1)
	f.buf = request
	return request, 0
}

// Seen hands the answer to After.
func (f *Fill) Seen(_ int, answer Answer) {
	if f.After != nil {
		f.After(answer)
	}
}
