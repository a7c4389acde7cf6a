package main

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/decision"
)

// evaluation is one run of the evaluate command.
type evaluation struct {
	query                      decision.EvaluateRequest
	input, data, capsule       string
	policy, gates, rewardRange string
	aggregation, format, out   string
	failOnGate                 bool
	current, candidate         *decision.Spec
}

func evaluateCommand() *cobra.Command {
	e := evaluation{query: decision.DefaultEvaluation()}
	c := &cobra.Command{
		Use:   "evaluate",
		Short: "Say what another policy would have earned on logged decisions (exit 1: a gate failed, 2: usage or data)",
		Example: "  holdfast evaluate --data ./holdfast-data --capsule me/web/hero --policy greedy\n" +
			"  holdfast evaluate --input rows.jsonl --policy spec:candidate.json --gates gates.txt --fail-on-gate",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			report, err := e.run(c.Context())
			if err != nil {
				return &exit{2, err}
			}
			if err := e.print(c.OutOrStdout(), report); err != nil {
				return err
			}
			if e.failOnGate && !report.GatesPassed {
				return &exit{1, errors.New("a gate failed")}
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&e.input, "input", "", "decisions as JSON lines, such as export prints")
	f.StringVar(&e.data, "data", defaults().Data, "the data folder, with --capsule")
	f.StringVar(&e.capsule, "capsule", "", "TENANT/JOB/CAPSULE of the data folder")
	f.StringVar(&e.policy, "policy", "logged", "logged, greedy, constant:ID, spec:FILE (a patch), candidate:FILE (a whole spec) or target-column")
	f.IntVar(&e.query.Folds, "folds", e.query.Folds, "folds of the reward model, 2 to 100")
	f.IntVar(&e.query.Bootstrap, "bootstrap", e.query.Bootstrap, "resamples, 100 to 100000, or 0 for normal intervals")
	f.Uint64Var(&e.query.Seed, "seed", e.query.Seed, "of the resamples")
	f.Float64Var(&e.query.WMax, "w-max", e.query.WMax, "the largest importance weight")
	f.StringVar(&e.rewardRange, "reward-range", "", "LO,HI of the rewards (default: as observed)")
	f.StringVar(&e.aggregation, "reward-aggregation", "", "first or sum (default: the capsule's, first for a file)")
	f.StringVar(&e.gates, "gates", "", "file with one gate a line")
	f.StringVar(&e.format, "format", "json", "json or markdown")
	f.StringVar(&e.out, "out", "", "file to write instead of printing")
	f.BoolVar(&e.failOnGate, "fail-on-gate", false, "exit with 1 when a gate fails")
	f.SetNormalizeFunc(storeIsData)
	return c
}

func (e *evaluation) run(ctx context.Context) (*decision.Report, error) {
	switch {
	case (e.input == "") == (e.capsule == ""):
		return nil, errors.New("give --input, or --capsule with --data")
	case e.format != "json" && e.format != "markdown":
		return nil, fmt.Errorf("--format %q: use json or markdown", e.format)
	case e.aggregation != "" && e.aggregation != "first" && e.aggregation != "sum":
		return nil, fmt.Errorf("--reward-aggregation %q: use first or sum", e.aggregation)
	}
	if err := e.readGates(); err != nil {
		return nil, err
	}
	if err := e.readRange(); err != nil {
		return nil, err
	}
	log, err := e.read(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.choose(); err != nil {
		return nil, err
	}
	report, err := decision.EvaluateRows(ctx, log, e.query, e.current, e.candidate)
	if err != nil {
		return nil, told(err)
	}
	return report, nil
}

func (e *evaluation) readGates() error {
	if e.gates == "" {
		return nil
	}
	text, err := os.ReadFile(e.gates)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			e.query.Gates = append(e.query.Gates, line)
		}
	}
	return nil
}

func (e *evaluation) readRange() error {
	if e.rewardRange == "" {
		return nil
	}
	lo, hi, ok := strings.Cut(e.rewardRange, ",")
	var r [2]float64
	var err, err2 error
	r[0], err = strconv.ParseFloat(strings.TrimSpace(lo), 64)
	r[1], err2 = strconv.ParseFloat(strings.TrimSpace(hi), 64)
	if !ok || err != nil || err2 != nil {
		return fmt.Errorf("--reward-range %q: use LO,HI", e.rewardRange)
	}
	e.query.Range = &r
	return nil
}

// read gathers the rows and the spec they were logged under.
func (e *evaluation) read(ctx context.Context) (log decision.Evidence, err error) {
	if e.input != "" {
		patch := "{}"
		if e.aggregation != "" {
			patch = fmt.Sprintf(`{"rewards":%q}`, e.aggregation)
		}
		if e.current, err = decision.ParseSpec([]byte(patch)); err != nil {
			return log, told(err)
		}
		f, err := os.Open(e.input)
		if err != nil {
			return log, err
		}
		log.Rows, err = decision.ReadRows(f, e.current.Rewards)
		if err = errors.Join(err, f.Close()); err != nil {
			return log, told(err)
		}
		return log, nil
	}
	id, err := parseCapsule(e.capsule)
	if err != nil {
		return log, err
	}
	err = withDecisions(ctx, e.data, func(s decision.Storage) error {
		return s.Read(ctx, func(v decision.View) error {
			row, err := v.Capsule(id)
			if err != nil {
				return err
			}
			text := row.Spec
			if e.aggregation != "" {
				if text, err = decision.MergePatch(text, fmt.Appendf(nil, `{"rewards":%q}`, e.aggregation)); err != nil {
					return err
				}
			}
			if e.current, err = decision.ParseSpec(text); err != nil {
				return err
			}
			log, err = decision.ReadEvidence(ctx, v, row.Key, decision.Span{}, e.current.Rewards)
			return err
		})
	})
	if err != nil {
		return log, told(err)
	}
	return log, nil
}

// choose turns --policy into a named policy or a candidate.
func (e *evaluation) choose() error {
	kind, file, _ := strings.Cut(e.policy, ":")
	if kind != "spec" && kind != "candidate" {
		e.query.Policy = e.policy
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	base := decision.Defaults()
	if kind == "spec" {
		base = e.current.Text
	}
	full, err := decision.MergePatch(base, text)
	if err == nil {
		e.candidate, err = decision.ParseSpec(full)
	}
	if err != nil {
		return told(err)
	}
	e.query.Spec = text
	return nil
}

func (e *evaluation) print(out io.Writer, r *decision.Report) (err error) {
	if e.out != "" {
		f, err := os.Create(e.out)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = f
	}
	if e.format == "json" {
		text, err := json.Marshal(r, jsontext.WithIndent("  "))
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s\n", text)
		return err
	}
	_, err = io.WriteString(out, markdown(r))
	return err
}

// markdown is the report for a reader.
func markdown(r *decision.Report) string {
	var b strings.Builder
	number := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return strconv.FormatFloat(*v, 'g', 6, 64)
	}
	fmt.Fprintf(&b, "# %s on %d decisions\n\n", r.Policy, r.Data.Rows)
	fmt.Fprintf(&b, "| | estimate | lower | upper | lift | lower | upper |\n|---|---|---|---|---|---|---|\n")
	fmt.Fprintf(&b, "| logged | %s | %s | %s | | | |\n", number(r.Logged.Mean), number(r.Logged.Lower), number(r.Logged.Upper))
	fmt.Fprintf(&b, "| dm | %s | | | %s | | |\n", number(r.Estimators.DM.Estimate), number(r.Lift.DM.Mean))
	for _, row := range []struct {
		name string
		v    decision.Interval
		l    decision.Lift
	}{{"ips", r.Estimators.IPS, r.Lift.IPS}, {"snips", r.Estimators.SNIPS, r.Lift.SNIPS}, {"dr", r.Estimators.DR, r.Lift.DR}} {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", row.name, number(row.v.Estimate), number(row.v.Lower), number(row.v.Upper),
			number(row.l.Mean), number(row.l.Lower), number(row.l.Upper))
	}
	d := r.Diagnostics
	fmt.Fprintf(&b, "\nEffective sample size %s, coverage %s, largest weight %s, %d clipped.\n", number(d.ESS), number(d.Coverage), number(d.MaxWeight), d.ClippedRows)
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "\nWarning: %s.\n", w)
	}
	for _, g := range r.Gates {
		verdict := "fails"
		if g.Pass {
			verdict = "passes"
		}
		fmt.Fprintf(&b, "\nGate `%s` %s (%s against %s).\n", g.Check, verdict, number(g.Left), number(g.Right))
	}
	return b.String()
}
