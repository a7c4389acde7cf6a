package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/ncruces/go-sqlite3/driver"
	"github.com/pressly/goose/v3"

	"holdfast/fault"
)

// Format is the version of the layout this program writes around every schema: the log, the pragmas and this folder.
// It is kept in the database header (PRAGMA user_version), where it can be read without opening the database.
const Format = 1

// applicationID marks a database file as ours (PRAGMA application_id, "Hold").
const applicationID = 0x486f6c64

// migrate refuses a newer database, applies what is missing, and marks the file. A file that is up to date is left
// untouched, so that opening costs no write.
func migrate(ctx context.Context, c *conn, opts Options, vfsName string) error {
	if err := refuseNewer(c, opts.Migrations); err != nil {
		return err
	}
	target, err := newest(opts.Migrations)
	if err != nil {
		return err
	}
	current, err := schemaVersion(c)
	if err != nil {
		return err
	}
	if current < target {
		if err := applyMigrations(ctx, opts, vfsName); err != nil {
			return err
		}
		opts.Log.Info("store: schema brought up to date", "path", opts.Path, "from", current, "to", target)
	}
	format, err := c.number("PRAGMA user_version")
	if err != nil || format == Format {
		return err
	}
	err = c.raw.Exec(fmt.Sprintf("BEGIN IMMEDIATE; PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
		applicationID, Format))
	if err != nil {
		return fault.Wrap("store.Open", fault.Internal, err, "")
	}
	return nil
}

// applyMigrations runs goose over database/sql: migrations are administration, not a hot path.
func applyMigrations(ctx context.Context, opts Options, vfsName string) (err error) {
	pragmas := "&_pragma=busy_timeout(5000)&_pragma=synchronous(full)&_pragma=wal_autocheckpoint(0)"
	db, err := driver.Open(uri(opts.Path, vfsName) + pragmas)
	if err != nil {
		return openError(err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	provider, err := goose.NewProvider(SQLite().Goose, db, opts.Migrations, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fault.Wrap("store.Open", fault.Internal, err, "the migrations cannot be read")
	}
	if _, err := provider.Up(ctx); err != nil {
		return fault.Wrap("store.Open", fault.Internal, err, "the schema could not be brought up to date")
	}
	return nil
}

// refuseNewer compares the file's format and schema with what this program knows, without changing anything.
func refuseNewer(c *conn, migrations fs.FS) error {
	format, err := c.number("PRAGMA user_version")
	if err != nil {
		return err
	}
	if format > Format {
		return refusedNewer("format", format, Format)
	}
	if migrations == nil {
		return nil
	}
	target, err := newest(migrations)
	if err != nil {
		return err
	}
	current, err := schemaVersion(c)
	if err != nil {
		return err
	}
	if current > target {
		return refusedNewer("schema", current, target)
	}
	return nil
}

// newest returns the highest version among the migrations, 0 without any.
func newest(migrations fs.FS) (int64, error) {
	if migrations == nil {
		return 0, nil
	}
	names, err := fs.Glob(migrations, "*.sql")
	if err != nil {
		return 0, fault.Wrap("store.Open", fault.Internal, err, "the migrations cannot be read")
	}
	top := int64(0)
	for _, name := range names {
		v, err := goose.NumericComponent(path.Base(name))
		if err != nil {
			return 0, fault.Wrap("store.Open", fault.Internal, err, "a migration's name does not start with a number")
		}
		top = max(top, v)
	}
	return top, nil
}

// schemaVersion returns the newest migration that was applied, 0 when none was.
func schemaVersion(c *conn) (int64, error) {
	known, err := c.number("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'goose_db_version'")
	if err != nil || known == 0 {
		return 0, err
	}
	return c.number("SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied")
}

// number returns the first column of the first row of a query that is asked once.
func (c *conn) number(sql string) (n int64, err error) {
	stmt, _, err := c.raw.Prepare(sql)
	if err != nil {
		return 0, openError(err)
	}
	if stmt.Step() {
		n = stmt.ColumnInt64(0)
	}
	if err := errors.Join(stmt.Err(), stmt.Close()); err != nil {
		return 0, openError(err)
	}
	return n, nil
}
