// Package history keeps what a caller was told about each of its writes, and holds a store to it after a crash.
//
// A write was acknowledged, refused, or its outcome is unknown because no complete answer came. The rules: every
// acknowledged write is stored, nothing is stored twice, nothing is stored that was never sent, and nothing that was
// refused is stored. An unknown write may be stored or not, once. The package starts no goroutine and touches no file.
package history

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"holdfast/fault"
)

// Outcome is what the caller knows about a write.
type Outcome uint8

// The outcomes. A write that was begun and never finished is Unknown.
const (
	Unknown Outcome = iota // no complete answer, or one that promises nothing
	Acked                  // the answer said it is durable
	Refused                // the answer said it was not done
)

// History records writes by their key. It is safe for concurrent use.
type History struct {
	mu    sync.Mutex // guards known
	known map[string]write
}

// write is what is known of one key: doubt stays once an attempt ended without an answer.
type write struct {
	outcome Outcome
	doubt   bool
}

// New returns an empty history.
func New() *History { return &History{known: map[string]write{}} }

// Begin notes that a write was sent; call it before the first byte leaves. A key that was sent before keeps its outcome.
func (h *History) Begin(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, sent := h.known[key]; !sent {
		h.known[key] = write{}
	}
}

// End notes what the caller was told about one attempt. Acked is final: a retry that is refused does not undo it. A refusal
// proves nothing once an earlier attempt ended without an answer, so the key then stays Unknown.
func (h *History) End(key string, outcome Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.known[key]
	if w.outcome == Acked {
		return
	}
	w.doubt = w.doubt || outcome == Unknown
	w.outcome = outcome
	if outcome == Refused && w.doubt {
		w.outcome = Unknown
	}
	h.known[key] = w
}

// Counts returns how many writes were acknowledged, refused, and of unknown outcome.
func (h *History) Counts() (acked, refused, unknown int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.known {
		switch w.outcome {
		case Acked:
			acked++
		case Refused:
			refused++
		default:
			unknown++
		}
	}
	return acked, refused, unknown
}

// Verdict lists the keys that break a rule, sorted.
type Verdict struct {
	Lost    []string // acknowledged and not stored
	Twice   []string // stored more than once
	Refused []string // refused and stored all the same
	Foreign []string // stored and never sent
	Stored  int      // distinct keys found in the store
}

// Check compares the history with the keys found in the store, each as often as it is stored.
func (h *History) Check(stored iter.Seq[string]) Verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := map[string]int{}
	for key := range stored {
		found[key]++
	}
	v := Verdict{Stored: len(found)}
	for key, n := range found {
		w, sent := h.known[key]
		if n > 1 {
			v.Twice = append(v.Twice, key)
		}
		if !sent {
			v.Foreign = append(v.Foreign, key)
		}
		if sent && w.outcome == Refused {
			v.Refused = append(v.Refused, key)
		}
	}
	for key, w := range h.known {
		if w.outcome == Acked && found[key] == 0 {
			v.Lost = append(v.Lost, key)
		}
	}
	for _, list := range [][]string{v.Lost, v.Twice, v.Refused, v.Foreign} {
		slices.Sort(list)
	}
	return v
}

// Err returns nil when no rule is broken, else an error that counts each breach and names its first keys.
func (v Verdict) Err() error {
	var parts []string
	for _, rule := range []struct {
		text string
		keys []string
	}{
		{"acknowledged but not stored", v.Lost}, {"stored twice", v.Twice},
		{"refused but stored", v.Refused}, {"stored but never sent", v.Foreign},
	} {
		if n := len(rule.keys); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%s)", n, rule.text, strings.Join(rule.keys[:min(n, 3)], ", ")))
		}
	}
	if parts == nil {
		return nil
	}
	return fault.New("history.Check", fault.Internal, "%s", strings.Join(parts, "; "))
}
