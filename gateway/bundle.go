package gateway

import (
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"
)

// A bundle holds events of many merchants. Its payload is one section per merchant, in the order of the merchants' keys; a
// section is records one after the other (event_code.go). Merchants is, for each section, the key as a uvarint difference
// to the one before and the section's length as a uvarint. IDs is the sorted hashes of every payment and request id with its
// merchant, four bytes each, little-endian: 32 bits say of a bundle of 2,048 events that it holds an id when it does not once
// in a million times, and then its section is read for nothing.
const (
	bundleEvents = 2_048
	bundleBytes  = 1 << 20 // of payload; a bundle ends with the event that reaches it
	maxSection   = 1 << 28 // of a section; a longer one was not written here
)

// bundleBuilder makes bundles out of events.
type bundleBuilder struct {
	row    BundleRow
	ids    []uint32
	key    int64 // of the open section's merchant
	start  int   // of the open section in the payload
	before eventText
}

// add appends an event of the merchant with the key; keys come in ascending order within a bundle.
func (b *bundleBuilder) add(key int64, e *Event) {
	c := &b.row
	if c.Count == 0 || key != b.key {
		b.endSection(key)
	}
	if c.Count == 0 {
		c.FirstMS, c.LastMS = e.TimeMS, e.TimeMS
	}
	c.FirstMS, c.LastMS = min(c.FirstMS, e.TimeMS), max(c.LastMS, e.TimeMS)
	c.Count++
	c.Payload = appendEvent(c.Payload, e, &b.before)
	for _, id := range [2]string{e.PaymentID, e.RequestID} {
		if id != "" {
			b.ids = append(b.ids, idHash(key, id))
		}
	}
}

func (b *bundleBuilder) full() bool {
	return b.row.Count >= bundleEvents || len(b.row.Payload) >= bundleBytes
}

// endSection writes down the open section and begins the one of the next key.
func (b *bundleBuilder) endSection(next int64) {
	c := &b.row
	if c.Count > 0 {
		c.Merchants = binary.AppendUvarint(c.Merchants, uint64(len(c.Payload)-b.start))
	}
	c.Merchants = binary.AppendUvarint(c.Merchants, uint64(next-b.key))
	b.key, b.start, b.before = next, len(c.Payload), eventText{}
}

// finish returns the bundle, which is good until the next add, and empties the builder.
func (b *bundleBuilder) finish(number int64) BundleRow {
	c := &b.row
	c.Merchants = binary.AppendUvarint(c.Merchants, uint64(len(c.Payload)-b.start))
	slices.Sort(b.ids)
	if c.IDs = c.IDs[:0]; c.IDs == nil {
		c.IDs = []byte{} // nil would be stored as NULL
	}
	for _, id := range slices.Compact(b.ids) {
		c.IDs = binary.LittleEndian.AppendUint32(c.IDs, id)
	}
	c.Number, c.Bytes = number, int64(len(c.Payload)+len(c.IDs))
	row := *c
	*b = bundleBuilder{ids: b.ids[:0], row: BundleRow{Merchants: c.Merchants[:0], IDs: c.IDs[:0], Payload: c.Payload[:0]}}
	return row
}

// idHash is FNV-1a over the merchant's key and the id, folded to 32 bits.
func idHash(merchant int64, id string) uint32 {
	const prime = 1_099_511_628_211
	h := uint64(14_695_981_039_346_656_037)
	for shift := 0; shift < 64; shift += 8 {
		h = (h ^ uint64(merchant)>>shift&0xFF) * prime
	}
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * prime
	}
	return uint32(h ^ h>>32)
}

// hasID reports whether a bundle's ids hold the hash.
func hasID(ids []byte, hash uint32) bool {
	low, high := 0, len(ids)/4
	for low < high {
		mid := int(uint(low+high) / 2)
		switch at := binary.LittleEndian.Uint32(ids[4*mid:]); {
		case at == hash:
			return true
		case at < hash:
			low = mid + 1
		default:
			high = mid
		}
	}
	return false
}

// section finds where a merchant's section lies in the payload; ok is false when the bundle has none.
func section(merchants []byte, key int64) (start, length int, ok bool) {
	var at int64
	for len(merchants) > 0 {
		delta, n := binary.Uvarint(merchants)
		if n <= 0 {
			return 0, 0, false
		}
		size, m := binary.Uvarint(merchants[n:])
		if m <= 0 || size > maxSection || delta > 1<<pageMerchantBits || start > maxSection {
			return 0, 0, false
		}
		merchants = merchants[n+m:]
		at += int64(delta)
		switch {
		case at == key:
			return start, int(size), true
		case at > key:
			return 0, 0, false
		}
		start += int(size)
	}
	return 0, 0, false
}

// eachEvent calls visit for the events of every section of a bundle. What e holds may be kept.
func (c *BundleRow) eachEvent(visit func(key int64, e *Event)) error {
	payload, merchants := string(c.Payload), c.Merchants
	var key int64
	var e Event
	for len(merchants) > 0 {
		delta, n := binary.Uvarint(merchants)
		if n <= 0 {
			return errRecord
		}
		size, m := binary.Uvarint(merchants[n:])
		if m <= 0 || size > uint64(len(payload)) {
			return errRecord
		}
		merchants = merchants[n+m:]
		key += int64(delta)
		r := records{rest: payload[:size]}
		payload = payload[size:]
		for r.next(&e) {
			visit(key, &e)
		}
		if r.bad {
			return errRecord
		}
	}
	return nil
}

// clean makes an event such that every answer can carry it: valid UTF-8 within the bounds, finite numbers.
func (e *Event) clean() {
	texts := e.texts()
	dirty := false
	for i := range texts {
		if !utf8.ValidString(texts[i]) {
			texts[i], dirty = cleanText(texts[i]), true
		}
	}
	if dirty {
		e.setTexts(&texts)
	}
	for _, v := range [5]*float64{&e.Score, &e.Sigma, &e.Latency, &e.TP99, &e.Saved} {
		if *v-*v != 0 { // not finite
			*v = 0
		}
	}
}

// cleanText is what an event keeps of a text, so that a look-up by it finds it.
func cleanText(s string) string {
	return cut(strings.ToValidUTF8(cut(s, maxEventText), "\uFFFD"), maxEventText)
}
