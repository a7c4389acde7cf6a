package load

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strconv"
	"time"

	"holdfast/fault"
)

// maxAnswer bounds the bytes kept for one answer.
const maxAnswer = 64 << 20

// errMalformed is an answer that is not HTTP/1.1 as this client reads it.
var errMalformed = fault.New("load.Conn.Do", fault.Internal, "the server's answer is not HTTP/1.1 that this client understands")

// Answer is one complete response.
type Answer struct {
	Status     int
	Server     time.Duration // from Server-Timing; negative when absent
	RetryAfter int           // seconds; negative when absent or not a number
	Body       []byte        // valid until the next Do
	Close      bool          // the server will close the connection
}

// Conn is one HTTP/1.1 connection for prebuilt requests, one at a time. It is not safe for concurrent use.
type Conn struct {
	net     net.Conn
	timeout time.Duration
	armed   time.Time // when the deadline was last set
	buf     []byte    // what was read; buf[r:w] is not consumed yet
	r, w    int
	body    []byte // decoded chunks
}

// NewConn wraps an open connection. A request not answered within timeout fails; the deadline is renewed only when a tenth
// of it has passed, because setting it for every request costs more than parsing the answer.
func NewConn(c net.Conn, timeout time.Duration) *Conn {
	return &Conn{net: c, timeout: timeout, buf: make([]byte, 8<<10)}
}

// Do writes the request's bytes and reads one complete answer. After an error the connection must be closed: whether the
// server acted on the request is then unknown.
func (c *Conn) Do(request []byte, now time.Time) (Answer, error) {
	if now.Sub(c.armed) > c.timeout/10 {
		if err := c.net.SetDeadline(now.Add(c.timeout + c.timeout/10)); err != nil {
			return Answer{}, err
		}
		c.armed = now
	}
	if _, err := c.net.Write(request); err != nil {
		return Answer{}, err
	}
	for {
		answer, err := c.read()
		if err != nil || answer.Status >= 200 {
			return answer, err
		}
	}
}

// Close closes the connection at once: it resets it, so that a churn run leaves no port waiting for two minutes.
func (c *Conn) Close() error {
	if tcp, ok := c.net.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // best effort: without it only the number of free ports suffers
	}
	return c.net.Close()
}

// head is what the header lines say about the body.
type head struct {
	length  int // negative when not given
	chunked bool
}

func (c *Conn) read() (Answer, error) {
	raw, err := c.until([]byte("\r\n\r\n"))
	if err != nil {
		return Answer{}, err
	}
	answer, h, err := parseHead(raw)
	if err != nil {
		return Answer{}, err
	}
	switch {
	case answer.Status < 200 || answer.Status == 204 || answer.Status == 304:
	case h.chunked:
		answer.Body, err = c.chunks()
	case h.length >= 0:
		answer.Body, err = c.take(h.length)
	default:
		answer.Close = true
		answer.Body, err = c.rest()
	}
	return answer, err
}

// parseHead reads a status line and the header lines this client needs; raw ends with an empty line.
func parseHead(raw []byte) (Answer, head, error) {
	answer, h := Answer{Server: -1, RetryAfter: -1}, head{length: -1}
	line, rest, _ := bytes.Cut(raw, []byte("\r\n"))
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.")) || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return answer, h, errMalformed
	}
	status, ok := digits(line[9:12])
	if !ok || status < 100 {
		return answer, h, errMalformed
	}
	answer.Status = status
	answer.Close = line[7] == '0'
	for len(rest) > 2 {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		name, value, found := bytes.Cut(line, []byte(":"))
		if !found {
			return answer, h, errMalformed
		}
		if err := header(&answer, &h, name, bytes.TrimSpace(value)); err != nil {
			return answer, h, err
		}
	}
	return answer, h, nil
}

// header takes over one header line. It looks at the length first: most lines are dismissed by it.
func header(answer *Answer, h *head, name, value []byte) error {
	switch len(name) {
	case len("Connection"):
		if bytes.EqualFold(name, []byte("Connection")) && bytes.EqualFold(value, []byte("close")) {
			answer.Close = true
		}
	case len("Retry-After"):
		if bytes.EqualFold(name, []byte("Retry-After")) {
			if n, ok := digits(value); ok {
				answer.RetryAfter = n
			}
		}
	case len("Server-Timing"):
		if bytes.EqualFold(name, []byte("Server-Timing")) {
			answer.Server = timing(value)
		}
	case len("Content-Length"):
		if bytes.EqualFold(name, []byte("Content-Length")) {
			n, ok := digits(value)
			if !ok || n > maxAnswer {
				return errMalformed
			}
			h.length = n
		}
	case len("Transfer-Encoding"):
		if bytes.EqualFold(name, []byte("Transfer-Encoding")) {
			if !bytes.EqualFold(value, []byte("chunked")) {
				return errMalformed
			}
			h.chunked = true
		}
	}
	return nil
}

// timing reads the first dur of a Server-Timing value, in milliseconds; negative when there is none.
func timing(value []byte) time.Duration {
	_, after, found := bytes.Cut(value, []byte("dur="))
	if !found {
		return -1
	}
	end := bytes.IndexAny(after, ",; ")
	if end >= 0 {
		after = after[:end]
	}
	ms, err := strconv.ParseFloat(string(bytes.Trim(after, `"`)), 64)
	if err != nil || !(ms >= 0 && ms < 1e9) {
		return -1
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// digits reads an unsigned decimal number of up to nine digits.
func digits(text []byte) (int, bool) {
	if len(text) == 0 || len(text) > 9 {
		return 0, false
	}
	n := 0
	for _, b := range text {
		if b < '0' || b > '9' {
			return 0, false
		}
		n = n*10 + int(b-'0')
	}
	return n, true
}

// until consumes and returns the bytes up to and including mark.
func (c *Conn) until(mark []byte) ([]byte, error) {
	looked := 0
	for {
		if i := bytes.Index(c.buf[c.r+looked:c.w], mark); i >= 0 {
			from := c.r
			c.r += looked + i + len(mark)
			return c.buf[from:c.r], nil
		}
		looked = max(0, c.w-c.r-len(mark)+1)
		if c.w-c.r > 64<<10 {
			return nil, errMalformed
		}
		if err := c.fill(1); err != nil {
			return nil, err
		}
	}
}

// take consumes and returns n bytes.
func (c *Conn) take(n int) ([]byte, error) {
	if need := n - (c.w - c.r); need > 0 {
		if err := c.fill(need); err != nil {
			return nil, err
		}
	}
	c.r += n
	return c.buf[c.r-n : c.r], nil
}

// fill reads at least n more bytes, moving what is left to the front when the buffer has no room behind it.
func (c *Conn) fill(n int) error {
	if c.r == c.w {
		c.r, c.w = 0, 0
	}
	if len(c.buf)-c.w < n {
		room := c.buf
		if need := c.w - c.r + n; need > len(room) {
			room = make([]byte, need+need/2)
		}
		c.w = copy(room, c.buf[c.r:c.w])
		c.buf, c.r = room, 0
	}
	got, err := io.ReadAtLeast(c.net, c.buf[c.w:], n)
	c.w += got
	return err
}

// chunks consumes a chunked body and its trailer.
func (c *Conn) chunks() ([]byte, error) {
	c.body = c.body[:0]
	for {
		line, err := c.until([]byte("\r\n"))
		if err != nil {
			return nil, err
		}
		size, _, _ := bytes.Cut(line[:len(line)-2], []byte(";"))
		n, err := strconv.ParseUint(string(bytes.TrimSpace(size)), 16, 31)
		if err != nil || len(c.body)+int(n) > maxAnswer {
			return nil, errMalformed
		}
		if n == 0 {
			return c.body, c.trailer()
		}
		data, err := c.take(int(n) + 2)
		if err != nil {
			return nil, err
		}
		c.body = append(c.body, data[:n]...)
	}
}

func (c *Conn) trailer() error {
	for {
		line, err := c.until([]byte("\r\n"))
		if err != nil || len(line) == 2 {
			return err
		}
	}
}

// rest consumes everything up to the end of the connection.
func (c *Conn) rest() ([]byte, error) {
	for {
		if c.w-c.r > maxAnswer {
			return nil, errMalformed
		}
		if err := c.fill(1); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
	}
	from := c.r
	c.r = c.w
	return c.buf[from:c.w], nil
}
