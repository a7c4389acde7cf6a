package decisions

import (
	"context"
	"time"

	"holdfast/ident"
	"holdfast/store"
)

// Tokens keeps issued tokens beside the decision service's state.
type Tokens struct{ db *store.DB }

var _ ident.Storage = (*Tokens)(nil)

// NewTokens returns the token storage on db, which must have been opened with Migrations and is closed by its owner.
func NewTokens(db *store.DB) *Tokens { return &Tokens{db: db} }

// Tokens returns every kept row, by hash.
func (k *Tokens) Tokens(ctx context.Context) (rows []ident.Row, err error) {
	err = k.db.Read(ctx, func(s *store.Snapshot) error {
		rows = nil
		return view{s}.each(func(r *store.Stmt) {
			rows = append(rows, ident.Row{Hash: r.TextAt(0), Scope: r.TextAt(1), Label: r.TextAt(2), CreatedAt: instant(r.IntAt(3)),
				ExpiresAt: instant(r.IntAt(4)), LastUsedAt: instant(r.IntAt(5))})
		}, "SELECT hash, scope, label, created, expires, used FROM tokens ORDER BY hash")
	})
	return rows, err
}

// SaveToken keeps a new row; a hash that is there already is fault.Conflict.
func (k *Tokens) SaveToken(ctx context.Context, row ident.Row) error {
	_, err := k.exec(ctx, "INSERT INTO tokens (hash, scope, label, created, expires, used) VALUES (?, ?, ?, ?, ?, ?)",
		row.Hash, row.Scope, row.Label, seconds(row.CreatedAt), seconds(row.ExpiresAt), seconds(row.LastUsedAt))
	return err
}

// DropToken removes the row of that hash and reports whether there was one.
func (k *Tokens) DropToken(ctx context.Context, hash string) (bool, error) {
	n, err := k.exec(ctx, "DELETE FROM tokens WHERE hash = ?", hash)
	return n > 0, err
}

// TouchToken notes when the token was last used. A row that is gone is not an error.
func (k *Tokens) TouchToken(ctx context.Context, hash string, used time.Time) error {
	_, err := k.exec(ctx, "UPDATE tokens SET used = ? WHERE hash = ? AND used <> ?", seconds(used), hash, seconds(used))
	return err
}

func (k *Tokens) exec(ctx context.Context, sql string, args ...any) (n int64, err error) {
	var changed int64
	err = k.db.Write(ctx, store.Job{Run: func(t *store.Tx) (err error) {
		changed, err = t.Exec(sql, args...)
		return err
	}})
	if err != nil {
		return 0, err // changed may still be written to: the wait can end before the job
	}
	return changed, nil
}

// seconds is a time as kept: 0 for none.
func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func instant(s int64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(s, 0).UTC()
}
