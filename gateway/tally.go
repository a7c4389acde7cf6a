package gateway

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
)

// Roll-ups: events are counted by merchant, by minute and by what the analytics filter and group by. A minute becomes part
// of its hour and an hour part of its day when they are old enough (trail_sweep.go), so that an event is counted in exactly
// one of the three and 18 months stay small.

// level is how long the time of a page is.
type level uint8

const (
	minutes level = iota
	hours
	days
	levelCount
)

// The length of a page, in milliseconds.
const (
	minuteMS = int64(60_000)
	hourMS   = 60 * minuteMS
	dayMS    = 24 * hourMS
)

// grain is the length of a page.
func (l level) grain() int64 { return [levelCount]int64{minuteMS, hourMS, dayMS}[l] }

// cells is how many cells a page may have; see page.add.
func (l level) cells() int { return [levelCount]int{256, 512, 1_024}[l] }

// overflow is the value of a dimension in a cell that stands for several.
const overflow = "*"

// cellTexts are the dimensions of a cell, in the order of their names below.
const cellTexts = 12

const (
	byFlow = iota
	byGateway
	byApproach
	byRule
	byError
	byMethodType
	byMethod
	byNetwork
	byBIN
	byCurrency
	byCountry
	byAuthType
)

// cellKey is what the events of one cell have in common.
type cellKey struct {
	texts [cellTexts]string
	retry bool
}

func keyOf(e *Event) cellKey {
	return cellKey{retry: e.Retry, texts: [cellTexts]string{string(e.Flow), string(e.Gateway), string(e.Approach), e.Rule, e.ErrorCode,
		e.MethodType, e.Method, e.Network, e.BIN, e.Currency, e.Country, e.AuthType}}
}

func (k *cellKey) compare(o *cellKey) int {
	for i := range k.texts {
		if c := strings.Compare(k.texts[i], o.texts[i]); c != 0 {
			return c
		}
	}
	switch {
	case k.retry == o.retry:
		return 0
	case o.retry:
		return -1
	}
	return 1
}

// tallyCell counts events.
type tallyCell struct {
	count     int64
	failed    int64
	succeeded int64
	saved     float64
	lastMS    int64 // of the newest event
	message   string
	score     scoreAt
}

// scoreAt is the newest score among the events of a cell; zero without one.
type scoreAt struct {
	ms                          int64
	score, sigma, latency, tp99 float64
	transactions                int64
}

// cellMessage is how many bytes of the newest error's message a cell keeps.
const cellMessage = 128

func (c *tallyCell) note(e *Event) {
	c.count++
	switch {
	case e.Failed:
		c.failed++
	case e.settled():
		c.succeeded++
	}
	c.saved += e.Saved
	if e.Failed && e.ErrorMessage != "" && (c.message == "" || e.TimeMS >= c.lastMS) {
		if text := cut(e.ErrorMessage, cellMessage); text != c.message {
			c.message = strings.Clone(text)
		}
	}
	c.lastMS = max(c.lastMS, e.TimeMS)
	if e.Scored && e.TimeMS >= c.score.ms {
		c.score = scoreAt{e.TimeMS, e.Score, e.Sigma, e.Latency, e.TP99, e.Transactions}
	}
}

// add takes what another cell, which is not older, counted.
func (c *tallyCell) add(o *tallyCell) {
	if o.message != "" && (c.message == "" || o.lastMS >= c.lastMS) {
		c.message = o.message
	}
	c.count, c.failed, c.succeeded, c.saved = c.count+o.count, c.failed+o.failed, c.succeeded+o.succeeded, c.saved+o.saved
	c.lastMS = max(c.lastMS, o.lastMS)
	if o.score.ms >= c.score.ms && o.score != (scoreAt{}) {
		c.score = o.score
	}
}

// settled reports whether an event that did not fail says that something succeeded: feedback about a payment that is still
// on its way says nothing.
func (e *Event) settled() bool {
	if e.Flow != FlowUpdate {
		return true
	}
	class, known := classOf(Status(e.Status))
	return !known || class != Pending
}

// page is the roll-up of one merchant over one piece of time.
type page struct {
	cells  map[cellKey]*tallyCell
	folded int64 // events counted in a cell that stands for several
}

func newPage() *page { return &page{cells: map[cellKey]*tallyCell{}} }

// cell returns the cell for a key, weight events of which are to be counted. When half of the page's cells are taken, new
// ones do without the BIN; when all are, they do without everything but the flow.
func (p *page) cell(k *cellKey, most int, weight int64) *tallyCell {
	if c := p.cells[*k]; c != nil {
		return c
	}
	key := *k
	if len(p.cells) >= most/2 && key.texts[byBIN] != "" && key.texts[byBIN] != overflow {
		key.texts[byBIN] = overflow
	}
	if p.cells[key] == nil && len(p.cells) >= most && key.texts[byGateway] != overflow {
		for i := byGateway; i < cellTexts; i++ {
			key.texts[i] = overflow
		}
	}
	if key != *k {
		p.folded += weight
	}
	c := p.cells[key]
	if c == nil {
		for i := range key.texts {
			key.texts[i] = strings.Clone(key.texts[i])
		}
		c = &tallyCell{}
		p.cells[key] = c
	}
	return c
}

func (p *page) note(e *Event) {
	k := keyOf(e)
	p.cell(&k, minutes.cells(), 1).note(e)
}

// add takes what another page counted; most is the bound of cells.
func (p *page) add(o *page, most int) {
	p.folded += o.folded
	// In order, so that what is folded does not depend on chance.
	for _, k := range o.keys() {
		c := o.cells[k]
		p.cell(&k, most, c.count).add(c)
	}
}

func (p *page) keys() []cellKey {
	return slices.SortedFunc(maps.Keys(p.cells), func(a, b cellKey) int { return a.compare(&b) })
}

// The stored form of a page: the version byte 1, uvarint folded, and cell by cell
//
//	uvarint  which texts differ from those of the cell before, one bit each; then 1<<12 retry, 1<<13 saved, 1<<14 score,
//	         1<<15 message
//	         those texts: uvarint length, bytes
//	         uvarint count, failed, succeeded; varint the time of the newest event
//	         float64 saved; varint ms, four float64, varint transactions of the score; the message
const (
	pageVersion = 1

	cellRetry    = 1 << (cellTexts + 0)
	cellSaved    = 1 << (cellTexts + 1)
	cellScored   = 1 << (cellTexts + 2)
	cellMessaged = 1 << (cellTexts + 3)
	cellBits     = cellTexts + 4
)

// encode returns the stored form.
func (p *page) encode() []byte {
	dst := binary.AppendUvarint([]byte{pageVersion}, uint64(p.folded))
	var before [cellTexts]string
	for _, k := range p.keys() {
		dst = appendCell(dst, &k, &before, p.cells[k])
	}
	return dst
}

func appendCell(dst []byte, k *cellKey, before *[cellTexts]string, c *tallyCell) []byte {
	var bits uint64
	for i := range k.texts {
		if k.texts[i] != before[i] {
			bits |= 1 << i
		}
	}
	for _, f := range [4]struct {
		on  bool
		bit uint64
	}{{k.retry, cellRetry}, {c.saved != 0, cellSaved}, {c.score != scoreAt{}, cellScored}, {c.message != "", cellMessaged}} {
		if f.on {
			bits |= f.bit
		}
	}
	dst = binary.AppendUvarint(dst, bits)
	for i := range k.texts {
		if bits&(1<<i) != 0 {
			dst = appendText(dst, k.texts[i])
		}
	}
	*before = k.texts
	for _, n := range [3]int64{c.count, c.failed, c.succeeded} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	dst = binary.AppendVarint(dst, c.lastMS)
	if bits&cellSaved != 0 {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(c.saved))
	}
	if bits&cellScored != 0 {
		s := &c.score
		dst = binary.AppendVarint(dst, s.ms)
		for _, v := range [4]float64{s.score, s.sigma, s.latency, s.tp99} {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
		}
		dst = binary.AppendVarint(dst, s.transactions)
	}
	if bits&cellMessaged != 0 {
		dst = appendText(dst, c.message)
	}
	return dst
}

// readPage calls visit for every cell of a stored page.
func readPage(text []byte, visit func(k *cellKey, c *tallyCell)) (folded int64, err error) {
	r := records{rest: string(text)}
	if r.byte() != pageVersion {
		return 0, errRecord
	}
	folded = int64(r.uvarint())
	var k cellKey
	for r.rest != "" && !r.bad {
		bits := r.uvarint()
		if bits>>cellBits != 0 {
			r.bad = true
			break
		}
		for i := range k.texts {
			if bits&(1<<i) != 0 {
				k.texts[i] = r.text(maxEventText)
			}
		}
		k.retry = bits&cellRetry != 0
		c := tallyCell{count: int64(r.uvarint()), failed: int64(r.uvarint()), succeeded: int64(r.uvarint()), lastMS: r.varint()}
		if bits&cellSaved != 0 {
			c.saved = r.float()
		}
		if bits&cellScored != 0 {
			c.score = scoreAt{r.varint(), r.float(), r.float(), r.float(), r.float(), r.varint()}
		}
		if bits&cellMessaged != 0 {
			c.message = r.text(cellMessage)
		}
		if !r.bad {
			visit(&k, &c)
		}
	}
	if r.bad {
		return 0, errRecord
	}
	return folded, nil
}

// addStored takes what a stored page counted.
func (p *page) addStored(text []byte, most int) error {
	other := newPage()
	folded, err := readPage(text, func(k *cellKey, c *tallyCell) {
		one := *c
		other.cells[*k] = &one
	})
	if err != nil {
		return err
	}
	other.folded = folded
	p.add(other, most)
	return nil
}

// pageID says whose page it is, and of which time.
type pageID struct {
	level    level
	start    int64 // ms, a multiple of the level's grain
	merchant int64
}

// The key of a stored page holds, from the top, 2 bits for the level, 27 for the minute of the start and 34 for the merchant.
const (
	pageMerchantBits = 34
	pageMinuteBits   = 27
)

func (id pageID) key() int64 {
	minute := min(max(id.start/minuteMS, 0), 1<<pageMinuteBits-1)
	return int64(id.level)<<(pageMinuteBits+pageMerchantBits) | minute<<pageMerchantBits | id.merchant
}

func pageOf(key int64) pageID {
	return pageID{level: level(key >> (pageMinuteBits + pageMerchantBits)), merchant: key & (1<<pageMerchantBits - 1),
		start: key >> pageMerchantBits & (1<<pageMinuteBits - 1) * minuteMS}
}

// in is the page of the next level that a page becomes part of.
func (id pageID) in(l level) pageID {
	return pageID{level: l, start: floorMS(id.start, l.grain()), merchant: id.merchant}
}

func floorMS(ms, grain int64) int64 {
	ms = max(ms, 0) // before 1970 there was nothing to route
	return ms - ms%grain
}

func (id pageID) compare(o pageID) int { return cmp.Compare(id.key(), o.key()) }
