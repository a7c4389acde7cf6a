package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"holdfast/fault"
	"holdfast/store"
	"holdfast/store/storetest"
)

// someStore makes a data folder with one database that holds the ids, and a key.
func someStore(tb testing.TB, ids ...int) (path, key string) {
	tb.Helper()
	path = filepath.Join(tb.TempDir(), "data")
	dir, err := store.OpenDir(path)
	if err != nil {
		tb.Fatal(err)
	}
	db := openStore(tb, store.Options{Path: dir.File("items.db"), Migrations: storetest.Items()})
	for _, id := range ids {
		if err := db.Write(tb.Context(), item(id)); err != nil {
			tb.Fatal(err)
		}
	}
	key, _, err = dir.AdminKey()
	_, sessionErr := dir.SessionKey()
	if err = errors.Join(err, sessionErr, db.Close(tb.Context()), dir.Close()); err != nil {
		tb.Fatal(err)
	}
	return path, key
}

func backUp(tb testing.TB, from string) string {
	tb.Helper()
	out := filepath.Join(tb.TempDir(), "backup")
	if _, err := store.Backup(tb.Context(), from, out); err != nil {
		tb.Fatal(err)
	}
	return out
}

func wantStored(tb testing.TB, folder string, want ...int) {
	tb.Helper()
	got := stored(tb, filepath.Join(folder, "items.db"))
	if len(got) != len(want) {
		tb.Errorf("%s holds %v, want %v", folder, got, want)
	}
	for _, id := range want {
		if !got[id] {
			tb.Errorf("%s lacks %d", folder, id)
		}
	}
}

func TestBackupOfAServedStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	child := storetest.Start(t, "load", path, "0")
	acked := child.Lines(300)
	out := filepath.Join(t.TempDir(), "backup")
	m, err := store.Backup(t.Context(), path, out)
	if err != nil {
		t.Fatal(err)
	}
	if more := child.Lines(50); len(more) != 50 {
		t.Error("the server did not go on after the backup")
	}
	child.Kill()
	if len(m.Files) != 1 || m.Files[0].Name != "log.db" || m.Files[0].Bytes == 0 {
		t.Errorf("the manifest lists %+v", m.Files)
	}
	into := filepath.Join(t.TempDir(), "restored")
	r, err := store.Restore(t.Context(), store.RestoreOptions{From: out, Into: into})
	if err != nil || r.Kept != "" {
		t.Fatalf("kept %q, %v", r.Kept, err)
	}
	copies := copiesIn(t, into)
	for _, line := range acked {
		id, err := strconv.ParseInt(line, 10, 64)
		if err != nil || copies[id] != 1 {
			t.Errorf("%s was acknowledged before the backup and is in it %d times, %v", line, copies[id], err)
		}
	}
	if report, err := store.Check(t.Context(), into); err != nil || len(report.Findings) > 0 {
		t.Errorf("%v %v", report.Findings, err)
	}
}

func TestRestoreKeepsTheOldStore(t *testing.T) {
	path, key := someStore(t, 1, 2)
	out := backUp(t, path)
	if entries, _ := os.ReadDir(out); len(entries) != 4 {
		t.Errorf("the backup holds %v, want the database, the two keys and the manifest", entries)
	}
	db := openStore(t, store.Options{Path: filepath.Join(path, "items.db"), Migrations: storetest.Items()})
	if err := errors.Join(db.Write(t.Context(), item(3)), db.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	r, err := store.Restore(t.Context(), store.RestoreOptions{From: out, Into: path})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(r.Kept, path+".pre-restore-") {
		t.Errorf("the old store is kept as %q", r.Kept)
	}
	wantStored(t, path, 1, 2)
	wantStored(t, r.Kept, 1, 2, 3)
	wantMode(t, path, 0o700)
	wantMode(t, filepath.Join(path, "admin.key"), 0o600)
	wantMode(t, filepath.Join(path, "session.key"), 0o600)
	if got, made, err := openDir(t, path).AdminKey(); got != key || made || err != nil {
		t.Errorf("the key was not restored (made %v, %v)", made, err)
	}
}

func TestRestoreRefusesAHeldStore(t *testing.T) {
	path, _ := someStore(t, 1)
	out := backUp(t, path)
	dir := openDir(t, path)
	o := store.RestoreOptions{From: out, Into: path}
	if _, err := store.Restore(t.Context(), o); fault.KindOf(err) != fault.Conflict {
		t.Fatalf("error is %v", err)
	}
	o.Force = true
	r, err := store.Restore(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	wantStored(t, path, 1)
	wantStored(t, r.Kept, 1)
	next := openDir(t, path) // a new server starts on the restored store while the old one still runs
	if err := dir.Close(); err != nil {
		t.Error(err)
	}
	if _, held, err := store.Holder(path); !held || err != nil {
		t.Errorf("the old server's end took the new one's lock: held %v, %v", held, err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

func TestDamagedBackupChangesNothing(t *testing.T) {
	path, _ := someStore(t, 1, 2)
	tests := map[string]func(out string) error{
		"a flipped bit": func(out string) error {
			name := filepath.Join(out, "items.db")
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			text[len(text)/2] ^= 1
			return os.WriteFile(name, text, 0o600)
		},
		"a cut file":     func(out string) error { return os.Truncate(filepath.Join(out, "items.db"), 4096) },
		"a missing file": func(out string) error { return os.Remove(filepath.Join(out, "admin.key")) },
		"a bad manifest": func(out string) error {
			return os.WriteFile(filepath.Join(out, "manifest.json"), []byte(`{"format":1}`), 0o600)
		},
		"a newer manifest": func(out string) error {
			return os.WriteFile(filepath.Join(out, "manifest.json"), []byte(`{"format":99,"createdMs":1,"files":[]}`), 0o600)
		},
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			out := backUp(t, path)
			if err := damage(out); err != nil {
				t.Fatal(err)
			}
			_, err := store.Restore(t.Context(), store.RestoreOptions{From: out, Into: path})
			if fault.KindOf(err) != fault.Invalid {
				t.Errorf("error is %v", err)
			}
			wantOnly(t, filepath.Dir(path), "data")
			wantStored(t, path, 1, 2)
		})
	}
	if _, err := store.Verify(t.Context(), t.TempDir()); fault.KindOf(err) != fault.NotFound {
		t.Errorf("an empty folder is a backup: %v", err)
	}
}

// wantOnly holds that nothing was left beside what is named.
func wantOnly(tb testing.TB, folder string, want ...string) {
	tb.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		tb.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) {
		tb.Errorf("%s holds %v, want %v", folder, got, want)
	}
}

func TestBackupRefusals(t *testing.T) {
	path, _ := someStore(t, 1)
	out := backUp(t, path)
	if _, err := store.Backup(t.Context(), path, out); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a backup was overwritten: %v", err)
	}
	if _, err := store.Backup(t.Context(), t.TempDir(), filepath.Join(t.TempDir(), "b")); fault.KindOf(err) != fault.NotFound {
		t.Errorf("nothing was backed up: %v", err)
	}
	if _, err := store.Backup(t.Context(), filepath.Join(path, "none"), filepath.Join(t.TempDir(), "b")); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a missing folder was backed up: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	folder := t.TempDir()
	if _, err := store.Backup(ctx, path, filepath.Join(folder, "b")); err == nil {
		t.Error("a backup went on without its caller")
	}
	wantOnly(t, folder)
	if _, err := store.Restore(ctx, store.RestoreOptions{From: out, Into: path}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a restore went on without its caller: %v", err)
	}
	wantStored(t, path, 1)
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	path, _ := someStore(t, 1, 2)
	report, err := store.Check(t.Context(), path)
	if err != nil || len(report.Findings) != 0 {
		t.Fatalf("a sound store: %v %v", report.Findings, err)
	}
	if len(report.Files) != 1 || report.Files[0].Name != "items.db" || report.Files[0].Schema != 1 || report.Files[0].Bytes == 0 {
		t.Errorf("files are %+v", report.Files)
	}
	wantOnly(t, path, "admin.key", "items.db", "items.db-shm", "items.db-wal", "lock", "session.key")
	tests := map[string]func() error{
		".":         func() error { return os.Chmod(path, 0o755) },
		"admin.key": func() error { return os.Chmod(filepath.Join(path, "admin.key"), 0o644) },
		"other.db":  func() error { return os.WriteFile(filepath.Join(path, "other.db"), []byte("no database"), 0o600) },
		"items.db": func() error {
			name := filepath.Join(path, "items.db")
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			for i := 4096; i < len(text); i++ {
				text[i] ^= 0x55
			}
			return os.WriteFile(name, text, 0o600)
		},
	}
	for file, damage := range tests {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		report, err := store.Check(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(report.Findings, func(f store.Finding) bool { return f.File == file && f.What != "" }) {
			t.Errorf("%s is damaged and the findings are %v", file, report.Findings)
		}
	}
	if _, err := store.Check(t.Context(), t.TempDir()); fault.KindOf(err) != fault.NotFound {
		t.Errorf("an empty folder is a store: %v", err)
	}
}

func TestCheckFindsAMissingParent(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "family.db")
	setHeader(t, file, `CREATE TABLE parent (id INTEGER PRIMARY KEY); PRAGMA foreign_keys = OFF;
		CREATE TABLE child (parent INTEGER REFERENCES parent (id)); INSERT INTO child VALUES (7)`)
	report, err := store.Check(t.Context(), folder)
	if err != nil || !slices.ContainsFunc(report.Findings, func(f store.Finding) bool { return strings.Contains(f.What, "parent") }) {
		t.Errorf("findings are %v, %v", report.Findings, err)
	}
}
