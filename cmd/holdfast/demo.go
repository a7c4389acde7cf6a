package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
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
			if !config.given["drain-delay"] {
				config.DrainDelay = 0 // nobody balances load over a demo
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
				started: func(ctx context.Context, url, key string) { watch(ctx, out, config, url, key) }})
		},
	}
	bindFlags(c.Flags())
	return c
}

// payRate is how many payments a second the demo's shop takes.
const payRate = 80

// watch plays the demo's traffic and shows once a second how well it is answered.
func watch(ctx context.Context, out io.Writer, c Config, url, key string) {
	seed := uint64(time.Now().UnixNano())
	show := &show{out: out}
	if slices.Contains(c.Services, "decision") {
		show.traffic = &lab.Traffic{URL: url, Key: key, Capsule: "/v1/tenants/demo/jobs/llm/capsules/router", Rate: demoRate, Seed: seed}
		fmt.Fprintln(out, "demo: three language models answer simulated requests; which one pays off depends on the request")
	}
	if slices.Contains(c.Services, "gateway") {
		show.checkout = &lab.Checkout{URL: url, Secret: key, Merchant: "demo_shop", Rate: payRate, Seed: seed}
		fmt.Fprintln(out, "demo: a shop pays over three gateways; the best one, alphapay, degrades after 12 s and recovers, again and again")
	}
	fmt.Fprintf(out, "watch it at %s/ (sign in with the key above); stop with Ctrl-C\n", url)
	show.run(ctx)
}

// show is the demo's traffic and the lines about it.
type show struct {
	out      io.Writer
	traffic  *lab.Traffic  // nil without the decision service
	checkout *lab.Checkout // nil without the gateway service
}

// run plays until ctx ends or nothing is left that plays.
func (s *show) run(ctx context.Context) {
	var playing sync.WaitGroup // both end with ctx
	play := func(what string, run func(context.Context) error) {
		playing.Go(func() {
			if err := run(ctx); err != nil {
				fmt.Fprintf(s.out, "demo: the %s stopped: %v\n", what, err)
			}
		})
	}
	if s.traffic != nil {
		play("traffic", s.traffic.Run)
	}
	if s.checkout != nil {
		play("payments", s.checkout.Run)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var last lab.Progress
	var paid lab.CheckoutProgress
	for {
		select {
		case <-ctx.Done():
			playing.Wait()
			return
		case <-tick.C:
		}
		if s.traffic != nil {
			now := s.traffic.Progress()
			fmt.Fprintln(s.out, progressLine(last, now))
			last = now
		}
		if s.checkout != nil {
			now := s.checkout.Progress()
			fmt.Fprintln(s.out, checkoutLine(s.checkout.GatewayNames(), paid, now))
			paid = now
		}
	}
}

// checkoutLine shows one second of payments: how many succeeded, what share each gateway had, and how well the sick one is.
func checkoutLine(names [3]string, last, now lab.CheckoutProgress) string {
	payments := now.Payments - last.Payments
	rate := 0.0
	if payments > 0 {
		rate = float64(now.Successes-last.Successes) / float64(payments)
	}
	const width = 30
	var b strings.Builder
	fmt.Fprintf(&b, "%5d payments/s  %5.1f %% succeed  ", payments, 100*rate)
	for i, letter := range "AMK" {
		share := 0.0
		if payments > 0 {
			share = float64(now.Shares[i]-last.Shares[i]) / float64(payments)
		}
		b.WriteString(strings.Repeat(string(letter), int(share*width+0.5)))
	}
	fmt.Fprintf(&b, "  %s %.0f %% of the traffic, succeeds in %.0f %%", names[0], 100*float64(now.Shares[0]-last.Shares[0])/float64(max(payments, 1)), 100*now.Sick)
	if now.Failures > 0 {
		fmt.Fprintf(&b, "  unanswered %d", now.Failures)
	}
	return b.String()
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
