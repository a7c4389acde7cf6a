package local

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"io"
	"net/http"
	"strconv"
	"time"

	"holdfast/fault"
)

// The rules for repeating a request. Everything this package sends may be repeated: reads, decisions, which the server tells
// by their ids, and rewards, which all have keys.
const (
	retries    = 3
	firstPause = 100 * time.Millisecond // doubled each time
	longest    = 10 * time.Second       // of a Retry-After that is honoured
	maxAnswer  = 1 << 29                // bytes; the largest model is below
)

// plainClient is a client that follows no redirects: a redirected credential is a leaked one.
func plainClient(given *http.Client) *http.Client {
	c := &http.Client{Timeout: 30 * time.Second}
	if given != nil {
		*c = *given
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

// call is one request and, after do, its answer.
type call struct {
	method, path string
	body         []byte
	match        string // If-None-Match
	status       int
	answer       []byte
}

// do sends a call until it is answered with something else than 429 or 503, three more times at most. The error is
// Unavailable when there is no answer, the kind of the status for one that is no success; 304 is a success.
func (c *Client) do(ctx context.Context, x *call) error {
	pause := firstPause
	for left := retries; ; left-- {
		after, err := c.once(ctx, x)
		busy := err == nil && (x.status == http.StatusTooManyRequests || x.status == http.StatusServiceUnavailable)
		if err == nil && !busy {
			return x.problem()
		}
		if left == 0 || ctx.Err() != nil {
			if busy {
				return x.problem()
			}
			return fault.Wrap("local.Send", fault.Unavailable, err, "the server cannot be reached")
		}
		if after <= 0 || after > longest {
			after, pause = pause, 2*pause
		}
		timer := time.NewTimer(after)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fault.Wrap("local.Send", fault.Unavailable, ctx.Err(), "given up")
		}
	}
}

// once sends a call and reads its answer. after is what Retry-After says, 0 when it says nothing.
func (c *Client) once(ctx context.Context, x *call) (after time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, x.method, c.base+x.path, bytes.NewReader(x.body))
	if err != nil {
		return 0, err
	}
	if c.options.Key != "" {
		r.Header.Set("Authorization", "Bearer "+c.options.Key)
	}
	if x.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if x.match != "" {
		r.Header.Set("If-None-Match", x.match)
	}
	w, err := c.http.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = w.Body.Close() }() // it has been read, or the connection is of no more use
	x.status = w.StatusCode
	if x.answer, err = io.ReadAll(io.LimitReader(w.Body, maxAnswer)); err != nil {
		return 0, err
	}
	if seconds, err := strconv.Atoi(w.Header.Get("Retry-After")); err == nil {
		after = time.Duration(seconds) * time.Second
	}
	return after, nil
}

// kinds are those of the statuses that a server refuses with.
var kinds = map[int]fault.Kind{
	http.StatusBadRequest: fault.Invalid, http.StatusUnauthorized: fault.Unauthenticated, http.StatusForbidden: fault.Forbidden,
	http.StatusNotFound: fault.NotFound, http.StatusRequestTimeout: fault.Timeout, http.StatusConflict: fault.Conflict,
	http.StatusRequestEntityTooLarge: fault.TooLarge, http.StatusTooManyRequests: fault.Exhausted,
	http.StatusServiceUnavailable: fault.Unavailable,
}

// problem is the error that an answer stands for.
func (x *call) problem() error {
	if x.status >= 200 && x.status < 300 || x.status == http.StatusNotModified {
		return nil
	}
	var told struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal(x.answer, &told); err != nil || told.Error == "" {
		told.Error = "no reason given"
	}
	return fault.New("local.Send", kinds[x.status], "the server answered %d: %s", x.status, told.Error)
}
