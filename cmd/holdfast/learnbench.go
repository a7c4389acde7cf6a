package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"holdfast/decision"
)

func learnBenchCommand() *cobra.Command {
	var rounds, seeds int
	var seed uint64
	c := &cobra.Command{
		Use:   "learn-bench",
		Short: "Play the published learning problems and print share of the best reward and regret per round",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if rounds < 10 || seeds < 1 {
				return &exit{2, fmt.Errorf("--rounds must be at least 10 and --seeds at least 1")}
			}
			out := c.OutOrStdout()
			policies := []decision.BenchPolicy{decision.BenchSquareCB, decision.BenchEpsilonGreedy, decision.BenchUniform}
			fmt.Fprintf(out, "%-10s", "")
			for _, p := range policies {
				fmt.Fprintf(out, "%-18s", p)
			}
			for _, problem := range []decision.Problem{decision.Segments, decision.Drift, decision.Catalog} {
				fmt.Fprintf(out, "\n%-10s", problem)
				for _, p := range policies {
					s := decision.Simulation{Problem: problem, Policy: p, Rounds: rounds, Seed: seed}
					o, err := s.Mean(c.Context(), seeds)
					if err != nil {
						return err
					}
					fmt.Fprintf(out, "%-18s", o)
				}
			}
			fmt.Fprintln(out)
			return nil
		},
	}
	f := c.Flags()
	f.IntVar(&rounds, "rounds", 20000, "rounds of one run")
	f.IntVar(&seeds, "seeds", 5, "runs that are averaged, with seeds that follow one another")
	f.Uint64Var(&seed, "seed", 1000, "the first seed")
	return c
}
