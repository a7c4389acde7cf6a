package decisionapi

import (
	"net/http"

	"holdfast/decision"
	"holdfast/ident"
)

// jobJSON is a job as every answer shows it.
type jobJSON struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	CreatedAtMS int64    `json:"createdAtMs"`
	Capsules    []string `json:"capsules"`
}

func showJob(j decision.Job) jobJSON {
	return jobJSON{ID: j.ID, Name: j.Name, CreatedAtMS: j.CreatedMS, Capsules: append([]string{}, j.Capsules...)}
}

// Jobs answers GET /v1/tenants/{tenant}/jobs.
func (a *API) Jobs(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	tenant, err := name(c, 0, "tenant")
	var jobs []decision.Job
	if err == nil {
		jobs, err = a.service.Jobs(r.Context(), tenant)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	shown := make([]jobJSON, 0, len(jobs))
	for _, j := range jobs {
		shown = append(shown, showJob(j))
	}
	a.send(w, r, http.StatusOK, struct {
		Tenant string    `json:"tenant"`
		Jobs   []jobJSON `json:"jobs"`
	}{tenant, shown})
}

// Job answers GET /v1/tenants/{tenant}/jobs/{job}.
func (a *API) Job(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	tenant, job, err := jobName(c)
	var found decision.Job
	if err == nil {
		found, err = a.service.Job(r.Context(), tenant, job)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, struct {
		Tenant string  `json:"tenant"`
		Job    jobJSON `json:"job"`
	}{tenant, showJob(found)})
}

// CreateJob answers POST /v1/tenants/{tenant}/jobs: 201 when the job is new, 200 when it was there.
func (a *API) CreateJob(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	job, created, err := a.createJob(r, c)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	a.send(w, r, status, struct {
		OK      bool    `json:"ok"`
		Created bool    `json:"created"`
		Job     jobJSON `json:"job"`
	}{true, created, showJob(job)})
}

func (a *API) createJob(r *http.Request, c *ident.Call) (job decision.Job, created bool, err error) {
	tenant, err := name(c, 0, "tenant")
	if err != nil {
		return job, false, err
	}
	var body struct {
		ID   *string `json:"id"`
		Name *string `json:"name"`
	}
	if err := decode(c.Body, &body); err != nil {
		return job, false, err
	}
	if body.ID == nil {
		return job, false, missing("id")
	}
	if !decision.ValidName(*body.ID) {
		return job, false, badName("job")
	}
	title := *body.ID
	if body.Name != nil {
		title = *body.Name
	}
	return a.service.CreateJob(r.Context(), tenant, *body.ID, title)
}

// JobCapsules answers GET /v1/tenants/{tenant}/jobs/{job}/capsules: the names, sorted.
func (a *API) JobCapsules(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	tenant, job, err := jobName(c)
	var ids []decision.CapsuleID
	if err == nil {
		ids, err = a.service.Capsules(r.Context(), tenant, job)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	names := make([]string, 0, len(ids))
	for _, id := range ids {
		names = append(names, id.Capsule)
	}
	a.send(w, r, http.StatusOK, struct {
		Capsules []string `json:"capsules"`
	}{names})
}

// removedRows is what every erasing route answers.
type removedRows struct {
	OK   bool  `json:"ok"`
	Rows int64 `json:"removedRows"`
}

// DeleteJob answers DELETE /v1/tenants/{tenant}/jobs/{job}.
func (a *API) DeleteJob(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	tenant, job, err := jobName(c)
	var rows int64
	if err == nil {
		rows, err = a.service.DeleteJob(r.Context(), tenant, job)
	}
	a.erased(w, r, rows, err)
}

// DeleteTenant answers DELETE /v1/tenants/{tenant}.
func (a *API) DeleteTenant(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	tenant, err := name(c, 0, "tenant")
	var rows int64
	if err == nil {
		rows, err = a.service.DeleteTenant(r.Context(), tenant)
	}
	a.erased(w, r, rows, err)
}

func (a *API) erased(w http.ResponseWriter, r *http.Request, rows int64, err error) {
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, removedRows{true, rows})
}

// Tenants answers GET /v1/tenants: all for an admin, its own for a tenant's admin, none for a reader.
func (a *API) Tenants(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	all, err := a.service.Tenants(r.Context())
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	seen := make([]string, 0, len(all))
	for _, tenant := range all {
		if c.Principal.Allows(ident.Need{Role: ident.TenantAdmin, Tenant: tenant}) {
			seen = append(seen, tenant)
		}
	}
	a.send(w, r, http.StatusOK, struct {
		Tenants []string `json:"tenants"`
	}{seen})
}

// jobName is the tenant and the job that the first two parameters name.
func jobName(c *ident.Call) (tenant, job string, err error) {
	if tenant, err = name(c, 0, "tenant"); err != nil {
		return "", "", err
	}
	job, err = name(c, 1, "job")
	return tenant, job, err
}
