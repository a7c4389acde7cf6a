package gateway

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/fault"
)

// Options are what a Service needs; zero values take the defaults named.
type Options struct {
	Storage     Storage
	Log         *slog.Logger     // discards
	Now         func() time.Time // time.Now
	Entropy     func() uint64    // math/rand/v2; called by many goroutines
	AdminSecret string           // the x-admin-secret of this dialect
	Permissive  bool             // credentials reach every merchant, as in the reference
	Deployment  Deployment       // what the operator configures for all merchants; see deployment.go
	// SessionSecret signs sessions (HMAC-SHA256): whoever has it can make any session. Empty makes one for this process, with
	// which its sessions end.
	SessionSecret []byte
	Sessions      SessionOptions // what users and their sessions go by; see sessions.go
	Trail         TrailOptions   // how much of the audit trail is kept
	Catalogue     *Catalogue     // the keys that rules may use; nil is what Deployment.RoutingKeys say
	Filters       *Filters       // which connectors are eligible for what; nil is what Deployment.Filters say
	Debit         *DebitTables   // what debit routing reckons with until tables are imported; nil is DefaultDebitTables
}

func (o *Options) fill() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Entropy == nil {
		o.Entropy = rand.Uint64
	}
	o.Trail.fill()
}

// parse makes what rules go by of the deployment's tables. Errors are Invalid and name the place.
func (o *Options) parse() (err error) {
	if o.Catalogue == nil {
		if o.Catalogue, err = ParseCatalogue(o.Deployment.RoutingKeys); err != nil {
			return err
		}
	}
	if o.Filters == nil {
		o.Filters, err = ParseFilters(o.Deployment.Filters)
	}
	return err
}

// Service answers for every merchant of one store.
type Service struct {
	options Options
	storage Storage
	log     *slog.Logger

	merchants  directory
	deployment atomic.Pointer[deployment]
	trail      *trail
	tallies    tallies
	ledger     ledger
	outcomes   outcomes
	global     global
	checkpoint checkpoint
	outages    atomic.Pointer[outageList]
	errors     atomic.Pointer[ErrorTable]
	debits     atomic.Pointer[DebitTables]
	metrics    *metrics
	sessions   sessionKeeper
	actives    actives
	keys       keyCache

	context context.Context // of the goroutines; ends in Close
	stop    context.CancelFunc
	running sync.WaitGroup
}

// merchant is one merchant in memory.
type merchant struct {
	id       MerchantID
	key      int64
	settings atomic.Pointer[settings]
	scores   *scores
	shares   shares
	usedMS   atomic.Int64 // when somebody asked for it last, to about a second
	gone     atomic.Bool  // deleted: whoever still holds it answers NotFound
	left     atomic.Bool  // out of memory: another stands for it
	staged   int          // outcomes of the batch that are not applied yet; the writer's alone
}

// use notes that somebody asked for the merchant: one that nobody asks for may leave memory.
func (m *merchant) use(now time.Time) {
	if ms := now.UnixMilli(); ms-m.usedMS.Load() > 1000 { // not each time: the word is shared by all who ask
		m.usedMS.Store(ms)
	}
}

// Open starts the service on its storage. Its goroutines stop in Close.
func Open(ctx context.Context, o Options) (*Service, error) {
	o.fill()
	if err := o.parse(); err != nil {
		return nil, err
	}
	s := &Service{options: o, storage: o.Storage, log: o.Log, trail: newTrail()}
	s.metrics = newMetrics(s)
	s.merchants.open()
	s.actives.open()
	s.keys.open()
	s.ledger.start(o.Storage, o.Log)
	s.global.tops = map[string][]top{}
	s.outcomes.staged = map[stage]uint64{}
	s.checkpoint.dirty, s.checkpoint.due = map[*merchant]struct{}{}, make(chan struct{}, 1)
	s.sessions.open(&s.options)
	err := s.storage.Read(ctx, func(v View) error {
		d, err := s.loadDeployment(v)
		if err != nil {
			return err
		}
		s.deployment.Store(d)
		shared, err := loadOutages(v, 0, s.nowMS())
		if err != nil {
			return err
		}
		s.outages.Store(shared)
		return errors.Join(s.loadEndings(v), s.loadTables(v))
	})
	if err != nil {
		return nil, err
	}
	if err := s.recover(ctx); err != nil {
		return nil, err
	}
	keeper, err := s.openTrail(ctx)
	if err != nil {
		return nil, err
	}
	s.context, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	for _, run := range []func(context.Context){s.ledger.run, s.runCheckpoints, keeper.run} {
		s.running.Go(func() { run(s.context) })
	}
	return s, nil
}

// Close hands over what is queued, stops the goroutines and saves the scores, within ctx.
func (s *Service) Close(ctx context.Context) error {
	s.stop()
	s.running.Wait()
	return s.save(ctx)
}

func (s *Service) nowMS() int64 { return s.options.Now().UnixMilli() }

// write runs a change in the writer and, once it is on disk and before the caller is answered, applied; applied may be nil.
// Both run on the writer's goroutine, in the order of all changes.
func (s *Service) write(ctx context.Context, change func(Tx) error, applied func()) error {
	w := Write{Change: change}
	if applied != nil {
		w.Applied = func(err error) {
			if err == nil {
				applied()
			}
		}
	}
	return s.storage.Write(ctx, w)
}

// reconfigure changes what is stored about one merchant and makes the next request see it: change runs with the merchant's
// row, and the settings are read anew after it, in the same transaction. NotFound when there is no such merchant.
func (s *Service) reconfigure(ctx context.Context, id MerchantID, change func(Tx, MerchantRow) error) error {
	_, err := s.reconfigured(ctx, id, change)
	return err
}

// reconfigured is reconfigure that returns the settings after the change.
func (s *Service) reconfigured(ctx context.Context, id MerchantID, change func(Tx, MerchantRow) error) (*settings, error) {
	var fresh *settings
	err := s.write(ctx, func(tx Tx) error {
		row, err := tx.Merchant(id)
		if err != nil {
			return named(err, id)
		}
		if err := change(tx, row); err != nil {
			return err
		}
		fresh, err = s.loadSettings(tx, id)
		return err
	}, func() { s.adopt(id, fresh) })
	if err != nil { // fresh may still be the writer's
		return nil, err
	}
	return fresh, nil
}

// adopt makes fresh what the next request of the merchant sees; a merchant that is not in memory is loaded when it is asked
// for. It runs on the writer's goroutine.
func (s *Service) adopt(id MerchantID, fresh *settings) {
	if m := s.merchants.find(id); m != nil {
		m.settings.Store(fresh)
	}
}

// merchant returns the merchant, loading it when it is not in memory; NotFound `merchant ID not found` when there is none.
// A load runs in the writer, so that it falls between two changes.
func (s *Service) merchant(ctx context.Context, id MerchantID) (*merchant, error) {
	if m := s.merchants.find(id); m != nil {
		return m, nil
	}
	if s.merchants.unknown(id, s.options.Now()) {
		return nil, noMerchant(id)
	}
	var m *merchant
	err := s.storage.Write(ctx, Write{Change: func(tx Tx) (err error) {
		m, err = s.loadMerchant(tx, id)
		return err
	}, Applied: func(err error) {
		switch {
		case err == nil:
			m = s.merchants.add(m)
		case fault.KindOf(err) == fault.NotFound: // noted here and not later, when the merchant may have been created
			s.merchants.miss(id, s.options.Now())
		}
	}})
	if fault.KindOf(err) == fault.Unavailable && err != nil && ctx.Err() == nil {
		return s.readMerchant(ctx, id)
	}
	if err != nil {
		return nil, named(err, id)
	}
	return m, nil
}

// readMerchant is for a store that takes no writes: decisions go on, each with settings and scores of its own reading.
func (s *Service) readMerchant(ctx context.Context, id MerchantID) (m *merchant, err error) {
	err = s.storage.Read(ctx, func(v View) (err error) {
		m, err = s.loadMerchant(v, id)
		return err
	})
	if err != nil {
		return nil, named(err, id)
	}
	m.left.Store(true) // an outcome goes to the one in memory, once there is one
	return m, nil
}

func noMerchant(id MerchantID) *fault.Error {
	return notFound("merchant", "merchant %s not found", clip(string(id)))
}

// clip shortens what a caller sent to what a message may repeat.
func clip(s string) string {
	const most = 64
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
