package server

import (
	"log/slog"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// sweepEvery is the grain of read deadlines that lie further away than two of it, and of stalled writes.
const sweepEvery = 100 * time.Millisecond

// conn is a connection whose read deadlines cost nothing until they pass.
//
// net/http sets four deadlines per request and uses none of them in ordinary traffic; as timers they cost more than all
// else that this package does. Here a far deadline is only written down, and one sweeper per server interrupts the reads
// whose deadline has passed, up to sweepEvery late. A near or past one goes to the socket at once, because net/http
// interrupts its own background read that way. The socket itself therefore has either no deadline or a past one, and a
// past one is taken off only when somebody reads again.
type conn struct {
	net.Conn
	sweeper *sweeper

	mu       sync.Mutex // guards the read deadline; held across the socket's own SetReadDeadline, which does not block
	deadline int64      // when reads must end, as a sweeper time; 0 for never
	near     bool       // the socket has a deadline of its own
	stale    bool       // near, but a later deadline was asked for since: clear it before the next read

	writing  atomic.Int64 // when the write in progress began, as a sweeper time; 0 when there is none
	explicit atomic.Bool  // the owner set a write deadline of its own
}

// SetReadDeadline sets when reads end; see conn for how exactly.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.IsZero() {
		c.deadline, c.stale = 0, c.near
		return nil
	}
	at := c.sweeper.time(t)
	if at <= c.sweeper.now.Load()+int64(2*sweepEvery) {
		c.deadline, c.near, c.stale = 0, true, false
		return c.Conn.SetReadDeadline(t)
	}
	c.deadline, c.stale = at, c.near
	return nil
}

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetWriteDeadline sets when writes end. Taking off a deadline that nobody set, as net/http does after every request, is free.
func (c *conn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		if !c.explicit.CompareAndSwap(true, false) {
			return nil
		}
	} else {
		c.explicit.Store(true)
	}
	return c.Conn.SetWriteDeadline(t)
}

// Read reads, until the deadline.
func (c *conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	if c.stale {
		if err := c.Conn.SetReadDeadline(time.Time{}); err != nil {
			c.mu.Unlock()
			return 0, err
		}
		c.near, c.stale = false, false
	}
	c.mu.Unlock()
	return c.Conn.Read(p)
}

// Write writes; the sweeper ends one that makes no progress.
func (c *conn) Write(p []byte) (int, error) {
	c.writing.Store(c.sweeper.now.Load())
	n, err := c.Conn.Write(p)
	c.writing.Store(0)
	return n, err
}

// Close closes the connection and forgets it.
func (c *conn) Close() error {
	c.sweeper.forget(c)
	return c.Conn.Close()
}

// longAgo is a deadline that interrupts at once.
var longAgo = time.Unix(1, 0)

// sweep interrupts what is over time.
func (c *conn) sweep(now int64, stall time.Duration) {
	c.mu.Lock()
	if c.deadline != 0 && c.deadline <= now {
		c.deadline, c.near, c.stale = 0, true, false
		_ = c.Conn.SetReadDeadline(longAgo) // fails on a closed connection only, where nobody waits any more
	}
	c.mu.Unlock()
	if began := c.writing.Load(); began != 0 && now-began > int64(stall) && !c.explicit.Load() {
		_ = c.Conn.SetWriteDeadline(longAgo)
	}
}

// sweeper watches the deadlines of every connection of a server.
type sweeper struct {
	epoch time.Time    // sweeper times are nanoseconds since a second before it, so that 0 is never one
	now   atomic.Int64 // the time of the newest sweep
	stall time.Duration
	mu    sync.Mutex // guards conns; taken before a conn's own
	conns map[*conn]struct{}
}

func newSweeper(stall time.Duration) *sweeper {
	s := &sweeper{epoch: time.Now().Add(-time.Second), stall: stall, conns: make(map[*conn]struct{})}
	s.now.Store(s.time(time.Now()))
	return s
}

func (s *sweeper) time(t time.Time) int64 { return int64(t.Sub(s.epoch)) }

// watch makes c a connection under watch.
func (s *sweeper) watch(inner net.Conn) *conn {
	c := &conn{Conn: inner, sweeper: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
	return c
}

func (s *sweeper) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// run sweeps until stop is closed.
func (s *sweeper) run(stop <-chan struct{}) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case t := <-tick.C:
			s.sweep(s.time(t))
		}
	}
}

func (s *sweeper) sweep(now int64) {
	s.now.Store(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.sweep(now, s.stall)
	}
}

// count is how many connections are open.
func (s *sweeper) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// watched is a listener whose connections are watched, and are no more than most: one more is closed at once. The store
// needs files too, and its reads would fail when connections had taken the last.
type watched struct {
	net.Listener
	sweeper *sweeper
	most    int
	log     *slog.Logger
	turning bool // away; used by Accept alone, which one goroutine calls
	once    sync.Once
	closed  error // of the first Close
}

// Close stops accepting; the second time it says what the first did, for net/http closes too what leave has closed.
func (l *watched) Close() error {
	l.once.Do(func() { l.closed = l.Listener.Close() })
	return l.closed
}

// Accept waits for the next connection.
func (l *watched) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		open := l.sweeper.count()
		if open < l.most {
			l.turning = false
			return l.sweeper.watch(c), nil
		}
		if !l.turning {
			l.turning = true
			l.log.Warn("connections are turned away: too many are open", keyOpen, open)
		}
		_ = c.Close() // nobody reads what it says
	}
}

// spareFiles is how many open files are left to the store.
const spareFiles = 64

// openFiles is how many files this process may have open.
func openFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return max(int(limit.Cur), 2*spareFiles)
}
