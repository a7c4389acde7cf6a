package decision

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// The published table: mean over seeds 1000..1004 of 20,000 rounds, to the printed digits. One share, catalog with
// uniform, reaches its printed third digit only when rounded by way of four (see Outcome.String), so that the fourth is
// held here as well.
func TestLearningTable(t *testing.T) {
	type cell struct{ printed, share string }
	table := map[Problem][3]cell{
		Segments: {{"0.986 / 0.0155", "0.9855"}, {"0.965 / 0.0303", "0.9649"}, {"0.755 / 0.1756", "0.7554"}},
		Drift:    {{"0.985 / 0.0278", "0.9850"}, {"0.963 / 0.0363", "0.9627"}, {"0.761 / 0.1756", "0.7614"}},
		Catalog:  {{"0.792 / 0.1980", "0.7919"}, {"0.782 / 0.2044", "0.7822"}, {"0.597 / 0.3239", "0.5965"}},
	}
	for problem, row := range table {
		for policy, want := range row {
			t.Run(fmt.Sprint(problem, "/", BenchPolicy(policy)), func(t *testing.T) {
				t.Parallel()
				s := Simulation{Problem: problem, Policy: BenchPolicy(policy), Rounds: 20_000, Seed: 1000}
				o, err := s.Mean(t.Context(), 5)
				if err != nil {
					t.Fatal(err)
				}
				if got := (cell{o.String(), fmt.Sprintf("%.4f", o.Share)}); got != want {
					t.Errorf("got %v, want %v", got, want)
				}
			})
		}
	}
}

func TestSimulationStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Simulation{Rounds: 5000}).Mean(ctx, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestSimulationIsRepeatable(t *testing.T) {
	s := Simulation{Problem: Catalog, Policy: BenchSquareCB, Rounds: 200, Seed: 7}
	first, _ := s.Run(t.Context())
	second, _ := s.Run(t.Context())
	s.Seed = 8
	other, _ := s.Run(t.Context())
	if first != second || first == other {
		t.Errorf("%v, again %v, another seed %v", first, second, other)
	}
}
