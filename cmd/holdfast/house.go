package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"holdfast/decision"
	"holdfast/gateway"
	"holdfast/ident"
	"holdfast/store"
	"holdfast/store/decisions"
	"holdfast/store/gateways"
)

// house is everything below the listeners: the data folder, its databases, who may come in, and the services.
// The decision service is always open, because the console and the operators' tokens stand on its database; the gateway
// service is open when it is served.
type house struct {
	dir       *store.Dir
	db        *store.DB
	gatewayDB *store.DB // nil when the gateway service is not served
	keys      *ident.Keyring
	decision  *decision.Service
	gateway   *gateway.Service // nil likewise
	registry  *prometheus.Registry
	key       string // the operator's
	keyMade   bool   // by this start
	failed    chan error
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
	if h.db, err = h.database(ctx, decisionsFile, decisions.Migrations(), log); err != nil {
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
	if slices.Contains(c.Services, "gateway") {
		return h, h.openGateway(ctx, c, log)
	}
	return h, nil
}

// openGateway opens the gateway service on its own database.
func (h *house) openGateway(ctx context.Context, c Config, log *slog.Logger) (err error) {
	if h.gatewayDB, err = h.database(ctx, gatewaysFile, gateways.Migrations(), log); err != nil {
		return err
	}
	secret := c.gateway.secret
	if secret == "" {
		if secret, err = h.dir.SessionKey(); err != nil {
			return err
		}
	}
	deployment := c.gateway.deployment
	deployment.APIKeysOff = c.Dev || c.gateway.authOff
	h.gateway, err = gateway.Open(ctx, gateway.Options{
		Storage: gateways.New(h.gatewayDB), Log: log, AdminSecret: h.key, Permissive: c.GatewayPermissive, Deployment: deployment,
		SessionSecret: []byte(secret), Sessions: c.gateway.sessions,
		Debit: c.gateway.debit,
	})
	if err != nil {
		return err
	}
	h.registry.MustRegister(h.gatewayDB.Collector(), h.gateway.Collector())
	return nil
}

// database opens one file of the data folder. The first fatal error of any of them ends the process.
func (h *house) database(ctx context.Context, name string, schema fs.FS, log *slog.Logger) (*store.DB, error) {
	return store.Open(ctx, store.Options{
		Path: h.dir.File(name), Migrations: schema, Log: log,
		OnFatal: func(err error) {
			select {
			case h.failed <- err:
			default: // the first one is enough to stop
			}
		},
	})
}

// The databases in the data folder, one per service.
const (
	decisionsFile = "decisions.db"
	gatewaysFile  = "gateways.db"
)

// close commits what is queued and lets go of everything. It is safe on a house that opened in part.
func (h *house) close(ctx context.Context) error {
	var errs []error
	if h.gateway != nil {
		errs = append(errs, h.gateway.Close(ctx))
	}
	if h.gatewayDB != nil {
		errs = append(errs, h.gatewayDB.Close(ctx))
	}
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
	for _, db := range []*store.DB{h.db, h.gatewayDB} {
		if db == nil {
			continue
		}
		if err := db.Ready(); err != nil {
			return fmt.Errorf("the store does not take writes: %w", err)
		}
	}
	return h.dir.Probe()
}
