package gateways

import (
	"holdfast/gateway"
	"holdfast/store"
)

const (
	selectTrailState  = `SELECT counted, bundle_bytes, tally_bytes FROM trail_state WHERE only = 1`
	updateCounted     = `UPDATE trail_state SET counted = ? WHERE only = 1`
	updateBundleBytes = `UPDATE trail_state SET bundle_bytes = bundle_bytes + ? WHERE only = 1`
	updateTallyBytes  = `UPDATE trail_state SET tally_bytes = tally_bytes + ? WHERE only = 1`

	insertHead    = `INSERT INTO trail_heads (number, first_ms, last_ms, count, bytes, merchants, ids) VALUES (?, ?, ?, ?, ?, ?, ?)`
	insertPayload = `INSERT INTO trail_payloads (number, payload) VALUES (?, ?)`
	selectHeads   = `SELECT number, first_ms, last_ms, count, bytes, merchants, ids FROM trail_heads
		WHERE last_ms >= ? AND first_ms < ? ORDER BY last_ms DESC, number DESC`
	selectBundlesAfter = `SELECT number, first_ms, last_ms, count, bytes, merchants, ids, payload FROM trail_heads JOIN trail_payloads USING (number)
		WHERE number > ? ORDER BY number`
	selectHeadsAfter = `SELECT number, first_ms, last_ms, count, bytes, merchants, ids FROM trail_heads WHERE number > ? ORDER BY number`
	selectSpanBytes  = `SELECT coalesce(sum(bytes), 0) FROM trail_heads WHERE number >= ? AND number <= ?`
	deleteHeads      = `DELETE FROM trail_heads WHERE number >= ? AND number <= ?`
	deletePayloads   = `DELETE FROM trail_payloads WHERE number >= ? AND number <= ?`
	selectPayload    = `SELECT payload FROM trail_payloads WHERE number = ?`
	selectLastBundle = `SELECT coalesce(max(number), 0) FROM trail_heads`
	selectOldest     = `SELECT number, last_ms, bytes FROM trail_heads WHERE number <= ? ORDER BY number LIMIT ?`
	deleteHead       = `DELETE FROM trail_heads WHERE number = ?`
	deletePayload    = `DELETE FROM trail_payloads WHERE number = ?`

	selectTally   = `SELECT key, through, cells FROM trail_tallies WHERE key = ?`
	selectTallies = `SELECT key, through, cells FROM trail_tallies WHERE key >= ? AND key < ? ORDER BY key LIMIT ?`
	selectCells   = `SELECT length(cells) FROM trail_tallies WHERE key = ?`
	insertTally   = `INSERT INTO trail_tallies (key, through, cells) VALUES (?, ?, ?)
		ON CONFLICT (key) DO UPDATE SET through = excluded.through, cells = excluded.cells`
	deleteTally = `DELETE FROM trail_tallies WHERE key = ?`
)

// TrailState returns what the trail knows of itself.
func (v view) TrailState() (s gateway.TrailState, err error) {
	err = v.one(func(row *store.Stmt) {
		s = gateway.TrailState{Counted: row.IntAt(0), BundleBytes: row.IntAt(1), TallyBytes: row.IntAt(2)}
	}, missing("TrailState", "the trail's state"), selectTrailState)
	return s, err
}

func headOf(row *store.Stmt) gateway.BundleRow {
	return gateway.BundleRow{Number: row.IntAt(0), FirstMS: row.IntAt(1), LastMS: row.IntAt(2), Count: int(row.IntAt(3)),
		Bytes: row.IntAt(4), Merchants: row.RawAt(5), IDs: row.RawAt(6)}
}

// Bundles visits the heads of bundles whose time touches the span, newest first.
func (v view) Bundles(span gateway.Span, visit func(gateway.BundleRow) (bool, error)) error {
	return heads(v.q.Stmt(selectHeads).Bind(span.Since, span.Until), visit)
}

// HeadsAfter visits the heads of bundles in the order of their numbers.
func (v view) HeadsAfter(number int64, visit func(gateway.BundleRow) (bool, error)) error {
	return heads(v.q.Stmt(selectHeadsAfter).Int(number), visit)
}

func heads(rows *store.Stmt, visit func(gateway.BundleRow) (bool, error)) error {
	defer rows.Close()
	for rows.Next() {
		if more, err := visit(headOf(rows)); err != nil || !more {
			return err
		}
	}
	return rows.Err()
}

// BundlesAfter visits whole bundles in the order of their numbers.
func (v view) BundlesAfter(number int64, visit func(gateway.BundleRow) error) error {
	rows := v.q.Stmt(selectBundlesAfter).Bind(number)
	defer rows.Close()
	for rows.Next() {
		c := headOf(rows)
		c.Payload = rows.RawAt(7)
		if err := visit(c); err != nil {
			return err
		}
	}
	return rows.Err()
}

// BundlePayload shows the payload of a bundle.
func (v view) BundlePayload(number int64, look func([]byte) error) error {
	var seen error
	err := v.one(func(row *store.Stmt) { seen = look(row.RawAt(0)) }, missing("BundlePayload", "bundle"), selectPayload, number)
	if err != nil {
		return err
	}
	return seen
}

// LastBundle returns the highest number of a bundle.
func (v view) LastBundle() (number int64, err error) {
	err = v.one(func(row *store.Stmt) { number = row.IntAt(0) }, missing("LastBundle", "bundle"), selectLastBundle)
	return number, err
}

func tallyOf(row *store.Stmt) gateway.TallyRow {
	return gateway.TallyRow{Key: row.IntAt(0), Through: row.IntAt(1), Cells: row.RawAt(2)}
}

// Tally shows the roll-up with the key.
func (v view) Tally(key int64, look func(gateway.TallyRow) error) (bool, error) {
	var seen error
	found, err := v.q.Stmt(selectTally).Int(key).One(func(row *store.Stmt) { seen = look(tallyOf(row)) })
	if err != nil {
		return found, err
	}
	return found, seen
}

// Tallies visits roll-ups in the order of their keys.
func (v view) Tallies(keys gateway.TallyKeys, visit func(gateway.TallyRow) error) error {
	rows := v.q.Stmt(selectTallies).Bind(keys.First, keys.Until, keys.Limit)
	defer rows.Close()
	for rows.Next() {
		if err := visit(tallyOf(rows)); err != nil {
			return err
		}
	}
	return rows.Err()
}

// AppendBundle stores a bundle.
func (t tx) AppendBundle(c gateway.BundleRow) error {
	_, err := t.q.Stmt(insertHead).Int(c.Number).Int(c.FirstMS).Int(c.LastMS).Int(int64(c.Count)).Int(c.Bytes).Blob(c.Merchants).Blob(c.IDs).Exec()
	if err != nil {
		return err
	}
	if _, err := t.q.Stmt(insertPayload).Int(c.Number).Blob(c.Payload).Exec(); err != nil {
		return err
	}
	_, err = t.exec(updateBundleBytes, c.Bytes)
	return err
}

// ReplaceBundles stores a bundle in place of some.
func (t tx) ReplaceBundles(row gateway.BundleRow, last int64) error {
	var bytes int64
	if err := t.each(func(r *store.Stmt) { bytes = r.IntAt(0) }, selectSpanBytes, row.Number, last); err != nil {
		return err
	}
	for _, sql := range [...]string{deleteHeads, deletePayloads} {
		if _, err := t.exec(sql, row.Number, last); err != nil {
			return err
		}
	}
	if _, err := t.exec(updateBundleBytes, -bytes); err != nil {
		return err
	}
	return t.AppendBundle(row)
}

// DropBundles removes the oldest bundles that may go.
func (t tx) DropBundles(d gateway.BundleDrop) (int, error) {
	state, err := t.TrailState()
	if err != nil {
		return 0, err
	}
	var numbers []int64
	var bytes int64
	open := true
	err = t.each(func(row *store.Stmt) {
		// One that stays keeps the newer ones: what is left has no holes.
		open = open && (row.IntAt(1) < d.BeforeMS || state.BundleBytes-bytes > d.KeepBytes)
		if open {
			numbers, bytes = append(numbers, row.IntAt(0)), bytes+row.IntAt(2)
		}
	}, selectOldest, d.Through, d.Limit)
	if err != nil || len(numbers) == 0 {
		return 0, err
	}
	for _, n := range numbers {
		if _, err := t.exec(deleteHead, n); err != nil {
			return 0, err
		}
		if _, err := t.exec(deletePayload, n); err != nil {
			return 0, err
		}
	}
	_, err = t.exec(updateBundleBytes, -bytes)
	return len(numbers), err
}

// cells returns how many bytes the roll-up with the key has, 0 when there is none.
func (t tx) cells(key int64) (n int64, err error) {
	_, err = t.q.Stmt(selectCells).Int(key).One(func(row *store.Stmt) { n = row.IntAt(0) })
	return n, err
}

// PutTally stores a roll-up over the one with its key.
func (t tx) PutTally(row gateway.TallyRow) error {
	before, err := t.cells(row.Key)
	if err != nil {
		return err
	}
	if _, err := t.q.Stmt(insertTally).Int(row.Key).Int(row.Through).Blob(row.Cells).Exec(); err != nil {
		return err
	}
	_, err = t.exec(updateTallyBytes, int64(len(row.Cells))-before)
	return err
}

// DropTally removes the roll-up with the key.
func (t tx) DropTally(key int64) error {
	before, err := t.cells(key)
	if err != nil || before == 0 {
		return err
	}
	if _, err := t.exec(deleteTally, key); err != nil {
		return err
	}
	_, err = t.exec(updateTallyBytes, -before)
	return err
}

// Counted notes up to which bundle the stored roll-ups count.
func (t tx) Counted(number int64) error {
	_, err := t.exec(updateCounted, number)
	return err
}
