package gateway

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of checkpoints and of what is kept in memory.
const (
	checkpointEvery  = 10 * time.Second
	checkpointAfter  = 50_000 // outcomes: a restart applies no more than about these again
	checkpointGroup  = 64     // merchants saved in one change
	sweepEvery       = time.Minute
	sweepRows        = 2_000            // rows removed in one change
	outcomeLife      = 40 * time.Minute // longer than snapshotLife: marks are made of outcomes after a restart
	residentMost     = 1 << 16          // merchants in memory; idle ones beyond that leave
	residentIdle     = 10 * time.Minute
	globalKey        = 0 // the key of the global scores among the merchants' keys
	checkpointFailed = "scores were not saved; a restart will apply more outcomes again"
)

// checkpoint saves the scores of merchants that had outcomes, so that a restart applies only what came later. Until a
// merchant is saved it does not leave memory.
type checkpoint struct {
	mu    sync.Mutex // guards dirty
	dirty map[*merchant]struct{}
	seq   atomic.Int64 // of the newest applied outcome
	since atomic.Int64 // outcomes since the last save
	due   chan struct{}
}

// touch notes that an outcome was applied to m.
func (c *checkpoint) touch(m *merchant, seq int64) {
	c.mu.Lock()
	c.dirty[m] = struct{}{}
	c.mu.Unlock()
	c.seq.Store(seq)
	if c.since.Add(1) == checkpointAfter {
		select {
		case c.due <- struct{}{}:
		default: // it is awake
		}
	}
}

// take returns the merchants to save and the number that will be covered when all of them are.
func (c *checkpoint) take() (seq int64, dirty []*merchant) {
	// The number first: an outcome applied in between is in what is saved, and applying it again is left out by its number.
	seq = c.seq.Load()
	c.since.Store(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	for m := range c.dirty {
		dirty = append(dirty, m)
	}
	clear(c.dirty)
	return seq, dirty
}

// putBack makes merchants dirty again.
func (c *checkpoint) putBack(some []*merchant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range some {
		c.dirty[m] = struct{}{}
	}
}

// clean reports whether everything applied to m is saved.
func (c *checkpoint) clean(m *merchant) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, dirty := c.dirty[m]
	return !dirty
}

// save writes the scores of every dirty merchant, then the number that they cover.
func (s *Service) save(ctx context.Context) error {
	seq, dirty := s.checkpoint.take()
	if len(dirty) == 0 {
		return nil
	}
	for rest := dirty; len(rest) > 0; {
		group := rest[:min(checkpointGroup, len(rest))]
		if err := s.saveGroup(ctx, group); err != nil {
			s.checkpoint.putBack(rest)
			return err
		}
		rest = rest[len(group):]
	}
	err := s.storage.Write(ctx, Write{Rows: 2, Change: func(tx Tx) error {
		if err := tx.SaveScores(globalKey, s.global.seq, s.global.appendTo(nil)); err != nil {
			return err
		}
		return tx.SaveProgress(seq, s.outcomes.last)
	}})
	if err != nil {
		s.checkpoint.putBack(dirty) // saved already, but the number does not say so
	}
	return err
}

// saveGroup writes the scores of some merchants as they are when the writer comes to it: nothing is applied meanwhile.
func (s *Service) saveGroup(ctx context.Context, group []*merchant) error {
	return s.storage.Write(ctx, Write{Rows: len(group), Change: func(tx Tx) error {
		for _, m := range group {
			if m.gone.Load() {
				continue
			}
			if err := tx.SaveScores(m.key, m.scores.seq, m.scores.appendTo(nil)); err != nil {
				return err
			}
		}
		return nil
	}})
}

// runCheckpoints saves every ten seconds and after many outcomes, and clears up beside it.
func (s *Service) runCheckpoints(ctx context.Context) {
	tick, sweep := time.NewTicker(checkpointEvery), time.NewTicker(sweepEvery)
	defer tick.Stop()
	defer sweep.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.checkpoint.due:
		case <-sweep.C:
			s.sweep(ctx)
			continue
		case <-ctx.Done():
			return
		}
		if err := s.save(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn(checkpointFailed, "error", err)
		}
	}
}

// sweep removes rows that nobody needs any more, in small changes, and lets idle merchants leave memory.
func (s *Service) sweep(ctx context.Context) {
	before := s.nowMS() - outcomeLife.Milliseconds()
	for ctx.Err() == nil {
		var rows int64
		err := s.storage.Write(ctx, Write{Rows: sweepRows, Change: func(tx Tx) (err error) {
			rows, err = tx.DropScores(before, sweepRows)
			return err
		}})
		if err != nil {
			if ctx.Err() == nil {
				s.log.Warn("old rows were not removed", "error", err)
			}
			return
		}
		if rows < sweepRows {
			break
		}
	}
	s.unload(ctx)
}

// unload lets merchants leave memory that nobody has asked for lately, when there are too many. It runs in the writer, so
// that no outcome is applied to one that has just left.
func (s *Service) unload(ctx context.Context) {
	if s.merchants.count() <= residentMost {
		return
	}
	idle := s.nowMS() - residentIdle.Milliseconds()
	_ = s.storage.Write(ctx, Write{Change: func(Tx) error { // a refusal leaves them where they are
		s.merchants.all(func(m *merchant) {
			if m.usedMS.Load() < idle && m.staged == 0 && s.checkpoint.clean(m) {
				s.merchants.leave(m)
			}
		})
		return nil
	}})
}

// recover brings the scores, the decisions and the marks back to where the store says they were.
func (s *Service) recover(ctx context.Context) error {
	return s.storage.Read(ctx, func(v View) error {
		saved, last, err := v.Progress()
		if err != nil {
			return err
		}
		s.outcomes.last = last
		if err := s.recoverGlobal(v); err != nil {
			return err
		}
		since := s.nowMS() - snapshotLife.Milliseconds()
		if err := v.Chunks(since, s.ledger.load); err != nil {
			return err
		}
		return s.replay(v, saved, since)
	})
}

func (s *Service) recoverGlobal(v View) error {
	blob, seq, err := v.Scores(globalKey)
	if err != nil || blob == nil {
		return err
	}
	s.global.seq = seq
	return s.global.readFrom(blob)
}

// replay applies the outcomes that are not in saved scores and marks the attempts that were counted lately.
func (s *Service) replay(v View, saved, sinceMS int64) error {
	byKey := map[int64]*merchant{}
	globally := s.global.seq
	return v.Outcomes(0, func(o *Outcome) error {
		s.outcomes.last = max(s.outcomes.last, o.Seq)
		if o.Kind != KindReset && o.TimeMS >= sinceMS {
			s.ledger.claim(o.Merchant, o.Payment, o.Gateway, func(mark) mark {
				return mark{number: o.Number, effect: o.effect()}
			})
		}
		if o.Seq <= saved {
			return nil
		}
		if o.Seq > globally && o.Standing != "" {
			s.global.apply(o)
		}
		m, known := byKey[o.Merchant]
		if !known {
			var err error
			if m, err = s.revive(v, o.Merchant); err != nil {
				return err
			}
			byKey[o.Merchant] = m
		}
		if m != nil && o.Seq > m.scores.seq {
			m.scores.apply(o)
			s.checkpoint.touch(m, o.Seq)
		}
		return nil
	})
}

// revive loads the merchant with the key into memory, nil when it was deleted.
func (s *Service) revive(v View, key int64) (*merchant, error) {
	id, err := v.MerchantOf(key)
	if err != nil || id == "" {
		return nil, err
	}
	m, err := s.loadMerchant(v, id)
	if err != nil {
		return nil, err
	}
	return s.merchants.add(m), nil
}

// loadMerchant reads one merchant's settings and scores.
func (s *Service) loadMerchant(v View, id MerchantID) (*merchant, error) {
	set, err := s.loadSettings(v, id)
	if err != nil {
		return nil, err
	}
	m := &merchant{id: id, key: set.row.Key, scores: newScores()}
	m.settings.Store(set)
	m.usedMS.Store(s.nowMS())
	blob, seq, err := v.Scores(m.key)
	if err != nil || blob == nil {
		return m, err
	}
	m.scores.seq = seq
	return m, m.scores.readFrom(blob)
}

// resident returns the merchant that takes outcomes: m, or the one that took its place in memory. It runs in the writer.
// NotFound when it was deleted meanwhile.
func (s *Service) resident(tx Tx, m *merchant) (*merchant, error) {
	if m.gone.Load() {
		return nil, noMerchant(m.id)
	}
	if !m.left.Load() {
		return m, nil
	}
	if there := s.merchants.find(m.id); there != nil && there.key == m.key {
		return there, nil
	}
	fresh, err := s.loadMerchant(tx, m.id)
	if err != nil {
		return nil, err
	}
	if fresh.key != m.key {
		return nil, noMerchant(m.id)
	}
	return s.merchants.add(fresh), nil
}
