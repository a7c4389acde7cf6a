package storetest

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
)

// Pin holds migrations to what was released: want gives each file's SHA-256 in hex. A file that was changed or removed, a
// file that is not pinned, a number that is missing or used twice, and a way back are errors: migrations go forward only.
func Pin(tb testing.TB, migrations fs.FS, want map[string]string) {
	tb.Helper()
	names, err := fs.Glob(migrations, "*")
	if err != nil {
		tb.Fatal(err)
	}
	if pinned := slices.Sorted(maps.Keys(want)); !slices.Equal(names, pinned) {
		tb.Errorf("migrations are %v, pinned are %v", names, pinned)
	}
	for i, name := range names {
		text, err := fs.ReadFile(migrations, name)
		if err != nil {
			tb.Fatal(err)
		}
		sum := sha256.Sum256(text)
		if got := hex.EncodeToString(sum[:]); got != want[name] {
			tb.Errorf("%s has SHA-256 %s, pinned is %q: a released migration is never edited; add another", name, got, want[name])
		}
		if strings.Contains(string(text), "+goose Down") {
			tb.Errorf("%s has a way back", name)
		}
		if n, err := goose.NumericComponent(name); err != nil || n != int64(i+1) {
			tb.Errorf("%s should be number %d: %v", name, i+1, err)
		}
	}
}
