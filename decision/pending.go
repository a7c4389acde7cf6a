package decision

import (
	"context"

	"holdfast/fault"
)

// This file holds the signatures of the administrative methods until the files that implement them replace it, one by one.

var errPending = fault.New("decision", fault.Internal, "not in this build")

// Replace says what a spec is patched onto.
type Replace bool

// The ways to put a spec.
const (
	Merge      Replace = false // onto the stored spec, the defaults when there is none
	ReplaceAll Replace = true  // onto the defaults
)

// Job is a job with the sorted names of its capsules.
type Job struct {
	JobRow
	Capsules []string
}

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

// PutSpec patches a capsule's spec and creates the capsule when there is none.
func (s *Service) PutSpec(ctx context.Context, id CapsuleID, patch []byte, replace Replace) (spec []byte, created bool, err error) {
	return nil, false, errPending
}

// SetMode patches mode and baselineEpsilon only.
func (s *Service) SetMode(ctx context.Context, id CapsuleID, patch []byte) (spec []byte, err error) {
	return nil, errPending
}

// Install attaches a graph, given as JSON text.
func (s *Service) Install(ctx context.Context, id CapsuleID, program []byte) (ProgramInfo, error) {
	return ProgramInfo{}, errPending
}

// RemoveProgram detaches the graph.
func (s *Service) RemoveProgram(ctx context.Context, id CapsuleID) error { return errPending }

// PurgeLogs erases decisions and rewards and keeps the model.
func (s *Service) PurgeLogs(ctx context.Context, id CapsuleID) (Removed, error) {
	return Removed{}, errPending
}

// DeleteCapsule erases a capsule; its audit trail stays.
func (s *Service) DeleteCapsule(ctx context.Context, id CapsuleID) (rows int64, err error) {
	return 0, errPending
}

// DeleteJob erases a job with its capsules.
func (s *Service) DeleteJob(ctx context.Context, tenant, job string) (rows int64, err error) {
	return 0, errPending
}

// DeleteTenant erases a tenant with its jobs.
func (s *Service) DeleteTenant(ctx context.Context, tenant string) (rows int64, err error) {
	return 0, errPending
}

// Tenants lists the tenants, sorted.
func (s *Service) Tenants(ctx context.Context) ([]string, error) { return nil, errPending }

// Jobs lists a tenant's jobs, sorted by id; none when the tenant is unknown.
func (s *Service) Jobs(ctx context.Context, tenant string) ([]Job, error) { return nil, errPending }

// Job returns one job.
func (s *Service) Job(ctx context.Context, tenant, job string) (Job, error) {
	return Job{}, errPending
}

// CreateJob makes a job, or returns the one that is there.
func (s *Service) CreateJob(ctx context.Context, tenant, id, name string) (Job, bool, error) {
	return Job{}, false, errPending
}

// Capsules lists capsules, sorted; empty arguments match all.
func (s *Service) Capsules(ctx context.Context, tenant, job string) ([]CapsuleID, error) {
	return nil, errPending
}

// Audits returns the newest limit rows of a capsule's trail, oldest first.
func (s *Service) Audits(ctx context.Context, id CapsuleID, limit int) ([]AuditRow, error) {
	return nil, errPending
}

// NewestUnrewarded returns the newest decision of an option and a context key that has no reward yet.
func (s *Service) NewestUnrewarded(ctx context.Context, id CapsuleID, option, contextKey string) (string, error) {
	return "", errPending
}
