package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/decision"
	"holdfast/store"
	"holdfast/store/decisions"
	"holdfast/wire/decisionapi"
)

func exportCommand() *cobra.Command {
	var data, capsule, out string
	c := &cobra.Command{
		Use:   "export --capsule TENANT/JOB/CAPSULE",
		Short: "Print a capsule's decisions with their rewards as JSON lines, also while the store is served",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			id, err := parseCapsule(capsule)
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			if out != "" {
				f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, f.Close()) }()
				w = f
			}
			return withDecisions(c.Context(), data, func(s decision.Storage) error { return export(c.Context(), s, id, w) })
		},
	}
	f := c.Flags()
	f.StringVar(&data, "data", defaults().Data, "the data folder")
	f.StringVar(&capsule, "capsule", "", "which capsule")
	f.StringVar(&out, "out", "", "a file that does not exist yet (default: print)")
	f.SetNormalizeFunc(storeIsData)
	_ = c.MarkFlagRequired("capsule") // defined above
	return c
}

// parseCapsule reads TENANT/JOB/CAPSULE.
func parseCapsule(text string) (decision.CapsuleID, error) {
	part := strings.Split(text, "/")
	if len(part) != 3 || !decision.ValidName(part[0]) || !decision.ValidName(part[1]) || !decision.ValidName(part[2]) {
		return decision.CapsuleID{}, &exit{2, fmt.Errorf("--capsule must be TENANT/JOB/CAPSULE, not %q", text)}
	}
	return decision.CapsuleID{Tenant: part[0], Job: part[1], Capsule: part[2]}, nil
}

// withDecisions opens the decision service's database for reading only.
func withDecisions(ctx context.Context, data string, use func(decision.Storage) error) error {
	db, err := store.Open(ctx, store.Options{Path: filepath.Join(data, decisionsFile), ReadOnly: true})
	if err != nil {
		return err
	}
	return errors.Join(use(decisions.New(db)), db.Close(ctx))
}

// export writes one line for each decision, in the order of the log. All lines show one moment of the store.
func export(ctx context.Context, s decision.Storage, id decision.CapsuleID, out io.Writer) error {
	w := bufio.NewWriterSize(out, 1<<16)
	err := s.Read(ctx, func(v decision.View) error {
		row, err := v.Capsule(id)
		if err != nil {
			return err
		}
		var line []byte
		return v.Batches(row.Key, decision.BatchQuery{}, func(b decision.Batch) (bool, error) {
			var failed error
			err := decision.DecodePayload(b.Payload, func(d decision.Decision) bool {
				rewards, err := v.RewardsOf(row.Key, d.ID)
				if err == nil {
					line = append(decisionapi.AppendDecision(line[:0], &d, rewards), '\n')
					_, err = w.Write(line)
				}
				failed = err
				return err == nil && ctx.Err() == nil
			})
			return true, errors.Join(err, failed, ctx.Err())
		})
	})
	return errors.Join(err, w.Flush())
}
