package decision

import (
	"sync/atomic"
	"time"

	"holdfast/fault"
)

// stallAfter is how long the storage may take no batch before decides are refused. A decide that answers before it is on
// disk promises to be there soon; behind a full disk it would wait for as long as the disk stays full.
const stallAfter = 250 * time.Millisecond

// stall is what the queue knows of a storage that takes no batches for now.
type stall struct {
	since   atomic.Pointer[time.Time]   // when it first took none since it last took one; nil while it takes them
	refusal atomic.Pointer[fault.Error] // what decides are told; nil until stallAfter has passed
}

// seen notes that the storage did not take a batch, and why.
func (s *stall) seen(err error) {
	now := time.Now()
	s.since.CompareAndSwap(nil, &now)
	first := s.since.Load()
	if first == nil || now.Sub(*first) < stallAfter || s.refusal.Load() != nil {
		return
	}
	s.refusal.Store(&fault.Error{Op: "decision.Decide", Kind: fault.Unavailable, Err: err, Msg: fault.MessageOf(err),
		RetryAfter: fault.RetryAfter(err)})
}

// over notes that the storage took a batch.
func (s *stall) over() {
	if s.since.Load() != nil {
		s.since.Store(nil)
		s.refusal.Store(nil)
	}
}
