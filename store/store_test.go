package store_test

import (
	"context"
	"path/filepath"
	"testing"
	"testing/fstest"

	"holdfast/store"
)

func schema() fstest.MapFS {
	return fstest.MapFS{"001_items.sql": {Data: []byte("-- +goose Up\nCREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, body BLOB) STRICT;\n")}}
}

func TestSmoke(t *testing.T) {
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "a.db"), Migrations: schema()})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		err = db.Write(t.Context(), store.Job{Run: func(tx *store.Tx) error {
			_, err := tx.Stmt("INSERT INTO items (name, body) VALUES (?, ?)").Text(string(rune('a' + i))).Blob([]byte{1, 2}).Exec()
			return err
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	err = db.Read(t.Context(), func(s *store.Snapshot) error {
		rows := s.Query("SELECT id, name, body FROM items ORDER BY id")
		for rows.Next() {
			n++
			t.Log(rows.IntAt(0), rows.TextAt(1), rows.RawAt(2))
		}
		return rows.Err()
	})
	if err != nil || n != 5 {
		t.Fatal(n, err)
	}
	t.Logf("%+v", db.Stats())
	if err := db.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}
