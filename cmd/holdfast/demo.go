package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/lab"
)

// demoRate is how many decisions a second the simulated users ask for: enough to watch it learn, far below the limiter.
const demoRate = 150

func demoCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "demo",
		Short: "Everything in a throwaway folder, with simulated traffic that visibly learns",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := loadConfig(c.Flags(), environmentOf(os.Environ()))
			if err != nil {
				return err
			}
			if !config.given["log-level"] {
				config.LogLevel = "warn" // the demo's own lines are what people look at
			}
			if !c.Flags().Changed("data") {
				if config.Data, err = os.MkdirTemp("", "holdfast-demo-"); err != nil {
					return err
				}
				defer os.RemoveAll(config.Data)
			}
			out := c.OutOrStdout()
			return serve(c.Context(), config, serving{out: out,
				started: func(ctx context.Context, url, key string) { watch(ctx, out, url, key) }})
		},
	}
	bindFlags(c.Flags())
	return c
}

// watch plays the demo's traffic and shows once a second how well it is answered.
func watch(ctx context.Context, out io.Writer, url, key string) {
	traffic := &lab.Traffic{URL: url, Key: key, Capsule: "/v1/tenants/demo/jobs/llm/capsules/router", Rate: demoRate, Seed: uint64(time.Now().UnixNano())}
	done := make(chan error, 1)
	go func() { done <- traffic.Run(ctx) }() // ends with ctx; its end is awaited below
	fmt.Fprintf(out, "demo: three language models answer simulated requests; which one pays off depends on the request\n")
	fmt.Fprintf(out, "watch it at %s/ (sign in with the key above); stop with Ctrl-C\n", url)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var last lab.Progress
	for {
		select {
		case err := <-done:
			if err != nil {
				fmt.Fprintln(out, "demo: the traffic stopped:", err)
			}
			return
		case <-tick.C:
			now := traffic.Progress()
			fmt.Fprintln(out, progressLine(last, now))
			last = now
		}
	}
}

// progressLine shows one second: its decisions, and the share of the best possible reward in it as number and bar.
func progressLine(last, now lab.Progress) string {
	share := 0.0
	if best := now.Best - last.Best; best > 0 {
		share = (now.Earned - last.Earned) / best
	}
	const width = 40
	filled := min(max(int(share*width+0.5), 0), width)
	return fmt.Sprintf("%5d decisions/s  %8d in all  %5.1f %% of the best possible reward  %s%s  failures %d",
		now.Decisions-last.Decisions, now.Decisions, 100*share, strings.Repeat("#", filled), strings.Repeat(".", width-filled), now.Failures)
}
