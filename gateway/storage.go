package gateway

import "context"

// Storage keeps what the service must not lose. Every change runs in the one writer, under a savepoint of its own, against
// the state as earlier changes of the same batch left it; it is synced before Applied runs, and Applied runs in commit
// order, on the writer's goroutine as Change does, before Write returns. Nothing of a change that returned an error is kept.
type Storage interface {
	// Write waits until the change is on disk, or returns its error, or the refusal. When ctx ends first the waiting
	// ends, not the change.
	Write(ctx context.Context, w Write) error
	// Queue hands the change over without waiting; it fails at once when the queue is full or the store read-only.
	Queue(w Write) error
	// Read shows one consistent committed state.
	Read(ctx context.Context, look func(View) error) error
}

// Write is one change: decide and persist in Change, take effect in memory in Applied.
type Write struct {
	Change  func(Tx) error
	Applied func(error) // non-blocking; may be nil; gets the change's error or the commit's
	Rows    int         // about how many rows it touches, for batching; 0 counts as 1
}

// View reads the committed state; a Tx also sees its own batch. Missing rows are fault.NotFound unless a method says
// otherwise. Each part is declared in the file of the idea it serves.
type View interface {
	AccountView // accounts.go
	RecordView  // below
	PeopleView  // users.go, tickets.go
	ConfigView  // below
}

// Tx reads and changes.
type Tx interface {
	View
	AccountTx
	RecordTx
	PeopleTx
	ConfigTx
}

// ConfigView reads what merchants configure beside their accounts.
type ConfigView interface {
	CostView // costs.go
	RuleView // routing.go
}

// ConfigTx changes it.
type ConfigTx interface {
	CostTx
	RuleTx
}

// RecordView reads what requests left behind.
type RecordView interface {
	ScoreView  // ledger.go
	TrailView  // trail_rows.go
	HealthView // health.go
}

// RecordTx changes it.
type RecordTx interface {
	ScoreTx
	TrailTx
	HealthTx
}
