package local

import (
	"sync"
	"time"

	"holdfast/fault"
)

// MaxQueued bounds the events that wait for the server, those that are being sent included.
const MaxQueued = 100_000

// event is a decision or a reward as it is sent. Its text is made once, because the server tells a repeated decision by its
// bytes.
type event struct {
	id   string // of the decision
	text []byte
}

// queue holds the events that the server has neither taken nor refused.
type queue struct {
	mu        sync.Mutex // guards what follows
	places    int        // taken, of MaxQueued
	decisions []event
	rewards   []event
}

// reserve takes a place, or fails with Unavailable.
func (q *queue) reserve() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.places >= MaxQueued {
		return &fault.Error{Op: "local.Queue", Kind: fault.Unavailable, RetryAfter: time.Second,
			Msg: "100,000 events wait for the server; try again when it takes them"}
	}
	q.places++
	return nil
}

// release gives places back.
func (q *queue) release(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.places -= n
}

func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.places
}

func (q *queue) addDecision(e event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.decisions = append(q.decisions, e)
}

func (q *queue) addReward(e event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rewards = append(q.rewards, e)
}

// take empties the queue at one moment: every reward among those taken names a decision that was taken with it, or before.
func (q *queue) take() (decisions, rewards []event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	decisions, rewards = q.decisions, q.rewards
	q.decisions, q.rewards = nil, nil
	return decisions, rewards
}

// put brings back what could not be sent, before what came meanwhile.
func (q *queue) put(decisions, rewards []event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(decisions) > 0 {
		q.decisions = append(decisions, q.decisions...)
	}
	if len(rewards) > 0 {
		q.rewards = append(rewards, q.rewards...)
	}
}
