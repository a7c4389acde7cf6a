// Package load drives a server over HTTP and says exactly what came back.
//
// It has three generators: a closed loop (each worker sends when its last answer is complete, or a while after it) on kept connections, the same
// with a new connection per request (churn), and a paced open loop whose requests have intended times that do not move
// when the server is slow, so that waiting is counted and not omitted. Every request is counted once, by kind and by the
// status that came back; a request without a complete answer is an error of unknown outcome, never a refusal.
//
// The HTTP client is our own (Conn): prebuilt request bytes out, a minimal answer parser in. It exists because the
// generator shares its cores with the server, and net/http's client costs more than its server does; the tests hold it to
// net/http. It refuses to follow redirects, to retry, to use TLS, and to read an answer over 64 MiB.
//
// Goroutines: Run starts one per worker and waits for all of them before it returns.
package load

import (
	"context"
	"net"
	"sync"
	"time"

	"holdfast/fault"
)

// Shape says what a worker does with its connection between two requests.
type Shape uint8

// The shapes.
const (
	KeepAlive Shape = iota // one connection per worker, kept as long as the server keeps it
	Churn                  // a new connection per request, closed by the client when the answer is complete
)

// String returns the word used on the command line: keepalive or churn.
func (s Shape) String() string {
	if s == Churn {
		return "churn"
	}
	return "keepalive"
}

// ParseShape returns the shape named keepalive or churn; any other word is Invalid.
func ParseShape(word string) (Shape, error) {
	switch word {
	case "keepalive":
		return KeepAlive, nil
	case "churn":
		return Churn, nil
	}
	return 0, fault.New("load.ParseShape", fault.Invalid, "unknown shape %q: use keepalive or churn", word)
}

// Traffic makes one worker's requests and sees their answers. It is used by one goroutine at a time.
type Traffic interface {
	// Next returns the bytes of the next request and the index of its kind; the bytes are used before Next is called again.
	// Nil ends the worker.
	Next() (request []byte, kind int)
	// Seen is called once for each complete answer; the answer's body is valid only during the call.
	Seen(kind int, answer Answer)
}

// Plan is one run.
type Plan struct {
	Dial     func(context.Context) (net.Conn, error) // opens a connection; see Dialer
	Workers  int                                     // concurrent connections, at least 1
	Duration time.Duration                           // no request is sent after it; 0 means until the traffic ends
	Shape    Shape
	Rate     float64       // intended requests per second of all workers together; 0 means a closed loop
	Think    time.Duration // between an answer and the next request, in a closed loop
	Timeout  time.Duration // a request without an answer by then is an error; 0 means 10 s
	Kinds    []string      // names of the request kinds, at least one
	Traffic  func(worker int) Traffic
}

// Dialer returns a dial function for a TCP address, with Nagle's algorithm off as Go does by default.
func Dialer(addr string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		d := net.Dialer{Timeout: 5 * time.Second}
		return d.DialContext(ctx, "tcp", addr)
	}
}

// Run carries out the plan and returns the merged tally. A cancelled context ends the run early: the tally is then what was
// seen so far, and the error is the context's.
func Run(ctx context.Context, plan Plan) (*Result, error) {
	if plan.Workers < 1 || len(plan.Kinds) == 0 || plan.Dial == nil || plan.Traffic == nil {
		return nil, fault.New("load.Run", fault.Invalid, "a plan needs a dialer, traffic, at least one kind and one worker")
	}
	if plan.Timeout == 0 {
		plan.Timeout = 10 * time.Second
	}
	workers := make([]*worker, plan.Workers)
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range workers {
		workers[i] = newWorker(plan, i, begin)
		wg.Go(func() { workers[i].run(ctx) })
	}
	wg.Wait()
	result := &Result{Begin: begin, Elapsed: time.Since(begin), Tally: NewTally(plan.Kinds)}
	for _, w := range workers {
		result.merge(w.tally)
	}
	return result, ctx.Err()
}
