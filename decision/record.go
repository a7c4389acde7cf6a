package decision

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"math"
	"strings"
)

// The encoding of the decision log. docs/format/decision-log.md is the specification; this file is the only code that
// writes it, and decode.go the only code that reads it.
//
// A payload is a version byte, items, and the CRC-32C of all that. An item is a kind byte, the length of its body as a
// uvarint, and the body. A frame holds what the records after it share: the program and the action list. A record refers to
// the newest frame before it or carries its own actions.
const (
	payloadVersion = 1
	frameItem      = 1
	recordItem     = 2
	trailerBytes   = 4
)

// The flags of a record. The low two bits are the mode.
const (
	modeMask        = 0x03
	clientIDFlag    = 0x04 // the id is the caller's text instead of six random bytes
	ownActionsFlag  = 0x08 // the record carries its actions
	allEligibleFlag = 0x10 // no list of eligible indices follows
	derivedFlag     = 0x20
	reasonFlag      = 0x40
)

const idDigits = "0123456789abcdef"

// idPrefix starts the ids this server makes; 11 hex digits of the ms and 12 random ones follow.
const (
	idPrefix    = "dec_"
	idLength    = len(idPrefix) + 11 + 12
	randomBytes = 6
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendID appends the server-made id of a time and 48 random bits.
func appendID(dst []byte, ms int64, random uint64) []byte {
	dst = append(dst, idPrefix...)
	for shift := 40; shift >= 0; shift -= 4 {
		dst = append(dst, idDigits[uint64(ms)>>shift&15])
	}
	for shift := 44; shift >= 0; shift -= 4 {
		dst = append(dst, idDigits[random>>shift&15])
	}
	return dst
}

// parseID reads a server-made id; ok is false for every other text.
func parseID(id string) (ms int64, random uint64, ok bool) {
	if len(id) != idLength || !strings.HasPrefix(id, idPrefix) {
		return 0, 0, false
	}
	for i := len(idPrefix); i < idLength; i++ {
		digit := strings.IndexByte(idDigits, id[i])
		if digit < 0 {
			return 0, 0, false
		}
		if i < len(idPrefix)+11 {
			ms = ms<<4 | int64(digit)
		} else {
			random = random<<4 | uint64(digit)
		}
	}
	return ms, random, true
}

// draft is a decision on its way into a batch. Its slices are only read while it is appended.
type draft struct {
	frame    *frame // of the engine that decided
	id       string // the client's; empty for a server-made one
	random   uint64 // 48 bits, for a server-made id
	ms       int64
	version  uint64
	mode     Mode
	context  []byte
	derived  []byte
	actions  []Action // only when the request carried them
	own      bool     // the request carried actions
	count    int      // of all actions
	eligible []int
	pmf      []float64
	chosen   int // position in eligible
	seed     uint64
	reason   string
	digest   [32]byte
	charge   int64 // what it counts in the queue
}

// frame is what the records of one engine share, encoded once.
type frame struct {
	item []byte // the whole item
}

// newFrame encodes the shared part. program is the SHA-256 of the graph in hex, empty without one.
func newFrame(program string, actions []Action) *frame {
	var body []byte
	sum, err := hex.DecodeString(program)
	if err != nil {
		sum = nil // the program's name is made here, in hex
	}
	body = append(body, byte(len(sum)))
	body = append(body, sum...)
	body = appendActions(body, actions)
	item := append([]byte{frameItem}, binary.AppendUvarint(nil, uint64(len(body)))...)
	return &frame{item: append(item, body...)}
}

func appendActions(dst []byte, actions []Action) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(actions)))
	for i := range actions {
		dst = appendText(dst, actions[i].ID)
		// Zero says that there are no features; otherwise their length plus one follows.
		if actions[i].Features == nil {
			dst = append(dst, 0)
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(len(actions[i].Features))+1)
		dst = append(dst, actions[i].Features...)
	}
	return dst
}

func appendText[T string | []byte](dst []byte, text T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return append(dst, text...)
}

// lengthBytes is how many bytes a record's length takes: always the same number, so that it can be filled in afterwards.
const lengthBytes = 4

// appendRecord appends d as one item.
func appendRecord(dst []byte, d *draft) []byte {
	dst = append(dst, recordItem, 0, 0, 0, 0)
	start := len(dst)
	dst = d.appendHead(dst)
	dst = binary.AppendUvarint(dst, d.version)
	dst = append(dst, d.digest[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, d.seed)
	dst = appendText(dst, d.context)
	if d.derived != nil {
		dst = appendText(dst, d.derived)
	}
	if d.reason != "" {
		dst = appendText(dst, d.reason)
	}
	if d.own {
		dst = appendActions(dst, d.actions)
	}
	if len(d.eligible) != d.count {
		dst = binary.AppendUvarint(dst, uint64(len(d.eligible)))
		next := 0
		for _, index := range d.eligible {
			dst = binary.AppendUvarint(dst, uint64(index-next))
			next = index + 1
		}
	}
	for _, p := range d.pmf {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(p))
	}
	dst = binary.AppendUvarint(dst, uint64(d.chosen))
	putLength(dst[start-lengthBytes:], len(dst)-start)
	return dst
}

// appendHead appends the flags, the time and the id: what a look-up reads.
func (d *draft) appendHead(dst []byte) []byte {
	flags := byte(d.mode) & modeMask
	if d.id != "" {
		flags |= clientIDFlag
	}
	if d.own {
		flags |= ownActionsFlag
	}
	if len(d.eligible) == d.count {
		flags |= allEligibleFlag
	}
	if d.derived != nil {
		flags |= derivedFlag
	}
	if d.reason != "" {
		flags |= reasonFlag
	}
	dst = append(dst, flags)
	dst = append48(dst, uint64(d.ms))
	if d.id != "" {
		dst = append(dst, byte(len(d.id)))
		return append(dst, d.id...)
	}
	return append48(dst, d.random)
}

func append48(dst []byte, v uint64) []byte {
	return append(dst, byte(v>>40), byte(v>>32), byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

func read48(b []byte) uint64 {
	return uint64(b[0])<<40 | uint64(b[1])<<32 | uint64(b[2])<<24 | uint64(b[3])<<16 | uint64(b[4])<<8 | uint64(b[5])
}

// putLength writes n as a uvarint of exactly lengthBytes bytes. A body is below 2^28 bytes: requests end at 4 MiB.
func putLength(dst []byte, n int) {
	dst[0] = byte(n) | 0x80
	dst[1] = byte(n>>7) | 0x80
	dst[2] = byte(n>>14) | 0x80
	dst[3] = byte(n >> 21 & 0x7f)
}

// seal closes a payload with its checksum.
func seal(payload []byte) []byte {
	return binary.LittleEndian.AppendUint32(payload, crc32.Checksum(payload, castagnoli))
}
