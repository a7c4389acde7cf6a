package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Class is what an answer means to the caller.
type Class uint8

// The classes.
const (
	Accepted Class = iota // 2xx
	Refused               // 429 or 503: come back later
	Failed                // any other status
	classes
)

// ClassOf returns the class of a status.
func ClassOf(status int) Class {
	switch {
	case status >= 200 && status < 300:
		return Accepted
	case status == 429 || status == 503:
		return Refused
	}
	return Failed
}

// Times holds one histogram of nanoseconds per clock, nil until something was recorded.
type Times [clocks]*hdrhistogram.Histogram

// Quantile returns the q-quantile (0..1) of a clock, 0 when it recorded nothing.
func (t *Times) Quantile(c Clock, q float64) time.Duration {
	if t[c] == nil {
		return 0
	}
	return time.Duration(t[c].ValueAtQuantile(q * 100))
}

// Mean returns the mean of a clock, 0 when it recorded nothing.
func (t *Times) Mean(c Clock) time.Duration {
	if t[c] == nil {
		return 0
	}
	return time.Duration(t[c].Mean())
}

// Count returns how many durations a clock recorded.
func (t *Times) Count(c Clock) uint64 {
	if t[c] == nil {
		return 0
	}
	return uint64(t[c].TotalCount())
}

// slowest is the largest duration told apart; a slower answer counts as this slow.
const slowest = 2 * time.Minute

func (t *Times) record(c Clock, d time.Duration) {
	if t[c] == nil {
		t[c] = hdrhistogram.New(int64(time.Microsecond), int64(slowest), 3)
	}
	_ = t[c].RecordValue(int64(min(max(d, 0), slowest))) // cannot fail: the value is clamped to the range
}

func (t *Times) merge(from *Times) {
	for c := range t {
		switch {
		case from[c] == nil:
		case t[c] == nil:
			t[c] = from[c]
		default:
			t[c].Merge(from[c])
		}
	}
}

// Counts is what became of the requests of one kind.
type Counts struct {
	Kind     string
	Errors   uint64 // no complete answer: whether the server acted is unknown
	NoRetry  uint64 // refusals without a Retry-After of at least a second
	Stopped  uint64 // abandoned because the run was cancelled: unknown as well
	LastErr  error  // one of the errors, for the report
	statuses [600]uint64
	times    [classes]Times
}

// Status returns how many answers had exactly this status.
func (c *Counts) Status(status int) uint64 {
	if status < 0 || status >= len(c.statuses) {
		return 0
	}
	return c.statuses[status]
}

// Statuses returns the statuses that occurred, with their counts.
func (c *Counts) Statuses() map[int]uint64 {
	found := map[int]uint64{}
	for status, n := range c.statuses {
		if n > 0 {
			found[status] = n
		}
	}
	return found
}

// Class returns how many answers were of the class.
func (c *Counts) Class(class Class) uint64 {
	var n uint64
	for status, count := range c.statuses {
		if count > 0 && ClassOf(status) == class {
			n += count
		}
	}
	return n
}

// Answers returns how many complete answers came back.
func (c *Counts) Answers() uint64 { return c.Class(Accepted) + c.Class(Refused) + c.Class(Failed) }

// Times returns the durations of one class.
func (c *Counts) Times(class Class) *Times { return &c.times[class] }

func (c *Counts) merge(from *Counts) {
	c.Errors += from.Errors
	c.NoRetry += from.NoRetry
	c.Stopped += from.Stopped
	if c.LastErr == nil {
		c.LastErr = from.LastErr
	}
	for s, n := range from.statuses {
		c.statuses[s] += n
	}
	for class := range c.times {
		c.times[class].merge(&from.times[class])
	}
}

// Tally is the counts of every kind. A worker has one of its own; Run merges them at the end, so nothing is shared while
// requests are in flight.
type Tally struct {
	Kinds []*Counts
}

// NewTally returns an empty tally for the named kinds.
func NewTally(kinds []string) *Tally {
	t := &Tally{}
	for _, name := range kinds {
		t.Kinds = append(t.Kinds, &Counts{Kind: name})
	}
	return t
}

// Total returns the counts of all kinds together.
func (t *Tally) Total() *Counts {
	total := NewTally([]string{"all"})
	for _, c := range t.Kinds {
		one := *c
		for class := range one.times {
			for clock, h := range one.times[class] {
				if h != nil {
					copied := hdrhistogram.New(int64(time.Microsecond), int64(slowest), 3)
					copied.Merge(h)
					one.times[class][clock] = copied
				}
			}
		}
		total.Kinds[0].merge(&one)
	}
	return total.Kinds[0]
}

// Result is a finished run.
type Result struct {
	*Tally
	Begin   time.Time
	Elapsed time.Duration // from the start to the last worker's end
}

func (t *Tally) merge(from *Tally) {
	for i, c := range from.Kinds {
		t.Kinds[i].merge(c)
	}
}

func (t *Tally) record(kind int, a Answer, s stamps) {
	c := t.Kinds[kind]
	if a.Status < len(c.statuses) {
		c.statuses[a.Status]++
	} else {
		c.statuses[599]++ // not a status HTTP knows; it must still be seen
	}
	class := ClassOf(a.Status)
	if class == Refused && a.RetryAfter < 1 {
		c.NoRetry++
	}
	times := &c.times[class]
	times.record(FromIntended, s.done.Sub(s.intended))
	times.record(FromSent, s.done.Sub(s.sent))
	if s.server >= 0 {
		times.record(ServerTimer, s.server)
	}
}

func (t *Tally) fail(kind int, err error) {
	t.Kinds[kind].Errors++
	t.Kinds[kind].LastErr = err
}

func (t *Tally) cancelled(kind int) { t.Kinds[kind].Stopped++ }
