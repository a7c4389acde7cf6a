package main

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/fault"
	"holdfast/lab"
	"holdfast/lab/load"
)

// labCommand holds the load lab's scenarios.
func labCommand() *cobra.Command {
	var o lab.Options
	c := &cobra.Command{
		Use:   "lab",
		Short: "Measure what this machine and this program can do, and prove what they promise",
	}
	f := c.PersistentFlags()
	f.StringVar(&o.Files.JSON, "json", "", "also write the result to this file as JSON")
	f.StringVar(&o.Files.CSV, "csv", "", "also write the tables to this file as CSV")
	f.StringVar(&o.Files.HTML, "html", "", "also write the result to this file as one HTML page")
	c.AddCommand(labQuick(&o), labLadder(&o), labBudget(&o), labGateway(&o), labLearn(&o), labCrash(&o), labNull())
	return c
}

// benchCommand is one measurement on a server of its own.
func benchCommand() *cobra.Command {
	var o lab.Options
	c := &cobra.Command{
		Use:     "bench DURATION CONCURRENCY churn|keepalive",
		Short:   "Measure shadow decides on a server of its own, and fail if counts differ",
		Example: "  holdfast bench 10s 8 keepalive",
		Args:    cobra.ExactArgs(3),
		RunE: func(c *cobra.Command, args []string) error {
			d, err := duration(args[0])
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return fault.New("bench", fault.Invalid, "%q is not a number of connections", args[1])
			}
			shape, err := load.ParseShape(args[2])
			if err != nil {
				return err
			}
			if err := children(&o); err != nil {
				return err
			}
			return lab.Bench(c.Context(), o, lab.BenchOptions{Duration: d, Connections: n, Shape: shape})
		},
	}
	c.Flags().StringVar(&o.Files.JSON, "json", "", "also write the result to this file as JSON")
	c.Flags().StringVar(&o.Files.CSV, "csv", "", "also write the tables to this file as CSV")
	c.Flags().StringVar(&o.Files.HTML, "html", "", "also write the result to this file as one HTML page")
	return c
}

// duration reads 10s or 1m; a bare number is seconds.
func duration(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return time.Duration(seconds * float64(time.Second)), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fault.New("bench", fault.Invalid, "%q is not a duration such as 10s", text)
	}
	return d, nil
}

// children tells the lab how to start a server and a null server from this very binary.
func children(o *lab.Options) error {
	program, err := os.Executable()
	if err != nil {
		return fault.Wrap("lab", fault.Unavailable, err, "cannot find this program's own file")
	}
	o.Executable = program
	o.Serve = func(data, addr string) []string {
		return []string{"serve", "--data", data, "--addr", addr, "--drain-delay", "0"}
	}
	o.Null = func(addr string, size int) []string {
		return []string{"lab", "null", "--addr", addr, "--size", strconv.Itoa(size)}
	}
	o.Command = "holdfast " + strings.Join(repeatable(os.Args[1:]), " ")
	return nil
}

// repeatable returns arguments fit for a report: without the credential, and without where the report goes.
func repeatable(args []string) []string {
	var kept []string
	for i := 0; i < len(args); i++ {
		name, _, joined := strings.Cut(args[i], "=")
		switch name {
		case "--key", "--json", "--csv", "--html":
			if !joined {
				i++
			}
		default:
			kept = append(kept, args[i])
		}
	}
	return kept
}

func labQuick(o *lab.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "quick",
		Short: "Half a minute: how fast is it here, and what is the bottleneck?",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := children(o); err != nil {
				return err
			}
			return lab.Quick(c.Context(), *o)
		},
	}
}

func labLadder(o *lab.Options) *cobra.Command {
	var plan lab.LadderOptions
	c := &cobra.Command{
		Use:   "ladder",
		Short: "1 to 64 connections, kept and fresh, with the rate limiter's default and without its effect",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := children(o); err != nil {
				return err
			}
			return lab.Ladder(c.Context(), *o, plan)
		},
	}
	c.Flags().IntSliceVar(&plan.Connections, "connections", nil, "steps (default 1,2,4,8,16,32,64)")
	c.Flags().DurationVar(&plan.Each, "each", 3*time.Second, "time per measurement")
	return c
}

func labBudget(o *lab.Options) *cobra.Command {
	var plan lab.BudgetOptions
	c := &cobra.Command{
		Use:   "budget",
		Short: "The decision service against its budgets, as ratios to a bare handler",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := children(o); err != nil {
				return err
			}
			return lab.Budget(c.Context(), *o, plan)
		},
	}
	c.Flags().IntVar(&plan.Blocks, "blocks", 6, "ABBA blocks per comparison")
	c.Flags().DurationVar(&plan.Segment, "segment", 2*time.Second, "time of each of a block's four measurements")
	c.Flags().StringSliceVar(&plan.Only, "only", nil, "parts to run: "+strings.Join(lab.Parts(), ", ")+" (default all)")
	return c
}

func labGateway(o *lab.Options) *cobra.Command {
	var plan lab.GatewayOptions
	c := &cobra.Command{
		Use:   "gateway",
		Short: "The gateway service against its budgets, as ratios to a bare handler",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := children(o); err != nil {
				return err
			}
			return lab.Gateway(c.Context(), *o, plan)
		},
	}
	c.Flags().IntVar(&plan.Blocks, "blocks", 6, "ABBA blocks per comparison")
	c.Flags().DurationVar(&plan.Segment, "segment", 2*time.Second, "time of each of a block's four measurements")
	c.Flags().IntVar(&plan.Merchants, "merchants", 100_000, "of the part merchants")
	c.Flags().StringSliceVar(&plan.Only, "only", nil, "parts to run: "+strings.Join(lab.GatewayParts(), ", ")+" (default all)")
	return c
}

func labLearn(o *lab.Options) *cobra.Command {
	var plan lab.LearnOptions
	c := &cobra.Command{
		Use:     "learn --data FILE --label COLUMN",
		Short:   "Play a labelled table as a bandit over HTTP and show the share of right answers",
		Example: "  holdfast lab learn --data digits.csv.gz --label label --rounds 20000",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := children(o); err != nil {
				return err
			}
			if plan.Key == "" {
				plan.Key = os.Getenv("HOLDFAST_ADMIN_KEY")
			}
			return lab.Learn(c.Context(), *o, plan)
		},
	}
	f := c.Flags()
	f.StringVar(&plan.Data, "data", "", "CSV file with a header, gzipped or not")
	f.StringVar(&plan.Label, "label", "label", "column that holds the right answer")
	f.IntVar(&plan.Rounds, "rounds", 20000, "rounds to play; the rows are repeated in one random order")
	f.Uint64Var(&plan.Seed, "seed", 1, "of the order of rows and of the draws")
	f.StringVar(&plan.URL, "url", "", "a running server (default: one on a throwaway store)")
	f.StringVar(&plan.Key, "key", "", "credential for the running server (default: HOLDFAST_ADMIN_KEY)")
	f.StringVar(&plan.Capsule, "capsule", "", "tenant/job/capsule to learn in (default: a fresh one)")
	f.StringVar(&plan.Spec, "spec", "", `merge patch over the default spec, such as '{"exploration":{"floor":0.02}}'`)
	_ = c.MarkFlagRequired("data") // the flag exists: it was defined above
	return c
}

func labCrash(o *lab.Options) *cobra.Command {
	var plan lab.CrashOptions
	c := &cobra.Command{
		Use:   "crash",
		Short: "Kill a server under load again and again, and look for what it had acknowledged",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := children(o); err != nil {
				return err
			}
			return lab.Crash(c.Context(), *o, plan)
		},
	}
	c.Flags().IntVar(&plan.Cycles, "cycles", 20, "how often to kill it")
	c.Flags().DurationVar(&plan.Load, "load", 500*time.Millisecond, "greatest time under load before a kill")
	c.Flags().Uint64Var(&plan.Seed, "seed", 1, "of the moments")
	return c
}

// labNull is the yardstick the other scenarios start as a child.
func labNull() *cobra.Command {
	var addr string
	var size int
	c := &cobra.Command{
		Use:    "null",
		Short:  "Run the bare handler that others are compared with",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error {
			return lab.Null(c.Context(), addr, size)
		},
	}
	c.Flags().StringVar(&addr, "addr", "127.0.0.1:8788", "where to listen")
	c.Flags().IntVar(&size, "size", 100, "bytes of each answer")
	return c
}
