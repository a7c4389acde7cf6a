package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"holdfast/decision"
	"holdfast/fault"
	"holdfast/store"
	"holdfast/store/decisions"
)

func backupCommand() *cobra.Command {
	var data, out string
	c := &cobra.Command{
		Use: "backup --out FOLDER", Short: "Copy a store, also while it is served", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			m, err := store.Backup(c.Context(), data, out)
			if err != nil {
				return err
			}
			return printJSON(c.OutOrStdout(), struct {
				OK         bool   `json:"ok"`
				Out        string `json:"out"`
				Files      int    `json:"files"`
				EventStore bool   `json:"eventStore"`
			}{true, out, len(m.Files), contains(m, decisionsFile)})
		},
	}
	f := c.Flags()
	f.StringVar(&data, "data", defaults().Data, "the data folder")
	f.StringVar(&out, "out", "", "a folder that does not exist yet")
	f.SetNormalizeFunc(storeIsData)
	_ = c.MarkFlagRequired("out") // defined above
	return c
}

func contains(m store.Manifest, name string) bool {
	for _, f := range m.Files {
		if f.Name == name {
			return true
		}
	}
	return false
}

func restoreCommand() *cobra.Command {
	var o store.RestoreOptions
	c := &cobra.Command{
		Use: "restore --from FOLDER --into FOLDER", Short: "Put a backup in the place of a store, and keep the old one beside it", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := store.Restore(c.Context(), o)
			if err != nil {
				return err
			}
			return printJSON(c.OutOrStdout(), struct {
				OK    bool   `json:"ok"`
				Into  string `json:"into"`
				Files int    `json:"files"`
				Kept  string `json:"kept,omitzero"`
			}{true, o.Into, len(r.Manifest.Files), r.Kept})
		},
	}
	f := c.Flags()
	f.StringVar(&o.From, "from", "", "the backup")
	f.StringVar(&o.Into, "into", defaults().Data, "the data folder to replace")
	f.BoolVar(&o.Force, "force", false, "even while a process holds the data folder")
	_ = c.MarkFlagRequired("from") // defined above
	return c
}

// finding is one line of a doctor's report.
type finding struct {
	File string `json:"file"`
	What string `json:"what"`
}

func doctorCommand() *cobra.Command {
	var data string
	var asJSON bool
	c := &cobra.Command{
		Use: "doctor", Short: "Look for damage in a store without changing it (exit 0 clean, 1 findings, 2 no store)", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			report, err := store.Check(c.Context(), data)
			if err != nil {
				if fault.KindOf(err) == fault.NotFound {
					return &exit{2, err}
				}
				return err
			}
			findings := []finding{}
			for _, f := range report.Findings {
				findings = append(findings, finding{f.File, f.What})
			}
			more, err := examine(c.Context(), filepath.Join(data, decisionsFile))
			if err != nil {
				return err
			}
			findings = append(findings, more...)
			if asJSON {
				err = printJSON(c.OutOrStdout(), struct {
					OK       bool      `json:"ok"`
					Files    int       `json:"files"`
					Findings []finding `json:"findings"`
				}{len(findings) == 0, len(report.Files), findings})
			} else {
				for _, f := range findings {
					fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", f.File, f.What)
				}
				fmt.Fprintf(c.OutOrStdout(), "%d files looked at, %d findings\n", len(report.Files), len(findings))
			}
			if len(findings) > 0 {
				return &exit{1, err}
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&data, "data", defaults().Data, "the data folder")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.SetNormalizeFunc(storeIsData)
	return c
}

// examine looks at what the decision service keeps: specs, log, tallies and models.
func examine(ctx context.Context, file string) ([]finding, error) {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	db, err := store.Open(ctx, store.Options{Path: file, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	found, err := decisions.New(db).Check(ctx, decisions.Probe{
		Records:  decision.Records,
		Snapshot: func(text []byte) error { _, _, err := decision.DecodeSnapshot(text); return err },
		Spec:     func(text []byte) error { _, err := decision.ParseSpec(text); return err },
	})
	if err = errors.Join(err, db.Close(ctx)); err != nil {
		return nil, err
	}
	list := make([]finding, len(found))
	for i, f := range found {
		list[i] = finding{decisionsFile, f.What}
		if f.Capsule != (decision.CapsuleID{}) {
			list[i].What = f.Capsule.String() + ": " + f.What
		}
	}
	return list, nil
}
