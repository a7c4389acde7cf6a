package gateway

import (
	"bytes"
	"encoding/hex"
	"math"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// feed pushes S for a success and F for a failure.
func feed(w *window, size int, text string) {
	for _, c := range text {
		w.push(c == 'S', size)
	}
}

func TestWindowScores(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		size int
		text string
		want float64
	}{
		{10, "F", 0.9}, // one failure in a fresh bucket of 10
		{10, "FF", 0.8},
		{10, "FFS", 0.8}, // a pre-filled one leaves at the far end, a one enters
		{10, "FFFFF", 0.5},
		{10, "FFFFFFFFFF", 0}, // ten in a row
		{10, "FFFFFFFFFFS", 0.1},
		{10, "FSSSSSSSSSS", 1}, // the failure has left
		{1, "F", 0},
		{1, "FS", 1},
		{64, "F", 63.0 / 64},
		{65, "F", 64.0 / 65},
		{125, "F", 124.0 / 125},
		{0, "F", 0}, // a size out of bounds is brought within them
	} {
		w := newWindow(c.size)
		feed(&w, c.size, c.text)
		if got := w.mean(c.size); got != c.want {
			t.Errorf("bucket %d after %s: score %v, want %v", c.size, c.text, got, c.want)
		}
	}
}

func TestWindowResizes(t *testing.T) {
	t.Parallel()
	w := newWindow(10)
	feed(&w, 10, "FFFFF")
	if got := w.mean(4); got != 0 {
		t.Errorf("a smaller bucket reads %v from the newest entries, want 0", got)
	}
	w.push(true, 4)
	if w.length != 4 || w.mean(4) != 0.25 {
		t.Errorf("shrinking kept %d entries with score %v, want 4 at once and 0.25", w.length, w.mean(4))
	}
	w.push(true, 10)
	if w.length != 5 || w.mean(10) != 0.4 {
		t.Errorf("growing gave %d entries with score %v, want 5 and 0.4: it fills, it is not filled", w.length, w.mean(10))
	}
	if w.amend(2, true) {
		t.Error("an outcome that shrinking had dropped was amended")
	}
}

func TestWindowAmends(t *testing.T) {
	t.Parallel()
	w := newWindow(4)
	feed(&w, 4, "FSF")
	for _, c := range []struct {
		number uint64
		value  bool
		want   bool
	}{{0, false, false}, {4, true, false}, {math.MaxUint64, true, false}, {2, true, false}, {1, true, true}, {1, true, false}} {
		if got := w.amend(c.number, c.value); got != c.want {
			t.Errorf("amending outcome %d to %v: %v, want %v", c.number, c.value, got, c.want)
		}
	}
	if w.mean(4) != 0.75 {
		t.Errorf("score %v after the amendment, want 0.75", w.mean(4))
	}
	feed(&w, 4, "SS")
	if w.amend(1, false) {
		t.Error("an outcome that has left the window was amended")
	}
}

// entryList is the window as the rule is written: a list of numbered entries.
type entryList struct {
	values  []bool
	numbers []uint64 // 0 for those it was filled with
	next    uint64
}

func (l *entryList) push(value bool, size int) {
	if l.next == 0 {
		for range size {
			l.values, l.numbers = append(l.values, true), append(l.numbers, 0)
		}
	}
	l.next++
	l.values, l.numbers = append(l.values, value), append(l.numbers, l.next)
	if drop := len(l.values) - size; drop > 0 {
		l.values, l.numbers = l.values[drop:], l.numbers[drop:]
	}
}

func (l *entryList) amend(number uint64, value bool) bool {
	for i, n := range l.numbers {
		if n == number && n > 0 {
			changed := l.values[i] != value
			l.values[i] = value
			return changed
		}
	}
	return false
}

func (l *entryList) mean(size int) float64 {
	newest := l.values[max(0, len(l.values)-size):]
	ones := 0
	for _, v := range newest {
		if v {
			ones++
		}
	}
	return float64(ones) / float64(len(newest))
}

func TestWindowIsTheList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SampledFrom([]int{1, 2, 10, 63, 64, 65, 125, 400})
		var model entryList
		size := sizes.Draw(t, "size")
		w := newWindow(size)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if rapid.IntRange(0, 20).Draw(t, "resize") == 0 && model.next > 0 {
				size = sizes.Draw(t, "size")
			}
			if number := rapid.Uint64Range(0, model.next+1).Draw(t, "number"); number%3 == 0 && model.next > 0 {
				value := rapid.Bool().Draw(t, "value")
				if got, want := w.amend(number, value), model.amend(number, value); got != want {
					t.Fatalf("amending %d: %v, want %v", number, got, want)
				}
			}
			value := rapid.Bool().Draw(t, "value")
			w.push(value, size)
			model.push(value, size)
			if w.length != len(model.values) || w.mean(size) != model.mean(size) || w.pushes != model.next {
				t.Fatalf("size %d: %d entries with score %v, want %d with %v", size, w.length, w.mean(size), len(model.values), model.mean(size))
			}
			read := sizes.Draw(t, "read")
			if w.mean(read) != model.mean(read) {
				t.Fatalf("read with size %d: %v, want %v", read, w.mean(read), model.mean(read))
			}
			var back window
			saved := w.appendTo(nil)
			if rest, err := back.readFrom(append(saved, 7)); err != nil || len(rest) != 1 || !bytes.Equal(back.appendTo(nil), saved) {
				t.Fatalf("a saved window does not read back: %v, %d bytes left", err, len(rest))
			}
			w = back
		}
	})
}

func TestWindowSnapshotFormat(t *testing.T) {
	t.Parallel()
	w := newWindow(10)
	feed(&w, 10, "FS")
	const want = "0a020a01fffbffffffffffff" // filled 10, pushes 2, length 10, one word with bit 10 clear
	if got := hex.EncodeToString(w.appendTo(nil)); got != want {
		t.Errorf("saved as %s, want %s: windows on disk would no longer read", got, want)
	}
}

func TestWindowIsSmall(t *testing.T) {
	w := newWindow(125)
	if bytes := int(unsafe.Sizeof(w)) + 8*len(w.ring); bytes > 100 {
		t.Errorf("a window of 125 takes %d bytes, want at most 100", bytes)
	}
	if n := testing.AllocsPerRun(100, func() {
		w.push(false, 125)
		_ = w.mean(125)
		_ = w.mean(100)
		w.push(true, 100)
	}); n != 0 {
		t.Errorf("reading and pushing allocates %v times", n)
	}
}

func FuzzWindowReadsBack(f *testing.F) {
	w := newWindow(70)
	feed(&w, 70, "FSFF")
	f.Add(w.appendTo(nil))
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var w window
		if _, err := w.readFrom(b); err != nil {
			return
		}
		w.push(false, 125)
		w.amend(w.pushes, true)
		if m := w.mean(125); m < 0 || m > 1 {
			t.Errorf("score %v", m)
		}
	})
}
