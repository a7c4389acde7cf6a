package gateway

import (
	"context"
	"time"
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
		k.dropDays, k.dropBytes} {
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
