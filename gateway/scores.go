package gateway

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"
)

// The lives of elimination scores, in ms: an older one counts as untouched.
const (
	standingLifeMS = 9_000_000
	globalLifeMS   = 1_800_000
)

// maxCells bounds the windows' keys of one merchant: the one that was used longest ago makes room.
const maxCells = 1 << 16

// scores is what one merchant's outcomes have taught. Only the writer's goroutine changes it.
type scores struct {
	mu        sync.RWMutex         // guards the maps and the standings; a cell guards itself
	cells     map[string]*held     // by window key
	standings map[string]*standing // by standing key
	seq       int64                // of the newest outcome in it
}

// held is a cell and the number that its pushes are counted from: that of the outcome that made it. So a number names one
// push for ever, also when the cell was forgotten and made anew.
type held struct {
	*cell
	base uint64
}

// upcoming is the number that the gateway's next push gets.
func (h *held) upcoming(g Name) uint64 { return h.base + h.next(g) }

func newScores() *scores {
	return &scores{cells: map[string]*held{}, standings: map[string]*standing{}}
}

// find returns the cell of a key, nil when it has none.
func (s *scores) find(key []byte) *held {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.cells[string(key)]
}

// hold returns the cell of a key, made by the outcome seq when it is missing. The writer's goroutine alone calls it.
func (s *scores) hold(key string, seq int64) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.cells[key]
	if h == nil {
		if len(s.cells) >= maxCells {
			s.evict()
		}
		h = &held{newCell(), uint64(seq)}
		s.cells[key] = h
	}
	return h
}

// evict forgets the cell that was used longest ago, by key among equals so that a replay forgets the same one.
func (s *scores) evict() {
	var oldest string
	var when int64
	first := true
	for key, c := range s.cells {
		if at := c.usedMS(); first || at < when || at == when && key < oldest {
			oldest, when, first = key, at, false
		}
	}
	delete(s.cells, oldest)
}

// apply changes the scores by one outcome and reports whether anything changed.
func (s *scores) apply(o *Outcome) (shift bool) {
	switch o.Kind {
	case KindPush:
		s.hold(o.Window, o.Seq).push(o.Gateway, o.Value, o.Size, o.TimeMS)
		shift = true
	case KindAmend:
		if h := s.find([]byte(o.Window)); h != nil && o.Number > h.base {
			shift = h.amend(o.Gateway, o.Number-h.base, o.Value)
		}
	case KindReset:
		s.mu.Lock()
		shift = len(s.cells) > 0
		clear(s.cells)
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq = o.Seq
	if o.Standing == "" || o.Move == Stay {
		return shift
	}
	st := s.standings[o.Standing]
	if st == nil {
		st = newStanding()
		s.standings[o.Standing] = st
	}
	st.move(o, standingLifeMS)
	return true
}

// standing returns the elimination score of a key, 1 when it has none.
func (s *scores) standing(key []byte, nowMS int64, p softReset) (score float64, reset bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := s.standings[string(key)]
	if st == nil {
		return 1, false
	}
	return st.score(nowMS, standingLifeMS, p)
}

// windows counts the gateways that have a window.
func (s *scores) windows() (n int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, c := range s.cells {
		n += c.arms()
	}
	return n
}

var errScores = errors.New("saved scores do not read back")

// scoresVersion leads every blob of saved scores.
const scoresVersion = 1

// appendTo encodes the scores, the same scores always to the same bytes.
func (s *scores) appendTo(b []byte) []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b = append(b, scoresVersion)
	b = binary.AppendUvarint(b, uint64(len(s.cells)))
	for _, key := range sortedKeys(s.cells) {
		b = appendBlock(b, []byte(key))
		b = binary.AppendUvarint(b, s.cells[key].base)
		b = appendBlock(b, s.cells[key].appendTo(nil))
	}
	b = binary.AppendUvarint(b, uint64(len(s.standings)))
	for _, key := range sortedKeys(s.standings) {
		b = appendBlock(b, []byte(key))
		b = appendBlock(b, s.standings[key].appendTo(nil))
	}
	return b
}

// readFrom decodes what appendTo wrote.
func (s *scores) readFrom(b []byte) error {
	if len(b) == 0 || b[0] != scoresVersion {
		return errScores
	}
	in := blocks{left: b[1:]}
	for range in.count() {
		key, h := in.next(), &held{newCell(), uint64(in.number())}
		if err := h.readFrom(in.next()); err != nil {
			return err
		}
		s.cells[string(key)] = h
	}
	for range in.count() {
		key, st := in.next(), newStanding()
		if err := st.readFrom(in.next()); err != nil {
			return err
		}
		s.standings[string(key)] = st
	}
	if in.bad || len(in.left) != 0 {
		return errScores
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// appendBlock appends bytes led by their length.
func appendBlock(b, block []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(block))), block...)
}

// blocks reads what appendBlock wrote; after something that does not read, bad is set and the rest is empty.
type blocks struct {
	left []byte
	bad  bool
}

// count reads a number of entries, which the bytes that are left could hold.
func (in *blocks) count() int {
	v, n := binary.Uvarint(in.left)
	if n <= 0 || v > uint64(len(in.left)) {
		in.bad, in.left = true, nil
		return 0
	}
	in.left = in.left[n:]
	return int(v)
}

// next reads one block.
func (in *blocks) next() []byte {
	n := in.count()
	if in.bad || n > len(in.left) {
		in.bad, in.left = true, nil
		return nil
	}
	block := in.left[:n]
	in.left = in.left[n:]
	return block
}

// appendNumber appends a number that is not negative.
func appendNumber(b []byte, v int64) []byte { return binary.AppendUvarint(b, uint64(v)) }
