package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program returns a path under which this test binary is the command holdfast, see TestMain.
func program(t testing.TB) string {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "holdfast")
	if err := os.Symlink(own, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// served is a server in a process of its own, which ends with the test at the latest.
type served struct {
	testing.TB
	cmd    *exec.Cmd
	url    string
	data   string
	key    string
	log    lockedText
	ended  chan struct{} // closed when the process has ended
	client *http.Client
}

// lockedText is output that is read while it is written.
type lockedText struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// startServer runs serve on data, with more arguments, and waits until it takes requests.
func startServer(t testing.TB, data string, more ...string) *served {
	t.Helper()
	s := launch(t, data, more...)
	s.eventually("the server is not ready", func() bool {
		select {
		case <-s.ended:
			t.Fatalf("the server has ended:\n%s", s.log.String())
		default:
		}
		status, _ := s.send(http.MethodGet, "/ready", "")
		return status == http.StatusOK
	})
	key, err := os.ReadFile(filepath.Join(data, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	s.key = strings.TrimSpace(string(key))
	return s
}

// freeAddr is an address of this machine that nobody listens at just now.
func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// launch runs serve on data and does not wait.
func launch(t testing.TB, data string, more ...string) *served {
	t.Helper()
	addr := freeAddr(t)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	s := &served{TB: t, cmd: exec.Command(program(t), append([]string{"serve", "--data", data, "--addr", addr}, more...)...), url: "http://" + addr, data: data,
		ended: make(chan struct{}), client: &http.Client{Transport: transport, Timeout: scriptPatience}}
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.Env = append(os.Environ(), "SYNTRA_RATE_LIMIT_RPS=1000000", "SYNTRA_RATE_LIMIT_BURST=1000000", "HOLDFAST_DRAIN_DELAY=0")
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(s.ended); _ = s.cmd.Wait() }() // how it ended is in ProcessState
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		s.kill()
	})
	return s
}

// capsuleOf is the path of the capsule that these tests write to.
const servedCapsule = "/v1/tenants/t/jobs/j/capsules/c"

// call sends a request to the test's capsule and returns the status and the body, 0 when there was no answer.
func (s *served) call(method, path, body string) (int, []byte) {
	return s.send(method, servedCapsule+path, body)
}

func (s *served) send(method, path, body string) (int, []byte) {
	resp, text := s.ask(method, path, body)
	if resp == nil {
		return 0, nil
	}
	return resp.StatusCode, text
}

// ask sends a request; the response is nil when no whole answer came. It may be called from any goroutine.
func (s *served) ask(method, path, body string) (*http.Response, []byte) {
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		panic(err) // the tests' own paths are well formed
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	return s.do(req)
}

// do sends a request; the response is nil when no whole answer came.
func (s *served) do(req *http.Request) (*http.Response, []byte) {
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, nil
	}
	return resp, text
}

// must is call for a request that has to end with that status.
func (s *served) must(status int, method, path, body string) []byte {
	s.Helper()
	got, text := s.call(method, path, body)
	if got != status {
		s.Fatalf("%s %s %s: status %d, want %d: %s\n%s", method, path, body, got, status, text, s.log.String())
	}
	return text
}

// kill ends the process as a power cut would and waits until it is gone.
func (s *served) kill() {
	_ = s.cmd.Process.Kill() // it may have ended by itself
	<-s.ended
}

// exits waits for the end of the process and returns its status.
func (s *served) exits() int {
	s.Helper()
	select {
	case <-s.ended:
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(scriptPatience):
		s.Fatalf("the server does not end:\n%s", s.log.String())
		return 0
	}
}

// stop asks the server to end, which it must do in order.
func (s *served) stop() {
	s.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.Fatal(err)
	}
	if code := s.exits(); code != 0 {
		s.Fatalf("an asked-for stop ends with %d:\n%s", code, s.log.String())
	}
}

func (s *served) eventually(what string, done func() bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), scriptPatience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			s.Fatalf("%s after %v:\n%s", what, scriptPatience, s.log.String())
		case <-tick.C:
		}
	}
}

// interfere lets strace change what the system calls of the running server do, until lift is called. It skips the test
// where that cannot be done. The server stays a child of the test, so that nothing outlives it.
func (s *served) interfere(expressions ...string) (lift func()) {
	s.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		s.Skip("strace is not installed: failures of the disk cannot be made")
	}
	args := []string{"-f", "-qq", "-o", os.DevNull, "-p", fmt.Sprint(s.cmd.Process.Pid)}
	for _, e := range expressions {
		args = append(args, "-e", e)
	}
	var said lockedText
	strace := exec.Command("strace", args...)
	strace.Stderr = &said
	if err := strace.Start(); err != nil {
		s.Fatal(err)
	}
	gone := make(chan struct{})
	go func() { defer close(gone); _ = strace.Wait() }()
	lift = sync.OnceFunc(func() {
		_ = strace.Process.Signal(os.Interrupt) // it lets go of the server; it may have ended with it
		<-gone
	})
	s.Cleanup(lift)
	s.eventually("strace has not taken hold", func() bool {
		select {
		case <-gone:
			s.Skipf("strace may not trace another process here: %s", said.String())
		default:
		}
		return s.traced()
	})
	return lift
}

// traced reports whether every thread of the server has a tracer.
func (s *served) traced() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", s.cmd.Process.Pid)) // the pattern is well formed
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err == nil && bytes.Contains(text, []byte("TracerPid:\t0\n")) {
			return false
		}
	}
	return len(threads) > 0
}
