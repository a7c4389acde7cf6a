package server

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// until repeats a request, each answered before the next, until it is done.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for begun := time.Now(); !done(); {
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("not in 20 s: %s", what)
		}
	}
}

// TestStrangersCannotFillTheMemory: bodies are read before their sender is known, so what they hold together is bounded, and
// strangers hold no more than their part.
func TestStrangersCannotFillTheMemory(t *testing.T) {
	const size = 1 << 20
	r := start(t, Options{Limits: Limits{BodyRoom: 6 << 20}}, nil)
	large := strings.Repeat("x", size)
	head := fmt.Sprintf("POST /v1/x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n", size)
	stranger := func() string { return r.raw(head + "Connection: close\r\n\r\n" + large) }
	if got := stranger(); !strings.HasPrefix(got, "HTTP/1.1 401 ") {
		t.Fatalf("a large body alone: %.80q", got)
	}

	// One stranger sends all but the last byte and waits.
	slow, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := io.WriteString(slow, head+"\r\n"+large[1:]); err != nil {
		t.Fatal(err)
	}
	refused := ""
	until(t, "the room for strangers is full", func() bool {
		refused = stranger()
		return !strings.HasPrefix(refused, "HTTP/1.1 401 ")
	})
	if !strings.HasPrefix(refused, "HTTP/1.1 503 ") || !strings.Contains(refused, "Retry-After: 1\r\n") {
		t.Errorf("without room: %q", refused)
	}

	if res, text := r.do("POST", "/v1/x", "", strings.Repeat("x", smallBody)); res.StatusCode != 401 {
		t.Errorf("a small body of a stranger meanwhile: %d %s", res.StatusCode, text)
	}
	decide := "/v1/tenants/north/jobs/web/capsules/hero/decide"
	if res, text := r.do("POST", decide, operatorKey, strings.Repeat("x", 4<<20)); res.StatusCode != 200 {
		t.Errorf("a large body of a caller meanwhile: %d %s", res.StatusCode, text)
	}
	if err := slow.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "the room is given back", func() bool { return strings.HasPrefix(stranger(), "HTTP/1.1 401 ") })
	if r.count("bodies_full", "503") == 0 {
		t.Error("the refusals are not counted")
	}
}

// TestEveryRefusedBodyGivesItsRoomBack goes through the ways in which a large body ends.
func TestEveryRefusedBodyGivesItsRoomBack(t *testing.T) {
	r := start(t, Options{Limits: Limits{BodyRoom: 6 << 20, BodyTime: 300 * time.Millisecond}}, nil)
	before := [2]int64{r.rooms.callers.left.Load(), r.rooms.strangers.left.Load()}
	part := strings.Repeat("x", 200<<10)
	for _, text := range []string{
		"POST /v1/x HTTP/1.1\r\nHost: h\r\nContent-Length: 300000\r\n\r\n" + part,                                              // too slow
		fmt.Sprintf("POST /v1/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\nzz\r\n", len(part), part), // badly framed
		fmt.Sprintf("POST /v1/panic/early HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", operatorKey, len(part), part),
		fmt.Sprintf("POST /v1/panic/late HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", operatorKey, len(part), part),
	} {
		r.raw(text)
	}
	until(t, "all is given back", func() bool {
		return before == [2]int64{r.rooms.callers.left.Load(), r.rooms.strangers.left.Load()}
	})
}

// TestConnectionsLeaveFilesToTheStore: connections cannot take the last open file, which a read of the store would miss.
func TestConnectionsLeaveFilesToTheStore(t *testing.T) {
	r := start(t, Options{Limits: Limits{Conns: 2}}, nil)
	alive := func() net.Conn {
		c, err := net.Dial("tcp", r.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		answer := make([]byte, 12)
		if _, err := io.WriteString(c, "GET /health HTTP/1.1\r\nHost: h\r\n\r\n"); err == nil {
			_, err = io.ReadFull(c, answer)
		}
		if err != nil || string(answer) != "HTTP/1.1 200" {
			_ = c.Close()
			return nil
		}
		return c
	}
	first, second := alive(), alive()
	if first == nil || second == nil {
		t.Fatal("two connections are not let in")
	}
	for range 3 {
		if alive() != nil {
			t.Error("a third connection is let in")
		}
	}
	if n := strings.Count(r.log.String(), "connections are turned away"); n != 1 {
		t.Errorf("said %d times: %s", n, r.log.String())
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "the place is free again", func() bool { return alive() != nil })
}
