package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// withCapsule is a running server with the test's capsule on a fresh store.
func withCapsule(t testing.TB, data string) *served {
	t.Helper()
	s := startServer(t, data)
	s.must(http.StatusCreated, http.MethodPut, "/spec", `{"actions":[{"id":"a"},{"id":"b"}]}`)
	return s
}

// durables makes decisions that wait for the disk until one is refused, at most n, and returns those acknowledged with the
// status that ended it, 200 when none did.
func (s *served) durables(prefix string, n int) (acknowledged []string, status int) {
	for i := range n {
		id := fmt.Sprintf("%s-%d", prefix, i)
		if status, _ = s.call(http.MethodPost, "/decide", fmt.Sprintf(`{"eventId":%q,"durable":true}`, id)); status != http.StatusOK {
			return acknowledged, status
		}
		acknowledged = append(acknowledged, id)
	}
	return acknowledged, status
}

// holds checks that acknowledged decisions are there.
func (s *served) holds(ids []string) {
	s.Helper()
	for _, id := range ids {
		if status, text := s.call(http.MethodGet, "/decisions/"+id, ""); status != http.StatusOK {
			s.Errorf("%s was acknowledged and is lost: %d %s", id, status, text)
		}
	}
}

// TestSyncErrorIsFinal makes the disk refuse to sync below a running server: what was acknowledged before stays, nothing is
// acknowledged after, it is never ready again, and the process ends with an error.
func TestSyncErrorIsFinal(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	s := withCapsule(t, data)
	kept, status := s.durables("before", 50)
	if status != http.StatusOK {
		t.Fatalf("status %d before anything has failed", status)
	}
	s.interfere("trace=fsync,fdatasync", "inject=fsync,fdatasync:error=EIO")
	failed := 0
	for i := range 100 {
		path, body := "/decide", fmt.Sprintf(`{"eventId":"after-%d","durable":true}`, i)
		if i%2 == 1 {
			path, body = "/reward", `{"decisionId":"before-1","reward":1}`
		}
		status, text := s.call(http.MethodPost, path, body)
		switch status {
		case 0:
		case http.StatusInternalServerError, http.StatusServiceUnavailable:
			failed++
		default:
			t.Fatalf("%s after a sync has failed: %d %s", path, status, text)
		}
		if ready, _ := s.send(http.MethodGet, "/ready", ""); ready != 0 && ready != http.StatusServiceUnavailable {
			t.Fatalf("/ready after a sync has failed: %d", ready)
		}
	}
	if failed == 0 {
		t.Error("nobody was told")
	}
	if code := s.exits(); code <= 0 {
		t.Errorf("the server ended with %d:\n%s", code, s.log.String())
	}
	doctor(t, data)
	again := startServer(t, data)
	again.holds(kept)
	if _, status := again.durables("again", 3); status != http.StatusOK {
		t.Errorf("status %d on a disk that works again", status)
	}
}

// TestDiskWithoutSpace makes every write of the store end with "no space left" below a running server, and gives the space
// back later. Writes are refused with a time to come back at, reads go on, and nothing acknowledged is lost, then or after a
// restart.
func TestDiskWithoutSpace(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	s := withCapsule(t, data)
	kept, _ := s.durables("before", 20)
	lift := s.interfere("trace=pwrite64,pwritev", "inject=pwrite64,pwritev:error=ENOSPC")
	s.refusesWrites()
	s.holds(kept)
	lift()
	s.recovers(kept)
}

// refusesWrites checks a server whose disk is full.
func (s *served) refusesWrites() {
	s.Helper()
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/reward", `{"decisionId":"before-1","reward":1}`},
		{"POST", "/decide", `{"eventId":"full","durable":true}`},
		{"POST", "/decide", `{}`}, // the disk has taken nothing for a while by now
		{"PUT", "/spec", `{"seed":7}`},
		{"DELETE", "/logs", ""},
		{"DELETE", "", ""},
	} {
		resp, text := s.ask(c.method, servedCapsule+c.path, c.body)
		if resp == nil {
			s.Fatalf("%s %s: no answer:\n%s", c.method, c.path, s.log.String())
		}
		after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if resp.StatusCode != http.StatusServiceUnavailable || err != nil || after < 1 {
			s.Errorf("%s %s: %d, Retry-After %q: %s", c.method, c.path, resp.StatusCode, resp.Header.Get("Retry-After"), text)
		}
	}
}

// recovers checks a server whose disk has room again: without a restart, and after one.
func (s *served) recovers(kept []string) {
	s.Helper()
	s.eventually("writes are still refused", func() bool {
		status, _ := s.call(http.MethodPost, "/decide", `{"eventId":"room","durable":true}`)
		return status == http.StatusOK
	})
	if status, text := s.send(http.MethodGet, "/ready", ""); status != http.StatusOK {
		s.Errorf("/ready: %d %s", status, text)
	}
	s.must(http.StatusOK, http.MethodPost, "/reward", `{"decisionId":"before-1","reward":1}`)
	more, _ := s.durables("later", 5)
	s.stop()
	doctor(s, s.data)
	again := startServer(s, s.data)
	again.holds(append(append(kept, more...), "room"))
	if text := again.must(http.StatusOK, http.MethodGet, "/decisions/before-1", ""); strings.Count(string(text), `"seq"`) != 1 {
		s.Errorf("the reward is not there once: %s", text)
	}
}

// smallDisk mounts a file system of so many MiB, and skips the test where that is not allowed.
func smallDisk(t *testing.T, mib int) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm", mib), "tmpfs", dir).CombinedOutput()
	if err != nil {
		t.Skipf("a small file system cannot be mounted here (it takes root): %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	return dir
}

// fill writes a file until its file system has no more room.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 1<<20)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFullFileSystem fills the file system of a running server to the last byte.
func TestFullFileSystem(t *testing.T) {
	dir := smallDisk(t, 100)
	s := withCapsule(t, filepath.Join(dir, "data"))
	kept, _ := s.durables("before", 20)
	fill(t, filepath.Join(dir, "ballast"))
	if status, text := s.send(http.MethodGet, "/ready", ""); status != http.StatusServiceUnavailable {
		t.Errorf("/ready: %d %s", status, text)
	}
	s.refusesWrites()
	s.holds(kept)
	if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	s.recovers(kept)
}

// TestStartOnAFullFileSystem starts a server on its store while the disk is full: it either says so and ends, or reads what
// is there and refuses writes. With room again it goes on.
func TestStartOnAFullFileSystem(t *testing.T) {
	dir := smallDisk(t, 100)
	s := withCapsule(t, filepath.Join(dir, "data"))
	kept, _ := s.durables("before", 20)
	s.kill()
	fill(t, filepath.Join(dir, "ballast"))
	full := launch(t, s.data)
	full.key = s.key
	up := false
	full.eventually("it neither serves nor ends", func() bool {
		select {
		case <-full.ended:
			return true
		default:
		}
		status, _ := full.send(http.MethodGet, "/health", "")
		up = status == http.StatusOK
		return up
	})
	if up {
		if status, _ := full.send(http.MethodGet, "/ready", ""); status != http.StatusServiceUnavailable {
			t.Errorf("/ready: %d", status)
		}
		full.holds(kept)
		if _, status := full.durables("full", 1); status != http.StatusServiceUnavailable {
			t.Errorf("a decide on a full disk: %d", status)
		}
		full.kill()
	} else if code := full.exits(); code == 0 || !strings.Contains(full.log.String(), "space") && !strings.Contains(full.log.String(), "full") {
		t.Errorf("it ended with %d and does not say why:\n%s", code, full.log.String())
	}
	if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	startServer(t, s.data).holds(kept)
}

// TestASecondServerHarmsNobody starts a server on a store in use: it ends with an error, and the first goes on.
func TestASecondServerHarmsNobody(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	s := withCapsule(t, data)
	kept, _ := s.durables("before", 5)
	second := launch(t, data)
	if code := second.exits(); code <= 0 || !strings.Contains(second.log.String(), "in use") {
		t.Errorf("the second ended with %d:\n%s", code, second.log.String())
	}
	more, status := s.durables("after", 5)
	if status != http.StatusOK {
		t.Errorf("the first answers %d", status)
	}
	// Killed, it leaves no lock behind.
	s.kill()
	startServer(t, data).holds(append(kept, more...))
}

// TestDecidesWaitForNoSync makes every sync take half a second. Decides answer as they did; what waits for the disk, waits.
func TestDecidesWaitForNoSync(t *testing.T) {
	s := withCapsule(t, filepath.Join(t.TempDir(), "data"))
	const slow = 500 * time.Millisecond
	s.interfere("trace=fsync,fdatasync", fmt.Sprintf("inject=fsync,fdatasync:delay_enter=%d", slow.Microseconds()))
	took := func(body string) time.Duration {
		begun := time.Now()
		s.must(http.StatusOK, http.MethodPost, "/decide", body)
		return time.Since(begun)
	}
	const decides = 1000
	waited := 0
	for i := range decides {
		body := `{}`
		if i%2 == 1 {
			body = fmt.Sprintf(`{"eventId":"event-%d"}`, i)
		}
		if took(body) >= slow {
			waited++
		}
	}
	// A machine that is busy with other things may hold one up; a decide that waits for a sync would hold all up.
	if waited > decides/100 {
		t.Errorf("%d of %d decides took as long as a sync", waited, decides)
	}
	if d := took(`{"durable":true}`); d < slow {
		t.Errorf("a durable decide answered after %v, before its sync", d)
	}
}
