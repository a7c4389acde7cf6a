package store

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"holdfast/fault"
)

// The files beside the databases in a data folder.
const (
	lockName    = "lock"
	pidName     = "pid"
	keyName     = "admin.key"
	sessionName = "session.key"
)

// secrets returns the names of the files that hold a credential.
func secrets() []string { return []string{keyName, sessionName} }

// Dir is a data folder that this process holds: databases (NAME.db), the lock, the pid file, the admin key
// and the key of sessions.
type Dir struct {
	path string
	lock *os.File
}

// OpenDir makes the folder (mode 0700) when it is missing, refuses one that a newer program has written (fault.Invalid,
// both numbers in the message) or that another process holds (fault.Conflict, its pid in the message; the other is not
// disturbed), locks it and writes the pid file. The lock is the operating system's and ends with the process, however it
// ends.
func OpenDir(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, dirError(err, "the data folder cannot be made")
	}
	lock, err := lockDir(path)
	if err != nil {
		return nil, err
	}
	d := &Dir{path: path, lock: lock}
	if err := d.prepare(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

func (d *Dir) prepare() error {
	if err := refuseNewerFiles(d.path); err != nil {
		return err
	}
	// The rows are other people's data and the key is a credential: nobody else on the machine reads them.
	if err := os.Chmod(d.path, 0o700); err != nil {
		return dirError(err, "the data folder cannot be closed to other users")
	}
	return writeFile(d.File(pidName), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644)
}

// Path returns the folder.
func (d *Dir) Path() string { return d.path }

// File returns the path of the file name in the folder.
func (d *Dir) File(name string) string { return filepath.Join(d.path, name) }

// Close removes the pid file and gives the lock back. The databases must have been closed. A pid file that names another
// process is left: the folder was replaced by a forced restore and has a new server.
func (d *Dir) Close() error {
	var err error
	if readPid(d.path) == os.Getpid() {
		err = os.Remove(d.File(pidName))
	}
	return errors.Join(err, d.lock.Close())
}

// readPid returns the pid in the folder's pid file, 0 when there is none.
func readPid(path string) int {
	text, err := os.ReadFile(filepath.Join(path, pidName))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// AdminKey returns the operator's key. The first call on a new folder makes one of 256 random bits, in hex, keeps it with mode
// 0600 and reports made, so that it can be shown once.
func (d *Dir) AdminKey() (key string, made bool, err error) { return d.secret(keyName) }

// SessionKey returns what the sessions of users are signed with, made and kept as the operator's key is.
func (d *Dir) SessionKey() (key string, err error) {
	key, _, err = d.secret(sessionName)
	return key, err
}

// secret returns the text of a file that holds one, and makes one of 256 random bits, in hex, where there is none.
func (d *Dir) secret(name string) (key string, made bool, err error) {
	text, err := os.ReadFile(d.File(name))
	if err == nil {
		key = strings.TrimSpace(string(text))
		if key == "" {
			return "", false, fault.New("store.secret", fault.Invalid, "%s is empty; remove it to have a new key made", d.File(name))
		}
		return key, false, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", false, dirError(err, name+" cannot be read")
	}
	key = hexKey()
	return key, true, writeFile(d.File(name), []byte(key+"\n"), 0o600)
}

// Probe writes and removes a small file and returns why that failed, nil when the folder takes files.
func (d *Dir) Probe() error {
	name := d.File("probe-" + rand.Text()[:8])
	err := os.WriteFile(name, []byte("probe\n"), 0o600)
	if err = errors.Join(err, os.Remove(name)); err != nil {
		return dirError(err, "the data folder does not take files")
	}
	return nil
}

// Holder returns the pid that was written by the process that holds the folder, and whether one holds it now. A pid
// without a holder was left by a process that was killed. It returns fault.NotFound when there is no such folder.
func Holder(path string) (pid int, held bool, err error) {
	if _, err := os.Stat(path); err != nil {
		return 0, false, fault.Wrap("store.Holder", fault.NotFound, err, "there is no store at "+path)
	}
	pid = readPid(path)
	f, err := os.Open(filepath.Join(path, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return pid, false, nil
	}
	if err != nil {
		return pid, false, dirError(err, "the lock cannot be read")
	}
	defer f.Close()
	// A shared lock, so that two who ask at once do not take each other for the holder.
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	return pid, errors.Is(err, unix.EWOULDBLOCK), nil
}

// lockDir takes the folder's lock and keeps it until the returned file is closed.
func lockDir(path string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, dirError(err, "the lock cannot be opened")
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, dirError(err, "the folder cannot be locked")
		}
		pid, _, _ := Holder(path) // only to name it
		return nil, fault.Wrap("store.OpenDir", fault.Conflict, err,
			"the store "+path+" is in use by process "+strconv.Itoa(pid)+"; stop it first, or choose another folder with --data")
	}
	return f, nil
}

// Databases returns the names of the database files in the folder, sorted.
func Databases(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fault.Wrap("store", fault.NotFound, err, "there is no store at "+path)
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".db") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// refuseNewerFiles looks at the headers of all databases before any of them is touched.
func refuseNewerFiles(path string) error {
	names, err := Databases(path)
	if err != nil {
		return err
	}
	for _, name := range names {
		format, err := headerFormat(filepath.Join(path, name))
		if err != nil {
			return err
		}
		if format > Format {
			return refusedNewer("format", format, Format)
		}
	}
	return nil
}

// headerFormat reads the format from the first 100 bytes of a database file; 0 for an empty file.
func headerFormat(name string) (int64, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, dirError(err, "a database cannot be read")
	}
	defer f.Close()
	header := make([]byte, 100)
	n, err := io.ReadFull(f, header)
	if n == 0 && errors.Is(err, io.EOF) {
		return 0, nil
	}
	if err != nil || !bytes.HasPrefix(header, []byte("SQLite format 3\x00")) {
		return 0, fault.Wrap("store.OpenDir", fault.Invalid, err, name+" is not a database")
	}
	return int64(int32(binary.BigEndian.Uint32(header[60:]))), nil
}

// writeFile replaces the file name as a whole: after a crash it is the old one or the new one.
func writeFile(name string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return dirError(err, "a file cannot be made in the data folder")
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err == nil {
		err = syncDir(filepath.Dir(name))
	}
	if err != nil {
		_ = os.Remove(f.Name()) // nothing may be left of it
		return dirError(err, "a file in the data folder cannot be written")
	}
	return nil
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func dirError(err error, msg string) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fullError(err)
	}
	return fault.Wrap("store", fault.Internal, err, msg)
}

// hexKey returns 32 random bytes in lower-case hex.
func hexKey() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return hex.EncodeToString(b[:])
}
