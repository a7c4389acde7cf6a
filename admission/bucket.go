package admission

import (
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// Rate is how many requests a principal may make: PerSecond in the long run, and Burst at once after a pause.
type Rate struct {
	PerSecond float64 // > 0, may be a fraction: 0.2 is one in five seconds
	Burst     float64 // >= 1, else nothing would ever pass
}

// ErrRate refuses a Rate that means nothing or cannot be counted.
var ErrRate = errors.New("rate and burst must be above 0, the burst at least 1, and an empty bucket must be full again within four years")

// Time is counted in ticks of 1/16 ns from the gate's start: fine enough for millions a second, and 64 bits of them last
// eighteen years.
const ticksPerNano = 16

// dead marks a bucket that was thrown away: whoever still holds it must look up its successor.
const dead = math.MaxInt64

// pace is a Rate in ticks.
type pace struct {
	cost int64 // of one request, rounded up so that the rate is never exceeded
	tau  int64 // how far ahead of now the bucket may be drawn: Burst requests
}

func (r Rate) pace() (pace, error) {
	const second = float64(time.Second) * ticksPerNano
	if !(r.PerSecond > 0) || !(r.Burst >= 1) {
		return pace{}, ErrRate
	}
	cost := math.Ceil(second / r.PerSecond)
	if tau := cost * r.Burst; cost < 1 || !(tau < 1<<61) {
		return pace{}, ErrRate
	}
	return pace{cost: int64(cost), tau: int64(cost * r.Burst)}, nil
}

// bucket is a token bucket in one atomic word, filled continuously and without a timer: the generic cell rate algorithm.
// The word is the tick at which the bucket will be full again. Full is the zero value; a bucket that is full holds no
// memory of anything, so it may be thrown away.
type bucket struct{ full atomic.Int64 }

// take draws one request at now. Otherwise it returns how many ticks later that could succeed, when nobody else draws; the
// answer is dead for a bucket that was thrown away.
func (b *bucket) take(now int64, p pace) (wait int64) {
	for {
		full := b.full.Load()
		if full == dead {
			return dead
		}
		next := max(full, now) + p.cost
		if wait := next - now - p.tau; wait > 0 {
			return wait
		}
		if b.full.CompareAndSwap(full, next) {
			return 0
		}
	}
}

// wait returns how many ticks after now a caller with n others before it could draw.
func (b *bucket) wait(now int64, n int, p pace) int64 {
	full := b.full.Load()
	if full == dead {
		full = now
	}
	turns := int64(n + 1)
	if turns > (1<<61)/p.cost {
		return 1 << 61 // years: the product would not fit
	}
	return max(0, max(full, now)-now+p.cost*turns-p.tau)
}

// refund gives back one drawn request that did not happen.
func (b *bucket) refund(p pace) {
	for {
		full := b.full.Load()
		if full == dead || b.full.CompareAndSwap(full, full-p.cost) {
			return // a bucket was only thrown away when it was full: there is nothing to give back
		}
	}
}

// retire throws the bucket away if it is full, and reports whether it did.
func (b *bucket) retire(now int64) bool {
	full := b.full.Load()
	return full <= now && b.full.CompareAndSwap(full, dead)
}
