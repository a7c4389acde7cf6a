package main

import "github.com/spf13/cobra"

// commands are all there are, in the order that help shows them.
func commands() []*cobra.Command {
	return []*cobra.Command{
		serveCommand(), demoCommand(), healthCommand(), statusCommand(), stopCommand(),
		backupCommand(), restoreCommand(), doctorCommand(), exportCommand(), evaluateCommand(),
		labCommand(), benchCommand(), learnBenchCommand(), configCommand(), versionCommand(),
	}
}
