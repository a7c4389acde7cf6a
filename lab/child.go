package lab

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"holdfast/fault"
	"holdfast/lab/load"
)

// Limit is the rate limiter a server is started with.
type Limit struct {
	Rate  float64 // requests per second
	Burst float64
}

// within is how many requests the limiter accepts under saturating load in d, from a full bucket.
func (l Limit) within(d time.Duration) float64 { return l.Rate*d.Seconds() + l.Burst }

// The limiter's default, and one that no lab reaches.
var (
	defaultLimit = Limit{Rate: 1000, Burst: 2000}
	raisedLimit  = Limit{Rate: 10_000_000, Burst: 10_000_000}
)

// child is a server this process started.
type child struct {
	addr   string // host:port
	key    string // operator key; empty for the null server
	cmd    *exec.Cmd
	dir    string        // everything it wrote
	exited chan struct{} // closed when the process is gone
	env    []string      // its own settings
}

// serve starts a server on a throwaway store under the given limiter and waits until it is ready.
func (r *run) serve(ctx context.Context, limit Limit) (*child, error) {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	c := &child{key: hex.EncodeToString(secret)}
	c.env = []string{"HOLDFAST_ADMIN_KEY=" + c.key,
		"SYNTRA_RATE_LIMIT_RPS=" + strconv.FormatFloat(limit.Rate, 'f', -1, 64),
		"SYNTRA_RATE_LIMIT_BURST=" + strconv.FormatFloat(limit.Burst, 'f', -1, 64)}
	return c, c.start(ctx, r.command(c.env), func(addr string) []string { return r.Serve(filepath.Join(c.dir, "data"), addr) })
}

// null starts the bare handler that answers size bytes.
func (r *run) null(ctx context.Context, size int) (*child, error) {
	c := &child{}
	return c, c.start(ctx, r.command(nil), func(addr string) []string { return r.Null(addr, size) })
}

// command returns the child's command without arguments. The user's own settings of a server are left out: they name a
// store and a database that are not the lab's.
func (r *run) command(extra []string) *exec.Cmd {
	env := r.Env
	if env == nil {
		env = os.Environ()
	}
	env = slices.DeleteFunc(slices.Clone(env), func(pair string) bool {
		return strings.HasPrefix(pair, "HOLDFAST_") || strings.HasPrefix(pair, "SYNTRA_") || strings.HasPrefix(pair, "LYCAN_")
	})
	return &exec.Cmd{Path: r.Executable, Env: append(env, extra...)}
}

// start runs the command in a throwaway folder on a free port and waits for its readiness. On an error nothing is left
// behind.
func (c *child) start(ctx context.Context, cmd *exec.Cmd, arguments func(addr string) []string) error {
	var err error
	if c.dir, err = os.MkdirTemp("", "holdfast-lab-"); err != nil {
		return fault.Wrap("lab.Child", fault.Unavailable, err, "no throwaway folder")
	}
	if c.addr, err = freePort(); err != nil {
		return c.giveUp(err, "no free loopback port")
	}
	return c.launch(ctx, cmd, arguments(c.addr))
}

// launch runs the command in the child's folder and waits for its readiness.
func (c *child) launch(ctx context.Context, cmd *exec.Cmd, arguments []string) error {
	output, err := os.Create(filepath.Join(c.dir, "output"))
	if err != nil {
		return c.giveUp(err, "no place for the server's output")
	}
	cmd.Args = append([]string{cmd.Path}, arguments...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = output, output, dieWithParent()
	exited, started := make(chan struct{}), make(chan error)
	c.cmd, c.exited = cmd, exited
	go func() {
		// The kernel ties the child's life to the thread that started it, so that thread stays until the child is gone.
		runtime.LockOSThread()
		defer close(exited)
		defer output.Close()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its output
		}
	}()
	if err := <-started; err != nil {
		return c.giveUp(err, "cannot start "+filepath.Base(cmd.Path))
	}
	return c.await(ctx)
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// await polls /ready until it answers 200.
func (c *child) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		if request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.addr+"/ready", nil); err == nil {
			if answer, err := client.Do(request); err == nil {
				_ = answer.Body.Close()
				if answer.StatusCode == http.StatusOK {
					return nil
				}
			}
		}
		select {
		case <-c.exited:
			return c.giveUp(nil, "the server ended before it was ready; its last words: "+c.lastWords())
		case <-ctx.Done():
			return c.giveUp(ctx.Err(), "the server was not ready in time; its last words: "+c.lastWords())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// lastWords returns the end of the child's output on one line.
func (c *child) lastWords() string {
	raw, err := os.ReadFile(filepath.Join(c.dir, "output"))
	raw = bytes.TrimSpace(raw)
	if err != nil || len(raw) == 0 {
		return "(none)"
	}
	return string(bytes.ReplaceAll(raw[max(0, len(raw)-600):], []byte("\n"), []byte(" | ")))
}

func (c *child) giveUp(cause error, text string) error {
	c.stop()
	return fault.Wrap("lab.Child", fault.Unavailable, cause, text)
}

// stop ends the process, politely first, waits for it and removes what it wrote.
func (c *child) stop() {
	if c.cmd != nil && c.cmd.Process != nil {
		_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
		select {
		case <-c.exited:
		case <-time.After(35 * time.Second):
			_ = c.cmd.Process.Kill()
			<-c.exited
		}
	}
	_ = os.RemoveAll(c.dir) // a folder for throwing away: nothing depends on it
}

// target is where requests under the given credential go.
func (c *child) target(key string) load.Target { return load.Target{Host: c.addr, Key: key} }
