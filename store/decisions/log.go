package decisions

import (
	"cmp"
	"math"

	"holdfast/decision"
	"holdfast/fault"
	"holdfast/store"
)

// The lanes of late batches by their length. A look at a moment goes over the entries that end at most a lane's length
// after it, so a batch of days among many of milliseconds costs one entry and not a scan of days.
const (
	laneSecond = 1 + iota
	laneMinute
	laneHour
	laneLonger
	lanes = laneLonger
)

const (
	second = 1000
	minute = 60 * second
	hour   = 60 * minute
)

// lateLane is the lane of a late batch of that length in ms.
func lateLane(length int64) int64 {
	switch {
	case length <= second:
		return laneSecond
	case length <= minute:
		return laneMinute
	case length <= hour:
		return laneHour
	}
	return laneLonger
}

const (
	insertBatch = `INSERT INTO batches (capsule, late, first_ms, last_ms, count, payload)
		SELECT capsule, CASE WHEN ? >= tail_ms THEN NULL ELSE ? END, ?, ?, ?, ? FROM tallies WHERE capsule = ?`
	countBatch = `UPDATE tallies SET decisions = decisions + ?, bytes = bytes + ?,
		first_ms = CASE WHEN decisions = 0 OR ? < first_ms THEN ? ELSE first_ms END,
		last_ms = CASE WHEN decisions = 0 OR ? > last_ms THEN ? ELSE last_ms END,
		longest_ms = CASE WHEN ? < tail_ms AND ? > longest_ms THEN ? ELSE longest_ms END,
		tail_ms = CASE WHEN ? >= tail_ms THEN ? ELSE tail_ms END
		WHERE capsule = ?`
	insertEvent  = `INSERT INTO events (capsule, id, ms) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`
	insertEvents = `INSERT INTO events (capsule, id, ms) VALUES (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?),
		(?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?)
		ON CONFLICT DO NOTHING`
	eventsAtOnce = 16 // rows of insertEvents
	selectEvent  = `SELECT ms FROM events WHERE capsule = ? AND id = ?`
)

// AppendBatch adds one row to the decision log, its client-made ids beside it. An id that is there already keeps its
// first batch.
func (t tx) AppendBatch(b decision.Batch) error {
	first, last, length := b.FirstMS, b.LastMS, b.LastMS-b.FirstMS
	n, err := t.q.Stmt(insertBatch).Int(first).Int(lateLane(length)).Int(first).Int(last).Int(int64(b.Count)).
		Blob(blob(b.Payload)).Int(b.Capsule).Exec()
	if err != nil {
		return err
	}
	if n == 0 {
		return gone("AppendBatch")
	}
	if _, err = t.q.Stmt(countBatch).Int(int64(b.Count)).Int(int64(len(b.Payload))).Int(first).Int(first).Int(last).Int(last).
		Int(first).Int(length).Int(length).Int(first).Int(last).Int(b.Capsule).Exec(); err != nil {
		return err
	}
	rest := len(b.Events) % eventsAtOnce
	if err := t.appendEvents(insertEvents, b, b.Events[rest:], eventsAtOnce); err != nil {
		return err
	}
	return t.appendEvents(insertEvent, b, b.Events[:rest], 1)
}

// appendEvents inserts ids with sql, which takes so many rows at once. Any moment that the batch covers leads to it.
func (t tx) appendEvents(sql string, b decision.Batch, ids []string, rows int) error {
	if len(ids) == 0 {
		return nil
	}
	insert := t.q.Stmt(sql)
	for i, id := range ids {
		insert.Int(b.Capsule).Text(id).Int(b.FirstMS)
		if (i+1)%rows == 0 && insert.Again() != nil {
			break
		}
	}
	return insert.Close()
}

// EventTime returns a moment that the batch with the client-made id covers.
func (v view) EventTime(capsule int64, id string) (ms int64, err error) {
	row := v.q.Stmt(selectEvent).Int(capsule).Text(id)
	found := row.Next()
	if found {
		ms = row.IntAt(0)
	}
	if err := row.Err(); err != nil {
		return 0, err
	}
	if !found {
		return 0, &fault.Error{Op: "decisions.EventTime", Kind: fault.NotFound, Msg: "the id is not in the log"} // no formatting
	}
	return ms, row.Close()
}

// EventIDs visits every client-made id of the capsule.
func (v view) EventIDs(capsule int64, visit func(id string)) error {
	return v.each(func(row *store.Stmt) { visit(row.TextAt(0)) }, "SELECT id FROM events WHERE capsule = ?", capsule)
}

// Every look goes over the index alone and fetches a payload by its row once it is wanted: a batch behind the end of the
// span is found to be so without its payload, which is many pages, being read. The last column of the texts for batches in
// order says whether there is any late one.
const (
	hasLate     = `EXISTS (SELECT 1 FROM batches WHERE capsule = ? AND late > 0)`
	oldestFirst = `SELECT id, first_ms, last_ms, ` + hasLate + ` FROM batches
		WHERE capsule = ? AND late IS NULL AND last_ms >= ? ORDER BY last_ms, first_ms, id`
	// The first batch that ends at or after the end of the span is the last that can have begun before it.
	newestFirst = `SELECT id, first_ms, last_ms, ` + hasLate + ` FROM batches
		WHERE capsule = ? AND late IS NULL AND last_ms >= ? AND last_ms <= coalesce(
			(SELECT min(last_ms) FROM batches WHERE capsule = ? AND late IS NULL AND last_ms >= ?), ?)
		ORDER BY last_ms DESC, first_ms DESC, id DESC`
	// A part per lane, which SQLite merges as they come from the index.
	lateByStart = `SELECT id, first_ms, last_ms FROM batches
		WHERE capsule = ? AND late = ? AND first_ms > ? AND first_ms < ? AND last_ms >= ?`
	lateByEnd = `SELECT id, first_ms, last_ms FROM batches
		WHERE capsule = ? AND late = ? AND last_ms >= ? AND last_ms < ? AND first_ms < ?`
	union         = ` UNION ALL `
	lateOldest    = lateByStart + union + lateByStart + union + lateByStart + union + lateByStart + ` ORDER BY first_ms`
	lateNewest    = lateByEnd + union + lateByEnd + union + lateByEnd + union + lateByEnd + ` ORDER BY last_ms DESC`
	selectLongest = `SELECT longest_ms FROM tallies WHERE capsule = ?`
	selectPayload = `SELECT count, payload FROM batches WHERE id = ?`
)

// forever is an end behind every time, with room to add a length to it.
const forever = math.MaxInt64 / 2

// Batches visits the batches that overlap the span of q.
func (v view) Batches(capsule int64, q decision.BatchQuery, visit func(decision.Batch) (bool, error)) error {
	if q.Until == 0 {
		q.Until = forever
	}
	ordered := v.ordered(capsule, q)
	defer ordered.close()
	var others cursor
	if !ordered.ok || ordered.stmt.BoolAt(3) {
		others = v.others(capsule, q)
		defer others.close()
	}
	for {
		from := &ordered
		if others.before(&ordered, q.Newest) {
			from = &others
		}
		if !from.ok {
			break
		}
		more, err := v.visit(decision.Batch{Capsule: capsule, FirstMS: from.first, LastMS: from.last}, from.id, visit)
		if err != nil || !more {
			return err
		}
		from.next()
	}
	if err := ordered.close(); err != nil {
		return err
	}
	return others.close()
}

func (v view) ordered(capsule int64, q decision.BatchQuery) cursor {
	c := cursor{span: q.Span}
	if q.Newest {
		c.stmt = v.q.Stmt(newestFirst).Int(capsule).Int(capsule).Int(q.Since).Int(capsule).Int(q.Until).Int(forever)
	} else {
		c.stmt = v.q.Stmt(oldestFirst).Int(capsule).Int(capsule).Int(q.Since)
		c.ascending = true
	}
	c.next()
	return c
}

func (v view) others(capsule int64, q decision.BatchQuery) cursor {
	c := cursor{span: q.Span}
	longest := int64(0)
	if c.err = v.each(func(row *store.Stmt) { longest = row.IntAt(0) }, selectLongest, capsule); c.err != nil {
		return c
	}
	sql := lateOldest
	if q.Newest {
		sql = lateNewest
	}
	c.stmt = v.q.Stmt(sql)
	for lane, length := range [lanes]int64{second, minute, hour, longest} {
		c.stmt.Int(capsule).Int(int64(lane + 1))
		if q.Newest {
			c.stmt.Int(q.Since).Int(q.Until + length).Int(q.Until)
		} else {
			c.stmt.Int(q.Since - length - 1).Int(q.Until).Int(q.Since)
		}
	}
	c.next()
	return c
}

// visit reads the payload of one row and hands it over without copying it.
func (v view) visit(b decision.Batch, id int64, visit func(decision.Batch) (bool, error)) (more bool, err error) {
	row := v.q.Stmt(selectPayload).Int(id)
	if !row.Next() {
		return true, row.Err()
	}
	b.Count, b.Payload = int(row.IntAt(0)), row.RawAt(1)
	more, err = visit(b)
	if closed := row.Close(); err == nil {
		err = closed
	}
	return more, err
}

// cursor goes over the rows of one look.
type cursor struct {
	stmt            *store.Stmt
	span            decision.Span
	ascending       bool // batches in order, oldest first: the first row behind the span ends it
	ok              bool
	id, first, last int64
	err             error
}

func (c *cursor) next() {
	for c.ok = c.stmt.Next(); c.ok; c.ok = c.stmt.Next() {
		c.id, c.first, c.last = c.stmt.IntAt(0), c.stmt.IntAt(1), c.stmt.IntAt(2)
		if c.first < c.span.Until {
			return
		}
		if c.ascending {
			c.ok = false
			c.close()
			return
		}
	}
	c.close()
}

// before reports whether c has a row and it comes before that of other.
func (c *cursor) before(other *cursor, newest bool) bool {
	if !c.ok || !other.ok {
		return c.ok
	}
	if newest {
		return cmp.Or(cmp.Compare(other.last, c.last), cmp.Compare(other.id, c.id)) < 0
	}
	return cmp.Or(cmp.Compare(c.first, other.first), cmp.Compare(c.id, other.id)) < 0
}

// close gives the statement back once and returns its error every time.
func (c *cursor) close() error {
	if c.stmt != nil {
		c.err = c.stmt.Err()
		if err := c.stmt.Close(); c.err == nil {
			c.err = err
		}
		c.stmt = nil
	}
	return c.err
}
