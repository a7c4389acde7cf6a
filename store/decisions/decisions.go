// Package decisions keeps the decision service's state in the embedded database: capsules, the decision log, rewards,
// models, trails, deferred events and tokens.
//
// What it promises: a change is one job of the store's writer, undone alone when it fails; a reward's key counts once per
// capsule and its sequence numbers have no gaps but those that an erase made; the tallies of a capsule always equal a
// recount; a query by time finds every batch that overlaps it, however long or late.
//
// What it refuses to do: read a payload (it is the service's format), hold a rule, or bring a deleted capsule back: every
// change for a key that is gone is fault.NotFound.
//
// It starts no goroutine; those of store.DB are its owner's.
package decisions

import (
	"context"
	"embed"
	"io/fs"

	"holdfast/decision"
	"holdfast/fault"
	"holdfast/store"
)

//go:embed migrations/sqlite/*.sql
var migrations embed.FS

// Migrations returns the schema of the embedded database, for store.Options.
func Migrations() fs.FS {
	folder, err := fs.Sub(migrations, "migrations/sqlite")
	if err != nil {
		panic("decisions: the migrations are not embedded: " + err.Error())
	}
	return folder
}

// Decisions is the decision service's storage on one database.
type Decisions struct{ db *store.DB }

var _ decision.Storage = (*Decisions)(nil)

// New returns the storage on db, which must have been opened with Migrations and is closed by its owner.
func New(db *store.DB) *Decisions { return &Decisions{db: db} }

// Write runs the change in the writer and waits until it is on disk.
func (d *Decisions) Write(ctx context.Context, w decision.Write) error {
	return d.db.Write(ctx, job(w))
}

// Queue hands the change to the writer and returns at once.
func (d *Decisions) Queue(w decision.Write) error { return d.db.Queue(job(w)) }

// Read shows one consistent committed state.
func (d *Decisions) Read(ctx context.Context, look func(decision.View) error) error {
	return d.db.Read(ctx, func(s *store.Snapshot) error { return look(view{s}) })
}

func job(w decision.Write) store.Job {
	return store.Job{Rows: w.Rows, Applied: w.Applied, Run: func(t *store.Tx) error { return w.Change(tx{view{t}}) }}
}

// view reads, in a snapshot or inside a change.
type view struct{ q store.Querier }

// tx is a view that may also change; its querier is a *store.Tx.
type tx struct{ view }

var (
	_ decision.View = view{}
	_ decision.Tx   = tx{}
)

// exec runs one statement with its parameters and returns how many rows it changed.
func (t tx) exec(sql string, args ...any) (int64, error) { return t.q.Stmt(sql).Bind(args...).Exec() }

// each calls scan for every row of a query.
func (v view) each(scan func(row *store.Stmt), sql string, args ...any) error {
	rows := v.q.Stmt(sql).Bind(args...)
	for rows.Next() {
		scan(rows)
	}
	return rows.Err()
}

// one reads the only row of a query and answers missing when there is none.
func (v view) one(scan func(row *store.Stmt), missing *fault.Error, sql string, args ...any) error {
	found, err := v.q.Stmt(sql).Bind(args...).One(scan)
	if err == nil && !found {
		return missing
	}
	return err
}

// gone is the answer for a key whose capsule was deleted, or whose logs were erased meanwhile.
func gone(op string) *fault.Error {
	return fault.New("decisions."+op, fault.NotFound, "the capsule is gone")
}

func missing(op, what string) *fault.Error {
	return fault.New("decisions."+op, fault.NotFound, "%s not found", what)
}

// bytesAt returns a copy of a column that may be NULL: then nil.
func bytesAt(row *store.Stmt, i int) []byte {
	if row.NullAt(i) {
		return nil
	}
	return row.BlobAt(i, []byte{})
}

// text makes a parameter of bytes that are stored as text: nil becomes NULL.
func text(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}

// blob makes a parameter of bytes that are never NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
