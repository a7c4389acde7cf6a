package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"
)

// drained is what one client of a server that stops has seen.
type drained struct {
	answers int // whole ones
	late    int // of these, begun after readiness had turned
	cut     error
}

// press sends one request after the other on one connection until the server takes no more. A connection that an answer
// closes is opened anew; that nobody listens is the end; a request without a whole answer was cut.
func press(addr, request string, down <-chan struct{}) (d drained) {
	for {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			if !errors.Is(err, syscall.ECONNREFUSED) {
				d.cut = err
			}
			return d
		}
		in := bufio.NewReader(c)
		for again := true; again; {
			late := false
			select {
			case <-down:
				late = true
			default:
			}
			if d.cut = exchangeOnce(c, in, request, &again); d.cut != nil {
				_ = c.Close()
				return d
			}
			d.answers++
			if late {
				d.late++
			}
		}
		_ = c.Close()
	}
}

func exchangeOnce(c net.Conn, in *bufio.Reader, request string, again *bool) error {
	if err := c.SetDeadline(time.Now().Add(scriptPatience)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, request); err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return fmt.Errorf("the head of the answer: %w", err)
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	*again = !resp.Close
	if err == nil && resp.StatusCode >= http.StatusInternalServerError {
		err = fmt.Errorf("status %d", resp.StatusCode)
	}
	return err
}

// TestAStopUnderLoadCutsNobodyOff asks a busy process for its end. Readiness turns first, while everything is accepted; then
// every request that was sent gets its answer, and no connection is taken any more.
func TestAStopUnderLoadCutsNobodyOff(t *testing.T) {
	drop := freeAddr(t)
	s := startServer(t, t.TempDir(), "--gateway-addr", drop, "--gateway-metrics-addr", freeAddr(t), "--drain-delay", "400ms")
	const body = `{"merchantId":"nobody","paymentInfo":{"paymentId":"p","amount":1,"currency":"EUR","paymentType":"ORDER_PAYMENT","paymentMethodType":"CARD","paymentMethod":"CREDIT"}}`
	requests := []string{
		"GET /health HTTP/1.1\r\nHost: h\r\n\r\n",
		fmt.Sprintf("POST /decide-gateway HTTP/1.1\r\nHost: h\r\nX-Admin-Secret: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", s.key, len(body), body),
	}
	down := make(chan struct{})
	results := make([]drained, 16)
	var clients sync.WaitGroup
	for i := range results {
		clients.Go(func() { results[i] = press(drop, requests[i%len(requests)], down) })
	}
	ready := func() int {
		resp, err := s.client.Get("http://" + drop + "/health/ready")
		if err != nil {
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if status := ready(); status != http.StatusOK {
		t.Fatalf("readiness is %d before the end", status)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.eventually("readiness does not turn", func() bool { return ready() == http.StatusBadRequest })
	close(down)
	if status, _ := s.send(http.MethodGet, "/ready", ""); status != http.StatusServiceUnavailable {
		t.Errorf("the main listener's readiness is %d", status)
	}
	clients.Wait()
	if code := s.exits(); code != 0 {
		t.Errorf("it ends with %d:\n%s", code, s.log.String())
	}
	for i, d := range results {
		if d.cut != nil {
			t.Errorf("client %d was cut off after %d answers: %v", i, d.answers, d.cut)
		}
		if d.late == 0 {
			t.Errorf("client %d got no answer after readiness had turned", i)
		}
	}
}

func TestASecondSignalCutsTheDelayShort(t *testing.T) {
	s := startServer(t, t.TempDir(), "--drain-delay", "1h")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.eventually("readiness does not turn", func() bool {
		status, _ := s.send(http.MethodGet, "/ready", "")
		return status == http.StatusServiceUnavailable
	})
	s.stop()
}
