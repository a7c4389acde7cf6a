package main

import (
	"slices"
	"testing"
	"time"
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
