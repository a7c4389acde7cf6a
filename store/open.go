package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3/vfs"

	"holdfast/fault"
)

// Open opens the database, brings its schema up to date and starts the writer. ctx bounds the opening only. A schema or
// a format newer than this program's is refused with both numbers in the message (fault.Invalid) and nothing is changed.
func Open(ctx context.Context, opts Options) (*DB, error) {
	opts = opts.withDefaults()
	db := &DB{opts: opts, wake: make(chan struct{}, 1), stopped: make(chan struct{})}
	db.meter = newMeter(opts.Files)
	db.metrics = newMetrics(db)
	db.vfsName = fmt.Sprintf("holdfast-%p", db)
	vfs.Register(db.vfsName, db.meter)
	if err := db.start(ctx); err != nil {
		db.release()
		return nil, err
	}
	return db, nil
}

func (db *DB) start(ctx context.Context) error {
	mode := modeRead
	if db.opts.ReadOnly {
		mode = modeInspect
	}
	db.readers = newPool(db.opts.Readers, func(ctx context.Context) (*conn, error) {
		return openConn(ctx, db.opts.Path, connOptions{mode: mode, vfsName: db.vfsName, patience: db.opts.Patience})
	})
	if db.opts.ReadOnly {
		c, err := db.readers.take(ctx)
		if err != nil {
			return err
		}
		err = refuseNewer(c, db.opts.Migrations)
		db.readers.put(c)
		return err
	}
	c, err := openConn(ctx, db.opts.Path, connOptions{mode: modeWrite, vfsName: db.vfsName, patience: db.opts.Patience})
	if err != nil {
		return err
	}
	if err := migrate(ctx, c, db.opts, db.vfsName); err != nil {
		return errors.Join(err, c.close())
	}
	w := &writer{db: db, conn: c, timer: time.NewTimer(time.Hour)}
	w.timer.Stop()
	go w.run()
	return nil
}

// release undoes what Open registered.
func (db *DB) release() { vfs.Unregister(db.vfsName) }

func refusedNewer(what string, found, known int64) error {
	return fault.New("store.Open", fault.Invalid,
		"the store has %s version %d and this program knows versions up to %d; use a newer program", what, found, known)
}
