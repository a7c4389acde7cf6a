package gateway

import (
	"encoding/binary"
	"errors"
)

// record is a decision as feedback needs it. Its form on disk is docs/format/gateway-store.md.
type record struct {
	merchant  int64
	timeMS    int64
	flags     recordFlags
	payment   string
	facts     Facts
	dimension string // the parts of the window's key beyond order type, method type and method, each led by a separator

	end int // where the record ended in what it was read from
}

// recordFlags are what was on when the decision was made.
type recordFlags uint8

const (
	flagElimination recordFlags = 1 << iota // the elimination score moves with the outcome
	flagExplored                            // the gateway was picked by hedging, the explorer or cost
	flagExploring                           // exploration was on for the merchant
)

// recordVersion leads every record, so that a newer program can read an older store.
const recordVersion = 1

var errDecision = errors.New("a stored decision does not read back")

// appendTo encodes the record.
func (r *record) appendTo(b []byte) []byte {
	b = append(b, recordVersion, byte(r.flags))
	b = binary.AppendUvarint(b, uint64(r.merchant))
	b = binary.AppendUvarint(b, uint64(r.timeMS))
	for _, text := range r.texts() {
		b = binary.AppendUvarint(b, uint64(len(*text)))
		b = append(b, *text...)
	}
	return b
}

// texts are the record's strings, in the order of the disk.
func (r *record) texts() [11]*string {
	f := &r.facts
	return [...]*string{&r.payment, &f.OrderType, &f.MethodType, &f.Method, &f.CardType, &f.Network, &f.BIN, &f.Currency, &f.Country, &f.AuthType, &r.dimension}
}

// readFrom decodes the record that begins at offset at of payload; its strings are one copy.
func (r *record) readFrom(payload []byte, at int) error {
	if at < 0 || at+2 > len(payload) || payload[at] != recordVersion {
		return errDecision
	}
	r.flags = recordFlags(payload[at+1])
	at += 2
	var numbers [2]uint64
	for i := range numbers {
		v, n := binary.Uvarint(payload[at:])
		if n <= 0 {
			return errDecision
		}
		numbers[i], at = v, at+n
	}
	r.merchant, r.timeMS = int64(numbers[0]), int64(numbers[1])
	var from, to [11]int
	begin := at
	for i := range from {
		v, n := binary.Uvarint(payload[at:])
		if n <= 0 || v > uint64(len(payload)-at-n) {
			return errDecision
		}
		from[i], to[i] = at+n-begin, at+n+int(v)-begin
		at += n + int(v)
	}
	text := string(payload[begin:at])
	for i, dst := range r.texts() {
		*dst = text[from[i]:to[i]]
	}
	r.end = at
	return nil
}
