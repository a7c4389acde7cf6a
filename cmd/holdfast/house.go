package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"holdfast/decision"
	"holdfast/ident"
	"holdfast/store"
	"holdfast/store/decisions"
)

// house is everything below the listeners: the data folder, its databases, who may come in, and the services.
type house struct {
	dir      *store.Dir
	db       *store.DB
	keys     *ident.Keyring
	decision *decision.Service
	registry *prometheus.Registry
	key      string // the operator's
	keyMade  bool   // by this start
	failed   chan error
}

// openHouse opens from the ground up; close undoes it in the other order.
func openHouse(ctx context.Context, c Config, log *slog.Logger) (h *house, err error) {
	h = &house{registry: prometheus.NewRegistry(), failed: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close(context.WithoutCancel(ctx)))
		}
	}()
	if h.dir, err = store.OpenDir(c.Data); err != nil {
		return h, err
	}
	if h.key = c.AdminKey; h.key == "" {
		if h.key, h.keyMade, err = h.dir.AdminKey(); err != nil {
			return h, err
		}
	}
	h.db, err = store.Open(ctx, store.Options{
		Path: h.dir.File(decisionsFile), Migrations: decisions.Migrations(), Log: log,
		OnFatal: func(err error) {
			select {
			case h.failed <- err:
			default: // the first one is enough to stop
			}
		},
	})
	if err != nil {
		return h, err
	}
	h.keys, err = ident.NewKeyring(ctx, ident.Options{OperatorKey: h.key, Storage: decisions.NewTokens(h.db), Log: log})
	if err != nil {
		return h, err
	}
	h.decision, err = decision.Open(ctx, decision.Options{Storage: decisions.New(h.db), Log: log})
	if err != nil {
		return h, err
	}
	h.registry.MustRegister(h.db.Collector(), h.decision.Collector(), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return h, nil
}

// decisionsFile is the database of the decision service in the data folder.
const decisionsFile = "decisions.db"

// close commits what is queued and lets go of everything. It is safe on a house that opened in part.
func (h *house) close(ctx context.Context) error {
	var errs []error
	if h.decision != nil {
		errs = append(errs, h.decision.Close(ctx))
	}
	if h.db != nil {
		errs = append(errs, h.db.Close(ctx))
	}
	if h.dir != nil {
		errs = append(errs, h.dir.Close())
	}
	return errors.Join(errs...)
}

// ready says why the house cannot take work, nil when it can.
func (h *house) ready() error {
	if err := h.db.Ready(); err != nil {
		return fmt.Errorf("the store does not take writes: %w", err)
	}
	return h.dir.Probe()
}
