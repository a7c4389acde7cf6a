package decision

import (
	"context"
	"slices"

	"holdfast/fault"
	"holdfast/internal/strictjson"
)

// Job is a job with the sorted names of its capsules.
type Job struct {
	JobRow
	Capsules []string
}

// Tenants lists the tenants, sorted.
func (s *Service) Tenants(ctx context.Context) (names []string, err error) {
	err = s.storage.Read(ctx, func(v View) error {
		names, err = v.Tenants()
		return err
	})
	return names, err
}

// Jobs lists a tenant's jobs, sorted by id; none when the tenant is unknown.
func (s *Service) Jobs(ctx context.Context, tenant string) (jobs []Job, err error) {
	err = s.storage.Read(ctx, func(v View) error {
		rows, err := v.Jobs(tenant)
		if err != nil {
			return err
		}
		ids, err := v.Capsules(tenant, "")
		if err != nil {
			return err
		}
		for _, row := range rows {
			jobs = append(jobs, Job{JobRow: row, Capsules: capsulesOf(ids, row.ID)})
		}
		return nil
	})
	return jobs, err
}

func capsulesOf(ids []CapsuleID, job string) (names []string) {
	for _, id := range ids {
		if id.Job == job {
			names = append(names, id.Capsule)
		}
	}
	slices.Sort(names)
	return names
}

// Job returns one job, NotFound when there is none.
func (s *Service) Job(ctx context.Context, tenant, job string) (Job, error) {
	jobs, err := s.Jobs(ctx, tenant)
	if err != nil {
		return Job{}, err
	}
	for _, j := range jobs {
		if j.ID == job {
			return j, nil
		}
	}
	return Job{}, fault.New("decision.Job", fault.NotFound, "job %s/%s not found", tenant, job)
}

// MaxJobName bounds what a job is called besides its id, in bytes.
const MaxJobName = 256

// CreateJob makes a job, or returns the one of that id as it is; created tells which.
func (s *Service) CreateJob(ctx context.Context, tenant, id, name string) (job Job, created bool, err error) {
	switch {
	case !ValidName(tenant) || !ValidName(id):
		return Job{}, false, checkID(CapsuleID{Tenant: tenant, Job: id, Capsule: "any"})
	case len(name) > MaxJobName:
		return Job{}, false, fault.New("decision.CreateJob", fault.Invalid, "name: at most %d bytes", MaxJobName)
	}
	row := JobRow{Tenant: tenant, ID: id, Name: name, CreatedMS: s.nowMS()}
	err = s.storage.Write(context.WithoutCancel(ctx), Write{Change: func(tx Tx) (err error) {
		created, err = tx.SaveJob(row)
		return err
	}})
	if err != nil {
		return Job{}, false, err
	}
	job, err = s.Job(ctx, tenant, id)
	return job, created, err
}

// Capsules lists capsules, sorted; empty arguments match all.
func (s *Service) Capsules(ctx context.Context, tenant, job string) (ids []CapsuleID, err error) {
	err = s.storage.Read(ctx, func(v View) error {
		ids, err = v.Capsules(tenant, job)
		return err
	})
	return ids, err
}

// Audits returns the newest limit rows of a capsule's trail, oldest first. A trail outlives its capsule; NotFound when
// there is neither.
func (s *Service) Audits(ctx context.Context, id CapsuleID, limit int) (rows []AuditRow, err error) {
	err = s.storage.Read(ctx, func(v View) error {
		if rows, err = v.Audits(id, limit); err != nil || len(rows) > 0 {
			return err
		}
		if _, err = v.Capsule(id); err != nil && fault.KindOf(err) == fault.NotFound {
			return missing(id)
		}
		return err
	})
	return rows, err
}

// searched bounds how many of the newest decisions NewestUnrewarded looks at.
const searched = 10_000

// NewestUnrewarded returns the id of the newest decision that chose option, whose context has that contextKey (none for an
// empty one), and that has no reward yet. It looks at the newest 10,000 only.
func (s *Service) NewestUnrewarded(ctx context.Context, id CapsuleID, option, contextKey string) (string, error) {
	c, err := s.Capsule(ctx, id)
	if err != nil {
		return "", err
	}
	query := Query{Limit: maxPage, Newest: true}
	for range searched / maxPage {
		page, err := c.Decisions(ctx, query)
		if err != nil {
			return "", err
		}
		for i := range page.Decisions {
			d := &page.Decisions[i]
			if d.Actions[d.Chosen].ID != option || keyOf(d.Context) != contextKey {
				continue
			}
			_, rewards, err := c.Decision(ctx, d.ID)
			if err != nil {
				return "", err
			}
			if len(rewards) == 0 {
				return d.ID, nil
			}
		}
		if query.After = page.Next; page.Next == "" {
			break
		}
	}
	return "", fault.New("decision.NewestUnrewarded", fault.NotFound, "decision of option %q without a reward not found", option)
}

// keyOf is the context's member contextKey when it is a string, empty otherwise.
func keyOf(context []byte) string {
	raw := memberOf(context, "contextKey")
	if strictjson.KindOf(raw) != strictjson.String {
		return ""
	}
	return string(strictjson.AppendText(nil, raw))
}
