package decision

import (
	"context"

	"holdfast/fault"
)

// This file holds the signatures of the administrative methods until the files that implement them replace it, one by one.

var errPending = fault.New("decision", fault.Internal, "not in this build")

// PromoteRequest asks for a spec change that depends on gates: Spec is the patch, Policy must be empty, and there is at
// least one gate.
type PromoteRequest = EvaluateRequest

// Promotion is the outcome of a PromoteRequest that could be judged.
type Promotion struct {
	Promoted bool   // false: a gate failed
	Spec     []byte // the spec now in force
	Report   *Report
}

// Model describes the model in force.
func (c *Capsule) Model(ctx context.Context) (ModelInfo, error) { return ModelInfo{}, errPending }

// Published returns the newest publication, with what it was made from.
func (c *Capsule) Published(ctx context.Context) (Publication, ModelInfo, error) {
	return Publication{}, ModelInfo{}, errPending
}

// Upload takes decisions that clients made from a publication.
func (c *Capsule) Upload(ctx context.Context, items []Upload) (UploadReport, error) {
	return UploadReport{}, errPending
}

// Hold draws like Decide but keeps the decision aside until Activate.
func (c *Capsule) Hold(ctx context.Context, req *Request, out *Answer) error { return errPending }

// Activate makes a held decision count, with the rewards that came early.
func (c *Capsule) Activate(ctx context.Context, event string) error { return errPending }

// Evaluate says what a policy would have earned.
func (c *Capsule) Evaluate(ctx context.Context, q EvaluateRequest) (*Report, error) {
	return nil, errPending
}

// Promote changes the spec if every gate passes.
func (c *Capsule) Promote(ctx context.Context, q PromoteRequest) (*Promotion, error) {
	return nil, errPending
}
