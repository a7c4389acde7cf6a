package gateway

// BundleRow is one bundle of the trail: the events that left the queue together. The service packs Merchants, IDs and Payload;
// see bundle.go.
type BundleRow struct {
	Number          int64 // ascending in the order of writing, never reused while later ones exist
	FirstMS, LastMS int64 // of its events
	Count           int   // of its events
	Bytes           int64 // of IDs and Payload together
	Merchants, IDs  []byte
	Payload         []byte // not read with a head
}

// Span is a time from Since to before Until, in milliseconds since 1970.
type Span struct{ Since, Until int64 }

// TallyRow is the roll-up of one merchant over one piece of time; see tally.go.
type TallyRow struct {
	Key     int64
	Through int64 // the number of the last bundle that is counted in it
	Cells   []byte
}

// TrailState is what the trail knows of itself.
type TrailState struct {
	Counted     int64 // every bundle up to this number is counted in the stored tallies
	BundleBytes int64 // of the bundles there
	TallyBytes  int64 // of the tallies there
}

// TrailView reads the trail. Rows are given to visit without copies: what they hold is gone when visit returns.
type TrailView interface {
	BundleView
	TallyView
}

// BundleView reads the events.
type BundleView interface {
	// Bundles visits the heads of the bundles that may hold events of the span, newest first, until visit returns false.
	Bundles(span Span, visit func(BundleRow) (more bool, err error)) error
	// HeadsAfter visits the heads of bundles with higher numbers, in order, until visit returns false.
	HeadsAfter(number int64, visit func(BundleRow) (more bool, err error)) error
	// BundlesAfter visits whole bundles with higher numbers, in order.
	BundlesAfter(number int64, visit func(BundleRow) error) error
	// BundlePayload shows one bundle's payload; NotFound when there is no such bundle.
	BundlePayload(number int64, look func(payload []byte) error) error
	// LastBundle is the highest number of a bundle, 0 without any.
	LastBundle() (int64, error)
}

// TallyView reads the roll-ups.
type TallyView interface {
	TrailState() (TrailState, error)
	// Tally shows the row with the key; false when there is none.
	Tally(key int64, look func(TallyRow) error) (found bool, err error)
	// Tallies visits at most limit rows with keys from first to before until, in their order.
	Tallies(keys TallyKeys, visit func(TallyRow) error) error
}

// TallyKeys is a range of keys: from First to before Until, Limit rows at most.
type TallyKeys struct {
	First, Until int64
	Limit        int
}

// TrailTx changes the trail. The bytes in TrailState follow what is put and dropped.
type TrailTx interface {
	BundleTx
	TallyTx
}

// BundleTx changes the events.
type BundleTx interface {
	AppendBundle(BundleRow) error
	// ReplaceBundles stores a bundle in place of those with numbers from its own through last.
	ReplaceBundles(row BundleRow, last int64) error
	// DropBundles removes the oldest bundles that end before a time, or that exceed the bytes to keep; see BundleDrop.
	DropBundles(BundleDrop) (dropped int, err error)
}

// TallyTx changes the roll-ups.
type TallyTx interface {
	// PutTally stores a row over the one with its key.
	PutTally(TallyRow) error
	// DropTally removes the row with the key, if there is one.
	DropTally(key int64) error
	// Counted notes up to which bundle the stored tallies count.
	Counted(number int64) error
}

// BundleDrop says which bundles may go: those up to a number, of them the oldest that end before BeforeMS or, while more than
// KeepBytes are there, the oldest whatever their time; Limit at most.
type BundleDrop struct {
	Through   int64
	BeforeMS  int64
	KeepBytes int64
	Limit     int
}
