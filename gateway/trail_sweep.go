package gateway

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"holdfast/fault"
)

// How long pages of each level are kept before they become part of the next, and days before they go: every range that the
// analytics know is read at the level of its buckets or finer, and 18 months is how far back they look.
const (
	keepMinutes = 26 * time.Hour
	keepHours   = 32 * 24 * time.Hour
	keepDays    = 549 * 24 * time.Hour
)

// One step of a sweep touches this many rows; a turn of it takes this long, and the next one goes on.
const (
	sweepBundles = 16
	sweepTallies = 32
	sweepTurn    = 5 * time.Second
)

func (l level) keep() time.Duration {
	return [levelCount]time.Duration{keepMinutes, keepHours, keepDays}[l]
}

// sweepWhenDue sweeps once a minute.
func (k *keeper) sweepWhenDue(ctx context.Context) {
	now := k.service.options.Now()
	if now.Sub(k.swept) < trailSweep {
		return
	}
	k.swept = now
	if err := k.sweep(ctx); err != nil && ctx.Err() == nil {
		k.service.log.Error("a sweep of the trail failed", "err", err)
	}
}

// sweep drops events that are too old or too many, and makes old pages coarser. It steps aside for events that wait.
func (k *keeper) sweep(ctx context.Context) error {
	began := time.Now()
	for _, step := range [...]func(context.Context) (more bool, err error){k.dropBundles,
		func(ctx context.Context) (bool, error) { return k.coarsen(ctx, minutes) },
		func(ctx context.Context) (bool, error) { return k.coarsen(ctx, hours) },
		k.dropDays, k.dropBytes, k.join} {
		for more := true; more; {
			if ctx.Err() != nil || time.Since(began) > sweepTurn {
				return ctx.Err()
			}
			var err error
			if more, err = step(ctx); err != nil {
				return err
			}
			if k.service.trail.waiting.Load() >= trailHigh/2 {
				k.store(ctx)
			}
		}
	}
	return nil
}

// join puts small bundles together, so that the trail of light traffic has few of them: a look goes over every head of its range.
// The numbers of what is joined change, and with them the ids of its events.
func (k *keeper) join(ctx context.Context) (more bool, err error) {
	s := k.service
	var run []int64
	var events []Event
	var order []keyed
	err = s.storage.Read(ctx, func(v View) error {
		if run, more, err = k.joinable(v); err != nil || len(run) < 2 {
			return err
		}
		return v.BundlesAfter(run[0]-1, func(b BundleRow) error {
			if b.Number > run[len(run)-1] {
				return errJoined
			}
			return b.eachEvent(func(key int64, e *Event) {
				order = append(order, keyed{key, int32(len(events))})
				events = append(events, *e)
			})
		})
	})
	if err != nil && !errors.Is(err, errJoined) {
		return false, err
	}
	if len(run) < 2 {
		return more, nil
	}
	slices.SortStableFunc(order, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
	var joined bundleBuilder
	for _, o := range order {
		joined.add(o.key, &events[o.at])
	}
	row := joined.finish(run[0])
	return more, s.storage.Write(ctx, Write{Rows: 2 * len(run), Change: func(tx Tx) error {
		return tx.ReplaceBundles(row, run[len(run)-1])
	}})
}

// errJoined ends a visit of bundles; nobody sees it.
var errJoined = fault.New("gateway.join", fault.Internal, "the bundles to join are read")

// What is joined: bundles that ended a while ago, this many at a time, and fewer only when they fill one.
const (
	joinAfter = 10 * time.Minute
	joinMost  = 128
	joinLeast = 32
)

// joinable returns the next bundles that become one; more says that there may be others.
func (k *keeper) joinable(v View) (run []int64, more bool, err error) {
	state, err := v.TrailState()
	if err != nil {
		return nil, false, err
	}
	before := k.service.nowMS() - joinAfter.Milliseconds()
	count, bytes, full := 0, int64(0), false
	err = v.HeadsAfter(k.joined, func(b BundleRow) (bool, error) {
		if b.Number > state.Counted || b.LastMS >= before {
			return false, nil
		}
		full = len(run) > 0 && (count+b.Count > bundleEvents || bytes+b.Bytes > bundleBytes || len(run) == joinMost)
		if !full {
			run, count, bytes = append(run, b.Number), count+b.Count, bytes+b.Bytes
		}
		return !full, nil
	})
	if err != nil || !full && len(run) < joinLeast {
		return nil, false, err
	}
	k.joined = run[len(run)-1]
	return run, true, nil
}

// dropBundles drops the oldest events. Those that no stored roll-up counts yet stay.
func (k *keeper) dropBundles(ctx context.Context) (more bool, err error) {
	s := k.service
	o := s.options.Trail
	drop := BundleDrop{BeforeMS: s.nowMS() - int64(o.Days)*dayMS, KeepBytes: o.Bytes, Limit: sweepBundles}
	err = s.storage.Write(ctx, Write{Rows: 2 * sweepBundles, Change: func(tx Tx) error {
		state, err := tx.TrailState()
		if err != nil {
			return err
		}
		drop.Through = state.Counted
		n, err := tx.DropBundles(drop)
		more = n == drop.Limit
		return err
	}})
	return more, err
}

// coarsen makes the oldest pages of a level part of those of the next.
func (k *keeper) coarsen(ctx context.Context, from level) (more bool, err error) {
	s := k.service
	cutoff := floorMS(s.nowMS()-from.keep().Milliseconds(), (from + 1).grain())
	sums, through := map[pageID]*page{}, map[pageID]int64{}
	var gone []pageID
	err = s.storage.Read(ctx, func(v View) error {
		return v.Tallies(TallyKeys{pageID{level: from}.key(), pageID{level: from, start: cutoff}.key(), sweepTallies}, func(row TallyRow) error {
			id := pageOf(row.Key)
			gone = append(gone, id)
			into := id.in(from + 1)
			if sums[into] == nil {
				sums[into] = newPage()
				_, err := v.Tally(into.key(), func(there TallyRow) error {
					through[into] = there.Through
					return k.readable(sums[into].addStored(there.Cells, into.level.cells()))
				})
				if err != nil {
					return err
				}
			}
			through[into] = max(through[into], row.Through)
			return k.readable(sums[into].addStored(row.Cells, into.level.cells()))
		})
	})
	if err != nil || len(gone) == 0 {
		return false, err
	}
	err = s.storage.Write(ctx, Write{Rows: len(gone) + len(sums), Change: func(tx Tx) error {
		for id, sum := range sums {
			if err := tx.PutTally(TallyRow{Key: id.key(), Through: through[id], Cells: sum.encode()}); err != nil {
				return err
			}
		}
		return dropTallies(tx, gone)
	}})
	if err == nil {
		s.tallies.forget(gone)
	}
	return len(gone) == sweepTallies, err
}

// readable passes over a page that cannot be read: it must not keep the others from being swept.
func (k *keeper) readable(err error) error {
	if err != nil {
		k.service.log.Error("a stored roll-up cannot be read and is left out", "err", err)
	}
	return nil
}

func dropTallies(tx Tx, ids []pageID) error {
	for _, id := range ids {
		if err := tx.DropTally(id.key()); err != nil {
			return err
		}
	}
	return nil
}

// dropDays drops the days beyond the look-back.
func (k *keeper) dropDays(ctx context.Context) (more bool, err error) {
	cutoff := floorMS(k.service.nowMS()-keepDays.Milliseconds(), dayMS)
	return k.dropOldest(ctx, days, cutoff)
}

// dropBytes drops the oldest pages while the roll-ups have more bytes than they may.
func (k *keeper) dropBytes(ctx context.Context) (more bool, err error) {
	s := k.service
	var state TrailState
	err = s.storage.Read(ctx, func(v View) (err error) {
		state, err = v.TrailState()
		return err
	})
	if err != nil || state.TallyBytes <= s.options.Trail.TallyBytes {
		return false, err
	}
	for l := days; ; l-- {
		if more, err = k.dropOldest(ctx, l, s.nowMS()); err != nil || more || l == minutes {
			return more, err
		}
	}
}

// dropOldest drops the oldest pages of a level that start before cutoff, and says whether there were any.
func (k *keeper) dropOldest(ctx context.Context, l level, cutoff int64) (some bool, err error) {
	s := k.service
	var gone []pageID
	err = s.storage.Read(ctx, func(v View) error {
		return v.Tallies(TallyKeys{pageID{level: l}.key(), pageID{level: l, start: cutoff}.key(), sweepTallies}, func(row TallyRow) error {
			gone = append(gone, pageOf(row.Key))
			return nil
		})
	})
	if err != nil || len(gone) == 0 {
		return false, err
	}
	err = s.storage.Write(ctx, Write{Rows: len(gone), Change: func(tx Tx) error { return dropTallies(tx, gone) }})
	if err == nil {
		s.tallies.forget(gone)
	}
	return err == nil, err
}
