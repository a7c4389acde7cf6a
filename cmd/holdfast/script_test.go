package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets scripts start this very test binary as the command holdfast: a real process that can be killed.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"holdfast": main})
}

// TestScripts plays the scripts of testdata/script against real processes.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			e.Setenv("ADDR", l.Addr().String())
			e.Setenv("HOLDFAST_DRAIN_DELAY", "0")
			e.Setenv("PORT", fmt.Sprint(l.Addr().(*net.TCPAddr).Port))
			return errors.Join(l.Close(), gatewayListeners(e))
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"ready": ready, "ask": ask, "get": get, "gone": gone, "kill9": kill9,
		},
	})
}

// gatewayListeners names two free addresses for the gateway API and writes the file theirs.toml, in which its own words name
// them.
func gatewayListeners(e *testscript.Env) error {
	text := "log-level = \"warn\"\n[cache]\ntti = 1\n[redis]\nhost = \"h\"\n"
	for _, at := range []struct{ name, section string }{{"DROP", "server"}, {"METRICS", "metrics"}} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close() // both at once, so that they differ
		e.Setenv(at.name, l.Addr().String())
		text += fmt.Sprintf("[%s]\nport = %d\n", at.section, l.Addr().(*net.TCPAddr).Port)
	}
	return os.WriteFile(filepath.Join(e.WorkDir, "theirs.toml"), []byte(text), 0o600)
}

const scriptPatience = 30 * time.Second

// ready waits until the server at $ADDR takes requests.
func ready(ts *testscript.TestScript, _ bool, _ []string) {
	eventually(ts, "the server is not ready", func() bool {
		resp, err := http.Get("http://" + ts.Getenv("ADDR") + "/ready")
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
}

// gone waits until nothing listens at $ADDR.
func gone(ts *testscript.TestScript, _ bool, _ []string) {
	eventually(ts, "the server still listens", func() bool {
		c, err := net.Dial("tcp", ts.Getenv("ADDR"))
		if err != nil {
			return true
		}
		_ = c.Close()
		return false
	})
}

func eventually(ts *testscript.TestScript, what string, done func() bool) {
	ctx, cancel := context.WithTimeout(context.Background(), scriptPatience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			ts.Fatalf("%s after %v", what, scriptPatience)
		case <-tick.C:
		}
	}
}

// ask METHOD PATH STATUS [BODY] sends a request with the operator key of the folder d and prints the answer's body.
func ask(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 || neg {
		ts.Fatalf("usage: ask METHOD PATH STATUS [BODY]")
	}
	key := strings.TrimSpace(ts.ReadFile("d/admin.key"))
	var body io.Reader
	if len(args) > 3 {
		body = strings.NewReader(args[3])
	}
	req, err := http.NewRequest(args[0], "http://"+ts.Getenv("ADDR")+args[1], body)
	ts.Check(err)
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	text, err := io.ReadAll(resp.Body)
	ts.Check(err)
	ts.Check(resp.Body.Close())
	if got := fmt.Sprint(resp.StatusCode); got != args[2] {
		ts.Fatalf("%s %s: status %s, want %s: %s", args[0], args[1], got, args[2], text)
	}
	_, err = ts.Stdout().Write(append(bytes.TrimSpace(text), '\n'))
	ts.Check(err)
}

// get ADDRESS PATH STATUS asks without a credential and prints the answer's body.
func get(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 || neg {
		ts.Fatalf("usage: get ADDRESS PATH STATUS")
	}
	resp, err := http.Get("http://" + args[0] + args[1])
	ts.Check(err)
	text, err := io.ReadAll(resp.Body)
	ts.Check(err)
	ts.Check(resp.Body.Close())
	if got := fmt.Sprint(resp.StatusCode); got != args[2] {
		ts.Fatalf("GET %s: status %s, want %s: %s", args[1], got, args[2], text)
	}
	_, err = ts.Stdout().Write(append(bytes.TrimSpace(text), '\n'))
	ts.Check(err)
}

// kill9 FOLDER kills the process that holds the folder, as a power cut would.
func kill9(ts *testscript.TestScript, _ bool, args []string) {
	var pid int
	_, err := fmt.Sscan(ts.ReadFile(args[0]+"/pid"), &pid)
	ts.Check(err)
	ts.Check(syscall.Kill(pid, syscall.SIGKILL))
	eventually(ts, "the process lives", func() bool {
		// A killed child stays as a zombie until its script waits for it; it holds nothing any more.
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || bytes.Contains(text, []byte(") Z "))
	})
}
