package decisions

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"

	"holdfast/decision"
	"holdfast/store"
)

// Probe reads what the storage cannot. A nil function leaves its part out.
type Probe struct {
	Records  func(payload []byte, visit func(id string, ms int64)) error // of one batch
	Snapshot func(bytes []byte) error                                    // says what is wrong with a model
	Spec     func(text []byte) error                                     // says what is wrong with a stored spec
}

// Finding is one thing that is not as it should be.
type Finding struct {
	Capsule decision.CapsuleID // zero when it concerns none, or one that is not in the catalog
	What    string             // for the operator; no payload
}

// maxFindings is how many findings of one capsule are told one by one: one cause often has many.
const maxFindings = 20

// Check compares every tally with a recount, reads every batch, and looks for rewards and ids without a decision, gaps in
// sequences and models that do not read back. It reads one consistent state and changes nothing. It keeps eight bytes per
// decision of the largest capsule in memory. The error is for a check that could not be made.
func (d *Decisions) Check(ctx context.Context, p Probe) (findings []Finding, err error) {
	err = d.db.Read(ctx, func(s *store.Snapshot) error {
		v := view{s}
		findings = nil
		ids, err := v.Capsules("", "")
		if err != nil {
			return err
		}
		for _, id := range ids {
			c := &checker{view: v, probe: p, id: id, seed: maphash.MakeSeed()}
			if err := c.run(); err != nil {
				return err
			}
			findings = append(findings, c.told()...)
		}
		c := &checker{view: v}
		err = c.strays()
		findings = append(findings, c.told()...)
		return err
	})
	return findings, err
}

// checker goes over one capsule.
type checker struct {
	view
	probe    Probe
	id       decision.CapsuleID
	row      decision.CapsuleRow
	seed     maphash.Seed
	known    []uint64 // hashes of the ids in the log, sorted once all are there
	findings []Finding
	more     int
}

func (c *checker) find(format string, args ...any) {
	if len(c.findings) == maxFindings {
		c.more++
		return
	}
	c.findings = append(c.findings, Finding{Capsule: c.id, What: fmt.Sprintf(format, args...)})
}

func (c *checker) told() []Finding {
	if c.more > 0 {
		c.findings = append(c.findings, Finding{Capsule: c.id, What: fmt.Sprintf("and %d more findings", c.more)})
	}
	return c.findings
}

func (c *checker) run() (err error) {
	if c.row, err = c.Capsule(c.id); err != nil {
		if found, asked := c.answers("SELECT NOT EXISTS (SELECT 1 FROM tallies t JOIN capsules c ON t.capsule = c.key "+
			"WHERE c.tenant = ? AND c.job = ? AND c.name = ?)", c.id.Tenant, c.id.Job, c.id.Capsule); asked == nil && found {
			c.find("has no tallies")
			return nil
		}
		return err
	}
	if c.probe.Spec != nil {
		if err := c.probe.Spec(c.row.Spec); err != nil {
			c.find("the stored spec is not valid: %v", err)
		}
	}
	for _, step := range []func() error{c.recount, c.lanes, c.batches, c.rewards, c.events, c.models} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// recount compares the tallies with the rows.
func (c *checker) recount() error {
	key := c.row.Key
	var stored, counted [6]int64
	names := [...]string{"decisions", "payload bytes", "first decision (ms)", "last decision (ms)", "rewards", "rewards ever given"}
	err := c.each(func(row *store.Stmt) {
		for i := range stored {
			stored[i] = row.IntAt(i)
		}
	}, "SELECT decisions, bytes, first_ms, last_ms, rewards, last_seq FROM tallies WHERE capsule = ?", key)
	if err != nil {
		return err
	}
	err = c.each(func(row *store.Stmt) {
		for i := range counted {
			counted[i] = row.IntAt(i)
		}
	}, `SELECT b.*, (SELECT count(*) FROM rewards WHERE capsule = ?),
			(SELECT erased FROM tallies WHERE capsule = ?) + (SELECT count(*) FROM rewards WHERE capsule = ?)
		FROM (SELECT coalesce(sum(count), 0), coalesce(sum(length(payload)), 0), coalesce(min(first_ms), 0), coalesce(max(last_ms), 0)
			FROM batches WHERE capsule = ?) b`, key, key, key, key)
	for i, name := range names {
		if stored[i] != counted[i] {
			c.find("%s: the tally says %d, a recount %d", name, stored[i], counted[i])
		}
	}
	return err
}

// lanes checks what queries by time rely on.
func (c *checker) lanes() error {
	var end, tail, longest, wide int64
	err := c.each(func(row *store.Stmt) { tail, longest = row.IntAt(0), row.IntAt(1) },
		"SELECT tail_ms, longest_ms FROM tallies WHERE capsule = ?", c.row.Key)
	if err != nil {
		return err
	}
	err = c.each(func(row *store.Stmt) {
		id, lane, first, last := row.IntAt(0), row.IntAt(1), row.IntAt(2), row.IntAt(3) // NULL reads as 0
		switch {
		case first > last:
			c.find("batch %d ends before it begins", id)
		case lane == 0 && first < end:
			c.find("batch %d begins before the one in front of it ends", id)
		case lane != 0 && lane != lateLane(last-first):
			c.find("batch %d is %d ms long, which is not for lane %d", id, last-first, lane)
		}
		if lane == 0 {
			end = last
		} else {
			wide = max(wide, last-first)
		}
	}, "SELECT id, late, first_ms, last_ms FROM batches WHERE capsule = ? ORDER BY late, last_ms, first_ms, id", c.row.Key)
	if end > tail {
		c.find("the tally says that batches in order end at %d, they end at %d", tail, end)
	}
	if wide > longest {
		c.find("the tally says that the longest late batch has %d ms, it has %d", longest, wide)
	}
	return err
}

// batches reads every payload and collects the ids in it.
func (c *checker) batches() error {
	if c.probe.Records == nil {
		return nil
	}
	err := c.Batches(c.row.Key, decision.BatchQuery{}, func(b decision.Batch) (bool, error) {
		count, outside := 0, 0
		err := c.probe.Records(b.Payload, func(id string, ms int64) {
			count++
			if ms < b.FirstMS || ms > b.LastMS {
				outside++
			}
			c.known = append(c.known, maphash.String(c.seed, id))
		})
		switch {
		case err != nil:
			c.find("the batch of %d to %d ms does not read back: %v", b.FirstMS, b.LastMS, err)
		case count != b.Count:
			c.find("the batch of %d to %d ms has %d records, its row says %d", b.FirstMS, b.LastMS, count, b.Count)
		case outside > 0:
			c.find("the batch of %d to %d ms has %d records of other times", b.FirstMS, b.LastMS, outside)
		}
		return true, nil
	})
	slices.Sort(c.known)
	twice := 0
	for i := 1; i < len(c.known); i++ {
		if c.known[i] == c.known[i-1] {
			twice++
		}
	}
	if twice > 0 {
		c.find("%d ids are in the log more than once", twice)
	}
	return err
}

func (c *checker) has(id string) bool {
	if c.probe.Records == nil {
		return true
	}
	_, ok := slices.BinarySearch(c.known, maphash.String(c.seed, id))
	return ok
}

// rewards looks for rewards without a decision and numbers that were never given. That none is missing follows from the
// recount: what is there and what was erased make up all that were given.
func (c *checker) rewards() error {
	return c.Rewards(c.row.Key, 0, func(r decision.Reward) (bool, error) {
		if r.Seq > c.row.LastSeq {
			c.find("reward %d is numbered after the last, %d", r.Seq, c.row.LastSeq)
		}
		if !c.has(r.DecisionID) {
			c.find("reward %d names %q, which is not in the log", r.Seq, r.DecisionID)
		}
		return true, nil
	})
}

func (c *checker) events() error {
	return c.EventIDs(c.row.Key, func(id string) {
		if !c.has(id) {
			c.find("the client-made id %q leads to no decision", id)
		}
	})
}

func (c *checker) models() error {
	if c.probe.Snapshot == nil {
		return nil
	}
	look := func(kind string) func(row *store.Stmt) {
		return func(row *store.Stmt) {
			if err := c.probe.Snapshot(row.RawAt(2)); err != nil {
				c.find("%s of version %d does not read back: %v", kind, uint64(row.IntAt(0)), err)
			}
			if seq := row.IntAt(1); seq > c.row.LastSeq {
				c.find("%s of version %d covers reward %d, the last is %d", kind, uint64(row.IntAt(0)), seq, c.row.LastSeq)
			}
		}
	}
	if err := c.each(look("the snapshot"), "SELECT version, seq, bytes FROM snapshots WHERE capsule = ?", c.row.Key); err != nil {
		return err
	}
	return c.each(look("the publication"), "SELECT version, seq, bytes FROM publications WHERE capsule = ?", c.row.Key)
}

// strays looks for rows of capsules that are not there and for trails with a gap.
func (c *checker) strays() error {
	err := c.each(func(row *store.Stmt) {
		c.find("%s holds %d rows of capsule key %d, which does not exist", row.TextAt(0), row.IntAt(2), row.IntAt(1))
	}, `SELECT * FROM (
			SELECT 'tallies' AS place, capsule, count(*) AS n FROM tallies GROUP BY capsule
			UNION ALL SELECT 'batches', capsule, count(*) FROM batches GROUP BY capsule
			UNION ALL SELECT 'events', capsule, count(*) FROM events GROUP BY capsule
			UNION ALL SELECT 'rewards', capsule, count(*) FROM rewards GROUP BY capsule
			UNION ALL SELECT 'snapshots', capsule, count(*) FROM snapshots GROUP BY capsule
			UNION ALL SELECT 'publications', capsule, count(*) FROM publications GROUP BY capsule
			UNION ALL SELECT 'held', capsule, count(*) FROM held GROUP BY capsule) rows_of
		WHERE capsule NOT IN (SELECT key FROM capsules) ORDER BY place, capsule`)
	if err != nil {
		return err
	}
	err = c.each(func(row *store.Stmt) {
		c.find("the trail of %s/%s/%s has %d events, its last number is %d", row.TextAt(0), row.TextAt(1), row.TextAt(2),
			row.IntAt(3), row.IntAt(4))
	}, `SELECT tenant, job, capsule, count(*), max(seq) FROM audits GROUP BY tenant, job, capsule
		HAVING count(*) <> max(seq) ORDER BY tenant, job, capsule`)
	if err != nil {
		return err
	}
	return c.each(func(row *store.Stmt) {
		c.find("job %s/%s of capsule %s is missing", row.TextAt(0), row.TextAt(1), row.TextAt(2))
	},
		`SELECT c.tenant, c.job, c.name FROM capsules c LEFT JOIN jobs j ON j.tenant = c.tenant AND j.id = c.job
		WHERE j.id IS NULL ORDER BY c.tenant, c.job, c.name`)
}
