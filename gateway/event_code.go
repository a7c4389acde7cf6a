package gateway

import (
	"encoding/binary"
	"math"

	"holdfast/fault"
)

// Events are kept as records: in the queue, and in the bundles of the trail, where a text equal to that of the record before
// is not repeated. A record is
//
//	uvarint  which texts differ from the record before, one bit each, lowest first
//	         those texts: uvarint length, bytes
//	byte     flags
//	varint   time, milliseconds since 1970
//	         with eventScored: four float64, little-endian, and a varint; with eventSaved: a float64
//	         with eventDetails: uvarint length, bytes
//
// The texts and their order are those of Event.texts.
const eventTexts = 18

const (
	eventFailed uint8 = 1 << iota
	eventScored
	eventSaved
	eventDetails
	eventRetry
	eventFlags = iota
)

// The bounds of an event, in bytes: longer texts are cut, longer details left out.
const (
	maxEventText    = 256
	maxEventMessage = 1_024
	maxDetails      = 65_536
)

// eventText holds the texts of one event.
type eventText [eventTexts]string

// texts returns the texts in the order of the record.
func (e *Event) texts() eventText {
	return eventText{string(e.Flow), string(e.Stage), e.Route, e.PaymentID, e.RequestID, e.MethodType, e.Method, e.Network, e.BIN,
		e.Currency, e.Country, e.AuthType, string(e.Gateway), string(e.Approach), e.Rule, e.Status, e.ErrorCode, e.ErrorMessage}
}

func (e *Event) setTexts(t *eventText) {
	e.Flow, e.Stage, e.Route, e.PaymentID, e.RequestID = Flow(t[0]), Stage(t[1]), t[2], t[3], t[4]
	e.MethodType, e.Method, e.Network, e.BIN, e.Currency, e.Country, e.AuthType = t[5], t[6], t[7], t[8], t[9], t[10], t[11]
	e.Gateway, e.Approach, e.Rule, e.Status, e.ErrorCode, e.ErrorMessage = Name(t[12]), Approach(t[13]), t[14], t[15], t[16], t[17]
}

// appendPosted appends the event as the queue holds it: its merchant, and its record after an empty one.
func appendPosted(dst []byte, e *Event) []byte {
	dst = appendText(dst, cut(string(e.Merchant), maxEventText))
	var none eventText
	return appendEvent(dst, e, &none)
}

// appendEvent appends the record of e after a record with the texts before, and makes before those of e.
func appendEvent(dst []byte, e *Event, before *eventText) []byte {
	texts := e.texts()
	var differ uint64
	for i := range texts {
		most := maxEventText
		if i == eventTexts-1 {
			most = maxEventMessage
		}
		texts[i] = cut(texts[i], most)
		if texts[i] != before[i] {
			differ |= 1 << i
		}
	}
	dst = binary.AppendUvarint(dst, differ)
	for i := range texts {
		if differ&(1<<i) != 0 {
			dst = appendText(dst, texts[i])
		}
	}
	*before = texts
	return appendNumbers(dst, e)
}

// appendNumbers appends what of a record follows its texts.
func appendNumbers(dst []byte, e *Event) []byte {
	var flags uint8
	for _, f := range [eventFlags]struct {
		on  bool
		bit uint8
	}{{e.Failed, eventFailed}, {e.Scored, eventScored}, {e.Saved != 0, eventSaved},
		{len(e.Details) > 0 && len(e.Details) <= maxDetails, eventDetails}, {e.Retry, eventRetry}} {
		if f.on {
			flags |= f.bit
		}
	}
	dst = append(dst, flags)
	dst = binary.AppendVarint(dst, e.TimeMS)
	if flags&eventScored != 0 {
		for _, v := range [4]float64{e.Score, e.Sigma, e.Latency, e.TP99} {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
		}
		dst = binary.AppendVarint(dst, e.Transactions)
	}
	if flags&eventSaved != 0 {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(e.Saved))
	}
	if flags&eventDetails != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(e.Details)))
		dst = append(dst, e.Details...)
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// cut shortens a text to at most n bytes, at the start of a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// records reads records one after the other. What it returns refers to the text given to it.
type records struct {
	rest   string
	before eventText
	bad    bool
}

var errRecord = fault.New("gateway.trail", fault.Internal, "a stored event cannot be read")

// posted reads a record as the queue holds it into e; false at the end.
func (r *records) posted(e *Event) bool {
	if r.rest == "" || r.bad {
		return false
	}
	merchant := r.text(maxEventText)
	r.before = eventText{}
	if !r.next(e) {
		return false
	}
	e.Merchant = MerchantID(merchant)
	return true
}

// next reads a record into e; false at the end, or when it is none: then bad is set.
func (r *records) next(e *Event) bool {
	if r.rest == "" || r.bad {
		return false
	}
	differ := r.uvarint()
	if differ>>eventTexts != 0 {
		r.bad = true
	}
	for i := range r.before {
		if differ&(1<<i) != 0 {
			r.before[i] = r.text(maxEventMessage)
		}
	}
	flags := r.byte()
	*e = Event{TimeMS: r.varint(), Failed: flags&eventFailed != 0, Retry: flags&eventRetry != 0, Scored: flags&eventScored != 0}
	e.setTexts(&r.before)
	if flags>>eventFlags != 0 {
		r.bad = true
	}
	if e.Scored {
		e.Score, e.Sigma, e.Latency, e.TP99 = r.float(), r.float(), r.float(), r.float()
		e.Transactions = r.varint()
	}
	if flags&eventSaved != 0 {
		e.Saved = r.float()
	}
	if flags&eventDetails != 0 {
		e.Details = []byte(r.text(maxDetails))
	}
	return !r.bad
}

func (r *records) uvarint() uint64 {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7F) << shift
		if c < 0x80 {
			return v
		}
	}
	r.bad = true
	return 0
}

func (r *records) varint() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (r *records) byte() byte {
	if r.rest == "" {
		r.bad = true
		return 0
	}
	c := r.rest[0]
	r.rest = r.rest[1:]
	return c
}

func (r *records) text(most int) string {
	n := r.uvarint()
	if n > uint64(most) || n > uint64(len(r.rest)) {
		r.bad, r.rest = true, ""
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

func (r *records) float() float64 {
	if len(r.rest) < 8 {
		r.bad, r.rest = true, ""
		return 0
	}
	var v uint64
	for i := range 8 {
		v |= uint64(r.rest[i]) << (8 * i)
	}
	r.rest = r.rest[8:]
	return math.Float64frombits(v)
}
