package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"holdfast/admission"
	"holdfast/console"
	"holdfast/server"
	"holdfast/wire/decisionapi"
	"holdfast/wire/gatewayapi"
	"holdfast/wire/reply"
)

func serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the services on a real store",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := loadConfig(c.Flags(), os.LookupEnv)
			if err != nil {
				return err
			}
			return serve(c.Context(), config, serving{out: c.OutOrStdout(), level: slog.LevelInfo})
		},
	}
	bindFlags(c.Flags())
	return c
}

// closeTime bounds how long queued work may take to reach the disk at the end.
const closeTime = 30 * time.Second

// serving is how a run of serve talks to whoever started it.
type serving struct {
	out     io.Writer                                  // what runs, where, and what to type next
	level   slog.Level                                 // of the log on stderr
	started func(ctx context.Context, url, key string) // called once requests are answered; may be nil
}

// serve runs until ctx ends or the store fails.
func serve(ctx context.Context, c Config, s serving) (err error) {
	if c.Workers > 0 {
		runtime.GOMAXPROCS(c.Workers)
	}
	server.TuneMemory()
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: s.level}))
	var specs []specFile
	if c.Specs != "" {
		if specs, err = readSpecs(c.Specs); err != nil {
			return err
		}
	}
	h, err := openHouse(ctx, c, log)
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		err = errors.Join(err, h.close(end))
	}()
	if err := applySpecs(ctx, h.decision, specs, log); err != nil {
		return err
	}
	front, err := openFront(ctx, c, h, log)
	if err != nil {
		return err
	}
	url := "http://" + front.addr.String()
	greet(s.out, c, h, url)

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var beside sync.WaitGroup // what ends with ctx
	beside.Go(func() {
		select {
		case err := <-h.failed:
			stop(fmt.Errorf("the store failed and has stopped: %w", err))
		case <-ctx.Done():
		}
	})
	beside.Go(func() { front.console.Run(ctx) })
	beside.Go(func() { h.keys.Run(ctx) })
	if s.started != nil {
		beside.Go(func() { s.started(ctx, url, h.key) })
	}
	err = front.server.Serve(ctx)
	stop(nil)
	beside.Wait()
	if front.tracer != nil {
		err = errors.Join(err, front.tracer.Close(context.WithoutCancel(ctx)))
	}
	return err
}

// front is the server with its listeners open.
type front struct {
	server  *server.Server
	tracer  *server.Tracer
	console *console.Console
	addr    net.Addr
}

func openFront(ctx context.Context, c Config, h *house, log *slog.Logger) (*front, error) {
	f := &front{}
	var err error
	if server.TracingWanted(os.Environ()) {
		if f.tracer, err = server.NewTracer(ctx, version()); err != nil {
			return nil, err
		}
	}
	f.server, err = server.New(server.Options{
		Keys: h.keys, Metrics: server.NewMetrics(h.registry), Log: log, Tracer: f.tracer, Dev: c.Dev, DevRemote: c.DevRemote,
	})
	if err != nil {
		return nil, err
	}
	table, err := mainTable(c, h, log)
	if err != nil {
		return nil, err
	}
	f.console = console.New(console.Options{Service: h.decision, Keys: h.keys, Stopping: f.server.Stopping(), Log: log, Dev: c.Dev})
	table.Routes = append(table.Routes, consoleRoutes(f.console)...)
	f.addr, err = f.server.Listen(c.Addr, table)
	return f, err
}

// mainTable is what the main listener answers: every service, the console and the process itself.
func mainTable(c Config, h *house, log *slog.Logger) (server.Table, error) {
	options := admission.Options{Guard: &admission.GuardOptions{}}
	if !c.Dev {
		options.Rate = &admission.Rate{PerSecond: c.RateLimit, Burst: c.RateBurst}
	}
	gate, err := admission.New(options)
	if err != nil {
		return server.Table{}, err
	}
	h.registry.MustRegister(admission.NewCollector(gate, "main"))
	refuse, decline := reply.Decision(log), reply.Personalizer(log)
	api := decisionapi.New(decisionapi.Options{Service: h.decision, Tokens: h.keys, Log: log})
	routes := infraRoutes(h, c)
	if slices.Contains(c.Services, "decision") {
		routes = append(routes, decisionRoutes(api, refuse, decline)...)
	}
	if h.gateway != nil {
		routes = append(routes, gatewayRoutes(gatewayapi.New(gatewayapi.Options{Service: h.gateway, Log: log}), log)...)
	}
	return server.Table{Routes: routes, Refuse: server.Refusal(refuse), Twins: "/v1", Gate: gate}, nil
}

// greet says in three lines what runs, where, and what to type next.
func greet(out io.Writer, c Config, h *house, url string) {
	key := "the key in " + h.dir.File("admin.key")
	switch {
	case c.Dev:
		key = "no key: dev mode lets everybody in"
	case c.AdminKey != "":
		key = "the key you gave"
	case h.keyMade:
		key = h.key + " (made now, shown once, kept in " + h.dir.File("admin.key") + ")"
	}
	fmt.Fprintf(out, "holdfast %s serves decisions at %s on the store %s\n", version(), url, h.dir.Path())
	fmt.Fprintf(out, "admin key: %s\n", key)
	fmt.Fprintf(out, "next: curl -H \"Authorization: Bearer $KEY\" -X PUT %s/v1/tenants/me/jobs/web/capsules/hero/spec -d '{\"actions\":[{\"id\":\"a\"},{\"id\":\"b\"}]}'\n", url)
}
