package store_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"holdfast/store"
	"holdfast/store/storetest"
)

func TestMain(m *testing.M) {
	if code, child := storetest.RunChild(map[string]func([]string) error{"load": loadChild, "hold": holdChild}); child {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

func TestConform(t *testing.T) { storetest.Conform(t, opener()) }

// opener opens the store of one test, in a folder that belongs to it.
func opener() storetest.Opener {
	folders := map[testing.TB]string{}
	return func(tb testing.TB, o store.Options) *store.DB {
		tb.Helper()
		if folders[tb] == "" {
			folders[tb] = tb.TempDir()
		}
		o.Path = filepath.Join(folders[tb], "items.db")
		return openStore(tb, o)
	}
}

// openStore opens the store and closes it when the test ends.
func openStore(tb testing.TB, o store.Options) *store.DB {
	tb.Helper()
	db, err := store.Open(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		// Tests that close it themselves, or break it, look at the error themselves.
		_ = db.Close(context.Background())
	})
	return db
}
