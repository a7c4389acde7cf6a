package lab

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"io"
	"net/http"
	"strings"
	"time"

	"holdfast/fault"
)

// control talks to a server about everything that is not load: it creates capsules, issues tokens and reads metrics. It
// uses net/http, because here nobody counts microseconds.
type control struct {
	base   string // http://host:port, without a slash at the end
	key    string
	header [2]string // another header, name and value, instead of the key as a bearer
	client *http.Client
}

func newControl(base, key string) *control {
	return &control{base: strings.TrimRight(base, "/"), key: key, client: &http.Client{Timeout: 30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// as returns the same control under another header than the bearer.
func (c *control) as(name, value string) *control {
	other := *c
	other.header = [2]string{name, value}
	return &other
}

// control returns the operator's view of a child.
func (c *child) control() *control { return newControl("http://"+c.addr, c.key) }

// ask sends one request, which reads "METHOD /path", and decodes a 2xx answer into out unless out is nil.
func (c *control) ask(ctx context.Context, what, body string, out any) error {
	raw, err := c.raw(ctx, what, body)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fault.Wrap("lab.Control", fault.Internal, err, what+" was answered with JSON of another shape")
	}
	return nil
}

// raw sends one request and returns the body of a 2xx answer; any other status is an error that quotes the answer.
func (c *control) raw(ctx context.Context, what, body string) ([]byte, error) {
	method, path, _ := strings.Cut(what, " ")
	var send io.Reader
	if body != "" {
		send = strings.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, send)
	if err != nil {
		return nil, fault.Wrap("lab.Control", fault.Invalid, err, "not a usable address: "+c.base)
	}
	switch {
	case c.header[0] != "":
		request.Header.Set(c.header[0], c.header[1])
		request.Header.Set("Content-Type", "application/json")
	case c.key != "":
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	answer, err := c.client.Do(request)
	if err != nil {
		return nil, fault.Wrap("lab.Control", fault.Unavailable, err, what+" was not answered; is the server running?")
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, 64<<20))
	if err != nil {
		return nil, fault.Wrap("lab.Control", fault.Unavailable, err, what+" was answered incompletely")
	}
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return nil, fault.New("lab.Control", kindOf(answer.StatusCode), "%s was answered with %s: %s", what, answer.Status,
			bytes.TrimSpace(raw[:min(len(raw), 300)]))
	}
	return raw, nil
}

// kindOf sorts the statuses that callers here tell apart.
func kindOf(status int) fault.Kind {
	switch status {
	case http.StatusNotFound:
		return fault.NotFound
	case http.StatusUnauthorized:
		return fault.Unauthenticated
	case http.StatusForbidden:
		return fault.Forbidden
	case http.StatusBadRequest:
		return fault.Invalid
	}
	return fault.Unavailable
}

// metrics reads the counters.
func (c *control) metrics(ctx context.Context) (sample, error) {
	raw, err := c.raw(ctx, "GET /metrics", "")
	if err != nil {
		return sample{}, err
	}
	return readMetrics(bytes.NewReader(raw))
}

// token issues a credential for the lab's tenant. Every measurement gets one of its own, so that its rate limiter starts
// with a full bucket.
func (c *control) token(ctx context.Context) (string, error) {
	var answer struct {
		Token string `json:"token"`
	}
	err := c.ask(ctx, "POST /v1/admin/tokens", `{"scope":{"kind":"tenant_admin","tenant":"`+tenant+`"},"ttlSeconds":86400,"label":"lab"}`, &answer)
	return answer.Token, err
}
