package console

import (
	"math"
	"time"
)

// shortest is the least number of seconds that a picture spans: a capsule that is new does not fill the width at once.
const shortest = 30

// picture is a trail made ready to be drawn. All series have one value per entry of At.
type picture struct {
	Seconds int                  // that it spans, up to now
	At      []float64            // from 0 (oldest) to 1 (now)
	Shares  [slots + 1][]float64 // per slot, in [0,1]; the sum is 1
	Reward  []float64            // fading mean; NaN before the first reward
	Rate    []float64            // decisions per second; NaN where unknown
	Options []string
	Newest  []logged
}

// picture draws the trail at most points wide, up to now. The rate goes up to the last full second.
func (t *trail) picture(now time.Time, points int) picture {
	t.mu.Lock()
	defer t.mu.Unlock()
	end := now.Unix()
	p := picture{Seconds: window - 2, Options: t.options, Newest: t.newest}
	if t.at.first > 0 {
		p.Seconds = int(min(max(end-t.at.first, shortest), window-2))
	}
	step := int64((p.Seconds + points - 1) / points)
	begin := end - int64(p.Seconds)
	sums := t.before
	for second := now.Unix() - window + 1; second <= end; second++ {
		b := &t.buckets[second%window]
		sums.fade(1)
		if b.second == second {
			sums.take(b)
		}
		// Points lie on multiples of the step, so that they move along with time instead of jumping between seconds.
		if second < begin || second != end && second%step != 0 {
			continue
		}
		total := 0.0
		for _, n := range sums.options {
			total += n
		}
		if total == 0 {
			continue // nothing was ever decided up to here
		}
		p.At = append(p.At, float64(second-begin)/float64(p.Seconds))
		for i, n := range sums.options {
			p.Shares[i] = append(p.Shares[i], n/total)
		}
		p.Reward = append(p.Reward, mean(&sums))
		p.Rate = append(p.Rate, t.rate(min(second, end-1)))
	}
	if len(p.At) == 1 {
		p.widen()
	}
	return p
}

// widen makes a line of the only point that a new picture has.
func (p *picture) widen() {
	p.At = []float64{p.At[0] - 1/float64(p.Seconds), p.At[0]}
	for i, s := range p.Shares {
		p.Shares[i] = []float64{s[0], s[0]}
	}
	p.Reward = []float64{p.Reward[0], p.Reward[0]}
	p.Rate = []float64{p.Rate[0], p.Rate[0]}
}

func mean(b *bucket) float64 {
	if b.rewards == 0 {
		return math.NaN()
	}
	return b.sum / b.rewards
}

// rate is the mean of the three seconds up to one: samples are not taken at exact seconds. The caller holds mu.
func (t *trail) rate(second int64) float64 {
	sum, n := 0.0, 0
	for s := second - 2; s <= second; s++ {
		if b := &t.buckets[s%window]; b.second == s && b.counted {
			sum, n = sum+b.rate, n+1
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

// last is the newest value of a series, NaN without one.
func last(series []float64) float64 {
	if len(series) == 0 {
		return math.NaN()
	}
	return series[len(series)-1]
}
