// Package local decides inside the caller's own process, with the model that a server published, and reports afterwards what
// it decided and how it turned out. The server makes every reported decision again and takes it only if it comes out the
// same, so a log of local decisions is as good as its own.
//
// Invariants: a decide reads one atomic pointer and waits for no network and no disk; an event that was accepted is sent until
// the server has taken or refused it, decisions before the rewards that name them; a server that is gone only makes the
// model older. It refuses to drop events silently: a full queue is an error of Decide and Reward. What is queued lives in
// memory only and is lost with the process.
//
// Goroutines: one per Client, which flushes and synchronises every second; Close stops it and waits for it.
package local

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"holdfast/decision"
	"holdfast/fault"
)

// Options say which capsule a Client decides for. Server, Capsule and Key are required.
type Options struct {
	Server  string // such as http://127.0.0.1:8787
	Capsule decision.CapsuleID
	Key     string        // a token that covers the capsule; empty for a server in dev mode
	HTTP    *http.Client  // one with a time limit of 30 s; redirects are never followed
	Log     *slog.Logger  // discards
	Every   time.Duration // 1 s: how often to flush and synchronise; negative never does, and Flush and Sync are the caller's
}

// Client decides for one capsule. It is safe for concurrent use.
type Client struct {
	options Options
	base    string // URL of the capsule
	http    *http.Client
	log     *slog.Logger

	state   atomic.Pointer[state]
	queue   queue
	sending chan struct{} // holds a token while nobody flushes or synchronises
	counts  counts

	stop func()
	done chan struct{} // closed when the goroutine has ended
}

// state is what a decide reads: one published policy and where its fixed seed stands.
type state struct {
	policy  *decision.Policy
	draws   *atomic.Uint64 // of the fixed seed, shared by every state that has it
	refusal error          // the capsule cannot be decided for locally
}

// Stats counts the events of a Client.
type Stats struct {
	Queued    int   // accepted, not yet taken or refused by the server
	Sent      int64 // taken by the server
	Refused   int64 // refused by the server for good
	LastError error // why the last flush or sync failed, nil when it did not
}

type counts struct {
	sent, refused atomic.Int64
	last          atomic.Pointer[error]
}

// Open fetches the published model and starts to flush and synchronise. It fails when there is no model to begin with:
// Unavailable when the server does not answer, NotFound when there is no such capsule, Invalid for a capsule with a graph.
func Open(ctx context.Context, o Options) (*Client, error) {
	at, err := url.Parse(o.Server)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return nil, fault.New("local.Open", fault.Invalid, "the server must be a URL such as http://127.0.0.1:8787, not %q", o.Server)
	}
	for _, name := range []string{o.Capsule.Tenant, o.Capsule.Job, o.Capsule.Capsule} {
		if !decision.ValidName(name) {
			return nil, fault.New("local.Open", fault.Invalid, "bad name of a tenant, a job or a capsule: %q", o.Capsule.String())
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Every == 0 {
		o.Every = time.Second
	}
	c := &Client{options: o, http: plainClient(o.HTTP), log: o.Log, sending: make(chan struct{}, 1), done: make(chan struct{}),
		base: strings.TrimRight(o.Server, "/") + "/v1/tenants/" + o.Capsule.Tenant + "/jobs/" + o.Capsule.Job + "/capsules/" + o.Capsule.Capsule}
	c.sending <- struct{}{}
	if err := c.Sync(ctx); err != nil {
		return nil, err
	}
	if refusal := c.state.Load().refusal; refusal != nil {
		return nil, refusal
	}
	running, stop := context.WithCancel(context.Background())
	c.stop = stop
	go c.run(running)
	return c, nil
}

// run flushes, then synchronises, again and again.
func (c *Client) run(ctx context.Context) {
	defer close(c.done)
	if c.options.Every < 0 {
		return
	}
	ticker := time.NewTicker(c.options.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := c.Flush(ctx)
		if err == nil {
			err = c.Sync(ctx)
		}
		if err != nil && ctx.Err() == nil {
			c.log.Warn("the decision server cannot be reached; deciding with the last model", "err", err)
		}
	}
}

// Request is what to decide on.
type Request struct {
	Context  []byte            // JSON object text; empty means {}
	Actions  []decision.Action // nil: the spec's
	Excluded []string
	Baseline string
}

// Decide draws one action with the newest model there is and queues the decision for the server. Invalid for a request that
// cannot be decided or is too large to be sent, Unavailable when the queue is full.
func (c *Client) Decide(req Request) (decision.Decision, error) {
	s := c.state.Load()
	if s.refusal != nil {
		return decision.Decision{}, s.refusal
	}
	req.Context = bytes.TrimSpace(req.Context)
	input, err := appendInput(nil, &req)
	if err != nil {
		return decision.Decision{}, err
	}
	if err := c.queue.reserve(); err != nil {
		return decision.Decision{}, err
	}
	now := time.Now().UnixMilli()
	d, err := s.policy.Decide(&decision.Request{Context: req.Context, Actions: req.Actions, Excluded: req.Excluded,
		Baseline: req.Baseline, EventID: freshID(now)}, s.seed())
	if err != nil {
		c.queue.release(1)
		return decision.Decision{}, err
	}
	d.TimeMS = now
	c.queue.addDecision(event{id: d.ID, text: appendUpload(nil, &d, s.policy.Tag(), input)})
	return d, nil
}

// seed is that of the next draw: the capsule's fixed sequence, or fresh randomness.
func (s *state) seed() uint64 {
	if fixed := s.policy.Seed(); fixed != nil {
		return decision.DecisionSeed(*fixed, s.draws.Add(1)-1)
	}
	return random()
}

func random() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return binary.LittleEndian.Uint64(b[:])
}

// freshID is the id of a local decision: it sorts by time.
func freshID(ms int64) string {
	const digits = "0123456789abcdef"
	id := [4 + 11 + 16]byte{'l', 'o', 'c', '_'}
	for i, v := 14, uint64(ms); i >= 4; i, v = i-1, v>>4 {
		id[i] = digits[v&15]
	}
	for i, v := 30, random(); i >= 15; i, v = i-1, v>>4 {
		id[i] = digits[v&15]
	}
	return string(id[:])
}

// Reward is how a decision turned out.
type Reward struct {
	DecisionID string
	Value      float64
	Key        string // a repeated key counts once; empty takes a fresh one
	Detail     []byte // any JSON text, nil when absent
}

// Reward queues an outcome for the server. Invalid for what the server would refuse whatever the decision, Unavailable when
// the queue is full.
func (c *Client) Reward(r Reward) error {
	if r.Key == "" {
		r.Key = freshKey() // its own, so that a repeated upload cannot count it twice
	}
	text, err := appendReward(nil, &r)
	if err != nil {
		return err
	}
	if err := c.queue.reserve(); err != nil {
		return err
	}
	c.queue.addReward(event{id: r.DecisionID, text: text})
	return nil
}

// Version is the number of rewards that the model in use had learned from.
func (c *Client) Version() uint64 { return c.state.Load().policy.Version() }

// Stats counts what became of the events so far.
func (c *Client) Stats() Stats {
	s := Stats{Queued: c.queue.length(), Sent: c.counts.sent.Load(), Refused: c.counts.refused.Load()}
	if err := c.counts.last.Load(); err != nil {
		s.LastError = *err
	}
	return s
}

// note remembers how a flush or a sync ended.
func (c *Client) note(err error) error {
	c.counts.last.Store(&err)
	return err
}

// Close stops the goroutine and sends what is queued. It fails when something could not be sent; that is lost then.
func (c *Client) Close(ctx context.Context) error {
	c.stop()
	<-c.done
	err := c.Flush(ctx)
	if left := c.queue.length(); err == nil && left > 0 {
		err = fault.New("local.Close", fault.Unavailable, "%d events could not be sent", left)
	}
	c.http.CloseIdleConnections()
	return err
}
