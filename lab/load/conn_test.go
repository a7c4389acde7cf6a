package load

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast/fault"
)

// answering returns a connection whose other end, after reading a request, writes the given bytes in the given pieces and
// closes.
func answering(t *testing.T, pieces ...string) *Conn {
	t.Helper()
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		if _, err := far.Read(make([]byte, 4096)); err != nil {
			return
		}
		for _, p := range pieces {
			if _, err := far.Write([]byte(p)); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { near.Close() })
	return NewConn(near, 5*time.Second)
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		raw  string
		want Answer
		body string
	}{
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", Answer{Status: 200, Server: -1, RetryAfter: -1}, "hello"},
		{"no reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", Answer{Status: 200, Server: -1, RetryAfter: -1}, ""},
		{"case and spaces", "HTTP/1.1 429 Too Many Requests\r\ncontent-length:2\r\nretry-after:  7 \r\n\r\n{}",
			Answer{Status: 429, Server: -1, RetryAfter: 7}, "{}"},
		{"date in retry-after", "HTTP/1.1 503 X\r\nRetry-After: Tue, 01 Dec\r\nContent-Length: 0\r\n\r\n",
			Answer{Status: 503, Server: -1, RetryAfter: -1}, ""},
		{"server timing", "HTTP/1.1 200 OK\r\nServer-Timing: app;dur=0.25, db;dur=9\r\nContent-Length: 0\r\n\r\n",
			Answer{Status: 200, Server: 250 * time.Microsecond, RetryAfter: -1}, ""},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0A\r\n0123456789\r\n0\r\nT: v\r\n\r\n",
			Answer{Status: 200, Server: -1, RetryAfter: -1}, "abc0123456789"},
		{"close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
			Answer{Status: 200, Server: -1, RetryAfter: -1, Close: true}, "x"},
		{"until the end", "HTTP/1.0 200 OK\r\n\r\nall of it", Answer{Status: 200, Server: -1, RetryAfter: -1, Close: true}, "all of it"},
		{"interim", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", Answer{Status: 204, Server: -1, RetryAfter: -1}, ""},
	} {
		for _, pieces := range [][]string{{tc.raw}, strings.Split(tc.raw, "")} {
			got, err := answering(t, pieces...).Do([]byte("GET / HTTP/1.1\r\n\r\n"), time.Now())
			if err != nil {
				t.Errorf("%s in %d pieces: %v", tc.name, len(pieces), err)
				continue
			}
			body := string(got.Body)
			got.Body = nil
			if got.Status != tc.want.Status || got.Server != tc.want.Server || got.RetryAfter != tc.want.RetryAfter ||
				got.Close != tc.want.Close || body != tc.body {
				t.Errorf("%s in %d pieces: %+v %q, want %+v %q", tc.name, len(pieces), got, body, tc.want, tc.body)
			}
		}
	}
}

func TestBrokenAnswersAreErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, raw string
		cut       bool // the connection ended early, as against nonsense
	}{
		{"nothing", "", true},
		{"half a head", "HTTP/1.1 200 OK\r\nContent-", true},
		{"half a body", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", true},
		{"half a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", true},
		{"no last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", true},
		{"another protocol", "SSH-2.0-OpenSSH\r\n\r\n", false},
		{"status in letters", "HTTP/1.1 abc OK\r\n\r\n", false},
		{"negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", false},
		{"huge length", "HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n", false},
		{"chunk size in words", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nten\r\n", false},
		{"unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", false},
		{"header without colon", "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", false},
		{"endless head", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 80<<10), false},
	} {
		_, err := answering(t, tc.raw).Do([]byte("GET / HTTP/1.1\r\n\r\n"), time.Now())
		if err == nil {
			t.Errorf("%s: no error", tc.name)
			continue
		}
		if cut := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); cut != tc.cut {
			t.Errorf("%s: %v, want a cut connection: %v", tc.name, err, tc.cut)
		}
	}
}

// TestConnAgreesWithNetHTTP asks a real server the same things with both clients, over one kept connection of ours.
func TestConnAgreesWithNetHTTP(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		switch r.URL.Path {
		case "/small":
			w.Header().Set("Server-Timing", "app;dur=1.5")
			_, _ = w.Write([]byte(r.Method + " " + r.Header.Get("Authorization") + " " + string(body)))
		case "/large":
			for range 300 { // larger than the server's buffer: chunked
				_, _ = w.Write(bytes.Repeat([]byte("0123456789"), 100))
			}
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/refused":
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/close":
			w.Header().Set("Connection", "close")
			_, _ = w.Write([]byte("bye"))
		}
	}))
	t.Cleanup(server.Close)
	addr := server.Listener.Addr().String()
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	ours := NewConn(raw, 5*time.Second)
	t.Cleanup(func() { _ = ours.Close() })
	target := Target{Host: addr, Key: "secret"}
	for _, path := range []string{"/small", "/large", "/empty", "/refused", "/small", "/close"} {
		body := []byte("{\"a\":1}")
		got, err := ours.Do(target.Request("POST", path, body), time.Now())
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		request, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer secret")
		want, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		wantBody, err := io.ReadAll(want.Body)
		if err != nil {
			t.Fatal(err)
		}
		want.Body.Close()
		if got.Status != want.StatusCode || !bytes.Equal(got.Body, wantBody) || got.Close != want.Close {
			t.Errorf("%s: %d, %d bytes, close %v; net/http says %d, %d bytes, close %v", path, got.Status, len(got.Body), got.Close,
				want.StatusCode, len(wantBody), want.Close)
		}
	}
}

func TestShapes(t *testing.T) {
	t.Parallel()
	for _, shape := range []Shape{KeepAlive, Churn} {
		got, err := ParseShape(shape.String())
		if err != nil || got != shape {
			t.Errorf("%s: %v, %v", shape, got, err)
		}
	}
	if _, err := ParseShape("keep-alive"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("an unknown shape: %v", err)
	}
}

func FuzzParseHead(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nServer-Timing: a;dur=\"1\"\r\n\r\n"))
	f.Add([]byte("HTTP/1.0 503\r\nTransfer-Encoding: chunked\r\n\r\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		answer, h, err := parseHead(append(raw, "\r\n\r\n"...))
		if err == nil && (answer.Status < 100 || answer.Status > 999 || h.length > maxAnswer || answer.RetryAfter < -1) {
			t.Errorf("accepted %+v %+v", answer, h)
		}
	})
}
