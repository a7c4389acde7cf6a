package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"

	"holdfast/console"
	"holdfast/server"
)

// front is the server with its listeners open.
type front struct {
	server      *server.Server
	tracer      *server.Tracer
	console     *console.Console
	addr        net.Addr
	gatewayAddr net.Addr // nil unless the gateway API has a listener of its own
	metricsAddr net.Addr // nil unless its metrics do
}

// opening is what a front is opened with.
type opening struct {
	Config
	house *house
	hurry <-chan struct{} // ends the drain delay early
	level *slog.LevelVar
	log   *slog.Logger
}

func openFront(ctx context.Context, o opening) (*front, error) {
	f := &front{}
	var err error
	if server.TracingWanted(os.Environ()) {
		if f.tracer, err = server.NewTracer(ctx, version()); err != nil {
			return nil, err
		}
	}
	f.server, err = server.New(server.Options{
		Keys: o.house.keys, Metrics: server.NewMetrics(o.house.registry), Log: o.log, Tracer: f.tracer, Dev: o.Dev, DevRemote: o.DevRemote,
		Limits: server.Limits{DrainDelay: o.drain()}, Hurry: o.hurry,
	})
	if err != nil {
		return nil, err
	}
	t, err := openTables(o.Config, o.house, f.server.Draining(), o.log)
	if err != nil {
		return nil, err
	}
	pages := console.Options{Service: o.house.decision, Keys: o.house.keys, Stopping: f.server.Stopping(), Log: o.log, Dev: o.Dev}
	if o.house.gateway != nil {
		pages.Gateways = o.house.gateway
	}
	f.console = console.New(pages)
	t.main.Routes = append(append(t.main.Routes, consoleRoutes(f.console)...), levelRoutes(o.level, t.main.Refuse)...)
	if f.addr, err = f.server.Listen(o.Addr, t.main); err != nil || o.house.gateway == nil {
		return f, err
	}
	return f, f.listenGateway(o, t)
}

// listenGateway opens what the gateway API has to itself.
func (f *front) listenGateway(o opening, t tables) (err error) {
	if o.GatewayAddr != "" {
		if f.gatewayAddr, err = f.server.Listen(o.GatewayAddr, t.gateway); err != nil {
			return fmt.Errorf("gateway-addr: %w", err)
		}
	}
	addr, sure := o.gatewayMetricsAddr()
	if addr == "" {
		return nil
	}
	if f.metricsAddr, err = f.server.Listen(addr, t.metrics); err == nil {
		return nil
	}
	f.metricsAddr = nil
	if sure {
		return fmt.Errorf("gateway-metrics-addr: %w", err)
	}
	o.log.Warn("the gateway API's metrics have no port of their own; name a free one with --gateway-metrics-addr", "addr", addr, "error", err)
	return nil
}
