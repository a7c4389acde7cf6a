package decision

import (
	"context"

	"holdfast/fault"
)

// PurgeLogs erases a capsule's decisions and rewards. Spec, graph and model stay, also across a crash right afterwards.
func (s *Service) PurgeLogs(ctx context.Context, id CapsuleID) (Removed, error) {
	c, err := s.Capsule(ctx, id)
	if err != nil {
		return Removed{}, err
	}
	return c.purge(ctx, AuditRow{Event: "logs_purged", Detail: []byte("{}")})
}

// The details of capsule_deleted, by what was deleted.
const (
	deletedAlone      = `{}`
	deletedWithJob    = `{"with":"job"}`
	deletedWithTenant = `{"with":"tenant"}`
)

func deletedEvent(detail string) AuditRow {
	return AuditRow{Event: "capsule_deleted", Detail: []byte(detail)}
}

// DeleteCapsule erases all of a capsule but its audit trail and returns how many rows went.
func (s *Service) DeleteCapsule(ctx context.Context, id CapsuleID) (rows int64, err error) {
	return s.remove(ctx, id, deletedEvent(deletedAlone))
}

// DeleteJob erases a job with its capsules and returns how many rows went.
func (s *Service) DeleteJob(ctx context.Context, tenant, job string) (rows int64, err error) {
	if _, err := s.Job(ctx, tenant, job); err != nil {
		return 0, err
	}
	return s.deleteJob(ctx, tenant, job, deletedWithJob)
}

// deleteJob erases a job that was there a moment ago. Capsules that are made meanwhile go too.
func (s *Service) deleteJob(ctx context.Context, tenant, job, detail string) (rows int64, err error) {
	for {
		ids, err := s.Capsules(ctx, tenant, job)
		if err != nil {
			return rows, err
		}
		for _, id := range ids {
			n, err := s.remove(ctx, id, deletedEvent(detail))
			if err != nil && fault.KindOf(err) != fault.NotFound {
				return rows, err
			}
			rows += n
		}
		var n int64
		err = s.storage.Write(context.WithoutCancel(ctx), Write{Change: func(tx Tx) (err error) {
			n, err = tx.DeleteJob(tenant, job)
			return err
		}})
		switch kind := fault.KindOf(err); {
		case err == nil:
			return rows + n, nil
		case kind == fault.Conflict: // a new capsule
		case kind == fault.NotFound && rows > 0: // somebody else took the last step
			return rows, nil
		default:
			return rows, err
		}
	}
}

// DeleteTenant erases a tenant with its jobs and returns how many rows went.
func (s *Service) DeleteTenant(ctx context.Context, tenant string) (rows int64, err error) {
	found := false
	for {
		jobs, err := s.Jobs(ctx, tenant)
		if err != nil {
			return rows, err
		}
		if len(jobs) == 0 {
			break
		}
		found = true
		for _, job := range jobs {
			n, err := s.deleteJob(ctx, tenant, job.ID, deletedWithTenant)
			if err != nil && fault.KindOf(err) != fault.NotFound {
				return rows, err
			}
			rows += n
		}
	}
	if !found {
		return 0, fault.New("decision.DeleteTenant", fault.NotFound, "tenant %s not found", tenant)
	}
	return rows, nil
}
