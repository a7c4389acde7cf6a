package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func configCommand() *cobra.Command {
	check := &cobra.Command{
		Use: "check", Short: "Say what is wrong with the configuration and where, or print what a start would use",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := loadConfig(c.Flags(), environmentOf(os.Environ()))
			if err != nil {
				return err
			}
			fmt.Fprint(c.OutOrStdout(), config.shown())
			return nil
		},
	}
	bindFlags(check.Flags())
	return group(&cobra.Command{Use: "config", Short: "Look at the configuration"}, check)
}
