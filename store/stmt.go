package store

import (
	"errors"

	"github.com/ncruces/go-sqlite3"

	"holdfast/fault"
)

// Tx is the transaction a job runs in. It is valid until Run returns, on the goroutine that called Run.
type Tx struct{ session }

// Snapshot is one consistent state of the database. It is valid until the function given to Read returns, on the
// goroutine that called it.
type Snapshot struct{ session }

// Querier is what Tx and Snapshot share, for code that reads in both.
type Querier interface {
	// Stmt returns the prepared statement for one SQL text with ? for its parameters.
	Stmt(sql string) *Stmt
}

var (
	_ Querier = (*Tx)(nil)
	_ Querier = (*Snapshot)(nil)
)

type session struct{ conn *conn }

// Stmt returns the prepared statement for sql, one statement with ? for its parameters, ready to be bound from the first.
// Texts must be constants: each is prepared once per connection and kept. An error of preparing is returned by the
// statement's Exec or Err. The same text may be in use more than once at a time.
func (s *session) Stmt(sql string) *Stmt {
	stmt, err := s.conn.statement(sql)
	if err != nil {
		return &Stmt{conn: s.conn, err: err, dead: true}
	}
	return stmt
}

// Exec runs sql with args bound in order and returns how many rows it changed. Accepted are int, int64, uint64 (stored
// as the signed integer of the same bits), float64, bool, string, []byte and nil. On hot paths Stmt with typed binds
// allocates less.
func (s *session) Exec(sql string, args ...any) (int64, error) {
	return s.Stmt(sql).Bind(args...).Exec()
}

// Query starts sql with args bound in order, as for Exec; the rows are read with Next.
func (s *session) Query(sql string, args ...any) *Stmt {
	return s.Stmt(sql).Bind(args...)
}

// Stmt is a prepared statement: bind in order, then Exec, or Next until it returns false. Errors stick: the first one
// makes the rest do nothing and is returned by Exec, Err and Close. A statement that is not closed is given back when
// the job or the read ends.
type Stmt struct {
	conn   *conn
	raw    *sqlite3.Stmt
	err    error
	param  int // bound since the statement was handed out or run
	params int // in the text
	busy   bool
	active bool // stepped and not yet at its end
	extra  bool // a second copy of a text already in use; closed when given back
	dead   bool // never prepared, or closed
}

// Bind binds args in order; see Tx.Exec for the types.
func (s *Stmt) Bind(args ...any) *Stmt {
	for _, arg := range args {
		switch v := arg.(type) {
		case nil:
			s.Null()
		case int:
			s.Int(int64(v))
		case int64:
			s.Int(v)
		case uint64:
			s.Int(int64(v))
		case float64:
			s.Float(v)
		case bool:
			s.Bool(v)
		case string:
			s.Text(v)
		case []byte:
			s.Blob(v)
		default:
			s.fail(fault.New("store", fault.Internal, "cannot bind a value of type %T", arg))
		}
	}
	return s
}

// next returns the number of the parameter to bind now, 0 when an earlier error forbids it.
func (s *Stmt) next() int {
	if s.err != nil || s.dead {
		return 0
	}
	s.param++
	return s.param
}

func (s *Stmt) fail(err error) {
	if s.err == nil && err != nil {
		s.err = err
	}
}

func (s *Stmt) bound(err error) *Stmt {
	if err != nil {
		s.fail(s.conn.note(err))
	}
	return s
}

// Int binds v to the next parameter.
func (s *Stmt) Int(v int64) *Stmt {
	if p := s.next(); p > 0 {
		return s.bound(s.raw.BindInt64(p, v))
	}
	return s
}

// Float binds v to the next parameter. SQLite stores a NaN as NULL.
func (s *Stmt) Float(v float64) *Stmt {
	if p := s.next(); p > 0 {
		return s.bound(s.raw.BindFloat(p, v))
	}
	return s
}

// Bool binds v to the next parameter as 0 or 1.
func (s *Stmt) Bool(v bool) *Stmt {
	if p := s.next(); p > 0 {
		return s.bound(s.raw.BindBool(p, v))
	}
	return s
}

// Text binds v to the next parameter.
func (s *Stmt) Text(v string) *Stmt {
	if p := s.next(); p > 0 {
		return s.bound(s.raw.BindText(p, v))
	}
	return s
}

// RawText binds v to the next parameter as text; nil is NULL. v is copied.
func (s *Stmt) RawText(v []byte) *Stmt {
	if p := s.next(); p > 0 {
		return s.bound(s.raw.BindRawText(p, v))
	}
	return s
}

// Blob binds v to the next parameter; nil is NULL, an empty slice is an empty blob. v is copied.
func (s *Stmt) Blob(v []byte) *Stmt {
	if p := s.next(); p > 0 {
		return s.bound(s.raw.BindBlob(p, v))
	}
	return s
}

// Null binds NULL to the next parameter.
func (s *Stmt) Null() *Stmt {
	if p := s.next(); p > 0 {
		return s.bound(s.raw.BindNull(p))
	}
	return s
}

// complete reports whether the statement can run: a parameter that is not bound would keep its value of the last run.
func (s *Stmt) complete() bool {
	if s.err == nil && !s.dead && s.param != s.params {
		s.fail(fault.New("store", fault.Internal, "%d of %d parameters are bound", s.param, s.params))
	}
	return s.err == nil && !s.dead
}

// Exec runs the statement to its end, gives it back and returns how many rows it changed.
func (s *Stmt) Exec() (changed int64, err error) {
	if s.complete() {
		if err := s.raw.Exec(); err != nil {
			s.fail(s.conn.note(err))
		} else {
			changed = s.conn.raw.Changes()
		}
	}
	return changed, s.Close()
}

// Again runs the statement to its end and leaves it ready to be bound anew from its first parameter, for many rows with
// one look-up of the text.
func (s *Stmt) Again() error {
	if s.complete() {
		s.param = 0
		if err := s.raw.Exec(); err != nil {
			s.fail(s.conn.note(err))
		}
	}
	return s.err
}

// Next moves to the next row and returns false after the last one or on an error. After false the statement has been
// given back and Err tells which it was.
func (s *Stmt) Next() bool {
	if !s.busy || !s.active && !s.complete() {
		return false
	}
	s.active = true
	if s.err == nil && s.raw.Step() {
		return true
	}
	if err := s.raw.Err(); err != nil {
		s.fail(s.conn.note(err))
	}
	err := s.err
	s.giveBack()
	s.err = err
	return false
}

// Err returns the first error of preparing, binding or running.
func (s *Stmt) Err() error { return s.err }

// Close gives the statement back before its last row and returns its first error. Closing twice does nothing.
func (s *Stmt) Close() error {
	err := s.err
	s.giveBack()
	return err
}

func (s *Stmt) giveBack() {
	if s.dead || !s.busy {
		return
	}
	s.busy, s.active, s.err, s.param = false, false, nil, 0
	if s.extra {
		s.dead = true
		_ = s.raw.Close() // repeats the error of the last run
		return
	}
	_ = s.raw.Reset() // the same
}

// One reads at most one row: scan is called for it, and found tells whether there was one.
func (s *Stmt) One(scan func(row *Stmt)) (found bool, err error) {
	if found = s.Next(); found {
		scan(s)
	}
	return found, errors.Join(s.err, s.Close())
}

// IntAt returns the integer in column i of the row, counted from 0; 0 for NULL.
func (s *Stmt) IntAt(i int) int64 { return s.raw.ColumnInt64(i) }

// FloatAt returns the number in column i of the row; 0 for NULL.
func (s *Stmt) FloatAt(i int) float64 { return s.raw.ColumnFloat(i) }

// BoolAt returns whether column i of the row is not 0; false for NULL.
func (s *Stmt) BoolAt(i int) bool { return s.raw.ColumnBool(i) }

// TextAt returns a copy of the text in column i of the row; "" for NULL.
func (s *Stmt) TextAt(i int) string { return s.raw.ColumnText(i) }

// BlobAt appends the bytes in column i of the row to buf and returns it; nothing is appended for NULL.
func (s *Stmt) BlobAt(i int, buf []byte) []byte { return append(buf, s.raw.ColumnRawBlob(i)...) }

// RawAt returns the bytes in column i of the row without copying them: they are the database's own memory, must not be
// changed, and are gone with the next call of Next, Exec or Close. Nil for NULL.
func (s *Stmt) RawAt(i int) []byte { return s.raw.ColumnRawBlob(i) }

// NullAt returns whether column i of the row is NULL.
func (s *Stmt) NullAt(i int) bool { return s.raw.ColumnType(i) == sqlite3.NULL }
