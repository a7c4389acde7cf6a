package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/fault"
)

// manifestName is the file that makes a folder a backup; it is written last.
const manifestName = "manifest.json"

// maxManifest bounds what is read of a manifest, in bytes.
const maxManifest = 4 << 20

// backupStep is how many pages are copied between two looks at the context: 8 MB.
const backupStep = 2048

// Manifest describes a backup.
type Manifest struct {
	Format    int64          `json:"format"`    // see Format
	CreatedMs int64          `json:"createdMs"` // Unix time in milliseconds
	Files     []ManifestFile `json:"files"`
}

// ManifestFile is one file of a backup.
type ManifestFile struct {
	Name   string `json:"name"` // a plain file name
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // 64 hex digits
}

// Backup copies the store in the folder from into the new folder out while it may be served by another process, and
// returns the manifest it wrote. Each database is one consistent state that includes everything acknowledged before the
// call. out must be missing or empty (fault.Conflict); it appears only when it is complete.
func Backup(ctx context.Context, from, out string) (m Manifest, err error) {
	names, err := Databases(from)
	if err != nil {
		return m, err
	}
	if len(names) == 0 {
		return m, fault.New("store.Backup", fault.NotFound, "there is no store at %s", from)
	}
	if err := requireEmpty(out); err != nil {
		return m, err
	}
	now := time.Now().UnixMilli()
	stage := out + ".partial-" + strconv.FormatInt(now, 10)
	if err := os.MkdirAll(stage, 0o700); err != nil {
		return m, dirError(err, "the backup folder cannot be made")
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(stage))
		}
	}()
	for _, name := range names {
		if err := backupDatabase(ctx, filepath.Join(from, name), filepath.Join(stage, name)); err != nil {
			return m, err
		}
	}
	for _, name := range secrets() {
		if err := copyFile(filepath.Join(from, name), filepath.Join(stage, name)); err == nil {
			names = append(names, name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return m, err
		}
	}
	m = Manifest{Format: Format, CreatedMs: now}
	if err := m.seal(stage, names); err != nil {
		return m, err
	}
	return m, publish(stage, out)
}

// seal hashes and syncs the files and writes the manifest.
func (m *Manifest) seal(stage string, names []string) error {
	for _, name := range names {
		size, sum, err := digest(filepath.Join(stage, name))
		if err != nil {
			return err
		}
		m.Files = append(m.Files, ManifestFile{Name: name, Bytes: size, SHA256: sum})
	}
	text, err := json.Marshal(m, jsontext.WithIndent("  "))
	if err != nil {
		return fault.Wrap("store.Backup", fault.Internal, err, "")
	}
	return writeFile(filepath.Join(stage, manifestName), append(text, '\n'), 0o600)
}

// publish gives the finished folder its name.
func publish(stage, out string) error {
	if err := errors.Join(os.Rename(stage, out), syncDir(filepath.Dir(out))); err != nil {
		return dirError(err, "the backup cannot be given its name")
	}
	return nil
}

func requireEmpty(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return dirError(err, "the backup folder cannot be read")
	}
	return fault.New("store.Backup", fault.Conflict, "%s is not empty; choose a new folder for the backup", path)
}

// backupDatabase copies one database from a read transaction that stays open over all steps: without it SQLite would
// begin anew after every commit of the serving process, and under load never end.
func backupDatabase(ctx context.Context, from, to string) (err error) {
	c, err := openConn(ctx, from, connOptions{mode: modeInspect})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.readBeginStmt.Exec(); err != nil {
		return queryError(err)
	}
	defer c.rollback()
	if _, err := c.number("SELECT count(*) FROM sqlite_schema"); err != nil {
		return err
	}
	b, err := c.raw.BackupInit("main", uri(to, ""))
	if err != nil {
		return queryError(err)
	}
	for done := false; err == nil && !done; {
		if err = ctx.Err(); err == nil {
			done, err = b.Step(backupStep)
		}
	}
	if err = errors.Join(err, b.Close()); err != nil {
		return queryError(err)
	}
	return checkCopy(ctx, to)
}

// checkCopy proves that the copy is a sound database before it is called a backup.
func checkCopy(ctx context.Context, name string) error {
	findings, err := checkDatabase(ctx, name, modeSealed)
	if err != nil {
		return err
	}
	if len(findings) > 0 {
		return fault.New("store.Backup", fault.Internal, "the copy of %s is damaged: %s", filepath.Base(name), findings[0])
	}
	f, err := os.Open(name)
	if err == nil {
		err = errors.Join(f.Chmod(0o600), f.Sync(), f.Close())
	}
	if err != nil {
		return dirError(err, "the copy cannot be synced")
	}
	return nil
}

// RestoreOptions says what to restore and where.
type RestoreOptions struct {
	From  string // a backup
	Into  string // the data folder to replace; it may be missing
	Force bool   // replace it even while another process holds it
	// swap replaces the exchange of the folders, to fail it.
	swap func(stage, into, kept string) error
}

// Restored says what a restore has done.
type Restored struct {
	Manifest Manifest
	Kept     string // where the old store is now; empty when there was none
}

// Restore verifies every checksum of the backup, copies it beside the data folder, syncs the copy, and exchanges the two
// by renaming; the old store stays as INTO.pre-restore-<ms>. A backup that does not verify is refused (fault.Invalid)
// and a folder that another process holds is refused without Force (fault.Conflict), both before anything is changed.
func Restore(ctx context.Context, o RestoreOptions) (r Restored, err error) {
	if o.swap == nil {
		o.swap = swapFolders
	}
	if r.Manifest, err = Verify(ctx, o.From); err != nil {
		return r, err
	}
	unlock, err := lockForRestore(o)
	if err != nil {
		return r, err
	}
	defer unlock()
	ms := strconv.FormatInt(time.Now().UnixMilli(), 10)
	stage := o.Into + ".restore-" + ms
	if err := stageCopy(ctx, o.From, stage, r.Manifest); err != nil {
		return r, errors.Join(err, os.RemoveAll(stage))
	}
	if _, err := os.Stat(o.Into); err == nil {
		r.Kept = o.Into + ".pre-restore-" + ms
	}
	if err := o.swap(stage, o.Into, r.Kept); err != nil {
		r.Kept = ""
		return r, errors.Join(dirError(err, "the restored store cannot be put in place; the old one is unchanged"),
			os.RemoveAll(stage))
	}
	return r, nil
}

// lockForRestore holds the old store while it is replaced, so that no server starts on it meanwhile.
func lockForRestore(o RestoreOptions) (unlock func(), err error) {
	if _, err := os.Stat(o.Into); errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	}
	lock, err := lockDir(o.Into)
	if err == nil {
		return func() { lock.Close() }, nil
	}
	if o.Force && fault.KindOf(err) == fault.Conflict {
		return func() {}, nil
	}
	return nil, err
}

func stageCopy(ctx context.Context, from, stage string, m Manifest) error {
	if err := os.Mkdir(stage, 0o700); err != nil {
		return dirError(err, "the restored store cannot be prepared")
	}
	for _, f := range m.Files {
		if err := ctx.Err(); err != nil {
			return fault.Wrap("store.Restore", fault.Unavailable, err, "the restore was given up; nothing was changed")
		}
		to := filepath.Join(stage, f.Name)
		if err := copyFile(filepath.Join(from, f.Name), to); err != nil {
			return err
		}
		// The copy is what will be served, so the copy is what is verified.
		if err := f.verify(stage); err != nil {
			return err
		}
	}
	if err := syncDir(stage); err != nil {
		return dirError(err, "the restored store cannot be synced")
	}
	return nil
}

// swapFolders puts stage in the place of into and keeps the old folder as kept. When the second rename fails the first is
// undone, so that there is a store at into whatever happens.
func swapFolders(stage, into, kept string) error {
	if kept != "" {
		if err := os.Rename(into, kept); err != nil {
			return err
		}
	}
	if err := os.Rename(stage, into); err != nil {
		if kept != "" {
			err = errors.Join(err, os.Rename(kept, into))
		}
		return err
	}
	return syncDir(filepath.Dir(into))
}

// Verify reads the manifest of the backup in the folder from and compares every file with it. It returns fault.NotFound
// when the folder is no backup and fault.Invalid when a file differs or a newer program made it.
func Verify(ctx context.Context, from string) (m Manifest, err error) {
	f, err := os.Open(filepath.Join(from, manifestName))
	if err != nil {
		return m, fault.Wrap("store.Verify", fault.NotFound, err, from+" is not a backup: it has no "+manifestName)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err == nil && len(text) > maxManifest {
		err = fault.New("store.Verify", fault.TooLarge, "the manifest is too large")
	}
	if err == nil {
		m, err = readManifest(text)
	}
	if err != nil {
		return m, err
	}
	for _, file := range m.Files {
		if err := ctx.Err(); err != nil {
			return m, fault.Wrap("store.Verify", fault.Unavailable, err, "the check was given up")
		}
		if err := file.verify(from); err != nil {
			return m, err
		}
	}
	return m, nil
}

// readManifest decodes a manifest and refuses one that a newer program wrote or whose names lead out of the folder.
func readManifest(text []byte) (m Manifest, err error) {
	if err := json.Unmarshal(text, &m, json.RejectUnknownMembers(true)); err != nil {
		return m, fault.Wrap("store.Verify", fault.Invalid, err, "the manifest cannot be read")
	}
	if m.Format > Format {
		return m, refusedNewer("format", m.Format, Format)
	}
	seen := map[string]bool{}
	for _, f := range m.Files {
		sum, err := hex.DecodeString(f.SHA256)
		if !plainName(f.Name) || seen[f.Name] || f.Bytes < 0 || err != nil || len(sum) != sha256.Size {
			return m, fault.New("store.Verify", fault.Invalid, "the manifest has a bad entry for %q", f.Name)
		}
		seen[f.Name] = true
	}
	if len(m.Files) == 0 {
		return m, fault.New("store.Verify", fault.Invalid, "the manifest names no files")
	}
	return m, nil
}

// plainName reports whether name is a file that a backup holds: a database or a key.
func plainName(name string) bool {
	if name != filepath.Base(name) || bytes.ContainsAny([]byte(name), "/\\\x00") {
		return false
	}
	return slices.Contains(secrets(), name) || len(name) > len(".db") && name[0] != '.' && strings.HasSuffix(name, ".db")
}

func (f ManifestFile) verify(folder string) error {
	size, sum, err := digest(filepath.Join(folder, f.Name))
	if err != nil {
		return err
	}
	if size != f.Bytes || sum != strings.ToLower(f.SHA256) {
		return fault.New("store.Verify", fault.Invalid, "%s differs from the manifest: the backup is damaged", f.Name)
	}
	return nil
}

func digest(name string) (size int64, sum string, err error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, "", fault.Wrap("store.Verify", fault.Invalid, err, filepath.Base(name)+" is missing")
	}
	if err != nil {
		return 0, "", dirError(err, "a file cannot be read")
	}
	defer f.Close()
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return 0, "", dirError(err, "a file cannot be read")
	}
	return size, hex.EncodeToString(h.Sum(nil)), nil
}

// copyFile copies and syncs one file, mode 0600. The target must not exist.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return dirError(err, "a file cannot be read")
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return dirError(err, "a file cannot be made")
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return dirError(err, "a file cannot be copied")
	}
	return nil
}
