package gateway

import "context"

// Post puts an event into the trail as the hot path does.
func (s *Service) Post(e *Event) { s.trail.post(e) }

// Dropped is how many events the full queue has dropped.
func (s *Service) Dropped() int { return int(s.trail.dropped.Load()) }

// Settled waits until every event posted before is stored.
func (s *Service) Settled(ctx context.Context) { s.settled(ctx) }

// SaveTallies stores the roll-ups in memory now.
func (s *Service) SaveTallies(ctx context.Context) error {
	s.settled(ctx)
	return (&keeper{service: s}).saveTallies(ctx)
}

// SweepTrail stores the roll-ups and sweeps now.
func (s *Service) SweepTrail(ctx context.Context) error {
	if err := s.SaveTallies(ctx); err != nil {
		return err
	}
	return (&keeper{service: s}).sweep(ctx)
}

// Stored calls visit for every event of a merchant that is on disk.
func (s *Service) Stored(ctx context.Context, m MerchantID, visit func(e *Event)) error {
	_, err := s.scan(ctx, scan{merchant: m, span: Span{Until: 1 << 60}}, func(e *Event, _ int64) { visit(e) })
	return err
}

// TrailState is what the storage says of the trail.
func (s *Service) TrailState(ctx context.Context) (state TrailState, err error) {
	err = s.storage.Read(ctx, func(v View) (err error) {
		state, err = v.TrailState()
		return err
	})
	return state, err
}

// Bundles is how many bundles there are.
func (s *Service) Bundles(ctx context.Context) (n int, err error) {
	err = s.storage.Read(ctx, func(v View) error {
		return v.HeadsAfter(0, func(BundleRow) (bool, error) { n++; return true, nil })
	})
	return n, err
}
