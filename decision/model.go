package decision

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
)

// Bounds of a model's size.
const (
	MinModelBits = 10
	MaxModelBits = 24
)

// Slots live in small pages that exist from the first touch on: hashing scatters them, so a larger page would mostly hold
// air, and an untouched model is only its page table.
const (
	pageShift = 6
	pageSlots = 1 << pageShift
)

type page struct {
	words [pageSlots]atomic.Uint64 // weight and scale, see pack
	sums  [pageSlots]float32       // A, the adaptive gradient sum; only under Model.mu
}

// Model is an online least-squares learner over 2^bits slots. One Update runs at a time; any number of Score and Predict
// calls run beside it without a lock and without a copy, and each sees the model between two updates, never inside one.
//
// Readers take a version before and after: it is odd while an update is being stored. A reader whose two versions differ
// tries again, and after a few times waits for the mutex, so that a stream of updates cannot starve it.
type Model struct {
	bits    int
	pages   []atomic.Pointer[page]
	version atomic.Uint64
	updates atomic.Uint64 // n

	mu    sync.Mutex // held by an update from start to end; guards what follows and page.sums
	total float64    // t, the sum of importance weights
	norm  float64    // N
	cells []cell     // working memory of Update
}

// cell is one slot while an update works on it.
type cell struct {
	page          *page
	at            int // within the page
	weight, scale float32
	ratio         float64 // x over scale
}

// attempts is how often a reader tries without the lock.
const attempts = 4

// NewModel returns an untrained model of 2^bits slots; bits is MinModelBits .. MaxModelBits, as a valid spec guarantees.
func NewModel(bits int) *Model {
	if bits < MinModelBits || bits > MaxModelBits {
		panic(fmt.Sprintf("decision: a model of %d bits, outside %d..%d", bits, MinModelBits, MaxModelBits))
	}
	return &Model{bits: bits, pages: make([]atomic.Pointer[page], 1<<(bits-pageShift))}
}

// Bits returns the binary logarithm of the number of slots.
func (m *Model) Bits() int { return m.bits }

// Updates returns how many updates the model has had: its version.
func (m *Model) Updates() uint64 { return m.updates.Load() }

// pack puts a weight and a scale into one word, so that a reader gets both of one update.
func pack(weight, scale float32) uint64 {
	return uint64(math.Float32bits(weight))<<32 | uint64(math.Float32bits(scale))
}

func unpack(word uint64) (weight, scale float32) {
	return math.Float32frombits(uint32(word >> 32)), math.Float32frombits(uint32(word))
}

// load returns the word of a slot, 0 when it was never touched.
func (m *Model) load(slot uint32) uint64 {
	if p := m.pages[slot>>pageShift].Load(); p != nil {
		return p.words[slot%pageSlots].Load()
	}
	return 0
}

// own returns the page of a slot and makes it if needed. The caller holds mu.
func (m *Model) own(slot uint32) *page {
	home := &m.pages[slot>>pageShift]
	p := home.Load()
	if p == nil {
		p = new(page)
		home.Store(p)
	}
	return p
}

// Predict returns the prediction for canonical terms made for this model's bits, not clamped.
func (m *Model) Predict(terms []Term) float64 {
	if m.updates.Load() == 0 {
		return 0
	}
	for range attempts {
		before := m.version.Load()
		if before%2 != 0 {
			continue
		}
		if p := m.sum(terms); m.version.Load() == before {
			return p
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sum(terms)
}

func (m *Model) sum(terms []Term) (p float64) {
	for _, t := range terms {
		if weight, scale := unpack(m.load(t.Slot)); scale > 0 {
			p += float64(float64(weight) * (float64(t.X) / float64(scale)))
		}
	}
	return p
}

// Update moves the prediction for canonical terms, made for this model's bits, towards target in [0,1], with an importance
// of weight > 0 and the given learning rate. It returns the number of updates so far, this one included.
func (m *Model) Update(terms []Term, target, weight, rate float64) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	prediction, squares := m.prepare(terms)
	m.total += weight
	m.norm += float64(weight * squares)
	if d := prediction - target; d != 0 && m.norm > 0 {
		m.descend(weight*d, rate*math.Sqrt(m.total/m.norm))
	}
	n := m.updates.Load() + 1
	m.version.Add(1)
	for _, c := range m.cells {
		c.page.words[c.at].Store(pack(c.weight, c.scale))
	}
	m.updates.Store(n)
	m.version.Add(1)
	if cap(m.cells) > largeScratch {
		m.cells = nil
	}
	return n
}

// prepare loads the slots into cells, widens the scale of those whose value is the largest so far, and returns the
// prediction and the sum of the squared ratios. Explicit conversions keep a product and a sum from being fused, which
// would give other bytes on other processors.
func (m *Model) prepare(terms []Term) (prediction, squares float64) {
	m.cells = m.cells[:0]
	for _, t := range terms {
		c := cell{page: m.own(t.Slot), at: int(t.Slot % pageSlots)}
		c.weight, c.scale = unpack(c.page.words[c.at].Load())
		size := float32(math.Abs(float64(t.X)))
		if size > c.scale {
			if c.scale > 0 {
				r := float64(c.scale) / float64(size)
				sum := &c.page.sums[c.at]
				*sum = saturate((float64(*sum) * r) * r)
			}
			c.scale = size
		}
		c.ratio = float64(t.X) / float64(c.scale)
		prediction += float64(float64(c.weight) * c.ratio)
		squares += float64(c.ratio * c.ratio)
		m.cells = append(m.cells, c)
	}
	return prediction, squares
}

// descend takes the gradient step in every cell.
func (m *Model) descend(weighted, rate float64) {
	for i := range m.cells {
		c := &m.cells[i]
		g := weighted * c.ratio
		sum := float64(c.page.sums[c.at]) + float64(g*g)
		stored := saturate(sum)
		c.page.sums[c.at] = stored
		if stored == 0 {
			continue // the gradient is below what 32 bits hold
		}
		c.weight = saturate(float64(c.weight) - float64(rate*g)/math.Sqrt(sum))
	}
}
