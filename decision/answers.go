package decision

// GraphResult is what a capsule's graph computed for one decide.
type GraphResult struct {
	StrategyID string // id of the strategy node, empty without one
	Output     []byte // JSON text of the output node's values, nil without one
}

// RewardRequest reports an outcome.
type RewardRequest struct {
	DecisionID string
	Value      float64
	Key        string
	HasKey     bool
	Detail     []byte // any JSON text, nil when absent
}

// RewardAnswer is what one reward answers.
type RewardAnswer struct {
	Applied, Learned, Duplicate, Held bool
	ModelVersion                      uint64
}

// RewardResult is the outcome of one reward of several.
type RewardResult struct {
	Answer RewardAnswer
	Err    error
}

// Stats counts what a capsule has, acknowledged but queued records included.
type Stats struct {
	Decisions, Rewards int64
	FirstMS, LastMS    int64 // 0 when there is no decision
	LastRewardSeq      int64
}

// Info describes a capsule.
type Info struct {
	ID           CapsuleID
	Spec         []byte
	ModelVersion uint64
	Program      *ProgramInfo
	Stats        Stats
}

// ProgramInfo describes an installed graph.
type ProgramInfo struct {
	SHA256      string
	Bytes       int
	InstalledMS int64
}

// Query picks a page of decisions.
type Query struct {
	Span
	Limit  int    // 1..1000; 0 means 100
	After  string // id of the previous page's last decision
	Newest bool
}

// Page is some decisions and the id to go on from, empty at the end.
type Page struct {
	Decisions []Decision
	Next      string
}

// ModelInfo is what a client learns of a capsule's model.
type ModelInfo struct {
	Spec      []byte
	Version   uint64
	Watermark int64 // newest reward sequence it covers
	Program   string
}

// Upload is one decision made by a client from a publication.
type Upload struct {
	ID           string
	TimeMS       int64
	Tag          string
	ModelVersion *uint64
	Seed         uint64
	Input        Request
	ChosenIndex  int
	ChosenID     string // checked when not empty
	Probability  float64
	PMF          []float64
	Eligible     []int
}

// UploadReport says what became of a batch of uploads.
type UploadReport struct {
	Accepted, Duplicates, Unverified int
	Rejected                         []Rejection
}

// Rejection is one upload that was not taken.
type Rejection struct {
	Index     int
	ID        string
	Err       error
	Retryable bool
}

// Removed says how much a log erase removed.
type Removed struct{ Decisions, Rewards int64 }
