package local

import (
	"context"
	"encoding/json/v2"
	"net/http"
	"slices"

	"holdfast/fault"
)

// maxChunk is how many events one body carries at most.
const maxChunk = 1000

// Flush sends what is queued, decisions before rewards. What could not be sent, or may be sent again, stays queued. The error
// says why the server took nothing; what it refused for good is counted and logged instead.
func (c *Client) Flush(ctx context.Context) error {
	done, err := c.turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	decisions, rewards := c.queue.take()
	again, err := c.sendAll(ctx, "decisions", decisions)
	if err != nil {
		c.queue.put(again, rewards)
		return c.note(err)
	}
	// The reward of a decision that must be sent again waits with it.
	waiting := map[string]bool{}
	for _, d := range again {
		waiting[d.id] = true
	}
	var ready, late []event
	for _, r := range rewards {
		if waiting[r.id] {
			late = append(late, r)
		} else {
			ready = append(ready, r)
		}
	}
	unsent, err := c.sendAll(ctx, "rewards", ready)
	c.queue.put(again, append(unsent, late...))
	return c.note(err)
}

// sendAll sends events in chunks until one cannot be sent. again is what stays queued, in order.
func (c *Client) sendAll(ctx context.Context, list string, events []event) (again []event, err error) {
	for len(events) > 0 {
		n := chunk(events)
		retry, err := c.send(ctx, list, events[:n])
		again, events = append(again, retry...), events[n:]
		if err != nil {
			return append(again, events...), err
		}
	}
	return again, nil
}

// chunk is how many of the events fit into one body.
func chunk(events []event) int {
	size := len(`{"decisions":[]}`)
	for i, e := range events {
		size += len(e.text) + 1
		if i == maxChunk || i > 0 && size > maxBody {
			return i
		}
	}
	return len(events)
}

// send sends one chunk and returns the events that may be sent again; with an error those that the server did not answer for
// are among them.
func (c *Client) send(ctx context.Context, list string, events []event) (again []event, err error) {
	body := append([]byte(`{"`), list...)
	body = append(body, `":[`...)
	for i, e := range events {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, e.text...)
	}
	x := call{method: http.MethodPost, path: "/" + list + ":batch", body: append(body, "]}"...)}
	if err := c.do(ctx, &x); err != nil {
		if k := fault.KindOf(err); k == fault.Invalid || k == fault.TooLarge {
			return c.divide(ctx, list, events, err)
		}
		return events, err
	}
	var verdict map[int]refusal
	if list == "decisions" {
		verdict, err = refusedDecisions(x.answer, len(events))
	} else {
		verdict, err = refusedRewards(x.answer, len(events))
	}
	if err != nil {
		return events, err
	}
	var gone []event
	var why string
	for i, r := range verdict {
		if r.retryable {
			continue
		}
		gone, why = append(gone, events[i]), r.why
	}
	for i, e := range events {
		if r, ok := verdict[i]; ok && r.retryable {
			again = append(again, e)
		}
	}
	taken := len(events) - len(verdict)
	c.counts.sent.Add(int64(taken))
	c.queue.release(taken)
	c.refused(gone, why)
	return again, nil
}

// divide finds the event for which the server refuses a whole body, so that it takes no other with it.
func (c *Client) divide(ctx context.Context, list string, events []event, cause error) (again []event, err error) {
	// A graph changes no publication, so only the whole answer tells of it.
	if err := c.fetch(ctx, ""); err == nil && c.state.Load().refusal == nil && len(events) > 1 {
		half := len(events) / 2
		if again, err = c.send(ctx, list, events[:half]); err != nil {
			return append(again, events[half:]...), err
		}
		more, err := c.send(ctx, list, events[half:])
		return append(again, more...), err
	}
	c.refused(events, fault.MessageOf(cause)) // it, or the capsule, which has a graph now, will never be taken
	return nil, nil
}

// refused forgets events that the server will never take.
func (c *Client) refused(events []event, why string) {
	if len(events) == 0 {
		return
	}
	c.counts.refused.Add(int64(len(events)))
	c.queue.release(len(events))
	c.log.Warn("the server refused events", "count", len(events), "decisionId", events[0].id, "why", why)
}

// refusal is why the server did not take one event.
type refusal struct {
	retryable bool
	why       string
}

func unreadable(err error) error {
	return fault.Wrap("local.Flush", fault.Unavailable, err, "the server's answer cannot be read")
}

// refusedDecisions reads the answer of decisions:batch.
func refusedDecisions(answer []byte, sent int) (map[int]refusal, error) {
	var got struct {
		Rejected []struct {
			Index     int    `json:"index"`
			Error     string `json:"error"`
			Retryable bool   `json:"retryable"`
		} `json:"rejected"`
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		return nil, unreadable(err)
	}
	verdict := map[int]refusal{}
	for _, r := range got.Rejected {
		if r.Index < 0 || r.Index >= sent {
			return nil, unreadable(nil)
		}
		verdict[r.Index] = refusal{r.Retryable, r.Error}
	}
	return verdict, nil
}

// passing are the statuses of a reward that may be sent again.
var passing = []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable}

// refusedRewards reads the answer of rewards:batch.
func refusedRewards(answer []byte, sent int) (map[int]refusal, error) {
	var got struct {
		Results []struct {
			OK     bool   `json:"ok"`
			Status int    `json:"status"`
			Error  string `json:"error"`
		} `json:"results"`
	}
	if err := json.Unmarshal(answer, &got); err != nil || len(got.Results) != sent {
		return nil, unreadable(err)
	}
	verdict := map[int]refusal{}
	for i, r := range got.Results {
		if !r.OK {
			verdict[i] = refusal{slices.Contains(passing, r.Status), r.Error}
		}
	}
	return verdict, nil
}
