package decision

import "context"

// Storage keeps what the service must not lose. Every change runs in the one writer, under a savepoint of its own, against
// the state as earlier changes of the same batch left it; it is synced before Applied runs, and Applied runs in commit
// order before Write returns. Nothing of a change that returned an error is kept.
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

// View reads the committed state; a Tx also sees its own batch. Missing rows are fault.NotFound.
type View interface {
	CatalogView
	LogView
	ModelView
	TrailView
	HoldView
}

// Tx reads and changes.
type Tx interface {
	View
	CatalogTx
	LogTx
	ModelTx
	HoldTx
}

// CapsuleRow is a capsule as stored.
type CapsuleRow struct {
	Key         int64 // store-made, never reused
	ID          CapsuleID
	CreatedMS   int64
	Spec        []byte // full JSON text
	Program     []byte // graph as installed (JSON text), nil without one
	InstalledMS int64
	Purges      int64  // how often its logs were erased; a reward that crosses a purge is refused by it
	LastSeq     int64  // the newest reward sequence number ever given, kept across purges
	Decisions   int64  // rows now
	Rewards     int64  // rows now
	FirstMS     int64  // of the decisions there now, 0 when none
	LastMS      int64  // of the decisions there now, 0 when none
	Seed        uint64 // value of spec.seed that Draws counts for
	Draws       uint64 // reserved fresh draws: after a restart k starts here
}

// JobRow is a job as stored.
type JobRow struct {
	Tenant, ID, Name string
	CreatedMS        int64
}

// CatalogView reads tenants, jobs and capsules. A tenant exists while it has a job.
type CatalogView interface {
	Tenants() ([]string, error)                       // sorted
	Jobs(tenant string) ([]JobRow, error)             // sorted by id; empty when unknown
	Capsules(tenant, job string) ([]CapsuleID, error) // sorted; empty arguments match all
	Capsule(id CapsuleID) (CapsuleRow, error)
}

// CatalogTx changes them. Deletes return how many rows went: a capsule, a job, a decision, a reward, a snapshot, a
// publication and a held event count one each. Audit trails stay.
type CatalogTx interface {
	SaveJob(JobRow) (created bool, err error)             // keeps an existing row as it is
	CreateCapsule(row CapsuleRow) (key int64, err error)  // creates the job when missing; Conflict when it exists
	SaveCapsule(row CapsuleRow) error                     // spec, program, installed, seed, draws; by Key
	DeleteCapsule(key int64) (rows int64, err error)      // with its decisions, rewards, snapshots, publications, holds
	DeleteJob(tenant, job string) (rows int64, err error) // the empty job itself; Conflict while it has capsules
}

// Batch is one row of the decision log: up to 512 encoded records of one capsule in time order.
type Batch struct {
	Capsule         int64 // CapsuleRow.Key
	FirstMS, LastMS int64
	Count           int
	Payload         []byte   // format: docs/format/decision-log.md
	Events          []string // client-made ids among its records
}

// Span picks decisions by time, since inclusive and until exclusive, in ms. Zero Until means no end.
type Span struct{ Since, Until int64 }

// LogView reads decisions and rewards.
type LogView interface {
	// Batches calls visit for the batches that overlap span, by ascending FirstMS (by descending LastMS when Newest is
	// set; ties in any order), until it returns false. Batches may overlap: uploads come late.
	// The payload is only valid during the call, and visit may read other things meanwhile, but not call Batches again.
	Batches(capsule int64, q BatchQuery, visit func(Batch) (more bool, err error)) error
	// EventTime returns a moment that the batch with the client-made id covers, NotFound when there is none.
	EventTime(capsule int64, id string) (ms int64, err error)
	// EventIDs calls visit for every client-made id of the capsule, to warm the filter.
	EventIDs(capsule int64, visit func(id string)) error
	// RewardsOf returns the rewards of one decision by ascending sequence.
	RewardsOf(capsule int64, decision string) ([]Reward, error)
	// Rewards calls visit for rewards with Seq > after, ascending, until it returns false.
	Rewards(capsule, after int64, visit func(Reward) (more bool, err error)) error
}

// BatchQuery picks and orders batches.
type BatchQuery struct {
	Span
	Newest bool
}

// LogTx appends and erases.
type LogTx interface {
	AppendBatch(Batch) error // NotFound when the capsule is gone
	// AppendReward stores r with the capsule's next sequence number and returns it; 0 with no error when the key is
	// already there (nothing is stored then); NotFound when the capsule is gone or purges differs from its row.
	AppendReward(capsule, purges int64, r Reward) (seq int64, err error)
	// PurgeLogs removes the decisions and rewards and counts the purge.
	PurgeLogs(capsule int64) (decisions, rewards int64, err error)
	// DropBatches removes whole batches and the client-made ids and rewards of their decisions.
	DropBatches(capsule int64, r Retention) (decisions, rewards int64, err error)
}

// Retention says what DropBatches may remove: the batches that end before BeforeMS, and those that end first until at most
// KeepBytes of payload remain.
type Retention struct {
	BeforeMS  int64 // 0: none goes for its age
	KeepBytes int64 // 0: no such bound
	Watermark int64 // a batch that a reward after this sequence names stays: no snapshot covers that reward yet
	Batches   int   // look at no more than this many of the oldest, so that the writer is not held for long; 0: all
	// IDs calls visit for the id of every record in a payload. The storage cannot read one itself.
	IDs func(payload []byte, visit func(id string)) error
}

// Snapshot is a model as stored.
type Snapshot struct {
	Capsule int64
	Version uint64
	Seq     int64 // newest reward it covers
	TimeMS  int64
	Bytes   []byte
}

// Publication is a (decide section, snapshot) pair named by its tag.
type Publication struct {
	Capsule int64
	Tag     string
	Section []byte // JSON text exactly as sent
	Version uint64
	Seq     int64
	TimeMS  int64
	Bytes   []byte // snapshot
}

// ModelView reads snapshots and publications.
type ModelView interface {
	NewestSnapshot(capsule int64) (Snapshot, error)
	Snapshots(capsule int64) ([]Snapshot, error) // newest first
	Publication(capsule int64, tag string) (Publication, error)
	Publications(capsule int64) ([]Publication, error) // newest first, without Bytes
}

// ModelTx keeps them. A row equal to the newest is not written again; NotFound when the capsule is gone.
type ModelTx interface {
	SaveSnapshot(s Snapshot, keep int) error       // and drops all but the newest keep
	SavePublication(p Publication, keep int) error // and drops all but the newest keep
}

// AuditRow is one administrative change. Trails are keyed by name and outlive the capsule.
type AuditRow struct {
	Seq    int64
	TimeMS int64
	Event  string
	Detail []byte // JSON object text
}

// TrailView reads audit trails.
type TrailView interface {
	Audits(id CapsuleID, limit int) ([]AuditRow, error) // the newest limit, oldest first
}

// Held is a deferred event that waits for its activation, with the rewards that came early.
type Held struct {
	Capsule int64
	EventID string
	TimeMS  int64
	Record  []byte // the encoded decision
	Rewards []byte // JSON array text of held rewards, nil when none
}

// HoldView reads deferred events.
type HoldView interface {
	Held(capsule int64, event string) (Held, error)
	HeldBefore(ms int64) ([]Held, error)
}

// HoldTx changes deferred events (SaveHeld is NotFound when the capsule is gone) and writes the audit trail.
type HoldTx interface {
	SaveHeld(Held) error
	DropHeld(capsule int64, event string) error
	AppendAudit(id CapsuleID, row AuditRow) error // store gives Seq
}
