package store

import (
	"errors"
	"sync/atomic"
	"syscall"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// meter counts what really reaches the files of one database: syncs and bytes.
type meter struct {
	base  vfs.VFS
	syncs atomic.Int64
	bytes atomic.Int64
}

func newMeter(base vfs.VFS) *meter {
	if base == nil {
		base = vfs.Find("")
	}
	return &meter{base: base}
}

func (m *meter) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := m.base.Open(name, flags)
	return m.wrap(f, flags, err), flags, err
}

func (m *meter) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	base, ok := m.base.(vfs.VFSFilename)
	if !ok {
		return m.Open(name.String(), flags)
	}
	f, flags, err := base.OpenFilename(name, flags)
	return m.wrap(f, flags, err), flags, err
}

func (m *meter) Delete(name string, syncDir bool) error { return m.base.Delete(name, syncDir) }
func (m *meter) Access(name string, flags vfs.AccessFlag) (bool, error) {
	return m.base.Access(name, flags)
}
func (m *meter) FullPathname(name string) (string, error) { return m.base.FullPathname(name) }

func (m *meter) wrap(f vfs.File, flags vfs.OpenFlag, err error) vfs.File {
	if err != nil {
		return nil
	}
	out := &meterFile{File: File{f}, meter: m}
	if flags&vfs.OPEN_WAL != 0 {
		return &logFile{meterFile: out}
	}
	return out
}

type meterFile struct {
	File
	meter *meter
}

func (f *meterFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	f.meter.bytes.Add(int64(n))
	return n, coded(err)
}

// coded gives a failed write its code at once: the library looks for a bare error number and finds a *fs.PathError, so that
// a full disk would be an I/O error like any other, and a joined log write would fail with the code of the sync it is made
// for. The number itself does not reach the caller: SQLite's own clean-up overwrites it.
func coded(err error) error {
	errno, plain := errors.AsType[syscall.Errno](err)
	switch {
	case !plain:
		return err
	case errno == syscall.ENOSPC || errno == syscall.EDQUOT:
		return vfs.SystemError(err, sqlite3.FULL)
	}
	return vfs.SystemError(err, sqlite3.IOERR_WRITE)
}

func (f *meterFile) Sync(flags vfs.SyncFlag) error {
	f.meter.syncs.Add(1)
	return f.File.Sync(flags)
}

// logBuffer is how much of the log is held back for one write, in bytes.
const logBuffer = 256 << 10

// logFile is the write-ahead log. SQLite writes it as a run of frames, a 24-byte header and a page, each of the two with a
// system call of its own; at 64 callers that was a quarter of the writer's processor time. logFile joins neighbouring writes and passes them on
// before anything could miss them: before the sync, a read, a truncation, a look at the size, and closing. Nobody else
// reads a frame earlier: a frame is entered in the shared index only after the sync of its transaction, and the writer's
// own look at a page it has spilled goes through ReadAt here. A write that fails then is reported by that next operation
// with its own code, so a full disk is still told from a failed sync.
type logFile struct {
	*meterFile
	pending []byte
	start   int64 // where pending begins in the file
}

func (f *logFile) WriteAt(p []byte, off int64) (int, error) {
	if len(f.pending) > 0 && (off != f.start+int64(len(f.pending)) || len(f.pending)+len(p) > logBuffer) {
		if err := f.flush(); err != nil {
			return 0, err
		}
	}
	if len(f.pending) == 0 {
		f.start = off
	}
	f.pending = append(f.pending, p...)
	return len(p), nil
}

// flush passes the held-back bytes on. After an error they are gone: SQLite undoes the transaction they belong to and
// writes the same place again.
func (f *logFile) flush() error {
	if len(f.pending) == 0 {
		return nil
	}
	_, err := f.meterFile.WriteAt(f.pending, f.start)
	f.pending = f.pending[:0]
	return err
}

func (f *logFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.flush(); err != nil {
		return 0, err
	}
	return f.meterFile.ReadAt(p, off)
}

func (f *logFile) Sync(flags vfs.SyncFlag) error {
	if err := f.flush(); err != nil {
		return err
	}
	return f.meterFile.Sync(flags)
}

func (f *logFile) Truncate(size int64) error {
	if err := f.flush(); err != nil {
		return err
	}
	return f.meterFile.Truncate(size)
}

func (f *logFile) Size() (int64, error) {
	if err := f.flush(); err != nil {
		return 0, err
	}
	return f.meterFile.Size()
}

func (f *logFile) Close() error {
	return errors.Join(f.flush(), f.meterFile.Close())
}

// File wraps a file of a VFS and passes on what is optional in its interface: without the shared memory there is no
// write-ahead log between connections. Embed it to count or to fail single operations.
type File struct{ vfs.File }

// SharedMemory returns the index of the write-ahead log, nil when the file has none.
func (f File) SharedMemory() vfs.SharedMemory {
	if in, ok := f.File.(vfs.FileSharedMemory); ok {
		return in.SharedMemory()
	}
	return nil
}

// MemoryMapper returns the file's memory mapper, nil when it has none.
func (f File) MemoryMapper() vfs.MemoryMapper {
	if in, ok := f.File.(vfs.FileMemoryMapper); ok {
		return in.MemoryMapper()
	}
	return nil
}

// LockState returns the lock that is held.
func (f File) LockState() vfs.LockLevel {
	if in, ok := f.File.(vfs.FileLockState); ok {
		return in.LockState()
	}
	return vfs.LOCK_EXCLUSIVE + 1 // "do not know"
}

// SizeHint says how large the file is about to become.
func (f File) SizeHint(size int64) error {
	if in, ok := f.File.(vfs.FileSizeHint); ok {
		return in.SizeHint(size)
	}
	return nil
}

// HasMoved reports whether the file was renamed or removed since it was opened.
func (f File) HasMoved() (bool, error) {
	if in, ok := f.File.(vfs.FileHasMoved); ok {
		return in.HasMoved()
	}
	return false, nil
}

// PersistWAL reports whether the log stays when the last connection closes.
func (f File) PersistWAL() bool {
	in, ok := f.File.(vfs.FilePersistWAL)
	return ok && in.PersistWAL()
}

// SetPersistWAL says whether the log stays when the last connection closes.
func (f File) SetPersistWAL(keep bool) {
	if in, ok := f.File.(vfs.FilePersistWAL); ok {
		in.SetPersistWAL(keep)
	}
}

// PowersafeOverwrite reports whether overwriting some bytes leaves their neighbours alone in a power cut.
func (f File) PowersafeOverwrite() bool {
	in, ok := f.File.(vfs.FilePowersafeOverwrite)
	return ok && in.PowersafeOverwrite()
}

// SetPowersafeOverwrite sets it.
func (f File) SetPowersafeOverwrite(safe bool) {
	if in, ok := f.File.(vfs.FilePowersafeOverwrite); ok {
		in.SetPowersafeOverwrite(safe)
	}
}
