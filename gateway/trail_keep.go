package gateway

import (
	"cmp"
	"context"
	"slices"
	"time"

	"holdfast/fault"
)

// TrailOptions bound what is kept of events; zero values take the defaults named.
type TrailOptions struct {
	Days       int   // how long single events are kept; 30
	Bytes      int64 // of single events that are kept, the oldest go first; 1 GiB
	TallyBytes int64 // of roll-ups that are kept, the oldest go first; 256 MiB
}

func (o *TrailOptions) fill() {
	o.Days = cmp.Or(o.Days, 30)
	o.Bytes = cmp.Or(o.Bytes, 1<<30)
	o.TallyBytes = cmp.Or(o.TallyBytes, 256<<20)
}

// How often the trail's goroutine works.
const (
	trailLinger = 250 * time.Millisecond // from the first event that waits to the write
	tallyEvery  = 30 * time.Second       // between two writes of roll-ups
	tallyCells  = 16_384                 // cells in memory that are written before their time
	trailSweep  = time.Minute
	settleMost  = time.Second // how long a query waits for the events before it
)

// keeper is what the trail's goroutine works with. No other goroutine touches it but through trail and tallies.
type keeper struct {
	service *Service
	number  int64 // of the next bundle
	events  []Event
	order   []keyed
	bundle  bundleBuilder
	swept   time.Time
	joined  int64 // the last bundle that was looked at to be joined with others; after a start all are looked at again
}

// keyed is the place of one event among those taken, and its merchant.
type keyed struct {
	key int64
	at  int32
}

// openTrail counts the bundles that no stored roll-up counts.
func (s *Service) openTrail(ctx context.Context) (*keeper, error) {
	k := &keeper{service: s}
	err := s.storage.Read(ctx, func(v View) error {
		state, err := v.TrailState()
		if err != nil {
			return err
		}
		last, err := v.LastBundle()
		if err != nil {
			return err
		}
		s.tallies.open(state.Counted)
		k.number = max(last, state.Counted) + 1
		return s.tallies.recount(v, state.Counted)
	})
	return k, err
}

// run keeps the trail until ctx ends, and then stores what waits.
func (k *keeper) run(ctx context.Context) {
	t := k.service.trail
	tick := time.NewTicker(tallyEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			k.end()
			return
		case <-t.wake:
			k.linger(ctx)
		case reply := <-t.asks:
			k.store(ctx)
			close(reply)
		case <-tick.C:
			k.save(ctx)
			k.sweepWhenDue(ctx)
		}
	}
}

// linger waits for company before it stores the first event.
func (k *keeper) linger(ctx context.Context) {
	t := k.service.trail
	select {
	case <-t.high:
	default:
	}
	if t.waiting.Load() < trailHigh {
		timer := time.NewTimer(trailLinger)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-t.high:
		case <-ctx.Done():
			return
		case reply := <-t.asks:
			defer close(reply)
		}
	}
	k.store(ctx)
	if k.service.tallies.heavy() {
		k.save(ctx)
	}
}

// end stores everything: the service is closing.
func (k *keeper) end() {
	ctx := context.Background()
	k.store(ctx)
	k.save(ctx)
}

// store writes the events that wait, bundle by bundle.
func (k *keeper) store(ctx context.Context) {
	k.take(ctx)
	slices.SortFunc(k.order, func(a, b keyed) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return cmp.Compare(a.at, b.at)
	})
	from := 0
	for i, o := range k.order {
		k.bundle.add(o.key, &k.events[o.at])
		if k.bundle.full() || i == len(k.order)-1 {
			k.append(k.order[from : i+1])
			from = i + 1
		}
	}
	clear(k.events) // they hold on to the text of the queue
	k.events, k.order = k.events[:0], k.order[:0]
}

// take moves the events out of the queue, those whose merchant is gone or never was left out.
func (k *keeper) take(ctx context.Context) {
	s := k.service
	var last MerchantID
	var key int64
	taken, bytes := 0, 0
	s.trail.take(func(text []byte) {
		r := records{rest: string(text)}
		for e := (Event{}); r.posted(&e); {
			taken++
			if e.Merchant != last || key == 0 {
				last, key = e.Merchant, k.key(ctx, e.Merchant)
			}
			if key == 0 {
				s.metrics.trail.lost.Inc()
				continue
			}
			e.clean()
			k.order = append(k.order, keyed{key, int32(len(k.events))})
			k.events = append(k.events, e)
		}
		bytes += len(text)
	})
	s.trail.settle(taken, bytes)
}

// key is the stored key of a merchant, 0 when there is none.
func (k *keeper) key(ctx context.Context, id MerchantID) int64 {
	m, err := k.service.merchant(ctx, id)
	if err != nil || m.gone.Load() {
		return 0
	}
	return m.key
}

// append writes the bundle that was built of the events in order, and counts them when it is on disk.
func (k *keeper) append(order []keyed) {
	s := k.service
	row := k.bundle.finish(k.number)
	began := time.Now()
	done := make(chan error, 1)
	err := s.storage.Queue(Write{Rows: 2, Change: func(tx Tx) error { return tx.AppendBundle(row) },
		Applied: func(err error) { done <- err }})
	if err == nil {
		err = <-done
	}
	m := s.metrics.trail
	m.writes.Inc()
	m.latency.Observe(time.Since(began).Seconds())
	if err != nil {
		m.lost.Add(float64(row.Count))
		s.log.Warn("events of the audit trail could not be stored", "events", row.Count, "err", err)
		return
	}
	k.number++
	s.tallies.count(row.Number, func(note func(merchant int64, e *Event)) {
		for _, o := range order {
			note(o.key, &k.events[o.at])
		}
	})
	m.stored(k.events, order)
}

// settled waits until every event posted before the call is stored, or for a moment: a slow disk makes a query see a
// little less.
func (s *Service) settled(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleMost)
	defer cancel()
	reply := make(chan struct{})
	select {
	case s.trail.asks <- reply:
	case <-ctx.Done():
		return
	case <-s.context.Done():
		return
	}
	select {
	case <-reply:
	case <-ctx.Done():
	}
}

// save writes the roll-ups in memory.
func (k *keeper) save(ctx context.Context) {
	if err := k.saveTallies(ctx); err != nil && ctx.Err() == nil {
		k.service.log.Warn("the roll-ups could not be stored; they are kept in memory", "err", err)
	}
}

// saveBatch is how many cells one change of stored roll-ups touches, about: the writer is everybody's.
const saveBatch = 1_024

func (k *keeper) saveTallies(ctx context.Context) error {
	s := k.service
	pages, through := s.tallies.close()
	if len(pages) == 0 {
		return nil
	}
	ids := make([]pageID, 0, len(pages))
	for id := range pages {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, pageID.compare)
	for len(ids) > 0 {
		n, cells := 0, 0
		for n < len(ids) && cells < saveBatch {
			cells += len(pages[ids[n]].cells) + 8
			n++
		}
		rows, err := k.merged(ctx, pages, ids[:n], through)
		if err != nil {
			return err
		}
		ids = ids[n:]
		last := len(ids) == 0
		err = s.storage.Write(context.WithoutCancel(ctx), Write{Rows: len(rows) + 1, Change: func(tx Tx) error {
			for _, row := range rows {
				if err := tx.PutTally(row); err != nil {
					return err
				}
			}
			if last {
				return tx.Counted(through)
			}
			return nil
		}})
		if err != nil {
			return err
		}
	}
	s.tallies.saved()
	return nil
}

// merged returns what is to be stored for some pages: what is there and what was counted since. A row that counts these
// bundles already is left alone: an earlier save stored it and then failed.
func (k *keeper) merged(ctx context.Context, pages map[pageID]*page, ids []pageID, through int64) (rows []TallyRow, err error) {
	err = k.service.storage.Read(context.WithoutCancel(ctx), func(v View) error {
		for _, id := range ids {
			sum, done := newPage(), false
			_, err := v.Tally(id.key(), func(row TallyRow) error {
				done = row.Through >= through
				return sum.addStored(row.Cells, id.level.cells())
			})
			switch {
			case fault.KindOf(err) == fault.Internal && err != nil:
				k.service.log.Error("a stored roll-up cannot be read; it is begun anew", "err", err)
				sum = newPage()
			case err != nil:
				return err
			case done:
				continue
			}
			sum.add(pages[id], id.level.cells())
			rows = append(rows, TallyRow{Key: id.key(), Through: through, Cells: sum.encode()})
		}
		return nil
	})
	return rows, err
}
