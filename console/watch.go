package console

import (
	"context"
	"sync"
	"time"

	"holdfast/decision"
)

// The bounds of what is watched.
const (
	maxWatched = 64          // capsules; one more takes the place of the one that was looked at longest ago
	linger     = time.Minute // how long a capsule is watched after the last look
	roundTime  = 900 * time.Millisecond
)

// watch keeps the trails of the capsules that somebody looks at.
type watch struct {
	service *decision.Service
	mu      sync.Mutex // guards what follows
	trails  map[decision.CapsuleID]*trail
}

// trail returns the trail of a capsule and notes that somebody looked. A new one takes its first sample here, so that the
// first picture is not empty.
func (w *watch) trail(ctx context.Context, id decision.CapsuleID, now time.Time) (*trail, error) {
	t := w.touch(id, now)
	if !t.begun() {
		if err := t.sample(ctx, w.service, now); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (w *watch) touch(id decision.CapsuleID, now time.Time) *trail {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.trails[id]
	if t == nil {
		if w.trails == nil {
			w.trails = map[decision.CapsuleID]*trail{}
		}
		if len(w.trails) >= maxWatched {
			w.dropOldest()
		}
		t = newTrail(id)
		w.trails[id] = t
	}
	t.looked = now
	return t
}

// dropOldest makes room. The caller holds mu.
func (w *watch) dropOldest() {
	var oldest *trail
	for _, t := range w.trails {
		if oldest == nil || t.looked.Before(oldest.looked) {
			oldest = t
		}
	}
	delete(w.trails, oldest.id)
}

// active forgets the trails that nobody looked at for a while and returns the others.
func (w *watch) active(now time.Time) []*trail {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []*trail
	for id, t := range w.trails {
		if now.Sub(t.looked) > linger {
			delete(w.trails, id)
			continue
		}
		all = append(all, t)
	}
	return all
}

// Run samples the watched capsules once a second until ctx ends. Without it pages show what was there when they were
// opened.
func (c *Console) Run(ctx context.Context) {
	for {
		timer := time.NewTimer(untilMiddle(c.now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			c.round(ctx)
		}
	}
}

// untilMiddle is the time to the middle of the next second: a sample that is late or early by less than half a second
// still falls into the second it is meant for.
func untilMiddle(now time.Time) time.Duration {
	const half = time.Second / 2
	return now.Truncate(time.Second).Add(time.Second + half).Sub(now)
}

// round takes one sample of each watched capsule. Those that a slow store leaves no time for are sampled in a later round:
// the map's order gives each its turn.
func (c *Console) round(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, roundTime)
	defer cancel()
	c.shops.round(c.now())
	for _, t := range c.watch.active(c.now()) {
		if ctx.Err() != nil {
			return
		}
		if err := t.sample(ctx, c.service, c.now()); err != nil {
			c.log.Debug("a capsule could not be sampled", keyCapsule, t.id.String(), keyError, err)
		}
	}
}
