package history

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckFindsEachBreach(t *testing.T) {
	t.Parallel()
	h := New()
	for key, outcome := range map[string]Outcome{"kept": Acked, "lost": Acked, "refused": Refused, "ghost": Refused, "maybe": Unknown} {
		h.Begin(key)
		h.End(key, outcome)
	}
	h.Begin("open")
	for _, tc := range []struct {
		name   string
		stored []string
		want   Verdict
		text   string
	}{
		{"clean", []string{"kept", "lost"}, Verdict{Stored: 2}, ""},
		{"unknown may be stored", []string{"kept", "lost", "maybe", "open"}, Verdict{Stored: 4}, ""},
		{"lost", []string{"kept"}, Verdict{Stored: 1, Lost: []string{"lost"}}, "1 acknowledged but not stored (lost)"},
		{"twice", []string{"kept", "lost", "kept"}, Verdict{Stored: 2, Twice: []string{"kept"}}, "1 stored twice (kept)"},
		{"unknown twice", []string{"kept", "lost", "maybe", "maybe"}, Verdict{Stored: 3, Twice: []string{"maybe"}}, "stored twice"},
		{"refused", []string{"kept", "lost", "ghost"}, Verdict{Stored: 3, Refused: []string{"ghost"}}, "1 refused but stored (ghost)"},
		{"foreign", []string{"kept", "lost", "other"}, Verdict{Stored: 3, Foreign: []string{"other"}}, "1 stored but never sent (other)"},
	} {
		got := h.Check(slices.Values(tc.stored))
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tc.name, diff)
		}
		err := got.Err()
		if (err == nil) != (tc.text == "") || err != nil && !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: error %v, want one that says %q", tc.name, err, tc.text)
		}
	}
}

func TestOutcomesOfOneKey(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		ends []Outcome
		want [3]int // acked, refused, unknown
	}{
		{"acknowledged", []Outcome{Acked}, [3]int{1, 0, 0}},
		{"a refused retry does not undo an acknowledgement", []Outcome{Acked, Refused}, [3]int{1, 0, 0}},
		{"an unknown one can still be acknowledged", []Outcome{Unknown, Acked}, [3]int{1, 0, 0}},
		{"a refusal after an unknown attempt proves nothing", []Outcome{Unknown, Refused}, [3]int{0, 0, 1}},
		{"refused", []Outcome{Refused}, [3]int{0, 1, 0}},
		{"refused, then lost on the way", []Outcome{Refused, Unknown}, [3]int{0, 0, 1}},
		{"never answered", nil, [3]int{0, 0, 1}},
	} {
		h := New()
		h.Begin("k")
		for _, o := range tc.ends {
			h.Begin("k")
			h.End("k", o)
		}
		var got [3]int
		got[0], got[1], got[2] = h.Counts()
		if got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	h := New()
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 100 {
				key := string(rune('a'+w)) + string(rune('0'+i%10)) + string(rune('0'+i/10))
				h.Begin(key)
				h.End(key, Acked)
			}
		})
	}
	wg.Wait()
	if acked, refused, unknown := h.Counts(); acked != 800 || refused+unknown != 0 {
		t.Errorf("%d acked, %d refused, %d unknown; want 800, 0, 0", acked, refused, unknown)
	}
}
