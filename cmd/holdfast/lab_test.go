package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/lab"
)

func TestReportsHoldNoCredential(t *testing.T) {
	t.Parallel()
	got := repeatable([]string{"lab", "learn", "--key", "secret", "--data", "x.csv", "--key=secret", "--html=a", "--json", "b", "--rounds", "10"})
	if want := []string{"lab", "learn", "--data", "x.csv", "--rounds", "10"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestBenchDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"10": 10 * time.Second, "0.5": 500 * time.Millisecond, "1m30s": 90 * time.Second} {
		if got, err := duration(text); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	if _, err := duration("soon"); err == nil {
		t.Error("soon is a duration")
	}
}

// TestGatewayScenario plays every part of the gateway scenario for a moment on a real server: each answer is right, and
// what was accepted, stored and counted is the same.
func TestGatewayScenario(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "report"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	o := lab.Options{Executable: program(t), Out: out, Command: "holdfast lab gateway",
		Serve: func(data, addr string) []string {
			return []string{"serve", "--data", data, "--addr", addr, "--drain-delay", "0"}
		},
		Null: func(addr string, size int) []string {
			return []string{"lab", "null", "--addr", addr, "--size", strconv.Itoa(size)}
		}}
	failed := lab.Gateway(t.Context(), o, lab.GatewayOptions{Blocks: 1, Segment: 50 * time.Millisecond, Merchants: 100})
	text, err := os.ReadFile(out.Name())
	if failed != nil || err != nil {
		t.Fatalf("%v %v\n%s", failed, err, text)
	}
	for _, want := range []string{"pairs per second at 20", "p50 in the server", "routing evaluate", "Users who think", "latency p95", "among 100 merchants",
		"accepted, stored and counted are the same"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report does not mention %q:\n%s", want, text)
		}
	}
}
