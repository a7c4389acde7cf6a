package lab

import (
	"strings"
	"testing"
	"time"
)

func TestCrashHoldsAStoreToItsAcknowledgements(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		mode   string // of the fake server
		wants  []string
		passes bool
	}{
		{"durable", []string{"outlived 3 kills, each stored once"}, true},
		{"fair", []string{"BROKEN", "acknowledged but not stored"}, false}, // keeps everything in memory
		{"twice", []string{"BROKEN", "rewards: 1 stored twice"}, false},
	} {
		o := options(t, tc.mode)
		err := Crash(t.Context(), o, CrashOptions{Cycles: 3, Load: 150 * time.Millisecond, Seed: 1})
		if (err == nil) != tc.passes {
			t.Errorf("%s: %v", tc.mode, err)
		}
		for _, want := range tc.wants {
			if out := printed(t, o); !strings.Contains(out, want) {
				t.Errorf("%s: the output does not say %q:\n%s", tc.mode, want, out)
			}
		}
	}
}
