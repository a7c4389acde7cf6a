package store_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"testing"

	"holdfast/fault"
	"holdfast/store"
	"holdfast/store/storetest"
)

const (
	firstStep  = "-- +goose Up\nCREATE TABLE a (id INTEGER PRIMARY KEY);\n"
	secondStep = "-- +goose Up\nALTER TABLE a ADD COLUMN name TEXT;\n"
	brokenStep = "-- +goose Up\nCREATE TABLE b (id INTEGER PRIMARY KEY);\nCREATE TABLE a (id INTEGER PRIMARY KEY);\n"
)

func tables(tb testing.TB, db *store.DB) (n int64) {
	tb.Helper()
	err := db.Read(tb.Context(), func(s *store.Snapshot) error {
		_, err := s.Stmt("SELECT count(*) FROM sqlite_schema WHERE name IN ('a', 'b')").One(func(row *store.Stmt) { n = row.IntAt(0) })
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func TestMigrationsGoForwardOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	open := func(files ...string) (*store.DB, error) {
		return store.Open(t.Context(), store.Options{Path: path, Migrations: migrations(files...)})
	}
	closeStore := func(db *store.DB, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	closeStore(open("001_a.sql", firstStep))
	db, err := open("001_a.sql", firstStep)
	if err != nil {
		t.Fatal(err)
	}
	if s := db.Stats(); s.Bytes != 0 || s.Syncs != 0 {
		t.Errorf("opening what is up to date wrote %d bytes and synced %d times", s.Bytes, s.Syncs)
	}
	closeStore(db, nil)
	closeStore(open("001_a.sql", firstStep, "002_name.sql", secondStep))
	_, err = open("001_a.sql", firstStep)
	wantNewer(t, err, "version 2", "up to 1")
	_, err = open("001_a.sql", firstStep, "002_name.sql", secondStep, "003_b.sql", brokenStep)
	if fault.KindOf(err) != fault.Internal {
		t.Fatalf("a broken migration gave %v", err)
	}
	db, err = open("001_a.sql", firstStep, "002_name.sql", secondStep)
	if err != nil {
		t.Fatalf("a broken migration left something behind: %v", err)
	}
	if n := tables(t, db); n != 1 {
		t.Errorf("%d tables after a broken migration, want 1", n)
	}
	closeStore(db, nil)
	if _, err = open("first.sql", firstStep); fault.KindOf(err) != fault.Internal {
		t.Errorf("a migration without a number was taken: %v", err)
	}
}

func TestOpenWithoutAFolder(t *testing.T) {
	_, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "none", "a.db")})
	if fault.KindOf(err) != fault.NotFound {
		t.Errorf("error is %v", err)
	}
	_, err = store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "none.db"), ReadOnly: true})
	if fault.KindOf(err) != fault.NotFound {
		t.Errorf("error is %v", err)
	}
}

func TestReadOnlyStoreRefusesWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "items.db")
	stored(t, path)
	db := openStore(t, store.Options{Path: path, ReadOnly: true})
	wantUnavailable(t, db.Write(t.Context(), item(1)))
	wantUnavailable(t, db.Queue(item(1)))
	wantUnavailable(t, db.Ready())
	if got := storedIn(t, db); len(got) != 0 {
		t.Errorf("stored is %v", got)
	}
	for range 2 {
		if err := db.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// recorder is a test that only notes whether it failed.
type recorder struct {
	testing.TB
	failed int
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed++ }

func TestPin(t *testing.T) {
	sum := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	both := map[string]string{"001_a.sql": sum(firstStep), "002_name.sql": sum(secondStep)}
	withDown := firstStep + "-- +goose Down\nDROP TABLE a;\n"
	tests := []struct {
		name  string
		files []string
		want  map[string]string
		fails bool
	}{
		{"as released", []string{"001_a.sql", firstStep, "002_name.sql", secondStep}, both, false},
		{"edited", []string{"001_a.sql", firstStep + " ", "002_name.sql", secondStep}, both, true},
		{"removed", []string{"001_a.sql", firstStep}, both, true},
		{"not pinned", []string{"001_a.sql", firstStep, "002_name.sql", secondStep}, map[string]string{"001_a.sql": sum(firstStep)}, true},
		{"a way back", []string{"001_a.sql", withDown}, map[string]string{"001_a.sql": sum(withDown)}, true},
		{"a gap", []string{"002_a.sql", firstStep}, map[string]string{"002_a.sql": sum(firstStep)}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := &recorder{TB: t}
			storetest.Pin(r, migrations(test.files...), test.want)
			if failed := r.failed > 0; failed != test.fails {
				t.Errorf("failed is %v, want %v", failed, test.fails)
			}
		})
	}
}
