package gateway_test

import (
	"context"
	"path/filepath"
	"testing"

	"holdfast/gateway"
	"holdfast/store"
	"holdfast/store/gateways"
)

func TestProbeSaysWhatWorks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateways.db")
	db, err := store.Open(t.Context(), store.Options{Path: path, Migrations: gateways.Migrations()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := gateway.Open(t.Context(), gateway.Options{Storage: gateways.New(db)})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if p := s.Probe(t.Context()); p != (gateway.Probe{Connection: true, Read: true, Write: true, Delete: true}) {
			t.Errorf("a sound store probes as %+v", p)
		}
	}
	err = db.Read(t.Context(), func(v *store.Snapshot) error {
		if found, err := v.Stmt("SELECT id FROM probes").One(func(*store.Stmt) {}); found {
			t.Errorf("a probe left its row, %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if p := s.Probe(t.Context()); p != (gateway.Probe{}) {
		t.Errorf("a closed store probes as %+v", p)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
