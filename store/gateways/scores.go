package gateways

import (
	"holdfast/gateway"
	"holdfast/store"
)

const (
	insertOutcome = `INSERT INTO outcomes (seq, time_ms, merchant, kind, payment, gateway, cell, value, size, number, standing, move, factor, floor, raised)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	selectOutcomes = `SELECT seq, time_ms, merchant, kind, payment, gateway, cell, value, size, number, standing, move, factor, floor, raised
		FROM outcomes WHERE seq > ? ORDER BY seq`
	selectProgress = `SELECT saved, max(last, coalesce((SELECT max(seq) FROM outcomes), 0)) FROM progress WHERE one = 1`
	updateProgress = `UPDATE progress SET saved = ?, last = ? WHERE one = 1`
	insertChunk    = `INSERT INTO chunks (id, first_ms, last_ms, count, payload) VALUES (?, ?, ?, ?, ?)`
	selectChunk    = `SELECT id, first_ms, last_ms, count, payload FROM chunks WHERE id = ?`
	selectChunks   = `SELECT id, first_ms, last_ms, count, payload FROM chunks WHERE last_ms >= ? ORDER BY id`
	selectScores   = `SELECT payload, seq FROM scores WHERE merchant = ?`
	// Rows are old at the low end of their numbers: the oldest ones are looked at, and those among them that may go do.
	dropOutcomes = `DELETE FROM outcomes WHERE seq IN (SELECT seq FROM outcomes ORDER BY seq LIMIT ?) AND time_ms < ?
		AND seq <= (SELECT saved FROM progress WHERE one = 1)`
	dropChunks = `DELETE FROM chunks WHERE id IN (SELECT id FROM chunks ORDER BY id LIMIT ?) AND last_ms < ?`
)

// AppendOutcome stores one outcome under its number.
func (t tx) AppendOutcome(o *gateway.Outcome) error {
	_, err := t.q.Stmt(insertOutcome).Int(o.Seq).Int(o.TimeMS).Int(o.Merchant).Int(int64(o.Kind)).Text(o.Payment).Text(string(o.Gateway)).
		Text(o.Window).Bool(o.Value).Int(int64(o.Size)).Int(int64(o.Number)).Text(o.Standing).Int(int64(o.Move)).Float(o.Factor).
		Float(o.Floor).Float(o.Raise).Exec()
	return err
}

// Outcomes visits the outcomes after a number.
func (v view) Outcomes(after int64, visit func(*gateway.Outcome) error) error {
	rows := v.q.Stmt(selectOutcomes).Int(after)
	for rows.Next() {
		o := &gateway.Outcome{Seq: rows.IntAt(0), TimeMS: rows.IntAt(1), Merchant: rows.IntAt(2), Kind: gateway.OutcomeKind(rows.IntAt(3)),
			Payment: rows.TextAt(4), Gateway: gateway.Name(rows.TextAt(5)), Window: rows.TextAt(6), Value: rows.BoolAt(7),
			Size: int(rows.IntAt(8)), Number: uint64(rows.IntAt(9)), Standing: rows.TextAt(10), Move: gateway.Move(rows.IntAt(11)),
			Factor: rows.FloatAt(12), Floor: rows.FloatAt(13), Raise: rows.FloatAt(14)}
		if err := visit(o); err != nil {
			_ = rows.Close() // the visitor's error says more
			return err
		}
	}
	return rows.Err()
}

// Progress returns how far the saved scores reach, and the greatest number given.
func (v view) Progress() (saved, last int64, err error) {
	err = v.one(func(row *store.Stmt) { saved, last = row.IntAt(0), row.IntAt(1) }, missing("Progress", "progress"), selectProgress)
	return saved, last, err
}

// SaveProgress notes how far the saved scores reach.
func (t tx) SaveProgress(saved, last int64) error {
	_, err := t.exec(updateProgress, saved, last)
	return err
}

// Scores returns a merchant's saved scores, nil when there are none.
func (v view) Scores(merchant int64) (blob []byte, seq int64, err error) {
	_, err = v.q.Stmt(selectScores).Int(merchant).One(func(row *store.Stmt) {
		blob, seq = row.BlobAt(0, []byte{}), row.IntAt(1)
	})
	return blob, seq, err
}

// SaveScores keeps a merchant's scores.
func (t tx) SaveScores(merchant, seq int64, blob []byte) error {
	_, err := t.q.Stmt(upsertScores).Int(merchant).Int(seq).Blob(blob).Exec()
	return err
}

var upsertScores = store.SQLite().Upsert("scores", []string{"merchant"}, []string{"seq", "payload"})

// AppendChunk stores one row of decisions.
func (t tx) AppendChunk(c gateway.Chunk) error {
	_, err := t.q.Stmt(insertChunk).Int(c.ID).Int(c.FirstMS).Int(c.LastMS).Int(int64(c.Count)).Blob(c.Payload).Exec()
	return err
}

// Chunk returns one row of decisions.
func (v view) Chunk(id int64) (c gateway.Chunk, err error) {
	err = v.one(func(row *store.Stmt) { c = chunk(row) }, missing("Chunk", "chunk"), selectChunk, id)
	return c, err
}

// Chunks visits the rows of decisions that end at a moment or later.
func (v view) Chunks(sinceMS int64, visit func(gateway.Chunk) error) error {
	rows := v.q.Stmt(selectChunks).Int(sinceMS)
	for rows.Next() {
		if err := visit(chunk(rows)); err != nil {
			_ = rows.Close() // the visitor's error says more
			return err
		}
	}
	return rows.Err()
}

func chunk(row *store.Stmt) gateway.Chunk {
	return gateway.Chunk{ID: row.IntAt(0), FirstMS: row.IntAt(1), LastMS: row.IntAt(2), Count: int(row.IntAt(3)), Payload: row.BlobAt(4, []byte{})}
}

// DropScores removes old outcomes and chunks.
func (t tx) DropScores(beforeMS int64, limit int) (rows int64, err error) {
	outcomes, err := t.exec(dropOutcomes, limit, beforeMS)
	if err != nil {
		return 0, err
	}
	chunks, err := t.exec(dropChunks, limit, beforeMS)
	return outcomes + chunks, err
}
