package decisions

import (
	"holdfast/decision"
	"holdfast/fault"
	"holdfast/store"
)

// Tenants returns every tenant that has a job, sorted.
func (v view) Tenants() (names []string, err error) {
	err = v.each(func(row *store.Stmt) { names = append(names, row.TextAt(0)) },
		"SELECT DISTINCT tenant FROM jobs ORDER BY tenant")
	return names, err
}

// Jobs returns the jobs of one tenant, sorted by id.
func (v view) Jobs(tenant string) (jobs []decision.JobRow, err error) {
	err = v.each(func(row *store.Stmt) {
		jobs = append(jobs, decision.JobRow{Tenant: tenant, ID: row.TextAt(0), Name: row.TextAt(1), CreatedMS: row.IntAt(2)})
	}, "SELECT id, name, created_ms FROM jobs WHERE tenant = ? ORDER BY id", tenant)
	return jobs, err
}

// Capsules returns the ids of capsules, sorted; an empty argument matches all.
func (v view) Capsules(tenant, job string) (ids []decision.CapsuleID, err error) {
	err = v.each(func(row *store.Stmt) {
		ids = append(ids, decision.CapsuleID{Tenant: row.TextAt(0), Job: row.TextAt(1), Capsule: row.TextAt(2)})
	}, `SELECT tenant, job, name FROM capsules WHERE (? = '' OR tenant = ?) AND (? = '' OR job = ?) ORDER BY tenant, job, name`,
		tenant, tenant, job, job)
	return ids, err
}

const selectCapsule = `SELECT c.key, c.created_ms, c.installed_ms, c.spec, c.program, t.purges, t.last_seq, t.decisions, t.rewards,
	t.first_ms, t.last_ms, t.seed, t.draws
	FROM capsules c JOIN tallies t ON t.capsule = c.key WHERE c.tenant = ? AND c.job = ? AND c.name = ?`

// Capsule returns one capsule as stored.
func (v view) Capsule(id decision.CapsuleID) (row decision.CapsuleRow, err error) {
	err = v.one(func(r *store.Stmt) {
		row = decision.CapsuleRow{
			Key: r.IntAt(0), ID: id, CreatedMS: r.IntAt(1), InstalledMS: r.IntAt(2), Spec: bytesAt(r, 3), Program: bytesAt(r, 4),
			Purges: r.IntAt(5), LastSeq: r.IntAt(6), Decisions: r.IntAt(7), Rewards: r.IntAt(8),
			FirstMS: r.IntAt(9), LastMS: r.IntAt(10), Seed: uint64(r.IntAt(11)), Draws: uint64(r.IntAt(12)),
		}
	}, missing("Capsule", "capsule "+id.String()), selectCapsule, id.Tenant, id.Job, id.Capsule)
	return row, err
}

// SaveJob keeps a job unless it is there already.
func (t tx) SaveJob(j decision.JobRow) (created bool, err error) {
	n, err := t.exec("INSERT INTO jobs (tenant, id, name, created_ms) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
		j.Tenant, j.ID, j.Name, j.CreatedMS)
	return n > 0, err
}

// CreateCapsule makes a capsule with empty logs, and its job when there is none.
func (t tx) CreateCapsule(row decision.CapsuleRow) (key int64, err error) {
	id := row.ID
	if _, err := t.SaveJob(decision.JobRow{Tenant: id.Tenant, ID: id.Job, Name: id.Job, CreatedMS: row.CreatedMS}); err != nil {
		return 0, err
	}
	exists := fault.New("decisions.CreateCapsule", fault.Conflict, "capsule %s exists already", id)
	err = t.one(func(r *store.Stmt) { key = r.IntAt(0) }, exists,
		`INSERT INTO capsules (tenant, job, name, created_ms, installed_ms, spec, program) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (tenant, job, name) DO NOTHING RETURNING key`,
		id.Tenant, id.Job, id.Capsule, row.CreatedMS, row.InstalledMS, string(row.Spec), text(row.Program))
	if err != nil {
		return 0, err
	}
	_, err = t.exec("INSERT INTO tallies (capsule, seed, draws) VALUES (?, ?, ?)", key, row.Seed, row.Draws)
	return key, err
}

// SaveCapsule writes the spec, the program, when it was installed, the seed and its draws, each only where it differs.
func (t tx) SaveCapsule(row decision.CapsuleRow) error {
	err := t.one(func(*store.Stmt) {}, gone("SaveCapsule"), "SELECT 1 FROM tallies WHERE capsule = ?", row.Key)
	if err != nil {
		return err
	}
	spec, program := string(row.Spec), text(row.Program)
	if _, err := t.exec(`UPDATE capsules SET spec = ?, program = ?, installed_ms = ?
		WHERE key = ? AND (spec <> ? OR program IS NOT ? OR installed_ms <> ?)`,
		spec, program, row.InstalledMS, row.Key, spec, program, row.InstalledMS); err != nil {
		return err
	}
	_, err = t.exec("UPDATE tallies SET seed = ?, draws = ? WHERE capsule = ? AND (seed <> ? OR draws <> ?)",
		row.Seed, row.Draws, row.Key, row.Seed, row.Draws)
	return err
}

// DeleteCapsule removes a capsule with all it has but its trail.
func (t tx) DeleteCapsule(key int64) (rows int64, err error) {
	decisions, rewards, err := t.PurgeLogs(key) // NotFound for a key that is gone
	if err != nil {
		return 0, err
	}
	rows = decisions + rewards
	for _, sql := range []string{
		"DELETE FROM snapshots WHERE capsule = ?",
		"DELETE FROM publications WHERE capsule = ?",
		"DELETE FROM held WHERE capsule = ?",
		"DELETE FROM capsules WHERE key = ?",
	} {
		n, err := t.exec(sql, key)
		if err != nil {
			return 0, err
		}
		rows += n
	}
	_, err = t.exec("DELETE FROM tallies WHERE capsule = ?", key)
	return rows, err
}

// DeleteJob removes a job that has no capsule.
func (t tx) DeleteJob(tenant, job string) (rows int64, err error) {
	used, err := t.q.Stmt("SELECT 1 FROM capsules WHERE tenant = ? AND job = ? LIMIT 1").Text(tenant).Text(job).
		One(func(*store.Stmt) {})
	if err != nil {
		return 0, err
	}
	if used {
		return 0, fault.New("decisions.DeleteJob", fault.Conflict, "job %s/%s still has capsules", tenant, job)
	}
	rows, err = t.exec("DELETE FROM jobs WHERE tenant = ? AND id = ?", tenant, job)
	if err == nil && rows == 0 {
		return 0, missing("DeleteJob", "job "+tenant+"/"+job)
	}
	return rows, err
}
