package gateway

import "encoding/binary"

// maxBucket bounds the entries of a window.
const maxBucket = 100_000

// window keeps the newest outcomes of one gateway under one key, a bit each, and how many of them are successes. Entry i
// counted from the first, those that it was filled with at first included, is the bit i modulo the ring's size.
type window struct {
	ring   []uint64
	filled uint64 // ones that it began with
	pushes uint64 // outcomes ever
	length int    // entries there now
	ones   int    // among them
}

// bucket brings the size of a window within its bounds.
func bucket(size int) int { return min(max(size, 1), maxBucket) }

// newWindow begins a window of size ones: a gateway is good until it is seen to fail.
func newWindow(size int) window {
	size = bucket(size)
	w := window{ring: make([]uint64, (size+63)/64), filled: uint64(size), length: size, ones: size}
	for i := range w.ring {
		w.ring[i] = ^uint64(0)
	}
	return w
}

func (w *window) room() uint64 { return uint64(len(w.ring)) * 64 }

// end is the index after the newest entry.
func (w *window) end() uint64 { return w.filled + w.pushes }

func (w *window) at(i uint64) int {
	i %= w.room()
	return int(w.ring[i/64] >> (i % 64) & 1)
}

func (w *window) set(i uint64, value bool) {
	i %= w.room()
	if value {
		w.ring[i/64] |= 1 << (i % 64)
	} else {
		w.ring[i/64] &^= 1 << (i % 64)
	}
}

// push appends an outcome and trims the window to size entries. The ring shrinks late: payments of one key may be configured
// with different sizes, and then a window would be copied on every push.
func (w *window) push(value bool, size int) {
	size = bucket(size)
	w.trim(size - 1)
	if room := w.room(); uint64(size) > room || 4*uint64(size)+64 < room {
		w.resize(size)
	}
	w.set(w.end(), value)
	w.pushes++
	w.length++
	if value {
		w.ones++
	}
}

// trim drops the oldest entries beyond most.
func (w *window) trim(most int) {
	for w.length > most {
		w.ones -= w.at(w.end() - uint64(w.length))
		w.length--
	}
}

// resize gives the ring room for size entries.
func (w *window) resize(size int) {
	old := *w
	w.ring = make([]uint64, (size+63)/64)
	for i := old.end() - uint64(old.length); i < old.end(); i++ {
		w.set(i, old.at(i) == 1)
	}
}

// amend changes the outcome with a number, counted from 1, and reports whether it is there and was another.
func (w *window) amend(number uint64, value bool) bool {
	if number == 0 || number > w.pushes || w.pushes-number >= uint64(w.length) {
		return false
	}
	i := w.filled + number - 1
	was := w.at(i) == 1
	if was == value {
		return false
	}
	w.set(i, value)
	if value {
		w.ones++
	} else {
		w.ones--
	}
	return true
}

// mean is the share of successes among the newest size entries. It is one division unless the window is about to shrink.
func (w *window) mean(size int) float64 {
	size = bucket(size)
	if w.length <= size {
		return float64(w.ones) / float64(max(1, w.length))
	}
	ones := 0
	for i := w.end() - uint64(size); i < w.end(); i++ {
		ones += w.at(i)
	}
	return float64(ones) / float64(size)
}

func (w *window) appendTo(b []byte) []byte {
	for _, v := range [...]uint64{w.filled, w.pushes, uint64(w.length), uint64(len(w.ring))} {
		b = binary.AppendUvarint(b, v)
	}
	for _, word := range w.ring {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

// readFrom decodes what appendTo wrote and returns the rest.
func (w *window) readFrom(b []byte) ([]byte, error) {
	in := blocks{left: b}
	w.filled, w.pushes = uint64(in.number()), uint64(in.number())
	length, words := uint64(in.number()), uint64(in.number())
	if in.bad || words == 0 || words > uint64(len(in.left))/8 || length > words*64 || length > w.end() {
		return nil, errScores
	}
	w.ring, w.length = make([]uint64, words), int(length)
	for i := range w.ring {
		w.ring[i] = binary.LittleEndian.Uint64(in.left[8*i:])
	}
	for i := w.end() - length; i < w.end(); i++ {
		w.ones += w.at(i)
	}
	return in.left[8*words:], nil
}
