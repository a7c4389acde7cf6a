// Command holdfast is the whole of Holdfast in one binary: the services, the load lab and the tools around the store.
//
// It wires everything and decides nothing: what a request means is in the services, what a URL is called is in routes.go,
// what a start can be told is in config.go. Only main exits.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := root().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	code := 1
	if e, ok := errors.AsType[*exit](err); ok {
		code, err = e.code, e.err
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "holdfast:", err)
	}
	os.Exit(code)
}

// exit is an error that ends the process with a status of its own. A nil err has been told already.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

func root() *cobra.Command {
	c := &cobra.Command{
		Use:           "holdfast",
		Short:         "Services for the request path: answer fast, acknowledge only what is on disk",
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	c.SetVersionTemplate("holdfast {{.Version}}\n")
	c.CompletionOptions.HiddenDefaultCmd = true
	c.AddCommand(commands()...)
	return c
}

// group runs a command that only holds others: it shows them, and an unknown one is an error.
func group(c *cobra.Command, children ...*cobra.Command) *cobra.Command {
	c.Args = cobra.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.AddCommand(children...)
	return c
}
