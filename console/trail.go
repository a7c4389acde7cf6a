package console

import (
	"context"
	"slices"
	"sync"
	"time"

	"holdfast/decision"
)

// The bounds of a trail.
const (
	window     = 300  // seconds that are kept
	slots      = 8    // options with a colour of their own; the rest share one more
	firstLook  = 1000 // decisions and rewards of the first sample
	laterLook  = 200  // decisions of a later one: enough to see a share within a few percent
	laterLearn = 1000 // rewards of a later one
	shown      = 25   // newest decisions that are kept
)

// trail is what a capsule did lately: one bucket per second, and the newest decisions.
type trail struct {
	id     decision.CapsuleID
	looked time.Time     // guarded by the watch's mu
	turn   chan struct{} // holds one entry while a sample is taken: it reads the store, which no mutex may be held across

	mu      sync.Mutex // guards what follows
	from    *decision.Capsule
	at      position
	buckets [window]bucket
	before  bucket // what the buckets that were reused held, fading
	options []string
	newest  []logged // newest first
}

// position is how far the samples have come.
type position struct {
	begun     bool
	decisions int64 // the capsule's counter
	rewards   int64 // the newest sequence
	newestMS  int64
	first     int64 // the oldest second with anything in it, 0 without
}

// bucket is one second.
type bucket struct {
	second  int64
	counted bool    // rate is known
	rate    float64 // decisions per second
	options [slots + 1]float64
	rewards float64
	sum     float64 // of the rewards' values
}

// logged is a decision with what came of it.
type logged struct {
	decision.Decision
	Rewards []decision.Reward
}

func newTrail(id decision.CapsuleID) *trail { return &trail{id: id, turn: make(chan struct{}, 1)} }

func (t *trail) begun() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at.begun
}

// seen is what one sample read.
type seen struct {
	capsule *decision.Capsule
	stats   decision.Stats
	page    []decision.Decision // newest first
	partial bool                // there were more than page holds
	rewards []decision.Reward
	newest  []logged
}

// sample adds what happened since the last one. Samples of one trail do not overlap.
func (t *trail) sample(ctx context.Context, service *decision.Service, now time.Time) error {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	c, err := service.Capsule(ctx, t.id)
	if err != nil {
		return err
	}
	s := seen{capsule: c, stats: c.Stats(ctx)}
	at, newest := t.start(&s)
	if at.begun && at.decisions == s.stats.Decisions && at.rewards == s.stats.LastRewardSeq {
		t.add(&s, now)
		return nil
	}
	if err := s.read(ctx, at, now); err != nil {
		return err
	}
	s.newest = merge(s.page, newest)
	if err := s.join(ctx); err != nil {
		return err
	}
	t.add(&s, now)
	return nil
}

// start returns where to go on from; from the beginning when the capsule was made anew or its logs were erased.
func (t *trail) start(s *seen) (position, []logged) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.from != s.capsule || s.stats.Decisions < t.at.decisions {
		t.from, t.at, t.buckets, t.before, t.options, t.newest = s.capsule, position{}, [window]bucket{}, bucket{}, nil, nil
		t.options = s.capsule.Options()[:min(slots, len(s.capsule.Options()))]
	}
	return t.at, t.newest
}

// read looks at the log from a position on.
func (s *seen) read(ctx context.Context, at position, now time.Time) error {
	q := decision.Query{Newest: true, Limit: firstLook}
	learn := firstLook
	if at.begun {
		q.Limit, learn = laterLook, laterLearn
		q.Since = at.newestMS + 1
	}
	q.Until = now.UnixMilli() + 1 // clients upload decisions of their own clocks: the future is not looked at
	if q.Since < q.Until {
		page, err := s.capsule.Decisions(ctx, q)
		if err != nil {
			return err
		}
		s.page, s.partial = page.Decisions, len(page.Decisions) == q.Limit
	}
	var err error
	s.rewards, err = s.capsule.RewardsSince(ctx, max(at.rewards, s.stats.LastRewardSeq-int64(learn)), learn)
	if err == nil && !at.begun {
		s.history(ctx, now)
	}
	return err
}

// merge puts the decisions of a page before those known already.
func merge(page []decision.Decision, known []logged) []logged {
	all := make([]logged, 0, shown)
	for i := range page[:min(shown, len(page))] {
		all = append(all, logged{Decision: page[i]})
	}
	return append(all, known[:min(len(known), shown-len(all))]...)
}

// join looks up what came of the newest decisions.
func (s *seen) join(ctx context.Context) error {
	ids := make([]string, len(s.newest))
	for i := range s.newest {
		ids[i] = s.newest[i].ID
	}
	rewards, err := s.capsule.RewardsOf(ctx, ids)
	for i := range rewards {
		s.newest[i].Rewards = rewards[i]
	}
	return err
}

// add puts a sample into the buckets.
func (t *trail) add(s *seen, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	second := now.Unix()
	t.order(s.page)
	for i := range s.page {
		d := &s.page[i]
		b := t.bucket(d.TimeMS/1000, second)
		b.options[t.slot(d.Actions[d.Chosen].ID)]++
		if !t.at.begun && !s.partial { // the first look saw all there was: it can be counted, second by second
			b.rate, b.counted = b.rate+1, true
		}
		t.at.newestMS = max(t.at.newestMS, d.TimeMS)
	}
	for _, r := range s.rewards {
		b := t.bucket(r.TimeMS/1000, second)
		b.rewards, b.sum = b.rewards+1, b.sum+r.Value
	}
	if b := t.bucket(second, second); t.at.begun {
		b.rate, b.counted = b.rate+float64(s.stats.Decisions-t.at.decisions), true
	}
	if s.newest != nil {
		t.newest = s.newest
	}
	t.at.begun, t.at.decisions, t.at.rewards = true, s.stats.Decisions, s.stats.LastRewardSeq
}

// bucket returns the bucket of a second. What is older than the window fades into before, what is newer counts as now.
// The caller holds mu.
func (t *trail) bucket(second, now int64) *bucket {
	if second <= now-window {
		t.at.first = now - window + 1
		return &t.before
	}
	second = min(second, now)
	if t.at.first == 0 || second < t.at.first {
		t.at.first = second
	}
	b := &t.buckets[second%window]
	if b.second != second {
		t.before.absorb(b)
		*b = bucket{second: second}
	}
	return b
}

// The share of its weight that a second keeps after another second: options fade within about 15 s, rewards within 25 s.
const (
	keepOptions = 0.93
	keepRewards = 0.96
)

// fade weakens what a sum holds by some seconds.
func (b *bucket) fade(seconds int) {
	for range min(seconds, window) {
		for i := range b.options {
			b.options[i] *= keepOptions
		}
		b.rewards *= keepRewards
		b.sum *= keepRewards
	}
}

// absorb takes over what a bucket held that is used again. An empty one changes nothing, so that what an idle capsule did
// last is not forgotten.
func (b *bucket) absorb(o *bucket) {
	if o.rewards == 0 && o.options == [slots + 1]float64{} {
		return
	}
	b.fade(1)
	b.take(o)
}

// take adds what another bucket holds.
func (b *bucket) take(o *bucket) {
	for i := range b.options {
		b.options[i] += o.options[i]
	}
	b.rewards, b.sum = b.rewards+o.rewards, b.sum+o.sum
}

// order gives the options of a page their slots, the frequent ones first, while there are free slots. A slot is never
// given to another option: its colour stays. The caller holds mu.
func (t *trail) order(page []decision.Decision) {
	counts := map[string]int{}
	var fresh []string
	for i := range page {
		name := page[i].Actions[page[i].Chosen].ID
		if counts[name]++; counts[name] == 1 && !slices.Contains(t.options, name) {
			fresh = append(fresh, name)
		}
	}
	slices.SortStableFunc(fresh, func(a, b string) int { return counts[b] - counts[a] })
	t.options = append(t.options, fresh[:min(len(fresh), slots-len(t.options))]...)
}

// slot is the place of an option's colour; slots itself is that of the rest. The caller holds mu.
func (t *trail) slot(option string) int {
	if i := slices.Index(t.options, option); i >= 0 {
		return i
	}
	return slots
}
