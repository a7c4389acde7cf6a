package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFailedSwapKeepsTheOldStore fails each rename of a restore in turn.
func TestFailedSwapKeepsTheOldStore(t *testing.T) {
	from, into := t.TempDir(), filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(filepath.Join(from, keyName), []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := Manifest{Format: Format, CreatedMs: 1}
	if err := m.seal(from, []string{keyName}); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(into, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(into, keyName), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	swaps := map[string]func(stage, into, kept string) error{
		"first": func(string, string, string) error { return errors.New("no rename") },
		"second": func(stage, into, kept string) error {
			return errors.Join(os.RemoveAll(stage), swapFolders(stage, into, kept))
		},
	}
	for name, swap := range swaps {
		r, err := Restore(t.Context(), RestoreOptions{From: from, Into: into, swap: swap})
		if err == nil || r.Kept != "" {
			t.Errorf("%s: kept %q, %v", name, r.Kept, err)
		}
		if text, err := os.ReadFile(filepath.Join(into, keyName)); err != nil || string(text) != "old" {
			t.Errorf("%s: the old store holds %q, %v", name, text, err)
		}
		if entries, _ := os.ReadDir(filepath.Dir(into)); len(entries) != 1 {
			t.Errorf("%s: left behind %v", name, entries)
		}
	}
	if _, err := Restore(t.Context(), RestoreOptions{From: from, Into: into}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(into, keyName)); err != nil || string(text) != "new" {
		t.Errorf("the restored store holds %q, %v", text, err)
	}
}

// FuzzManifest holds the decoder to its rule: a manifest that is taken names plain files only, once each.
func FuzzManifest(f *testing.F) {
	sum := strings.Repeat("0a", 32)
	for _, name := range []string{"items.db", "admin.key", "../items.db", ".db", "a/b.db", "manifest.json", ""} {
		f.Add([]byte(`{"format":1,"createdMs":5,"files":[{"name":"` + name + `","bytes":1,"sha256":"` + sum + `"}]}`))
	}
	f.Add([]byte(`{"format":2,"createdMs":5,"files":[]}`))
	f.Add([]byte(`{"format":1,"files":[{"name":"a.db","bytes":-1,"sha256":"` + sum + `"}],"more":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := readManifest(text)
		if err != nil {
			return
		}
		if len(m.Files) == 0 || m.Format > Format {
			t.Errorf("taken: %+v", m)
		}
		seen := map[string]bool{}
		for _, file := range m.Files {
			if filepath.Base(file.Name) != file.Name || seen[file.Name] || file.Name == manifestName || file.Name == lockName {
				t.Errorf("taken: %q", file.Name)
			}
			seen[file.Name] = true
		}
	})
}

func TestManifestNames(t *testing.T) {
	for name, want := range map[string]bool{"items.db": true, "admin.key": true, "session.key": true, "..": false, "../a.db": false, "a/b.db": false,
		".db": false, ".hidden.db": false, "lock": false, "manifest.json": false, "": false, "a.db\x00": false, `..\a.db`: false} {
		if got := plainName(name); got != want {
			t.Errorf("%q is plain: %v, want %v", name, got, want)
		}
	}
}
