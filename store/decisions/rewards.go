package decisions

import (
	"cmp"
	"slices"

	"holdfast/decision"
	"holdfast/store"
)

const (
	// The number comes from the tally, so that it goes on after an erase. Only the key may be there already: any other
	// conflict is an error.
	insertReward = `INSERT INTO rewards (capsule, seq, time_ms, key, decision, value, normalized, learned, detail)
		SELECT capsule, last_seq + 1, ?, ?, ?, ?, ?, ?, ? FROM tallies WHERE capsule = ? AND purges = ?
		ON CONFLICT (capsule, key) DO NOTHING RETURNING seq`
	countReward   = `UPDATE tallies SET last_seq = ?, rewards = rewards + 1 WHERE capsule = ?`
	selectPurges  = `SELECT 1 FROM tallies WHERE capsule = ? AND purges = ?`
	rewardColumns = `SELECT r.seq, r.time_ms, r.decision, r.key, r.value, r.normalized, r.learned, r.detail `
	// A reward whose key is its decision, and those under keys of their own. The second goes by its index first and then
	// by number: asked for in one step, SQLite goes over all rewards of the capsule instead.
	rewardByKey      = rewardColumns + `FROM rewards r WHERE r.capsule = ? AND r.key = ? AND r.decision IS NULL`
	rewardByDecision = rewardColumns + `FROM rewards d CROSS JOIN rewards r ON r.capsule = d.capsule AND r.seq = d.seq
		WHERE d.capsule = ? AND d.decision = ? ORDER BY d.seq`
	rewardsAfter = rewardColumns + `FROM rewards r WHERE r.capsule = ? AND r.seq > ? ORDER BY r.seq`
)

// AppendReward stores r under the capsule's next sequence number unless its key is there already.
func (t tx) AppendReward(capsule, purges int64, r decision.Reward) (seq int64, err error) {
	row := t.q.Stmt(insertReward).Int(r.TimeMS).Text(r.Key)
	if r.DecisionID == r.Key {
		row.Null()
	} else {
		row.Text(r.DecisionID)
	}
	row.Float(r.Value).Float(r.Normalized).Bool(r.Learned).RawText(r.Detail).Int(capsule).Int(purges)
	for row.Next() { // to the end, which is where the statement is done
		seq = row.IntAt(0)
	}
	if err := row.Err(); err != nil {
		return 0, err
	}
	if seq != 0 {
		_, err = t.q.Stmt(countReward).Int(seq).Int(capsule).Exec()
		return seq, err
	}
	there, err := t.q.Stmt(selectPurges).Int(capsule).Int(purges).One(func(*store.Stmt) {})
	if err == nil && !there {
		return 0, gone("AppendReward")
	}
	return 0, err
}

// RewardsOf returns the rewards of one decision by ascending sequence.
func (v view) RewardsOf(capsule int64, id string) (found []decision.Reward, err error) {
	for _, sql := range [...]string{rewardByKey, rewardByDecision} {
		rows := v.q.Stmt(sql).Int(capsule).Text(id)
		for rows.Next() {
			found = append(found, reward(rows))
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b decision.Reward) int { return cmp.Compare(a.Seq, b.Seq) })
	return found, nil
}

// Rewards visits the rewards after a sequence number.
func (v view) Rewards(capsule, after int64, visit func(decision.Reward) (bool, error)) error {
	rows := v.q.Stmt(rewardsAfter).Int(capsule).Int(after)
	for rows.Next() {
		if more, err := visit(reward(rows)); err != nil || !more {
			if closed := rows.Close(); err == nil {
				err = closed
			}
			return err
		}
	}
	return rows.Err()
}

func reward(row *store.Stmt) decision.Reward {
	r := decision.Reward{Seq: row.IntAt(0), TimeMS: row.IntAt(1), Key: row.TextAt(3), Value: row.FloatAt(4),
		Normalized: row.FloatAt(5), Learned: row.BoolAt(6), Detail: bytesAt(row, 7)}
	if r.DecisionID = r.Key; !row.NullAt(2) {
		r.DecisionID = row.TextAt(2)
	}
	return r
}
