package decision

import (
	"crypto/sha256"
	"math"
)

// CapsuleID names a capsule: one decision point of a job of a tenant.
type CapsuleID struct{ Tenant, Job, Capsule string }

// String is the id as messages show it: tenant/job/capsule.
func (id CapsuleID) String() string { return id.Tenant + "/" + id.Job + "/" + id.Capsule }

// Limits of names and ids, in bytes.
const (
	MaxName           = 128 // a tenant, job or capsule
	MaxDecisionID     = 128
	MaxActionID       = 256 // characters
	MaxActions        = 1024
	MaxIdempotencyKey = 256
)

// ValidName reports whether s may name a tenant, a job or a capsule.
func ValidName(s string) bool {
	if s == "" || len(s) > MaxName || s[0] == '.' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alphanumeric(c) && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

// ValidDecisionID reports whether s may be the id of a decision.
func ValidDecisionID(s string) bool {
	if s == "" || len(s) > MaxDecisionID {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alphanumeric(c) && c != '_' && c != '-' && c != '.' && c != ':' {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// Mode says which policy serves and whether the model learns.
type Mode uint8

// The modes.
const (
	Learner         Mode = iota // the learned policy serves and learns
	BaselineExplore             // the caller's baseline mostly; the model learns
	Frozen                      // the learned policy serves; rewards are recorded, not learned
	Unverified                  // an upload whose model is retired: trains, evaluation skips it
)

var modeNames = [...]string{"learner", "baselineExplore", "frozen", "unverified"}

// String is the mode's name on the wire.
func (m Mode) String() string { return modeNames[m] }

// Action is one option with its features.
type Action struct {
	ID       string
	Features []byte // JSON object text, nil when absent
}

// Request asks for one decision. Byte slices are only read during the call.
type Request struct {
	Context  []byte   // JSON object text; empty means {}
	Actions  []Action // nil: the spec's
	Excluded []string
	Baseline string
	EventID  string            // client-made id, empty when absent
	Durable  bool              // wait for the synced commit
	Digest   [sha256.Size]byte // SHA-256 of the raw body; compared when EventID repeats
	// RequestID names the request in the audit event of a graph that fails.
	RequestID string
}

// Ranked is one eligible action with the probability it was drawn with.
type Ranked struct {
	ID          string
	Probability float64
}

// Answer is what one decide answers. Decide reuses its slices, so that a caller may pool it.
type Answer struct {
	ID           string
	Action       string
	ActionIndex  int
	Probability  float64
	Ranking      []Ranked // eligible actions by descending probability, ties in action order
	Mode         Mode
	ModelVersion uint64
	Reason       string
	Replayed     bool
	Graph        *GraphResult // nil without a graph
}

// Decision is one logged draw, everything needed to replay it.
type Decision struct {
	ID           string
	TimeMS       int64
	ModelVersion uint64
	Mode         Mode
	Context      []byte // JSON object text
	Derived      []byte // JSON object text, nil without a graph
	Actions      []Action
	Eligible     []int     // ascending indices into Actions
	PMF          []float64 // aligned with Eligible
	Chosen       int       // index into Actions
	Probability  float64
	Seed         uint64
	Reason       string
	Digest       [sha256.Size]byte // of the request body
	Program      string            // SHA-256 of the graph in hex, empty without one
}

// Reward is one outcome joined to a decision.
type Reward struct {
	Seq        int64
	TimeMS     int64
	DecisionID string
	Value      float64 // as sent
	Normalized float64 // in [0,1]
	Key        string
	Detail     []byte // JSON object text, nil when absent
	Learned    bool   // false when recorded under frozen: replay skips it
}

// Normalize maps a raw reward into [0,1] for learning.
func Normalize(r, lo, hi float64) float64 {
	return math.Min(math.Max((r-lo)/(hi-lo), 0), 1)
}
