package decision

import (
	"context"
	"sync"
	"time"

	"holdfast/fault"
)

// The sweeps: default rewards once a second, retention once a minute, over every capsule of the store whose spec asks for
// one, loaded or not.
const (
	sweepEvery     = time.Second
	retainEvery    = time.Minute
	sweepBack      = 24 * time.Hour  // how far past the wait a sweep looks back after a restart
	sweepPage      = 512             // default rewards per write
	sweepStep      = 16384           // decisions looked at in one read
	sweepTurn      = time.Second / 2 // for one capsule, before the next gets its turn
	retainPage     = 64              // batches looked at per write
	millisecondsIn = int64(time.Second / time.Millisecond)
)

// sweeps knows which capsules have something to sweep.
type sweeps struct {
	mu      sync.Mutex // guards capsules
	capsule map[CapsuleID]*sweep
}

// sweep is the state of one capsule. All but the terms are used by the sweeping goroutine only.
type sweep struct {
	terms sweepTerms
	until int64 // decisions before this time have been looked at; 0 before the first sweep
	late  int64 // an older decision has come in since: look from there; 0 when none
}

// sweepTerms is what a spec says about sweeping.
type sweepTerms struct {
	reward    *float64
	wait      time.Duration
	by        Aggregation
	retention RetentionSpec
}

func termsOf(spec *Spec) sweepTerms {
	return sweepTerms{reward: spec.Default, wait: spec.Wait, by: spec.Rewards, retention: spec.Retention}
}

func (t *sweepTerms) none() bool { return t.reward == nil && t.retention == RetentionSpec{} }

// open reads the specs of the store once; later changes come through sweepBy.
func (w *sweeps) open(ctx context.Context, s *Service) error {
	w.capsule = map[CapsuleID]*sweep{}
	return s.storage.Read(ctx, func(v View) error {
		ids, err := v.Capsules("", "")
		if err != nil {
			return err
		}
		for _, id := range ids {
			row, err := v.Capsule(id)
			if err != nil {
				return err
			}
			spec, err := ParseSpec(row.Spec)
			if err != nil {
				s.log.Error("a stored spec does not parse; its capsule is left out of sweeps", "capsule", id.String(), "err", err)
				continue
			}
			s.sweepBy(id, spec)
		}
		return nil
	})
}

// sweepBy tells the sweeps of a capsule's new spec, nil when the capsule is gone.
func (s *Service) sweepBy(id CapsuleID, spec *Spec) {
	w := &s.sweeps
	w.mu.Lock()
	defer w.mu.Unlock()
	if spec == nil {
		delete(w.capsule, id)
		return
	}
	terms := termsOf(spec)
	if terms.none() {
		delete(w.capsule, id)
		return
	}
	if w.capsule[id] == nil {
		w.capsule[id] = new(sweep)
	}
	w.capsule[id].terms = terms
}

// sweepFrom makes the next sweep look back to a decision that came in late: an upload, or an activated event.
func (s *Service) sweepFrom(id CapsuleID, ms int64) {
	w := &s.sweeps
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.capsule[id]; one != nil && (one.late == 0 || ms < one.late) {
		one.late = ms
	}
}

// runSweeps sweeps until ctx ends.
func (s *Service) runSweeps(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	var retained time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		due := s.options.Now().Sub(retained) >= retainEvery
		if due {
			retained = s.options.Now()
		}
		s.sweep(ctx, due)
		if due {
			if err := s.dropHeld(ctx); err != nil && ctx.Err() == nil {
				s.log.Error("deferred events could not be dropped", "err", err)
			}
		}
	}
}

// retainToo says whether a sweep also drops old batches.
type retainToo = bool

func (s *Service) sweep(ctx context.Context, retain retainToo) {
	for _, j := range s.sweeps.list() {
		if ctx.Err() != nil {
			return
		}
		err := s.sweepDefaults(ctx, &j)
		if err == nil && retain && j.terms.retention != (RetentionSpec{}) {
			err = s.retain(ctx, &j)
		}
		if err != nil && ctx.Err() == nil && fault.KindOf(err) != fault.NotFound {
			s.log.Error("a sweep failed", "capsule", j.id.String(), "err", err)
		}
	}
}

// sweepJob is one capsule's turn.
type sweepJob struct {
	id    CapsuleID
	terms sweepTerms
	since int64
}

// list takes down what is to be swept.
func (w *sweeps) list() []sweepJob {
	w.mu.Lock()
	defer w.mu.Unlock()
	jobs := make([]sweepJob, 0, len(w.capsule))
	for id, one := range w.capsule {
		j := sweepJob{id: id, terms: one.terms, since: one.until}
		if one.late != 0 {
			j.since = min(j.since, one.late)
			one.late = 0
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// swept notes how far a capsule's sweep came.
func (w *sweeps) swept(j *sweepJob) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.capsule[j.id]; one != nil {
		one.until = j.since
	}
}

// sweepDefaults gives the default reward to every decision that has waited long enough without a reward.
func (s *Service) sweepDefaults(ctx context.Context, j *sweepJob) error {
	if j.terms.reward == nil {
		return nil
	}
	until := s.nowMS() - j.terms.wait.Milliseconds()
	if j.since == 0 {
		j.since = until - sweepBack.Milliseconds()
	}
	j.since = min(j.since, until) // the clock went back: what is decided now is older than what was looked at
	// First the queue: what waits in it cannot be told from the log yet.
	if c := s.table.find(j.id); c != nil && !c.settle(ctx, readWait) {
		return nil // the disk is slow; the next turn starts from the same place
	}
	for began := s.options.Now(); j.since < until && s.options.Now().Sub(began) < sweepTurn; {
		open, next, err := s.unrewarded(ctx, j, until)
		if err == nil {
			err = s.giveDefaults(ctx, j, open)
		}
		if err != nil {
			s.sweeps.swept(j) // the next turn begins where this step did
			return err
		}
		j.since = next
	}
	s.sweeps.swept(j)
	return nil
}

// unrewarded lists the decisions from j.since on that have no reward, and the time up to which it has looked: until, or less
// when that would keep one read of the storage open for long.
func (s *Service) unrewarded(ctx context.Context, j *sweepJob, until int64) (ids []string, next int64, err error) {
	next = until
	err = s.storage.Read(ctx, func(v View) error {
		row, err := v.Capsule(j.id)
		if err != nil || row.Decisions == 0 || row.LastMS < j.since || row.FirstMS >= until {
			return err
		}
		seen := 0
		return v.Batches(row.Key, BatchQuery{Span: Span{Since: j.since, Until: until}}, func(b Batch) (bool, error) {
			// No batch from here on holds an earlier record than this one's first.
			if seen >= sweepStep && b.FirstMS > j.since {
				next = b.FirstMS
				return false, nil
			}
			seen += b.Count
			return true, unrewardedIn(v, row.Key, b.Payload, Span{Since: j.since, Until: until}, &ids)
		})
	})
	return ids, next, err
}

// unrewardedIn adds the ids of a payload's decisions that lie in the span and have no reward.
func unrewardedIn(v View, capsule int64, payload []byte, span Span, ids *[]string) error {
	return eachRecord(payload, func(h head, _ []byte) (bool, error) {
		if h.ms < span.Since || h.ms >= span.Until {
			return true, nil
		}
		id := h.id()
		given, err := v.RewardsOf(capsule, id)
		if err == nil && len(given) == 0 {
			*ids = append(*ids, id)
		}
		return true, err
	})
}

// giveDefaults rewards decisions through the normal path. A reward that came in meanwhile makes the default a duplicate
// under first; under sum its own key keeps a repeated sweep from adding it twice.
func (s *Service) giveDefaults(ctx context.Context, j *sweepJob, ids []string) error {
	c, err := s.Capsule(ctx, j.id)
	if err != nil {
		return err
	}
	for len(ids) > 0 {
		page := ids[:min(len(ids), sweepPage)]
		ids = ids[len(page):]
		rewards := make([]RewardRequest, len(page))
		for i, id := range page {
			rewards[i] = RewardRequest{DecisionID: id, Value: *j.terms.reward, Key: defaultKey(id), HasKey: true, Detail: []byte(`{"default":true}`)}
		}
		for _, result := range c.Rewards(ctx, rewards) {
			if result.Err != nil && fault.KindOf(result.Err) != fault.NotFound {
				return result.Err
			}
			if result.Answer.Applied {
				s.metrics.defaulted.Inc()
			}
		}
	}
	return nil
}

func defaultKey(id string) string { return id + ":default" }

// retain drops whole batches that the spec's retention no longer covers.
func (s *Service) retain(ctx context.Context, j *sweepJob) error {
	r := Retention{KeepBytes: j.terms.retention.MaxBytes, Batches: retainPage, IDs: RecordIDs}
	if days := j.terms.retention.Days; days > 0 {
		r.BeforeMS = s.nowMS() - int64(days)*24*60*60*millisecondsIn
	}
	c, err := s.Capsule(ctx, j.id)
	if err != nil {
		return err
	}
	// A reward that no snapshot covers holds its batch, so the model is saved first.
	if err := c.saveUnsaved(ctx); err != nil {
		return err
	}
	for more := true; more && err == nil; {
		more, err = c.retainSome(ctx, r)
	}
	return err
}

// retainSome drops a few batches. No reward may be on its way meanwhile: it could name a decision that goes.
func (c *Capsule) retainSome(ctx context.Context, r Retention) (more bool, err error) {
	c.admin.Lock()
	defer c.admin.Unlock()
	var row CapsuleRow
	err = c.service.storage.Write(context.WithoutCancel(ctx), Write{Rows: retainPage, Change: func(tx Tx) (err error) {
		more, row, err = c.dropOld(tx, r)
		return err
	}, Applied: func(err error) {
		if err == nil && more {
			c.erased(&row)
		}
	}})
	return more, err
}

// dropOld removes a few batches; the newest snapshot says which rewards may go.
func (c *Capsule) dropOld(tx Tx, r Retention) (more bool, row CapsuleRow, err error) {
	snapshot, err := tx.NewestSnapshot(c.key)
	switch {
	case err == nil:
		r.Watermark = snapshot.Seq
	case fault.KindOf(err) != fault.NotFound:
		return false, row, err
	}
	decisions, _, err := tx.DropBatches(c.key, r)
	if err != nil {
		return false, row, err
	}
	row, err = tx.Capsule(c.id)
	return decisions > 0, row, err
}
