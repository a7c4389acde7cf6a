package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a server on in-memory connections: it answers every request with what reply returns.
type pipes struct {
	dials atomic.Int64
	reply func(n int64) string // n counts the requests from 0, over all connections
	seen  atomic.Int64
}

func (p *pipes) dial(context.Context) (net.Conn, error) {
	p.dials.Add(1)
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		in := bufio.NewReader(far)
		for {
			request, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			request.Body.Close()
			answer := p.reply(p.seen.Add(1) - 1)
			if answer == "" {
				return
			}
			if _, err := far.Write([]byte(answer)); err != nil {
				return
			}
		}
	}()
	return near, nil
}

const ok = "HTTP/1.1 200 OK\r\nServer-Timing: app;dur=2\r\nContent-Length: 2\r\n\r\n{}"

var get = Fixed("GET / HTTP/1.1\r\nHost: x\r\n\r\n")

// limited ends the traffic after a number of requests.
type limited struct {
	left int
	Fixed
}

func (l *limited) Next() ([]byte, int) {
	if l.left--; l.left < 0 {
		return nil, 0
	}
	return l.Fixed, 0
}

func TestOpenLoopChargesAStallToEveryoneWhoWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pipes{reply: func(n int64) string {
			if n == 10 {
				<-time.After(time.Second) // fake time: the bubble's clock
			}
			return ok
		}}
		result, err := Run(t.Context(), Plan{Dial: server.dial, Workers: 1, Duration: 2 * time.Second, Rate: 100,
			Kinds: []string{"get"}, Traffic: func(int) Traffic { return get }})
		if err != nil {
			t.Fatal(err)
		}
		total := result.Total()
		if n := total.Status(200); n != 200 {
			t.Errorf("%d answers, want the whole schedule of 200", n)
		}
		times := total.Times(Accepted)
		if got := times.Quantile(FromIntended, 0.75); got < 500*time.Millisecond {
			t.Errorf("p75 from the intended time is %v: half the requests waited behind the stall", got)
		}
		if got := times.Quantile(FromSent, 0.75); got > time.Millisecond {
			t.Errorf("p75 from the sending is %v, want next to nothing", got)
		}
		if got := times.Quantile(ServerTimer, 0.5).Round(10 * time.Microsecond); got != 2*time.Millisecond {
			t.Errorf("server timer %v, want 2 ms", got)
		}
	})
}

func TestClosedLoopOmitsWhatNobodySent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pipes{reply: func(int64) string { <-time.After(10 * time.Millisecond); return ok }}
		result, err := Run(t.Context(), Plan{Dial: server.dial, Workers: 4, Duration: time.Second, Kinds: []string{"get"},
			Traffic: func(int) Traffic { return get }})
		if err != nil {
			t.Fatal(err)
		}
		if n := result.Total().Answers(); n != 400 {
			t.Errorf("%d answers in a second from 4 workers at 10 ms, want 400", n)
		}
		if n := server.dials.Load(); n != 4 {
			t.Errorf("%d connections, want one per worker", n)
		}
	})
}

func TestThinkingUsersAskAsOftenAsTheirAnswersAllow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pipes{reply: func(int64) string { <-time.After(25 * time.Millisecond); return ok }}
		result, err := Run(t.Context(), Plan{Dial: server.dial, Workers: 4, Duration: time.Second, Think: 100 * time.Millisecond, Kinds: []string{"get"},
			Traffic: func(int) Traffic { return get }})
		if err != nil {
			t.Fatal(err)
		}
		if n := result.Total().Answers(); n != 4*8 {
			t.Errorf("%d answers in a second from 4 users who wait 25 ms and think for 100, want 32", n)
		}
		if d := result.Total().Times(Accepted).Quantile(FromIntended, 1); d > 30*time.Millisecond {
			t.Errorf("an answer took %v: thinking was counted", d)
		}
	})
}

func TestChurnOpensAConnectionPerRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pipes{reply: func(int64) string { return ok }}
		result, err := Run(t.Context(), Plan{Dial: server.dial, Workers: 3, Shape: Churn, Kinds: []string{"get"},
			Traffic: func(int) Traffic { return &limited{left: 7, Fixed: get} }})
		if err != nil {
			t.Fatal(err)
		}
		if got, dials := result.Total().Status(200), server.dials.Load(); got != 21 || dials != 21 {
			t.Errorf("%d answers over %d connections, want 21 over 21", got, dials)
		}
	})
}

func TestEveryOutcomeIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		replies := []string{ok, "HTTP/1.1 429 X\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n", "",
			"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 500 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", ok}
		server := &pipes{reply: func(n int64) string { return replies[n] }}
		result, err := Run(t.Context(), Plan{Dial: server.dial, Workers: 1, Kinds: []string{"get"},
			Traffic: func(int) Traffic { return &limited{left: len(replies), Fixed: get} }})
		if err != nil {
			t.Fatal(err)
		}
		c := result.Kinds[0]
		got := fmt.Sprint(c.Class(Accepted), c.Class(Refused), c.Class(Failed), c.Errors, c.NoRetry, c.Statuses())
		if want := "2 2 1 1 1 map[200:2 429:1 500:1 503:1]"; got != want {
			t.Errorf("accepted, refused, failed, errors, without Retry-After, statuses: %s, want %s", got, want)
		}
		if n := server.dials.Load(); n != 3 {
			t.Errorf("%d connections, want a new one after the cut and after the close", n)
		}
	})
}

func TestCancelledRunReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		server := &pipes{reply: func(n int64) string {
			if n > 0 {
				<-hang
			}
			return ok
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		begin := time.Now()
		result, err := Run(ctx, Plan{Dial: server.dial, Workers: 1, Timeout: time.Hour, Kinds: []string{"get"},
			Traffic: func(int) Traffic { return get }})
		close(hang)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the context's", err)
		}
		if spent := time.Since(begin); spent > time.Second {
			t.Errorf("returned after %v although cancelled after 50 ms", spent)
		}
		if c := result.Total(); c.Status(200) != 1 || c.Stopped != 1 || c.Errors != 0 {
			t.Errorf("%d answers, %d stopped, %d errors; want 1, 1, 0", c.Status(200), c.Stopped, c.Errors)
		}
	})
}

func TestUnreachableServerIsAnErrorPerAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusal := errors.New("refused")
		result, err := Run(t.Context(), Plan{Workers: 2, Duration: time.Second, Kinds: []string{"get"},
			Dial:    func(context.Context) (net.Conn, error) { return nil, refusal },
			Traffic: func(int) Traffic { return get }})
		if err != nil {
			t.Fatal(err)
		}
		if c := result.Kinds[0]; c.Errors != 200 || !errors.Is(c.LastErr, refusal) {
			t.Errorf("%d errors, last %v; want one per 10 ms and worker, %v", c.Errors, c.LastErr, refusal)
		}
	})
}

func TestFillNumbersEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pipes{reply: func(int64) string { return ok }}
		var number, bodies atomic.Uint64
		result, err := Run(t.Context(), Plan{Dial: server.dial, Workers: 3, Kinds: []string{"get"}, Traffic: func(int) Traffic {
			return &Fill{Number: &number,
				Make: func(dst []byte, n uint64) []byte {
					if n >= 50 {
						return nil
					}
					return fmt.Appendf(dst, "GET /%d HTTP/1.1\r\nHost: x\r\n\r\n", n)
				},
				After: func(a Answer) { bodies.Add(uint64(len(a.Body))) }}
		}})
		if err != nil {
			t.Fatal(err)
		}
		if result.Total().Answers() != 50 || bodies.Load() != 100 {
			t.Errorf("%d answers, %d body bytes; want 50 and 100", result.Total().Answers(), bodies.Load())
		}
	})
}

func TestIncompletePlansAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := Run(t.Context(), Plan{Workers: 1}); err == nil {
		t.Error("a plan without traffic ran")
	}
}

func BenchmarkConn(b *testing.B) {
	raw := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Tue, 01 Dec 2026 00:00:00 GMT\r\nX-Request-Id: 0123456789abcdef\r\n" +
		"Server-Timing: app;dur=0.012\r\nContent-Length: 100\r\n\r\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := parseHead(raw); err != nil {
			b.Fatal(err)
		}
	}
}
