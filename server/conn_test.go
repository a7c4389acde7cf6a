package server

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// pipe returns a watched connection, its other end, and runs the sweeper until the test ends.
func pipe(t *testing.T, stall time.Duration) (*conn, net.Conn) {
	t.Helper()
	s := newSweeper(stall)
	near, far := net.Pipe()
	c := s.watch(near)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() { s.run(stop); close(done) }()
	t.Cleanup(func() {
		close(stop)
		<-done
		c.Close()
		far.Close()
		if len(s.conns) != 0 {
			t.Error("a closed connection is still watched")
		}
	})
	return c, far
}

// elapse lets the time of a synctest bubble pass: no real time does.
func elapse(d time.Duration) { <-time.After(d) }

// readFor reads one byte and tells how long that took and how it ended.
func readFor(c net.Conn) (time.Duration, error) {
	begun := time.Now()
	_, err := c.Read(make([]byte, 1))
	return time.Since(begun), err
}

func TestReadDeadlines(t *testing.T) {
	for name, c := range map[string]struct{ in, least, most time.Duration }{
		"far":  {5 * time.Second, 5 * time.Second, 5*time.Second + sweepEvery},
		"near": {50 * time.Millisecond, 50 * time.Millisecond, 50 * time.Millisecond},
		"past": {-time.Hour, 0, 0},
		"now":  {0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				watched, _ := pipe(t, time.Minute)
				elapse(time.Second)
				if err := watched.SetReadDeadline(time.Now().Add(c.in)); err != nil {
					t.Fatal(err)
				}
				took, err := readFor(watched)
				if !errors.Is(err, os.ErrDeadlineExceeded) || took < c.least || took > c.most {
					t.Errorf("ended after %v with %v, want %v to %v", took, err, c.least, c.most)
				}
				if took, err := readFor(watched); !errors.Is(err, os.ErrDeadlineExceeded) || took != 0 {
					t.Errorf("a deadline that has passed does not stay: %v, %v", took, err)
				}
			})
		})
	}
}

func TestADeadlineTakenOffNeverFires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, far := pipe(t, time.Minute)
		for _, first := range []time.Duration{-time.Hour, 10 * time.Millisecond, time.Second} {
			for _, then := range []time.Duration{0, time.Hour} {
				if err := c.SetReadDeadline(time.Now().Add(first)); err != nil {
					t.Fatal(err)
				}
				later := time.Time{}
				if then != 0 {
					later = time.Now().Add(then)
				}
				if err := c.SetReadDeadline(later); err != nil {
					t.Fatal(err)
				}
				go func() {
					elapse(10 * time.Second)
					far.Write([]byte("x"))
				}()
				if took, err := readFor(c); err != nil || took != 10*time.Second {
					t.Errorf("%v, then %v: %v after %v", first, then, err, took)
				}
			}
		}
	})
}

// net/http ends its background read with a deadline in the past, and goes on reading afterwards.
func TestAReadInProgressIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, far := pipe(t, time.Minute)
		for range 3 {
			ended := make(chan error)
			go func() {
				_, err := readFor(c)
				ended <- err
			}()
			synctest.Wait()
			_ = c.SetReadDeadline(time.Unix(1, 0))
			if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("ended with %v", err)
			}
			_ = c.SetReadDeadline(time.Time{})
			go far.Write([]byte("x"))
			if _, err := readFor(c); err != nil {
				t.Fatalf("the next read: %v", err)
			}
		}
	})
}

func TestAWriteThatNobodyTakesEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := pipe(t, 3*time.Second)
		elapse(time.Second)
		begun := time.Now()
		_, err := c.Write([]byte("x"))
		if took := time.Since(begun); !errors.Is(err, os.ErrDeadlineExceeded) || took < 3*time.Second || took > 3*time.Second+2*sweepEvery {
			t.Errorf("ended after %v with %v", took, err)
		}
	})
}

func TestAnOwnersWriteDeadlineIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, far := pipe(t, time.Second)
		if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != 5*time.Second {
			t.Errorf("ended after %v with %v, want the owner's 5s", time.Since(begun), err)
		}
		if err := c.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		go io.ReadFull(far, make([]byte, 1))
		if _, err := c.Write([]byte("x")); err != nil {
			t.Errorf("the deadline was not taken off: %v", err)
		}
	})
}
