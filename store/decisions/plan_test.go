package decisions

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/store"
)

// TestLooksGoByIndex asks SQLite how it means to run each look of a hot path: one that goes over a whole table, or over all
// rows of a capsule, passes every other test and is slow only on a large store.
func TestLooksGoByIndex(t *testing.T) {
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "a.db"), Migrations: Migrations()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	for name, c := range map[string]struct {
		sql  string
		want []string // each is in a step of its own
	}{
		"capsule":             {selectCapsule, []string{"SEARCH c USING INDEX sqlite_autoindex_capsules_1 (tenant=? AND job=? AND name=?)", "SEARCH t USING INTEGER PRIMARY KEY"}},
		"batches oldest":      {oldestFirst, []string{"SEARCH batches USING COVERING INDEX batches_by_end (capsule=? AND late=? AND last_ms>?)", "(capsule=? AND late>?)"}},
		"batches newest":      {newestFirst, []string{"SEARCH batches USING COVERING INDEX batches_by_end (capsule=? AND late=? AND last_ms>? AND last_ms<?)"}},
		"late batches":        {lateOldest, []string{"SEARCH batches USING COVERING INDEX late_by_start (capsule=? AND late=? AND first_ms>? AND first_ms<?)"}},
		"late batches newest": {lateNewest, []string{"SEARCH batches USING COVERING INDEX batches_by_end (capsule=? AND late=? AND last_ms>? AND last_ms<?)"}},
		"batches by end":      {byEnd, []string{"MERGE (UNION ALL)", "SEARCH batches USING COVERING INDEX batches_by_end (capsule=? AND late=?)"}},
		"payload":             {selectPayload, []string{"SEARCH batches USING INTEGER PRIMARY KEY (rowid=?)"}},
		"reward by key":       {rewardByKey, []string{"SEARCH r USING INDEX rewards_by_key (capsule=? AND key=?)"}},
		"reward by decision":  {rewardByDecision, []string{"SEARCH d USING COVERING INDEX rewards_by_decision (capsule=? AND decision=?)", "SEARCH r USING PRIMARY KEY (capsule=? AND seq=?)"}},
		"rewards after":       {rewardsAfter, []string{"SEARCH r USING PRIMARY KEY (capsule=? AND seq>?)"}},
		"reward pinned":       {pinned, []string{"rewards_by_key (capsule=? AND key=?)", "rewards_by_decision (capsule=? AND decision=? AND seq>?)"}},
		"drop by key":         {dropByKey, []string{"rewards_by_key (capsule=? AND key=?)"}},
		"drop by decision":    {dropByDecision, []string{"SEARCH rewards USING PRIMARY KEY (capsule=? AND seq=?)", "rewards_by_decision (capsule=? AND decision=?)"}},
		"newest snapshot":     {snapshotColumns + " LIMIT 1", []string{"SEARCH snapshots USING INDEX snapshots_of (capsule=?)"}},
		"publication":         {publicationColumns, []string{"publications_by_tag (capsule=? AND tag=?)"}},
		"next audit number":   {insertAudit, []string{"SEARCH audits USING PRIMARY KEY (tenant=? AND job=? AND capsule=?)"}},
		"deferred before":     {heldBefore, []string{"SEARCH held USING INDEX held_by_time (time_ms<?)"}},
		"reward's tally":      {countReward, []string{"SEARCH tallies USING INTEGER PRIMARY KEY"}},
		"event":               {selectEvent, []string{"SEARCH events USING PRIMARY KEY (capsule=? AND id=?)"}},
		"purge of rewards":    {"DELETE FROM rewards WHERE capsule = ?", []string{"SEARCH rewards USING PRIMARY KEY (capsule=?)"}},
	} {
		var steps []string
		err := db.Read(t.Context(), func(s *store.Snapshot) error {
			plan := s.Stmt("EXPLAIN QUERY PLAN " + c.sql)
			for range strings.Count(c.sql, "?") {
				plan.Int(1)
			}
			for plan.Next() {
				steps = append(steps, plan.TextAt(3))
			}
			return plan.Err()
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		all := strings.Join(steps, "\n")
		for _, want := range c.want {
			if !strings.Contains(all, want) {
				t.Errorf("%s: no %q in\n%s", name, want, all)
			}
		}
		for _, step := range steps {
			if strings.HasPrefix(step, "SCAN") && !strings.Contains(step, "CONSTANT ROW") || strings.HasPrefix(step, "USE TEMP") {
				t.Errorf("%s: %s", name, step)
			}
		}
	}
}
