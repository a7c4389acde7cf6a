package decision

import "context"

// Capsule is one decision point, loaded.
type Capsule struct{}

// RewardResult is the outcome of one reward of several.
type RewardResult struct {
	Answer RewardAnswer
	Err    error
}

// Capsule returns the capsule, loading it first when it is not in memory. It fails with NotFound when there is none.
func (s *Service) Capsule(ctx context.Context, id CapsuleID) (*Capsule, error) {
	return &Capsule{}, nil
}

// Close commits what is queued and snapshots the models that have learned since their last snapshot.
func (s *Service) Close(ctx context.Context) error { return nil }

// Decide draws one action for req and fills out. It returns once the decision is queued, with req.Durable once it is on
// disk.
func (c *Capsule) Decide(ctx context.Context, req *Request, out *Answer) error { return nil }

// Reward joins an outcome to its decision and learns from it. It returns once the reward is on disk.
func (c *Capsule) Reward(ctx context.Context, r RewardRequest) (RewardAnswer, error) {
	return RewardAnswer{}, nil
}

// Rewards does what Reward does for several outcomes at once: one fails without the others.
func (c *Capsule) Rewards(ctx context.Context, rs []RewardRequest) []RewardResult { return nil }

// Info describes the capsule.
func (c *Capsule) Info(ctx context.Context) (Info, error) { return Info{}, nil }

// Spec is the stored text of the spec; it must not be changed.
func (c *Capsule) Spec() []byte { return nil }

// Version is the number of rewards the model has learned from.
func (c *Capsule) Version() uint64 { return 0 }

// Decisions returns a page of the log, ordered by time and id. It waits up to 250 ms for the queue.
func (c *Capsule) Decisions(ctx context.Context, q Query) (Page, error) { return Page{}, nil }

// Decision returns one logged decision with its rewards by ascending sequence.
func (c *Capsule) Decision(ctx context.Context, id string) (Decision, []Reward, error) {
	return Decision{}, nil, nil
}

// Stats counts what the capsule has, acknowledged but queued records included.
func (c *Capsule) Stats(ctx context.Context) Stats { return Stats{} }
