package decisions_test

import (
	"context"
	"path/filepath"
	"testing"

	"holdfast/decision"
	"holdfast/store"
	"holdfast/store/decisions"
	"holdfast/store/storetest"
)

// database opens a database in a folder of its own and closes it when the test ends.
func database(t testing.TB) *store.DB {
	t.Helper()
	return reopen(t, filepath.Join(t.TempDir(), "decisions.db"))
}

func reopen(t testing.TB, path string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: path, Migrations: decisions.Migrations()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return db
}

func TestConformance(t *testing.T) {
	storetest.Decisions(t, func(t testing.TB) decision.Storage { return decisions.New(database(t)) })
}
