package store

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"holdfast/fault"
)

// maxStatements bounds the statements kept prepared per connection. Texts are constants, so it is never reached unless
// somebody builds SQL from data.
const maxStatements = 512

// restartWait is how long a checkpoint waits for readers of old states.
const restartWait = 50 * time.Millisecond

// conn is one SQLite connection with its prepared statements. One goroutine uses it at a time.
type conn struct {
	raw      *sqlite3.Conn
	stmts    map[string]*Stmt
	open     []*Stmt // handed out since the last resetOpen
	broken   error   // the first error that concerns the whole transaction
	patience time.Duration
	logPages int // pages in the write-ahead log after the last commit

	beginStmt, commitStmt, rollbackStmt   *sqlite3.Stmt
	saveStmt, releaseStmt, rollbackToStmt *sqlite3.Stmt
	readBeginStmt                         *sqlite3.Stmt
}

// connMode says what a connection is for.
type connMode uint8

const (
	modeWrite   connMode = iota // the writer's
	modeRead                    // may share the log's index, refuses to change the database
	modeInspect                 // the file is opened read-only
	modeSealed                  // a finished copy that nobody writes: opened without a lock and without files beside it
)

// defaultPatience is how long a connection waits for another process, such as a backup that recovers the log.
const defaultPatience = 5 * time.Second

// connOptions says how to open a file; the zero value of vfsName is the operating system's files.
type connOptions struct {
	mode     connMode
	vfsName  string
	patience time.Duration // 0 for the default
}

// openConn opens the file with the pragmas every connection of its mode has.
func openConn(ctx context.Context, path string, o connOptions) (*conn, error) {
	mode := o.mode
	o.patience = orDefault(o.patience, defaultPatience)
	flags := sqlite3.OPEN_READWRITE | sqlite3.OPEN_URI
	switch mode {
	case modeWrite:
		flags |= sqlite3.OPEN_CREATE
	case modeInspect, modeSealed:
		flags = sqlite3.OPEN_READONLY | sqlite3.OPEN_URI
	}
	address := uri(path, o.vfsName)
	if mode == modeSealed {
		address += "&immutable=1"
	}
	raw, err := sqlite3.OpenFlags(address, flags)
	if err != nil {
		return nil, openError(err)
	}
	c := &conn{raw: raw, stmts: map[string]*Stmt{}, patience: o.patience}
	raw.SetInterrupt(ctx)
	defer raw.SetInterrupt(context.Background())
	if err := c.configure(mode); err != nil {
		return nil, errors.Join(openError(err), c.close())
	}
	return c, nil
}

func (c *conn) configure(mode connMode) error {
	// After a failed sync nothing may write the log back on the way out, so closing never checkpoints by itself.
	if _, err := c.raw.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err != nil {
		return err
	}
	if err := c.raw.BusyTimeout(c.patience); err != nil {
		return err
	}
	pragmas := "PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -4096;"
	if mode == modeWrite {
		// journal_size_limit keeps a log that long readers made large from staying so. temp_store keeps the undo pages of
		// savepoints out of temporary files. A log that is overwritten in place syncs faster than one that grows.
		pragmas = `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
			PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 67108864;
			PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536;`
	}
	if err := c.raw.Exec(pragmas); err != nil {
		return err
	}
	if mode == modeWrite {
		c.raw.WALHook(func(_ *sqlite3.Conn, _ string, pages int) error {
			c.logPages = pages
			return nil
		})
	}
	return c.prepareControl(mode)
}

func (c *conn) prepareControl(mode connMode) error {
	texts := []struct {
		sql string
		to  **sqlite3.Stmt
	}{
		{"BEGIN", &c.readBeginStmt}, {"ROLLBACK", &c.rollbackStmt},
		{"BEGIN IMMEDIATE", &c.beginStmt}, {"COMMIT", &c.commitStmt}, {"SAVEPOINT job", &c.saveStmt},
		{"RELEASE job", &c.releaseStmt}, {"ROLLBACK TO job", &c.rollbackToStmt},
	}
	if mode != modeWrite {
		texts = texts[:2]
	}
	for _, t := range texts {
		stmt, _, err := c.raw.PrepareFlags(t.sql, sqlite3.PREPARE_PERSISTENT)
		if err != nil {
			return err
		}
		*t.to = stmt
	}
	return nil
}

func (c *conn) begin() error {
	c.broken = nil
	return c.beginStmt.Exec()
}
func (c *conn) commit() error     { return c.commitStmt.Exec() }
func (c *conn) savepoint() error  { return c.saveStmt.Exec() }
func (c *conn) release() error    { return c.releaseStmt.Exec() }
func (c *conn) rollbackTo() error { return c.rollbackToStmt.Exec() }
func (c *conn) autocommit() bool  { return c.raw.GetAutocommit() }

// rollback ends the transaction if SQLite has not already done so. Its own error adds nothing to the one that led here.
func (c *conn) rollback() {
	if !c.autocommit() {
		_ = c.rollbackStmt.Exec()
	}
}

// checkpointPassive copies what it can of the log without waiting for anybody.
func (c *conn) checkpointPassive() error {
	_, _, err := c.raw.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
	if diskKind(err) == diskBusy { // another process is at it
		err = nil
	}
	return err
}

// checkpointRestart copies the whole log and waits a moment for its readers, so that the next write starts it anew.
func (c *conn) checkpointRestart() error {
	return c.patientCheckpoint(sqlite3.CHECKPOINT_RESTART)
}

// checkpointTruncate leaves everything in the database file and an empty log.
func (c *conn) checkpointTruncate() error {
	return c.patientCheckpoint(sqlite3.CHECKPOINT_TRUNCATE)
}

func (c *conn) patientCheckpoint(mode sqlite3.CheckpointMode) error {
	if err := c.raw.BusyTimeout(restartWait); err != nil {
		return err
	}
	_, _, err := c.raw.WALCheckpoint("main", mode)
	if diskKind(err) == diskBusy {
		err = nil
	}
	return errors.Join(err, c.raw.BusyTimeout(c.patience))
}

// snapshot runs fn in one read transaction that ctx may interrupt.
func (c *conn) snapshot(ctx context.Context, fn func(*Snapshot) error) (err error) {
	if err := c.readBeginStmt.Exec(); err != nil {
		return queryError(err)
	}
	c.raw.SetInterrupt(ctx)
	defer func() {
		// Deferred, so that a panic of fn does not leave the transaction open on a pooled connection.
		c.raw.SetInterrupt(context.Background())
		c.resetOpen()
		c.rollback()
		c.broken = nil
	}()
	err = fn(&Snapshot{session{conn: c}})
	if err != nil && ctx.Err() != nil {
		return fault.Wrap("store.Read", fault.Unavailable, errors.Join(ctx.Err(), err), "the read was given up")
	}
	return err
}

// statement returns the prepared statement for text, ready to be bound from its first parameter.
func (c *conn) statement(text string) (*Stmt, error) {
	s := c.stmts[text]
	if s != nil && !s.busy {
		s.busy = true
		c.open = append(c.open, s)
		return s, nil
	}
	if s == nil && len(c.stmts) >= maxStatements {
		return nil, fault.New("store", fault.Internal, "more than %d different statements", maxStatements)
	}
	raw, tail, err := c.raw.PrepareFlags(text, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, c.note(err)
	}
	if raw == nil || strings.TrimSpace(tail) != "" {
		return nil, errors.Join(fault.New("store", fault.Internal, "not exactly one statement"), raw.Close())
	}
	fresh := &Stmt{conn: c, raw: raw, params: raw.BindCount(), busy: true, extra: s != nil}
	if s == nil {
		c.stmts[text] = fresh
	}
	c.open = append(c.open, fresh)
	return fresh, nil
}

// resetOpen gives back every statement that was handed out, whether its user closed it or not.
func (c *conn) resetOpen() {
	for i, s := range c.open {
		s.giveBack()
		c.open[i] = nil
	}
	c.open = c.open[:0]
}

// note keeps err for the whole transaction when it concerns more than one statement, and returns it as a fault.
func (c *conn) note(err error) error {
	if err == nil {
		return nil
	}
	if k := diskKind(err); k != diskFine && c.broken == nil {
		c.broken = err
	}
	return queryError(err)
}

func (c *conn) takeBroken() error {
	err := c.broken
	c.broken = nil
	return err
}

func (c *conn) close() error {
	for _, s := range slices.Collect(c.raw.Stmts()) { // collected first: closing one changes the sequence
		_ = s.Close() // repeats the error of the statement's last run
	}
	return c.raw.Close()
}

// uri returns the file's address; parameters can be added to it with &.
func uri(path, vfsName string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?vfs=" + url.QueryEscape(cmp.Or(vfsName, "os"))
}

// pool lends read connections, opened on first use.
type pool struct {
	open func(context.Context) (*conn, error)
	idle chan *conn    // as deep as the pool
	all  chan struct{} // a token per connection that may exist and is not idle
	gone chan struct{} // closed by close
}

func newPool(size int, open func(context.Context) (*conn, error)) *pool {
	p := &pool{open: open, idle: make(chan *conn, size), all: make(chan struct{}, size), gone: make(chan struct{})}
	for range size {
		p.all <- struct{}{}
	}
	return p
}

// take waits for a connection until ctx ends.
func (p *pool) take(ctx context.Context) (*conn, error) {
	select {
	case <-p.gone:
		return nil, unavailable("the store is closed", 0)
	default:
	}
	select { // an open connection is better than a new one
	case c := <-p.idle:
		return c, nil
	default:
	}
	select {
	case c := <-p.idle:
		return c, nil
	case <-p.all:
		c, err := p.open(ctx)
		if err != nil {
			p.all <- struct{}{}
		}
		return c, err
	case <-p.gone:
		return nil, unavailable("the store is closed", 0)
	case <-ctx.Done():
		return nil, fault.Wrap("store.Read", fault.Unavailable, ctx.Err(), "no connection became free in time")
	}
}

func (p *pool) put(c *conn) { p.idle <- c }

// close waits for the connections that are lent and closes them all. It must be called once.
func (p *pool) close() (err error) {
	close(p.gone)
	for range cap(p.all) {
		select {
		case <-p.all:
		case c := <-p.idle:
			err = errors.Join(err, c.close())
		}
	}
	return err
}
