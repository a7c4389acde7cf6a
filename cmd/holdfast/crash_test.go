package main

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/lab"
)

// program returns a path under which this test binary is the command holdfast, see TestMain.
func program(t *testing.T) string {
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

// TestTwentyKillsUnderLoad kills a real server with SIGKILL 20 times while clients decide and reward over HTTP: nothing that
// was acknowledged is missing, nothing is there twice.
func TestTwentyKillsUnderLoad(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "report"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	o := lab.Options{
		Executable: program(t), Out: out, Command: "holdfast lab crash",
		Serve: func(data, addr string) []string { return []string{"serve", "--data", data, "--addr", addr} },
		Env:   append(os.Environ(), "SYNTRA_RATE_LIMIT_RPS=1000000", "SYNTRA_RATE_LIMIT_BURST=1000000"),
	}
	if err := lab.Crash(t.Context(), o, lab.CrashOptions{Cycles: 20, Load: 300 * time.Millisecond, Seed: 1}); err != nil {
		text, _ := os.ReadFile(out.Name())
		t.Fatalf("%v\n%s", err, text)
	}
}

// served is a server in a process of its own.
type served struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	data string
	log  bytes.Buffer
}

// startServer runs serve on data, behind the words of prefix, and waits until it takes requests.
func startServer(t *testing.T, data string, prefix ...string) *served {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	args := append(prefix, program(t), "serve", "--data", data, "--addr", addr)
	s := &served{t: t, cmd: exec.Command(args[0], args[1:]...), url: "http://" + addr, data: data}
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	ctx, cancel := context.WithTimeout(t.Context(), scriptPatience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if resp, err := http.Get(s.url + "/ready"); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return s
			}
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the server is not ready:\n%s", s.log.String())
		case <-tick.C:
		}
	}
}

// call sends a request to the test's capsule and returns the status and the body, 0 when there was no answer.
func (s *served) call(method, path, body string) (int, []byte) {
	s.t.Helper()
	key, err := os.ReadFile(filepath.Join(s.data, "admin.key"))
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequest(method, s.url+"/v1/tenants/t/jobs/j/capsules/c"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil
	}
	return resp.StatusCode, text
}

// exits waits for the end of the process and returns its status.
func (s *served) exits() int {
	s.t.Helper()
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.cmd.Wait() }()
	select {
	case <-ended:
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(scriptPatience):
		s.t.Fatalf("the server does not end:\n%s", s.log.String())
		return 0
	}
}

// TestSyncErrorIsFinal makes the disk refuse to sync below a running server: what was acknowledged before stays, nothing is
// acknowledged after, and the process ends with an error.
func TestSyncErrorIsFinal(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed: a failing sync cannot be injected")
	}
	data := filepath.Join(t.TempDir(), "data")
	// Make the store first, so that only the server's own work is under fire.
	first := startServer(t, data)
	if status, text := first.call(http.MethodPut, "/spec", `{"actions":[{"id":"a"},{"id":"b"}]}`); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	if err := first.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := first.exits(); code != 0 {
		t.Fatalf("an asked-for stop ends with %d:\n%s", code, first.log.String())
	}

	// strace counts the calls of each thread by itself.
	s := startServer(t, data, "strace", "-f", "-qq", "-o", filepath.Join(t.TempDir(), "trace"), "-e", "trace=fsync,fdatasync",
		"-e", "inject=fsync,fdatasync:error=EIO:when=12+")
	var kept []string
	failed := 0
	for i := range 2000 {
		id := fmt.Sprintf("event-%d", i)
		status, text := s.call(http.MethodPost, "/decide", fmt.Sprintf(`{"eventId":%q,"durable":true}`, id))
		switch {
		case status == http.StatusOK && failed > 0:
			t.Fatalf("%s was acknowledged after a sync had failed: %s", id, text)
		case status == http.StatusOK:
			kept = append(kept, id)
		case status == http.StatusServiceUnavailable || status == http.StatusInternalServerError || status == 0:
			failed++
		default:
			t.Fatalf("%s: %d %s", id, status, text)
		}
		if failed > 3 || status == 0 {
			break
		}
	}
	if failed == 0 || len(kept) == 0 {
		t.Fatalf("%d acknowledged, %d failed: no sync was made to fail", len(kept), failed)
	}
	if code := s.exits(); code == 0 {
		t.Errorf("the server ended as if nothing had happened:\n%s", s.log.String())
	}

	again := startServer(t, data)
	for _, id := range kept {
		status, text := again.call(http.MethodGet, "/decisions/"+id, "")
		var d struct {
			ID string `json:"decisionId"`
		}
		if err := json.Unmarshal(text, &d); status != http.StatusOK || err != nil || d.ID != id {
			t.Errorf("%s was acknowledged and is lost: %d %s", id, status, text)
		}
	}
}

// TestSlowSyncsDoNotSlowDecides makes every sync take a tenth of a second: decides, which wait for none, still answer at once.
func TestSlowSyncsDoNotSlowDecides(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed: a slow sync cannot be injected")
	}
	data := filepath.Join(t.TempDir(), "data")
	s := startServer(t, data, "strace", "-f", "-qq", "-o", filepath.Join(t.TempDir(), "trace"), "-e", "trace=fsync,fdatasync",
		"-e", "inject=fsync,fdatasync:delay_enter=100000")
	if status, text := s.call(http.MethodPut, "/spec", `{"actions":[{"id":"a"},{"id":"b"}]}`); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	const decides = 200
	begun := time.Now()
	for range decides {
		if status, text := s.call(http.MethodPost, "/decide", `{}`); status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
	}
	// One sync each would take at least this long.
	if took := time.Since(begun); took >= decides*100*time.Millisecond {
		t.Errorf("%d decides took %v: they wait for syncs", decides, took)
	}
	begun = time.Now()
	if status, text := s.call(http.MethodPost, "/decide", `{"durable":true}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	if took := time.Since(begun); took < 100*time.Millisecond {
		t.Errorf("a durable decide answered after %v, before its sync", took)
	}
}
