package decisions

import (
	"slices"

	"holdfast/decision"
	"holdfast/store"
)

const (
	// A trail is never shortened, so its newest number is the last one given.
	insertAudit = `INSERT INTO audits (tenant, job, capsule, seq, time_ms, event, detail)
		SELECT ?, ?, ?, coalesce(max(seq), 0) + 1, ?, ?, ? FROM audits WHERE tenant = ? AND job = ? AND capsule = ?`
	newestAudits = `SELECT seq, time_ms, event, detail FROM audits WHERE tenant = ? AND job = ? AND capsule = ?
		ORDER BY seq DESC LIMIT ?`
	heldBefore = `SELECT capsule, event, time_ms, record, rewards FROM held WHERE time_ms < ? ORDER BY time_ms, capsule, event`
	saveHeld   = `INSERT INTO held (capsule, event, time_ms, record, rewards)
		SELECT capsule, ?, ?, ?, ? FROM tallies WHERE capsule = ?
		ON CONFLICT (capsule, event) DO UPDATE SET time_ms = excluded.time_ms, record = excluded.record, rewards = excluded.rewards
		WHERE held.time_ms <> excluded.time_ms OR held.record <> excluded.record OR held.rewards IS NOT excluded.rewards`
)

// AppendAudit adds one event to a trail under the trail's next number.
func (t tx) AppendAudit(id decision.CapsuleID, row decision.AuditRow) error {
	_, err := t.exec(insertAudit, id.Tenant, id.Job, id.Capsule, row.TimeMS, row.Event, string(row.Detail),
		id.Tenant, id.Job, id.Capsule)
	return err
}

// Audits returns the newest limit events of a trail, oldest first.
func (v view) Audits(id decision.CapsuleID, limit int) (trail []decision.AuditRow, err error) {
	err = v.each(func(row *store.Stmt) {
		trail = append(trail, decision.AuditRow{Seq: row.IntAt(0), TimeMS: row.IntAt(1), Event: row.TextAt(2), Detail: bytesAt(row, 3)})
	}, newestAudits, id.Tenant, id.Job, id.Capsule, max(0, limit))
	slices.Reverse(trail)
	return trail, err
}

// SaveHeld keeps a deferred event, in place of the one with its id.
func (t tx) SaveHeld(h decision.Held) error {
	n, err := t.exec(saveHeld, h.EventID, h.TimeMS, blob(h.Record), text(h.Rewards), h.Capsule)
	if err != nil || n > 0 {
		return err
	}
	there, err := t.answers("SELECT 1 FROM tallies WHERE capsule = ?", h.Capsule) // nothing changed: equal, or gone
	if err == nil && !there {
		return gone("SaveHeld")
	}
	return err
}

// DropHeld removes a deferred event. One that is not there is no error.
func (t tx) DropHeld(capsule int64, event string) error {
	_, err := t.exec("DELETE FROM held WHERE capsule = ? AND event = ?", capsule, event)
	return err
}

// Held returns one deferred event.
func (v view) Held(capsule int64, event string) (h decision.Held, err error) {
	err = v.one(func(row *store.Stmt) { h = held(row) }, missing("Held", "the deferred event"),
		"SELECT capsule, event, time_ms, record, rewards FROM held WHERE capsule = ? AND event = ?", capsule, event)
	return h, err
}

// HeldBefore returns the deferred events of all capsules that were made before ms, oldest first.
func (v view) HeldBefore(ms int64) (list []decision.Held, err error) {
	err = v.each(func(row *store.Stmt) { list = append(list, held(row)) },
		heldBefore, ms)
	return list, err
}

func held(row *store.Stmt) decision.Held {
	return decision.Held{Capsule: row.IntAt(0), EventID: row.TextAt(1), TimeMS: row.IntAt(2), Record: bytesAt(row, 3),
		Rewards: bytesAt(row, 4)}
}
