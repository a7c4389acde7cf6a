// Package admission answers one question for every listener: may this request run now?
//
// A request passes two stages. First its principal's rate: a token bucket of one atomic word, refilled continuously, so
// that no window lets twice the rate through. Then the gate's guard: so many requests in flight, a number that measured
// latency moves. Where a stage says no, the request waits in a bounded line if its predicted wait fits the caller's
// patience, and is refused at once otherwise, with the time after which it is worth coming back.
//
// What holds always:
//   - over any time T from a full bucket a principal is admitted at most rate*T + burst times;
//   - a token is drawn by the request that uses it, at the moment it goes on: one who gives up in a line has taken nothing
//     and the next in line moves up; one who gives up later hands its token back;
//   - in each class the guard serves waiting principals in turn, one request each, so none can crowd out another;
//   - critical work goes before normal, normal before bulk, and bulk is shed first;
//   - once everyone has their answer, arrivals = admitted + refused + given up, for each class.
//
// It refuses to decide who somebody is or what a route needs, and it never holds a request without a bound. It starts no
// goroutine: those who wait do so on their own.
package admission

import (
	"context"
	"time"

	"holdfast/fault"
)

// Class says how much a request matters when not everything can be done.
type Class uint8

// The classes, first to run first.
const (
	Critical Class = iota // what others stand still for
	Normal                // the zero of importance is not the zero of this type: say Normal where nothing else is known
	Bulk                  // can be done later: shed first
	classes
)

// String returns the class's name.
func (c Class) String() string {
	return [...]string{"critical", "normal", "bulk", "unknown"}[min(c, classes)]
}

// Request is one arrival.
type Request struct {
	Principal string // whose rate it counts against
	Class     Class
	Patience  time.Duration // how long it may wait in all; 0 takes a yes or no at once. A context's deadline shortens it
	Now       time.Time     // when the caller last read the clock; zero reads it here
}

// Options configures a Gate. What is nil does not limit.
type Options struct {
	Rate       *Rate
	Principals int // whose buckets are remembered at once; default 65,536. Full idle ones are forgotten first
	Line       int // how many requests of one principal may wait for its rate; 0 refuses at once
	Guard      *GuardOptions
}

// Gate admits requests. It is safe for concurrent use; an uncontended yes takes no lock that principals share for long
// and allocates nothing.
type Gate struct {
	epoch    time.Time // a second before the gate was made
	pace     pace
	accounts *accounts // nil without a rate
	line     int
	guard    *guard // nil without a guard
	counts   [classes]counters
}

// New returns a Gate, or ErrRate for a rate that means nothing.
func New(o Options) (*Gate, error) {
	g := &Gate{epoch: time.Now().Add(-time.Second), line: o.Line}
	if o.Rate != nil {
		var err error
		if g.pace, err = o.Rate.pace(); err != nil {
			return nil, err
		}
		if o.Principals <= 0 {
			o.Principals = 1 << 16
		}
		g.accounts = newAccounts(o.Principals)
	}
	if o.Guard != nil {
		g.guard = newGuard(*o.Guard)
	}
	return g, nil
}

// Ticket is the leave to run. The zero Ticket is of no gate and may be released.
type Ticket struct {
	gate  *Gate
	start time.Time
}

// Release says that the work is done, and when. Releasing twice is releasing once.
func (t *Ticket) Release(now time.Time) {
	g := t.gate
	if g == nil {
		return
	}
	t.gate = nil
	if g.guard != nil {
		g.guard.release(g.since(now), now.Sub(t.start))
	}
}

// Admit returns the leave to run, or why not: a fault of kind Exhausted when the principal is over its rate, Unavailable
// when the gate is full, both with RetryAfter, and Timeout when ctx ended in a line.
func (g *Gate) Admit(ctx context.Context, r Request) (Ticket, error) {
	if r.Now.IsZero() {
		r.Now = time.Now()
	}
	if r.Class >= classes {
		r.Class = Bulk
	}
	counts := &g.counts[r.Class]
	counts.arrived.Add(1)
	v := visit{ctx: ctx, request: r}
	verdict, err := g.pass(&v)
	if v.waited {
		counts.waited.Add(1)
	}
	switch verdict {
	case admitted:
		counts.admitted.Add(1)
		if v.waited {
			r.Now = time.Now() // the latency that moves the guard is that of the work, not of the line
		}
		return Ticket{gate: g, start: r.Now}, nil
	case gaveUp:
		counts.gaveUp.Add(1)
	default:
		counts.refused.Add(1)
	}
	return Ticket{}, err
}

// verdict is how an arrival ended.
type verdict uint8

const (
	admitted verdict = iota
	refused
	gaveUp
)

// visit is one arrival on its way through the stages.
type visit struct {
	ctx     context.Context
	request Request
	waited  bool // it stood in a line, for however long
}

// pass goes through both stages.
func (g *Gate) pass(v *visit) (verdict, error) {
	var drawn *account
	if g.accounts != nil {
		var result verdict
		var err error
		if drawn, result, err = g.draw(v); result != admitted {
			return result, err
		}
	}
	if g.guard == nil {
		return admitted, nil
	}
	result, err := g.guard.enter(v)
	if result != admitted && drawn != nil {
		drawn.bucket.refund(g.pace)
	}
	return result, err
}

// draw takes one request from the principal's bucket, in its line if need be.
func (g *Gate) draw(v *visit) (*account, verdict, error) {
	for {
		now := g.ticks(v.request.Now)
		a := g.accounts.find(v.request.Principal, now)
		if a == nil {
			return nil, refused, overRate(time.Second)
		}
		wait := g.attempt(a, now)
		if wait > 0 && wait != dead {
			// The caller's clock may be from before it read a slow body: nobody is refused by an old time.
			v.request.Now = time.Now()
			now = g.ticks(v.request.Now)
			wait = g.attempt(a, now)
		}
		switch {
		case wait == dead:
			continue // forgotten between finding and drawing: it has a successor, which is full
		case wait == 0:
			return a, admitted, nil
		case g.line == 0:
			return nil, refused, overRate(duration(wait))
		}
		result, err := g.stand(v, a)
		if err == errForgotten {
			continue
		}
		return a, result, err
	}
}

// attempt draws at once unless somebody is in line already; then it returns how long the wait would be.
func (g *Gate) attempt(a *account, now int64) int64 {
	if ahead := a.line.n.Load(); ahead > 0 {
		return max(1, a.bucket.wait(now, int(ahead), g.pace))
	}
	return a.bucket.take(now, g.pace)
}

// ticks turns a time into bucket ticks.
func (g *Gate) ticks(t time.Time) int64 { return g.since(t) * ticksPerNano }

// since returns nanoseconds since the epoch; a caller's older clock reads as the epoch.
func (g *Gate) since(t time.Time) int64 { return max(0, int64(t.Sub(g.epoch))) }

// duration turns ticks into time, rounded up: a token that is awaited must be there.
func duration(ticks int64) time.Duration {
	return time.Duration((ticks + ticksPerNano - 1) / ticksPerNano)
}

// patience returns how long the visit may still wait.
func (v *visit) patience(now time.Time) time.Duration {
	left := v.request.Patience
	if deadline, ok := v.ctx.Deadline(); ok {
		left = min(left, deadline.Sub(now))
	}
	return left
}

func overRate(after time.Duration) error {
	return &fault.Error{Op: "admission.Admit", Kind: fault.Exhausted, Msg: "rate limit exceeded", RetryAfter: after}
}

func full(after time.Duration) error {
	return &fault.Error{Op: "admission.Admit", Kind: fault.Unavailable, Msg: "too much to do, try again later", RetryAfter: after}
}

func left(ctx context.Context) error {
	return fault.Wrap("admission.Admit", fault.Timeout, context.Cause(ctx), "given up while waiting for admission")
}
