package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"holdfast/fault"
	"holdfast/store"
	"holdfast/store/storetest"
)

// holdChild opens the folder, says how that went, and holds it until it is killed.
func holdChild(args []string) error {
	dir, err := store.OpenDir(args[0])
	if err != nil {
		fmt.Println("refused:", fault.KindOf(err), err)
		return nil
	}
	fmt.Println("held", dir.Path())
	select {}
}

func openDir(tb testing.TB, path string) *store.Dir {
	tb.Helper()
	dir, err := store.OpenDir(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = dir.Close() }) // a second close is an error nobody needs
	return dir
}

func wantMode(tb testing.TB, path string, want os.FileMode) {
	tb.Helper()
	info, err := os.Stat(path)
	if err != nil {
		tb.Fatal(err)
	}
	if got := info.Mode().Perm(); got != want {
		tb.Errorf("%s has mode %04o, want %04o", path, got, want)
	}
}

func TestDirIsPrivateAndKeepsItsKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "data")
	dir := openDir(t, path)
	wantMode(t, path, 0o700)
	key, made, err := dir.AdminKey()
	if err != nil || !made || len(key) < 20 {
		t.Fatalf("key %d bytes, made %v, %v", len(key), made, err)
	}
	wantMode(t, dir.File("admin.key"), 0o600)
	again, made, err := dir.AdminKey()
	if err != nil || made || again != key {
		t.Errorf("the second call gave another key (made %v, %v)", made, err)
	}
	session, err := dir.SessionKey()
	if err != nil || len(session) != len(key) || session == key {
		t.Errorf("the key of sessions has %d bytes, the admin key's are its: %v, %v", len(session), session == key, err)
	}
	wantMode(t, dir.File("session.key"), 0o600)
	if again, err := dir.SessionKey(); err != nil || again != session {
		t.Errorf("the second call gave another key of sessions, %v", err)
	}
	if err := dir.Probe(); err != nil {
		t.Error(err)
	}
	pid, held, err := store.Holder(path)
	if err != nil || !held || pid != os.Getpid() {
		t.Errorf("holder is %d, held %v, %v", pid, held, err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	if pid, held, err = store.Holder(path); err != nil || held || pid != 0 {
		t.Errorf("after closing the holder is %d, held %v, %v", pid, held, err)
	}
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) != 3 {
		t.Errorf("the folder holds %v, want the lock and the two keys; %v", entries, err)
	}
	if err := os.WriteFile(filepath.Join(path, "admin.key"), []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openDir(t, path).AdminKey(); fault.KindOf(err) != fault.Invalid {
		t.Errorf("an empty key was taken: %v", err)
	}
}

func TestSecondServerIsRefusedAndTheFirstUnharmed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	dir := openDir(t, path)
	db := openStore(t, store.Options{Path: dir.File("items.db"), Migrations: storetest.Items()})
	lines, err := storetest.Start(t, "hold", path).Wait()
	if err != nil || len(lines) != 1 {
		t.Fatalf("%v %v", lines, err)
	}
	if !strings.HasPrefix(lines[0], "refused: conflict") || !strings.Contains(lines[0], strconv.Itoa(os.Getpid())) {
		t.Errorf("the second server said %q, which does not name process %d", lines[0], os.Getpid())
	}
	if err := db.Write(t.Context(), item(1)); err != nil {
		t.Errorf("the first server was harmed: %v", err)
	}
	if pid, held, err := store.Holder(path); pid != os.Getpid() || !held || err != nil {
		t.Errorf("holder is %d, held %v, %v", pid, held, err)
	}
}

func TestLockEndsWithItsProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	child := storetest.Start(t, "hold", path)
	if got := child.Lines(1); len(got) != 1 || !strings.HasPrefix(got[0], "held") {
		t.Fatalf("the child said %q", got)
	}
	if _, err := store.OpenDir(path); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a held folder was opened: %v", err)
	}
	child.Kill()
	if _, err := child.Wait(); err == nil {
		t.Error("the child was not killed")
	}
	if pid, held, err := store.Holder(path); pid == 0 || held || err != nil {
		t.Errorf("after a kill the holder is %d, held %v, %v", pid, held, err)
	}
	openDir(t, path)
}

func TestHolderOfNothing(t *testing.T) {
	if _, _, err := store.Holder(filepath.Join(t.TempDir(), "none")); fault.KindOf(err) != fault.NotFound {
		t.Errorf("error is %v", err)
	}
	if _, held, err := store.Holder(t.TempDir()); held || err != nil {
		t.Errorf("an empty folder is held %v, %v", held, err)
	}
}

// setHeader runs one pragma on the file, as a program of another time would.
func setHeader(tb testing.TB, path, pragma string) {
	tb.Helper()
	c, err := sqlite3.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	if err := c.Exec(pragma); err != nil {
		tb.Fatal(err)
	}
	if err := c.Close(); err != nil {
		tb.Fatal(err)
	}
}

func wantNewer(tb testing.TB, err error, numbers ...string) {
	tb.Helper()
	if fault.KindOf(err) != fault.Invalid {
		tb.Fatalf("error is %v", err)
	}
	for _, n := range numbers {
		if !strings.Contains(err.Error(), n) {
			tb.Errorf("%q does not name %s", err, n)
		}
	}
}

func TestNewerFormatIsRefusedUntouched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	dir := openDir(t, path)
	file := dir.File("items.db")
	stored(t, file)
	setHeader(t, file, "PRAGMA user_version = 41")
	_, err := store.Open(t.Context(), store.Options{Path: file, Migrations: storetest.Items()})
	wantNewer(t, err, "41", fmt.Sprint(store.Format))
	_, err = store.Open(t.Context(), store.Options{Path: file, ReadOnly: true})
	wantNewer(t, err, "41", fmt.Sprint(store.Format))
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.OpenDir(path)
	wantNewer(t, err, "41", fmt.Sprint(store.Format))
	after, err := os.ReadFile(file)
	if err != nil || string(before) != string(after) {
		t.Errorf("the newer file was changed; %v", err)
	}
	if _, held, _ := store.Holder(path); held {
		t.Error("a refused folder stays locked")
	}
	if err := os.WriteFile(file, []byte("not a database at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = store.OpenDir(path); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a file that is no database was taken: %v", err)
	}
}
