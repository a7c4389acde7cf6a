package local

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"net/http"
	"sync/atomic"

	"holdfast/decision"
	"holdfast/fault"
)

// modelAnswer is what GET model?snapshot=true answers, as far as it is used.
type modelAnswer struct {
	Program  *string        `json:"programSha256"`
	Section  jsontext.Value `json:"decide"` // its exact bytes are part of the tag
	Tag      string         `json:"modelTag"`
	Snapshot []byte         `json:"snapshot"`
}

// turn waits until nobody else flushes or synchronises.
func (c *Client) turn(ctx context.Context) (done func(), err error) {
	select {
	case <-c.sending:
		return func() { c.sending <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, fault.Wrap("local.Send", fault.Unavailable, ctx.Err(), "given up")
	}
}

// Sync fetches the newest publication if there is one that is not in use. The model in use stays when it fails.
func (c *Client) Sync(ctx context.Context) error {
	done, err := c.turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	known := ""
	if now := c.state.Load(); now != nil && now.refusal == nil {
		known = now.policy.Tag()
	}
	return c.note(c.fetch(ctx, known))
}

// fetch takes over the newest publication unless it is the known one. The caller has the turn.
func (c *Client) fetch(ctx context.Context, known string) error {
	x := call{method: http.MethodGet, path: "/model?snapshot=true"}
	if known != "" {
		x.match = `"` + known + `"`
	}
	if err := c.do(ctx, &x); err != nil || x.status == http.StatusNotModified {
		return err
	}
	var got modelAnswer
	if err := json.Unmarshal(x.answer, &got); err != nil {
		return fault.Wrap("local.Sync", fault.Unavailable, err, "the published model cannot be read")
	}
	now := c.state.Load()
	if got.Program != nil {
		next := state{refusal: fault.New("local.Decide", fault.Invalid, "the capsule has a graph, which only the server can run")}
		if now != nil {
			next.policy, next.draws = now.policy, now.draws
		}
		c.state.Store(&next)
		return nil
	}
	policy, err := decision.OpenPolicy(got.Section, got.Snapshot)
	if err != nil {
		return err
	}
	if policy.Tag() != got.Tag {
		return fault.New("local.Sync", fault.Unavailable, "the published model is damaged: its tag is %s, not %s", policy.Tag(), got.Tag)
	}
	next := state{policy: policy, draws: new(atomic.Uint64)}
	if now != nil && now.policy != nil && sameSeed(now.policy.Seed(), policy.Seed()) {
		next.draws = now.draws
	}
	c.state.Store(&next)
	return nil
}

func sameSeed(a, b *uint64) bool {
	return a == b || a != nil && b != nil && *a == *b
}
