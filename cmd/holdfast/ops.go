package main

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"holdfast/store"
)

// askTime bounds how long a running server may take to say that it is well.
const askTime = 5 * time.Second

// target is the running server that a command is about.
type target struct {
	addr, data string
	port       int
}

func (t *target) bind(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&t.addr, "addr", defaults().Addr, "where the server listens")
	f.IntVar(&t.port, "port", 0, "its port on 127.0.0.1, instead of --addr")
	f.StringVar(&t.data, "data", "", "its data folder (default: whichever process listens on the port)")
	f.SetNormalizeFunc(storeIsData)
}

// resolve fills in whichever of address and port was not given.
func (t *target) resolve() error {
	if t.port != 0 {
		t.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(t.port))
		return nil
	}
	_, port, err := net.SplitHostPort(t.addr)
	if err == nil {
		t.port, err = strconv.Atoi(port)
	}
	if err != nil {
		return &exit{2, fmt.Errorf("--addr %q is not host:port", t.addr)}
	}
	return nil
}

// health asks the server and returns the body of a good answer.
func (t *target) health(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+t.addr+"/health", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", t.addr, resp.Status)
	}
	return body, err
}

// pid is the process of the server: the one that holds the data folder when one was named, else the one that listens on the
// port. It is 0 when there is none.
func (t *target) pid() int {
	if t.data == "" {
		return listenerOf(t.port)
	}
	pid, held, err := store.Holder(t.data)
	if err != nil || !held {
		return 0
	}
	return pid
}

func healthCommand() *cobra.Command {
	var t target
	c := &cobra.Command{
		Use: "health", Short: "Ask the running server whether it is well", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := t.resolve(); err != nil {
				return err
			}
			body, err := t.health(c.Context())
			if err != nil {
				return fmt.Errorf("no healthy server at %s: %w", t.addr, err)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s\n", body)
			return nil
		},
	}
	t.bind(c)
	return c
}

func statusCommand() *cobra.Command {
	var t target
	c := &cobra.Command{
		Use: "status", Short: "Say whether a server runs, on which port and as which process", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := t.resolve(); err != nil {
				return err
			}
			_, err := t.health(c.Context())
			state := struct {
				Running bool `json:"running"`
				Port    int  `json:"port"`
				PID     int  `json:"pid,omitzero"`
			}{err == nil, t.port, t.pid()}
			return printJSON(c.OutOrStdout(), state)
		},
	}
	t.bind(c)
	return c
}

func stopCommand() *cobra.Command {
	var t target
	c := &cobra.Command{
		Use: "stop", Short: "Ask the running server to finish its work and end", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := t.resolve(); err != nil {
				return err
			}
			state := struct {
				Stopped bool   `json:"stopped"`
				Port    int    `json:"port"`
				PID     int    `json:"pid,omitzero"`
				Signal  string `json:"signal,omitzero"`
			}{Port: t.port}
			pid := t.pid()
			if pid == 0 {
				return &exit{1, printJSON(c.OutOrStdout(), state)}
			}
			if !ours(pid) {
				return fmt.Errorf("process %d is no holdfast; it is left alone", pid)
			}
			if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
				return fmt.Errorf("process %d cannot be signalled: %w", pid, err)
			}
			state.Stopped, state.PID, state.Signal = true, pid, "TERM"
			return printJSON(c.OutOrStdout(), state)
		},
	}
	t.bind(c)
	return c
}

// ours reports whether pid runs this very program, so that a number left in a file never hits a stranger.
func ours(pid int) bool {
	mine, err := os.Executable()
	if err != nil {
		return false
	}
	theirs, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
	if err != nil {
		return false
	}
	theirs = strings.TrimSuffix(theirs, " (deleted)") // replaced by an upgrade while it ran
	return theirs == mine || filepath.Base(theirs) == filepath.Base(mine)
}

func printJSON(out io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", text)
	return err
}
