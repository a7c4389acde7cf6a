// Package server is the front of every service: listeners, limits, request ids, who is asking, whether it may run now,
// metrics, and the stop.
//
// Each listener has one route table. A request is answered in a fixed order of checks: body size (413) and time (408),
// public routes, credential (401), rate (429), route (404, or 405 where the dialect has it), scope (403), handler. Every
// answer is counted once, when its status is sent, with the status that is sent; answers that net/http gives by itself,
// to what is not HTTP or has headers over 16 KiB, never reach a route and are not counted. The server knows no dialect:
// it hands errors to the refusals of the route table. It never logs a credential or a body, and never waits for a slow
// client without a limit. What bodies hold together is bounded (503 beyond), and so is the number of connections, which
// leaves open files to the store.
//
// Hot path: nothing here allocates for an ordinary request, reads the clock more than twice, or takes a lock that
// connections share.
//
// Goroutines: one per listener, which owns those of its connections as net/http runs them, and one sweeper of deadlines.
// Serve starts them and does not return before they have ended. The tracer, when there is one, owns its exporter's.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/ident"
)

// Keys of the log lines written here.
const (
	keyRemote    = "remote"
	keyPath      = "path"
	keyRequestID = "requestId"
	keyPrincipal = "principal"
	keyCause     = "cause"
	keyRoute     = "route"
	keyStack     = "stack"
	keyError     = "error"
	keyOpen      = "open"
)

// Limits bound what a client may take. Zero values take the defaults named.
type Limits struct {
	HeaderBytes int           // 16 KiB: request line and headers
	HeaderTime  time.Duration // 5 s for the headers to arrive, from their first byte
	MaxBody     int64         // 4 MiB, inclusive, where the route says nothing
	BodyTime    time.Duration // 30 s for the body to arrive
	BodyRoom    int64         // 256 MiB for all bodies over 64 KiB together; what does not fit is refused with 503
	Conns       int           // connections at once; by default what the limit of open files leaves beside the store's
	IdleTime    time.Duration // 60 s between requests of one connection
	StallTime   time.Duration // 60 s for one write to be taken
	DrainDelay  time.Duration // 0: how long everything is still accepted while Draining says that the end is near
	DrainTime   time.Duration // 30 s for requests to finish when the server stops
	Patience    time.Duration // 1 s: how long a request may wait for its turn when the server is full
}

func (l Limits) withDefaults() Limits {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	if l.HeaderBytes == 0 {
		l.HeaderBytes = 16 << 10
	}
	if l.MaxBody == 0 {
		l.MaxBody = 4 << 20
	}
	if l.BodyRoom == 0 {
		l.BodyRoom = 256 << 20
	}
	if l.Conns == 0 {
		l.Conns = openFiles() - spareFiles
	}
	set(&l.HeaderTime, 5*time.Second)
	set(&l.BodyTime, 30*time.Second)
	set(&l.IdleTime, 60*time.Second)
	set(&l.StallTime, 60*time.Second)
	set(&l.DrainTime, 30*time.Second)
	set(&l.Patience, time.Second)
	return l
}

// Options are what a Server needs.
type Options struct {
	Keys    *ident.Keyring // who is who; nil in dev mode only
	Metrics *Metrics
	Log     *slog.Logger
	Tracer  *Tracer // nil: off
	Limits  Limits
	// Hurry, when it is closed, ends a DrainDelay early; nil never does.
	Hurry <-chan struct{}
	// Dev switches authentication and rates off. Such a server listens on loopback addresses only, unless DevRemote.
	Dev, DevRemote bool
}

// Server is a set of listeners that start and stop together.
type Server struct {
	keys      *ident.Keyring
	metrics   *Metrics
	log       *slog.Logger
	tracer    *Tracer
	limits    Limits
	dev       bool
	remote    bool
	sweeper   *sweeper
	rooms     *rooms
	hurry     <-chan struct{}
	draining  chan struct{} // closed when the end has been asked for
	leaving   atomic.Bool   // nothing new is accepted: every answer closes its connection
	stopping  chan struct{} // closed when what runs must end
	listeners []bound
}

// bound is one open address.
type bound struct {
	net  net.Listener
	http *http.Server
}

// New returns a server without listeners.
func New(o Options) (*Server, error) {
	switch {
	case o.Keys == nil && !o.Dev:
		return nil, errors.New("server: a keyring is needed outside of dev mode")
	case o.Metrics == nil || o.Log == nil:
		return nil, errors.New("server: metrics and a log are needed")
	}
	limits := o.Limits.withDefaults()
	return &Server{
		keys: o.Keys, metrics: o.Metrics, log: o.Log, tracer: o.Tracer, limits: limits, dev: o.Dev, remote: o.DevRemote,
		sweeper: newSweeper(limits.StallTime), rooms: newRooms(limits.BodyRoom), hurry: o.Hurry, draining: make(chan struct{}),
		stopping: make(chan struct{}),
	}, nil
}

// Handler returns the route table as a handler, without a listener and its limits on headers and idle time.
func (s *Server) Handler(t Table) (http.Handler, error) { return newListener(s, &t) }

// Listen opens a TCP address for a route table and returns the address that it got. Requests wait until Serve.
func (s *Server) Listen(address string, t Table) (net.Addr, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	if ip := l.Addr().(*net.TCPAddr).IP; s.dev && !s.remote && !ip.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("dev mode listens on loopback addresses only, not on %s", address), l.Close())
	}
	if err := s.Attach(l, t); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l.Addr(), nil
}

// Attach gives the server an open listener, which it closes in the end. It must be called before Serve.
func (s *Server) Attach(l net.Listener, t Table) error {
	handler, err := newListener(s, &t)
	if err != nil {
		return err
	}
	// net/http reads this much past its own limit before it gives up.
	const slack = 4 << 10
	s.listeners = append(s.listeners, bound{
		net: &watched{Listener: l, sweeper: s.sweeper, most: s.limits.Conns, log: s.log},
		http: &http.Server{
			Handler:                      handler,
			ReadHeaderTimeout:            s.limits.HeaderTime,
			IdleTimeout:                  s.limits.IdleTime,
			MaxHeaderBytes:               max(1, s.limits.HeaderBytes-slack),
			ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
			DisableGeneralOptionsHandler: true, // OPTIONS * is answered and counted like everything else
		},
	})
	return nil
}

// Stopping is closed when the server begins to stop: a handler that streams must end then.
func (s *Server) Stopping() <-chan struct{} { return s.stopping }

// Draining is closed when the end has been asked for and everything is still accepted: readiness must turn then, so that whoever
// balances load looks elsewhere in time.
func (s *Server) Draining() <-chan struct{} { return s.draining }

// Serve answers requests until ctx ends or a listener fails. An end that was asked for begins with Limits.DrainDelay; then
// Serve stops accepting, gives the requests that run Limits.DrainTime to finish, breaks off the rest and returns. It is called
// once.
func (s *Server) Serve(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var running sync.WaitGroup
	swept := make(chan struct{})
	running.Go(func() { s.sweeper.run(swept) })
	for _, l := range s.listeners {
		running.Go(func() {
			if err := l.http.Serve(l.net); !errors.Is(err, http.ErrServerClosed) && !s.leaving.Load() {
				fail(fmt.Errorf("serve %s: %w", l.net.Addr(), err))
			}
		})
	}
	<-ctx.Done()
	close(s.draining)
	if errors.Is(context.Cause(ctx), context.Canceled) && s.limits.DrainDelay > 0 {
		s.leave()
	}
	close(s.stopping)
	err := s.drain(context.WithoutCancel(ctx))
	close(swept)
	running.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		err = errors.Join(cause, err)
	}
	return err
}

// settleTime is how long busy connections are let end by themselves, after an answer that says so, once nothing new is
// accepted. What is idle after it is closed: a client that sends at that very moment would be cut off.
const settleTime = 200 * time.Millisecond

// leave waits out the DrainDelay, stops accepting, and lets the connections end.
func (s *Server) leave() {
	wait := func(d time.Duration) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.hurry:
		}
	}
	wait(s.limits.DrainDelay)
	s.leaving.Store(true)
	for _, l := range s.listeners {
		_ = l.net.Close() // it is not accepted from any more, whatever this says
	}
	wait(settleTime)
}

// drain stops all listeners at once.
func (s *Server) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.limits.DrainTime)
	defer cancel()
	errs := make([]error, len(s.listeners))
	var all sync.WaitGroup
	for i, l := range s.listeners {
		all.Go(func() {
			if err := l.http.Shutdown(ctx); err != nil {
				errs[i] = errors.Join(fmt.Errorf("%s still had requests running after %v", l.net.Addr(), s.limits.DrainTime), l.http.Close())
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
