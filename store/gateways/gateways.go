// Package gateways keeps the gateway service's state in the embedded database: merchants and their configuration, keys,
// users, algorithms, outages, outcomes, decision snapshots, scores and the audit trail.
//
// What it promises: a change is one job of the store's writer, undone alone when it fails; outcomes have one order for all
// merchants, which is that of their numbers.
//
// What it refuses to do: hold a rule, or read what the service packs into a blob.
//
// It starts no goroutine; those of store.DB are its owner's.
package gateways

import (
	"context"
	"embed"
	"io/fs"

	"holdfast/fault"
	"holdfast/gateway"
	"holdfast/store"
)

//go:embed migrations/sqlite/*.sql
var migrations embed.FS

// Migrations returns the schema of the embedded database, for store.Options.
func Migrations() fs.FS {
	folder, err := fs.Sub(migrations, "migrations/sqlite")
	if err != nil {
		panic("gateways: the migrations are not embedded: " + err.Error())
	}
	return folder
}

// Gateways is the gateway service's storage on one database.
type Gateways struct{ db *store.DB }

var _ gateway.Storage = (*Gateways)(nil)

// New returns the storage on db, which must have been opened with Migrations and is closed by its owner.
func New(db *store.DB) *Gateways { return &Gateways{db: db} }

// Write runs the change in the writer and waits until it is on disk.
func (g *Gateways) Write(ctx context.Context, w gateway.Write) error { return g.db.Write(ctx, job(w)) }

// Queue hands the change to the writer and returns at once.
func (g *Gateways) Queue(w gateway.Write) error { return g.db.Queue(job(w)) }

// Read shows one consistent committed state.
func (g *Gateways) Read(ctx context.Context, look func(gateway.View) error) error {
	return g.db.Read(ctx, func(s *store.Snapshot) error { return look(view{s}) })
}

func job(w gateway.Write) store.Job {
	return store.Job{Rows: w.Rows, Applied: w.Applied, Run: func(t *store.Tx) error { return w.Change(tx{view{t}}) }}
}

// view reads, in a snapshot or inside a change.
type view struct{ q store.Querier }

// tx is a view that may also change; its querier is a *store.Tx.
type tx struct{ view }

var (
	_ gateway.View = view{}
	_ gateway.Tx   = tx{}
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

func missing(op, what string) *fault.Error {
	return fault.New("gateways."+op, fault.NotFound, "%s not found", what)
}
