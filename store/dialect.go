package store

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"syscall"

	"github.com/ncruces/go-sqlite3"
	"github.com/pressly/goose/v3"

	"holdfast/fault"
)

// Dialect is what differs between databases in the words of SQL. Statements are written once, with ? for parameters.
type Dialect struct {
	// Name is the scheme of the database's address, such as "sqlite".
	Name string
	// Goose names the dialect for migrations.
	Goose goose.Dialect
	// Numbered is true where parameters are written $1, $2 instead of ?.
	Numbered bool
	// Excluded is how an upsert names the row it could not insert.
	Excluded string
	// Distinct is the operator that is true for two values that differ, NULL included.
	Distinct string
}

// SQLite returns the dialect of the embedded database.
func SQLite() Dialect {
	return Dialect{Name: "sqlite", Goose: goose.DialectSQLite3, Excluded: "excluded", Distinct: "IS NOT"}
}

// PostgreSQL returns the dialect of PostgreSQL. The engine does not speak it yet; the texts are ready for it.
func PostgreSQL() Dialect {
	return Dialect{Name: "postgres", Goose: goose.DialectPostgres, Numbered: true, Excluded: "excluded",
		Distinct: "IS DISTINCT FROM"}
}

// Rebind writes the parameters of sql the way the database wants them. Question marks inside quotes are left alone.
func (d Dialect) Rebind(sql string) string {
	if !d.Numbered || !strings.Contains(sql, "?") {
		return sql
	}
	out := make([]byte, 0, len(sql)+8)
	quote := byte(0)
	n := 0
	for i := range len(sql) {
		c := sql[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '?':
			n++
			out = append(out, '$')
			out = strconv.AppendInt(out, int64(n), 10)
			continue
		}
		out = append(out, c)
	}
	return string(out)
}

// Upsert returns the statement that inserts a row into table or, when a row with the same keys exists, changes its other
// columns — but only if one of them differs, so that an equal row costs no write. Parameters are the keys, then the
// columns, in the order given.
func (d Dialect) Upsert(table string, keys, columns []string) string {
	all := append(append([]string{}, keys...), columns...)
	var b strings.Builder
	b.WriteString("INSERT INTO " + table + " (" + strings.Join(all, ", ") + ") VALUES (" + marks(len(all)) + ")")
	b.WriteString(" ON CONFLICT (" + strings.Join(keys, ", ") + ") DO ")
	if len(columns) == 0 {
		b.WriteString("NOTHING")
		return d.Rebind(b.String())
	}
	b.WriteString("UPDATE SET ")
	for i, c := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(c + " = " + d.Excluded + "." + c)
	}
	b.WriteString(" WHERE ")
	for i, c := range columns {
		if i > 0 {
			b.WriteString(" OR ")
		}
		b.WriteString(table + "." + c + " " + d.Distinct + " " + d.Excluded + "." + c)
	}
	return d.Rebind(b.String())
}

// Insert returns the statement that inserts rows rows at once into columns of table. Up to 32 rows per statement are
// worth it (1.05 to 1.2 times as fast as one by one); more are not.
func (d Dialect) Insert(table string, columns []string, rows int) string {
	row := "(" + marks(len(columns)) + ")"
	values := strings.Repeat(row+", ", max(0, rows-1)) + row
	return d.Rebind("INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES " + values)
}

func marks(n int) string { return strings.Repeat("?, ", max(0, n-1)) + "?" }

// diskState sorts an error by whom it concerns: one statement, or the whole transaction and then in which way.
type diskState uint8

const (
	diskFine   diskState = iota // no error, or one of a single statement
	diskFull                    // no room: refuse, and accept again once there is
	diskBusy                    // another process holds the database
	diskMemory                  // out of memory: the transaction is lost, the file is not
	diskBroken                  // the file cannot be trusted to keep what is written
)

// diskKind sorts err. A failed sync is broken whatever the operating system gave as its reason: what the kernel did with
// the pages is not known. An error that is not the database's own is broken too: the writer only asks about its own.
func diskKind(err error) diskState {
	if err == nil {
		return diskFine
	}
	var code sqlite3.ExtendedErrorCode
	if !errors.As(err, &code) {
		return diskBroken
	}
	if code == sqlite3.IOERR_FSYNC || code == sqlite3.IOERR_DIR_FSYNC {
		return diskBroken
	}
	switch code.Code() {
	case sqlite3.FULL:
		return diskFull
	case sqlite3.IOERR:
		if code == sqlite3.IOERR_SHMSIZE || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			return diskFull // the log's index, which is rebuilt from the log, could not grow
		}
		if code == sqlite3.IOERR_NOMEM {
			return diskMemory
		}
		return diskBroken
	case sqlite3.BUSY, sqlite3.LOCKED:
		return diskBusy
	case sqlite3.NOMEM:
		return diskMemory
	case sqlite3.CORRUPT, sqlite3.NOTADB, sqlite3.CANTOPEN, sqlite3.PROTOCOL, sqlite3.READONLY, sqlite3.PERM:
		return diskBroken
	}
	return diskFine
}

// queryError gives an error of one statement its kind.
func queryError(err error) error {
	var code sqlite3.ExtendedErrorCode
	if !errors.As(err, &code) {
		return fault.Wrap("store", fault.Internal, err, "")
	}
	switch code.Code() {
	case sqlite3.CONSTRAINT:
		return fault.Wrap("store", fault.Conflict, err, "it contradicts what is stored")
	case sqlite3.TOOBIG:
		return fault.Wrap("store", fault.TooLarge, err, "the value is too large to store")
	case sqlite3.INTERRUPT:
		return fault.Wrap("store", fault.Unavailable, errors.Join(context.Canceled, err), "the read was given up")
	case sqlite3.BUSY, sqlite3.LOCKED:
		return &fault.Error{Op: "store", Kind: fault.Unavailable, Err: err, RetryAfter: 1e9, Msg: "the database is busy"}
	case sqlite3.FULL:
		return fullError(err)
	}
	return fault.Wrap("store", fault.Internal, err, "")
}

// openError gives an error of opening a file its kind.
func openError(err error) error {
	var code sqlite3.ExtendedErrorCode
	if !errors.As(err, &code) {
		return fault.Wrap("store.Open", fault.Internal, err, "")
	}
	switch code.Code() {
	case sqlite3.NOTADB:
		return fault.Wrap("store.Open", fault.Invalid, err, "the file is not a database")
	case sqlite3.CANTOPEN:
		return fault.Wrap("store.Open", fault.NotFound, err, "the database file cannot be opened")
	}
	return fault.Wrap("store.Open", fault.Internal, err, "")
}
