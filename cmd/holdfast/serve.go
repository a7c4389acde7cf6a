package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"holdfast/server"
)

func serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the services on a real store",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := loadConfig(c.Flags(), environmentOf(os.Environ()))
			if err != nil {
				return err
			}
			return serve(c.Context(), config, serving{out: c.OutOrStdout()})
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
	started func(ctx context.Context, url, key string) // called once requests are answered; may be nil
}

// serve runs until ctx ends or the store fails.
func serve(ctx context.Context, c Config, s serving) (err error) {
	if c.Workers > 0 {
		runtime.GOMAXPROCS(c.Workers)
	}
	server.TuneMemory()
	level := &slog.LevelVar{}
	if first, err := c.level(); err == nil { // checked by loadConfig
		level.Set(first)
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	c.warn(log)
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
	served := make(chan struct{}) // closed when nothing is answered any more
	hurry := make(chan struct{})
	front, err := openFront(ctx, opening{Config: c, house: h, hurry: hurry, level: level, log: log})
	if err != nil {
		return err
	}
	url := "http://" + front.addr.String()
	greet(s.out, c, h, front)

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var beside sync.WaitGroup // what ends with ctx
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	beside.Go(func() { hurryOnSignal(signals, hurry, served) })
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
	close(served)
	stop(nil)
	beside.Wait()
	if front.tracer != nil {
		err = errors.Join(err, front.tracer.Close(context.WithoutCancel(ctx)))
	}
	return err
}

// hurryOnSignal closes hurry at the second signal that asks for the end: the first is main's too, and ends the context.
func hurryOnSignal(signals <-chan os.Signal, hurry chan<- struct{}, served <-chan struct{}) {
	for range 2 {
		select {
		case <-signals:
		case <-served:
			return
		}
	}
	close(hurry)
}

// warn says once what of the configuration does not do what its reader might think.
func (c *Config) warn(log *slog.Logger) {
	if len(c.gateway.ignored) > 0 {
		log.Warn("some of the configuration does not apply here and is ignored", "names", strings.Join(c.gateway.ignored, ", "))
	}
	if c.gateway.authOff {
		log.Warn("api_key_auth_enabled is false: the gateway API answers everybody")
	}
	if c.GatewayPermissive {
		log.Warn("gateway-permissive: every credential of the gateway API reaches every merchant")
	}
}

// greet says in a few lines what runs, where, and what to type next.
func greet(out io.Writer, c Config, h *house, f *front) {
	key := "the key in " + h.dir.File("admin.key")
	switch {
	case c.Dev:
		key = "no key: dev mode lets everybody in"
	case c.AdminKey != "":
		key = "the key you gave"
	case h.keyMade:
		key = h.key + " (made now, shown once, kept in " + h.dir.File("admin.key") + ")"
	}
	url := "http://" + f.addr.String()
	fmt.Fprintf(out, "holdfast %s serves %s at %s on the store %s\n", version(), strings.Join(c.Services, ", "), url, h.dir.Path())
	if f.gatewayAddr != nil {
		fmt.Fprintf(out, "the gateway API alone: http://%s\n", f.gatewayAddr)
	}
	if f.metricsAddr != nil {
		fmt.Fprintf(out, "its metrics: http://%s/metrics\n", f.metricsAddr)
	}
	fmt.Fprintf(out, "admin key: %s\n", key)
	if slices.Contains(c.Services, "decision") {
		fmt.Fprintf(out, "next: curl -H \"Authorization: Bearer $KEY\" -X PUT %s/v1/tenants/me/jobs/web/capsules/hero/spec -d '{\"actions\":[{\"id\":\"a\"},{\"id\":\"b\"}]}'\n", url)
		return
	}
	fmt.Fprintf(out, "next: curl -H \"x-admin-secret: $KEY\" -H \"content-type: application/json\" %s/merchant-account/create -d '{\"merchant_id\":\"shop\"}'\n", url)
}
