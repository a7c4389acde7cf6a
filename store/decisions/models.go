package decisions

import (
	"holdfast/decision"
	"holdfast/store"
)

const (
	snapshotColumns    = `SELECT version, seq, time_ms, bytes FROM snapshots WHERE capsule = ? ORDER BY id DESC`
	publicationColumns = `SELECT section, version, seq, time_ms, bytes FROM publications WHERE capsule = ? AND tag = ?`

	insertSnapshot = `INSERT INTO snapshots (capsule, version, seq, time_ms, bytes)
		SELECT capsule, ?, ?, ?, ? FROM tallies WHERE capsule = ?`
	// The model itself decides whether it is the same: a snapshot that differs by its time alone says nothing new.
	sameSnapshot = `SELECT version = ? AND seq = ? AND bytes = ? FROM snapshots WHERE capsule = ? ORDER BY id DESC LIMIT 1`

	insertPublication = `INSERT INTO publications (capsule, tag, section, version, seq, time_ms, bytes)
		SELECT capsule, ?, ?, ?, ?, ?, ? FROM tallies WHERE capsule = ?`
	samePublication = `SELECT tag = ? AND section = ? AND version = ? AND seq = ? AND bytes = ?
		FROM publications WHERE capsule = ? ORDER BY id DESC LIMIT 1`

	// The bound is the oldest id to keep, so that dropping touches only what goes.
	dropSnapshots = `DELETE FROM snapshots WHERE capsule = ? AND id <=
		(SELECT id FROM snapshots WHERE capsule = ? ORDER BY id DESC LIMIT 1 OFFSET ?)`
	dropPublications = `DELETE FROM publications WHERE capsule = ? AND id <=
		(SELECT id FROM publications WHERE capsule = ? ORDER BY id DESC LIMIT 1 OFFSET ?)`
)

func snapshot(capsule int64, row *store.Stmt) decision.Snapshot {
	return decision.Snapshot{Capsule: capsule, Version: uint64(row.IntAt(0)), Seq: row.IntAt(1), TimeMS: row.IntAt(2),
		Bytes: bytesAt(row, 3)}
}

// NewestSnapshot returns the snapshot that was saved last.
func (v view) NewestSnapshot(capsule int64) (s decision.Snapshot, err error) {
	err = v.one(func(row *store.Stmt) { s = snapshot(capsule, row) }, missing("NewestSnapshot", "snapshot"),
		snapshotColumns+" LIMIT 1", capsule)
	return s, err
}

// Snapshots returns the kept snapshots, newest first.
func (v view) Snapshots(capsule int64) (list []decision.Snapshot, err error) {
	err = v.each(func(row *store.Stmt) { list = append(list, snapshot(capsule, row)) }, snapshotColumns, capsule)
	return list, err
}

// Publication returns the publication of that tag.
func (v view) Publication(capsule int64, tag string) (p decision.Publication, err error) {
	err = v.one(func(row *store.Stmt) {
		p = decision.Publication{Capsule: capsule, Tag: tag, Section: bytesAt(row, 0), Version: uint64(row.IntAt(1)),
			Seq: row.IntAt(2), TimeMS: row.IntAt(3), Bytes: bytesAt(row, 4)}
	}, missing("Publication", "publication "+tag), publicationColumns, capsule, tag)
	return p, err
}

// Publications returns the kept publications, newest first, without their snapshots.
func (v view) Publications(capsule int64) (list []decision.Publication, err error) {
	err = v.each(func(row *store.Stmt) {
		list = append(list, decision.Publication{Capsule: capsule, Tag: row.TextAt(0), Section: bytesAt(row, 1),
			Version: uint64(row.IntAt(2)), Seq: row.IntAt(3), TimeMS: row.IntAt(4)})
	}, "SELECT tag, section, version, seq, time_ms FROM publications WHERE capsule = ? ORDER BY id DESC", capsule)
	return list, err
}

// SaveSnapshot keeps s as the newest, unless the newest is equal but for its time, and drops all but the newest keep.
func (t tx) SaveSnapshot(s decision.Snapshot, keep int) error {
	same, err := t.answers(sameSnapshot, s.Version, s.Seq, blob(s.Bytes), s.Capsule)
	if err != nil {
		return err
	}
	if !same {
		n, err := t.exec(insertSnapshot, s.Version, s.Seq, s.TimeMS, blob(s.Bytes), s.Capsule)
		if err != nil {
			return err
		}
		if n == 0 {
			return gone("SaveSnapshot")
		}
	}
	_, err = t.exec(dropSnapshots, s.Capsule, s.Capsule, keep)
	return err
}

// SavePublication keeps p as the newest, unless the newest is equal but for its time, and drops all but the newest keep. A
// tag that was published before moves to the front.
func (t tx) SavePublication(p decision.Publication, keep int) error {
	section := string(p.Section)
	same, err := t.answers(samePublication, p.Tag, section, p.Version, p.Seq, blob(p.Bytes), p.Capsule)
	if err != nil {
		return err
	}
	if !same {
		if _, err := t.exec("DELETE FROM publications WHERE capsule = ? AND tag = ?", p.Capsule, p.Tag); err != nil {
			return err
		}
		n, err := t.exec(insertPublication, p.Tag, section, p.Version, p.Seq, p.TimeMS, blob(p.Bytes), p.Capsule)
		if err != nil {
			return err
		}
		if n == 0 {
			return gone("SavePublication")
		}
	}
	_, err = t.exec(dropPublications, p.Capsule, p.Capsule, keep)
	return err
}

// answers reports whether the query's only row says true; false without a row.
func (v view) answers(sql string, args ...any) (yes bool, err error) {
	_, err = v.q.Stmt(sql).Bind(args...).One(func(row *store.Stmt) { yes = row.BoolAt(0) })
	return yes, err
}
