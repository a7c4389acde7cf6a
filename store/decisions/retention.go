package decisions

import (
	"holdfast/decision"
	"holdfast/fault"
	"holdfast/store"
)

// PurgeLogs removes all decisions and rewards of a capsule and counts the purge.
func (t tx) PurgeLogs(capsule int64) (decisions, rewards int64, err error) {
	err = t.one(func(row *store.Stmt) { decisions, rewards = row.IntAt(0), row.IntAt(1) }, gone("PurgeLogs"),
		"SELECT decisions, rewards FROM tallies WHERE capsule = ?", capsule)
	if err != nil {
		return 0, 0, err
	}
	for _, sql := range []string{
		"DELETE FROM batches WHERE capsule = ?",
		"DELETE FROM events WHERE capsule = ?",
		"DELETE FROM rewards WHERE capsule = ?",
		`UPDATE tallies SET purges = purges + 1, erased = erased + rewards, decisions = 0, rewards = 0, bytes = 0, first_ms = 0,
			last_ms = 0, tail_ms = 0, longest_ms = 0 WHERE capsule = ?`,
	} {
		if _, err := t.exec(sql, capsule); err != nil {
			return 0, 0, err
		}
	}
	return decisions, rewards, nil
}

// Batches by when they end, late ones and others; each part comes from the index in order.
const (
	endPart = `SELECT id, last_ms FROM batches WHERE capsule = ? AND late `
	byEnd   = endPart + `IS NULL UNION ALL ` + endPart + `= 1 UNION ALL ` + endPart + `= 2 UNION ALL ` +
		endPart + `= 3 UNION ALL ` + endPart + `= 4 ORDER BY last_ms`
	countDrop = `UPDATE tallies SET decisions = decisions - ?, rewards = rewards - ?, erased = erased + ?, bytes = bytes - ?,
		first_ms = coalesce((SELECT min(ms) FROM (
			SELECT * FROM (SELECT first_ms AS ms FROM batches WHERE capsule = ? AND late IS NULL ORDER BY last_ms, first_ms LIMIT 1)
			UNION ALL SELECT first_ms FROM batches WHERE capsule = ? AND late > 0)), 0),
		last_ms = coalesce((SELECT max(ms) FROM (
			SELECT max(last_ms) AS ms FROM batches WHERE capsule = ? AND late IS NULL
			UNION ALL SELECT max(last_ms) FROM batches WHERE capsule = ? AND late > 0)), 0)
		WHERE capsule = ?`
	pinned = `SELECT EXISTS (SELECT 1 FROM rewards WHERE capsule = ? AND key = ? AND decision IS NULL AND seq > ?)
		OR EXISTS (SELECT 1 FROM rewards WHERE capsule = ? AND decision = ? AND seq > ?)`
	dropByKey      = `DELETE FROM rewards WHERE capsule = ? AND key = ? AND decision IS NULL`
	dropByDecision = `DELETE FROM rewards WHERE capsule = ? AND seq IN
		(SELECT seq FROM rewards WHERE capsule = ? AND decision = ?)`
	dropEvent = `DELETE FROM events WHERE capsule = ? AND id = ?`
)

// drop is one run of DropBatches.
type drop struct {
	tx
	capsule            int64
	r                  decision.Retention
	last               int64 // newest sequence number there is
	bytes              int64 // payload that remains
	decisions, rewards int64 // removed
	freed              int64 // payload removed
	any                bool  // a batch was removed
}

// DropBatches removes the batches that r lets go, with the ids and rewards of their decisions.
func (t tx) DropBatches(capsule int64, r decision.Retention) (decisions, rewards int64, err error) {
	d := &drop{tx: t, capsule: capsule, r: r}
	err = t.one(func(row *store.Stmt) { d.bytes, d.last = row.IntAt(0), row.IntAt(1) }, gone("DropBatches"),
		"SELECT bytes, last_seq FROM tallies WHERE capsule = ?", capsule)
	if err != nil {
		return 0, 0, err
	}
	if r.IDs == nil {
		return 0, 0, fault.New("decisions.DropBatches", fault.Internal, "retention without IDs")
	}
	ids, err := d.candidates()
	if err != nil {
		return 0, 0, err
	}
	for _, id := range ids {
		if err := d.batch(id); err != nil {
			return 0, 0, err
		}
	}
	if !d.any {
		return 0, 0, nil
	}
	_, err = t.exec(countDrop, d.decisions, d.rewards, d.rewards, d.freed, capsule, capsule, capsule, capsule, capsule)
	return d.decisions, d.rewards, err
}

// candidates returns the rows that are old enough, or too much, those that end first first.
func (d *drop) candidates() (ids []int64, err error) {
	k := d.capsule
	rows := d.q.Stmt(byEnd).Bind(k, k, k, k, k)
	left := d.bytes
	for n := 0; (d.r.Batches <= 0 || n < d.r.Batches) && rows.Next(); n++ {
		old, much := rows.IntAt(1) < d.r.BeforeMS, d.r.KeepBytes > 0 && left > d.r.KeepBytes
		if !old && !much {
			break
		}
		size, err := d.size(rows.IntAt(0))
		if err != nil {
			return nil, err
		}
		left -= size
		ids = append(ids, rows.IntAt(0))
	}
	return ids, rows.Close()
}

func (d *drop) size(id int64) (size int64, err error) {
	err = d.one(func(row *store.Stmt) { size = row.IntAt(0) }, missing("DropBatches", "batch"),
		"SELECT length(payload) FROM batches WHERE id = ?", id)
	return size, err
}

// batch removes one row, unless a reward that no snapshot covers names one of its decisions.
func (d *drop) batch(id int64) error {
	var names []string
	var count, size int64
	row := d.q.Stmt(selectPayload).Int(id)
	if row.Next() {
		count, size = row.IntAt(0), int64(len(row.RawAt(1)))
		if err := d.r.IDs(row.RawAt(1), func(name string) { names = append(names, name) }); err != nil {
			return err
		}
	}
	if err := row.Close(); err != nil {
		return err
	}
	if d.last > d.r.Watermark {
		for _, name := range names {
			if stays, err := d.pinned(name); err != nil || stays {
				return err
			}
		}
	}
	for _, name := range names {
		if err := d.forget(name); err != nil {
			return err
		}
	}
	if _, err := d.exec("DELETE FROM batches WHERE id = ?", id); err != nil {
		return err
	}
	d.decisions += count
	d.freed += size
	d.any = true
	return nil
}

func (d *drop) pinned(name string) (yes bool, err error) {
	w := d.r.Watermark
	_, err = d.q.Stmt(pinned).Int(d.capsule).Text(name).Int(w).Int(d.capsule).Text(name).Int(w).
		One(func(row *store.Stmt) { yes = row.BoolAt(0) })
	return yes, err
}

// forget removes the rewards of one decision, and its id when a client made it.
func (d *drop) forget(name string) error {
	n, err := d.q.Stmt(dropByKey).Int(d.capsule).Text(name).Exec()
	if err != nil {
		return err
	}
	m, err := d.q.Stmt(dropByDecision).Int(d.capsule).Int(d.capsule).Text(name).Exec()
	if err != nil {
		return err
	}
	d.rewards += n + m
	_, err = d.q.Stmt(dropEvent).Int(d.capsule).Text(name).Exec()
	return err
}
