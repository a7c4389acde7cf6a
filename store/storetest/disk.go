// Package storetest is how a store is put to the proof: a conformance suite that any engine and dialect must pass, a disk
// that fails on demand and remembers what was not synced, child processes that are killed, and a pin for migrations.
//
// It is for tests only. It refuses to judge by time: faults are counted in operations, and whoever waits, waits for an
// event.
//
// Goroutines: a Child has one that reads its output; Kill and Wait end it.
package storetest

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"holdfast/store"
)

// Op is a kind of file operation that a Disk can fail, count and hold.
type Op string

// The operations, those of the write-ahead log apart from those of the database file.
const (
	WriteLog    Op = "write log"
	SyncLog     Op = "sync log"
	WriteData   Op = "write data"
	SyncData    Op = "sync data"
	ReadData    Op = "read data"
	Truncate    Op = "truncate"
	Delete      Op = "delete"
	sectorBytes    = 512
)

// Disk is the operating system's files with faults. Give it to store.Options.Files. Its methods may be called while the
// store runs.
type Disk struct {
	base vfs.VFS

	mu       sync.Mutex // guards everything below and orders writes with PowerCut
	counts   map[Op]int
	faults   map[Op]*diskFault
	holds    map[Op]chan struct{}
	limit    int64 // bytes that may still be written to new places; negative for no limit
	unsynced map[string]*unsynced
}

type diskFault struct {
	after int // operations that still succeed
	times int // failures left; negative for all
	err   error
}

// unsynced is what a file has been told since its last sync.
type unsynced struct {
	size   int64 // at the last sync
	writes []diskWrite
}

// diskWrite is one write, or a truncation when fresh is nil.
type diskWrite struct {
	off        int64
	old, fresh []byte
}

var _ vfs.VFSFilename = (*Disk)(nil)

// NewDisk returns a disk without faults and without a limit.
func NewDisk() *Disk {
	return &Disk{base: vfs.Find(""), counts: map[Op]int{}, faults: map[Op]*diskFault{}, holds: map[Op]chan struct{}{},
		limit: -1, unsynced: map[string]*unsynced{}}
}

// Fail makes the n-th operation from now (1 is the next) and all later ones of its kind fail with err, until Heal. For
// err a sqlite3 error code says what SQLite sees; any other error becomes the operation's own I/O error.
func (d *Disk) Fail(op Op, n int, err error) {
	d.arm(op, &diskFault{after: n - 1, times: -1, err: err})
}

// FailOnce is Fail for the n-th operation alone.
func (d *Disk) FailOnce(op Op, n int, err error) {
	d.arm(op, &diskFault{after: n - 1, times: 1, err: err})
}

func (d *Disk) arm(op Op, f *diskFault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults[op] = f
}

// Limit lets files grow by n bytes more; then writes that would grow one fail as on a full disk. Negative is no limit.
func (d *Disk) Limit(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.limit = n
}

// Heal removes all faults and the limit.
func (d *Disk) Heal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.faults)
	d.limit = -1
}

// Count returns how many operations of the kind were tried.
func (d *Disk) Count(op Op) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts[op]
}

// Hold makes operations of the kind wait until the returned function is called.
func (d *Disk) Hold(op Op) (release func()) {
	gate := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holds[op] = gate
	return sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.holds, op)
		close(gate)
	})
}

// before counts an operation, waits where it is held, and returns the error it is to fail with.
func (d *Disk) before(op Op) error {
	d.mu.Lock()
	d.counts[op]++
	gate := d.holds[op]
	f := d.faults[op]
	var err error
	switch {
	case f == nil || f.times == 0:
	case f.after > 0:
		f.after--
	default:
		f.times--
		err = f.err
	}
	d.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return err
}

// Open implements vfs.VFS.
func (d *Disk) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	return nil, flags, sqlite3.CANTOPEN // OpenFilename is called instead
}

// OpenFilename implements vfs.VFSFilename.
func (d *Disk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, out, err := d.base.(vfs.VFSFilename).OpenFilename(name, flags)
	if err != nil {
		return nil, out, err
	}
	file := &diskFile{File: store.File{File: f}, disk: d, log: flags&vfs.OPEN_WAL != 0}
	if name != nil && flags&(vfs.OPEN_WAL|vfs.OPEN_MAIN_DB) != 0 {
		file.name = name.String()
	}
	return file, out, nil
}

// Delete implements vfs.VFS.
func (d *Disk) Delete(name string, syncDir bool) error {
	if err := d.before(Delete); err != nil {
		return err
	}
	d.mu.Lock()
	delete(d.unsynced, name)
	d.mu.Unlock()
	return d.base.Delete(name, syncDir)
}

// Access implements vfs.VFS.
func (d *Disk) Access(name string, flags vfs.AccessFlag) (bool, error) {
	return d.base.Access(name, flags)
}

// FullPathname implements vfs.VFS.
func (d *Disk) FullPathname(name string) (string, error) { return d.base.FullPathname(name) }

type diskFile struct {
	store.File
	disk *Disk
	name string // empty for temporary files, which no power cut matters to
	log  bool
}

func (f *diskFile) op(log, data Op) Op {
	if f.log {
		return log
	}
	return data
}

func (f *diskFile) ReadAt(p []byte, off int64) (int, error) {
	if !f.log {
		if err := f.disk.before(ReadData); err != nil {
			return 0, err
		}
	}
	return f.File.ReadAt(p, off)
}

func (f *diskFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.disk.before(f.op(WriteLog, WriteData)); err != nil {
		return 0, err
	}
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	if grow := off + int64(len(p)) - size; d.limit >= 0 && grow > 0 {
		if grow > d.limit {
			return 0, sqlite3.FULL
		}
		d.limit -= grow
	}
	if err := f.remember(size, diskWrite{off: off, fresh: append([]byte{}, p...)}, int64(len(p))); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, off)
}

// remember keeps what the next n bytes at the write's place hold now. It is called under the disk's lock.
func (f *diskFile) remember(size int64, w diskWrite, n int64) error {
	if f.name == "" {
		return nil
	}
	u := f.disk.unsynced[f.name]
	if u == nil {
		u = &unsynced{size: size}
		f.disk.unsynced[f.name] = u
	}
	w.old = make([]byte, max(0, min(n, size-w.off)))
	if _, err := f.File.ReadAt(w.old, w.off); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	u.writes = append(u.writes, w)
	return nil
}

func (f *diskFile) Truncate(to int64) error {
	if err := f.disk.before(Truncate); err != nil {
		return err
	}
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	size, err := f.Size()
	if err != nil {
		return err
	}
	if err := f.remember(size, diskWrite{off: to}, size-to); err != nil {
		return err
	}
	return f.File.Truncate(to)
}

// SizeHint is refused: space given in advance would hide when a file grows.
func (f *diskFile) SizeHint(int64) error { return nil }

func (f *diskFile) Sync(flags vfs.SyncFlag) error {
	if err := f.disk.before(f.op(SyncLog, SyncData)); err != nil {
		return err
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.File.Sync(flags); err != nil {
		return err
	}
	delete(f.disk.unsynced, f.name)
	return nil
}

// PowerCut copies the folder from to the new folder to as a power cut now would leave it: what was synced is there, and of
// each write since then some sectors are and some are not, as seed decides. The store may go on running on from.
func (d *Disk) PowerCut(from, to string, seed uint64) error {
	random := rand.New(rand.NewPCG(seed, 1))
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "-shm") || !e.Type().IsRegular() {
			continue // shared memory does not survive
		}
		name := filepath.Join(from, e.Name())
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if u := d.unsynced[name]; u != nil {
			text = u.cut(text, random)
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// cut takes a file back to its last sync and lets through a random part of what came after.
func (u *unsynced) cut(text []byte, random *rand.Rand) []byte {
	for i := len(u.writes) - 1; i >= 0; i-- {
		w := u.writes[i]
		text = extend(text, w.off+int64(len(w.old)))
		copy(text[w.off:], w.old)
	}
	text = extend(text, u.size)[:u.size]
	for _, w := range u.writes {
		for off := 0; off < len(w.fresh); off += sectorBytes {
			if random.IntN(2) == 0 {
				continue
			}
			part := w.fresh[off:min(off+sectorBytes, len(w.fresh))]
			text = extend(text, w.off+int64(off+len(part)))
			copy(text[w.off+int64(off):], part)
		}
	}
	return text
}

func extend(text []byte, size int64) []byte {
	if missing := size - int64(len(text)); missing > 0 {
		text = append(text, make([]byte, missing)...)
	}
	return text
}

// String lists the counts, for a test's log.
func (d *Disk) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprint(d.counts)
}
