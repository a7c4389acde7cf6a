package decision

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"math"
	"strings"

	"holdfast/fault"
)

// The encoding of the decision log. docs/format/decision-log.md is the specification; this file is the only code that
// reads or writes it.
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

var errRecord = fault.New("decision.decode", fault.Internal, "the decision log holds a damaged batch")

// unseal checks a stored payload and returns its items.
func unseal(payload []byte) (items, error) {
	if len(payload) < 1+trailerBytes || payload[0] != payloadVersion {
		return items{}, errRecord
	}
	body := payload[:len(payload)-trailerBytes]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(payload[len(body):]) {
		return items{}, errRecord
	}
	return items{rest: body[1:]}, nil
}

// items walks a payload without its version byte and trailer.
type items struct {
	rest  []byte
	frame []byte // body of the newest frame
}

// next returns the body of the next record, nil at the end.
func (it *items) next() ([]byte, error) {
	for len(it.rest) > 0 {
		kind := it.rest[0]
		size, n := binary.Uvarint(it.rest[1:])
		if n <= 0 || size > uint64(len(it.rest)-1-n) {
			return nil, errRecord
		}
		body := it.rest[1+n : 1+n+int(size)]
		it.rest = it.rest[1+n+int(size):]
		switch kind {
		case frameItem:
			it.frame = body
		case recordItem:
			if len(body) < 1+6+1 {
				return nil, errRecord
			}
			return body, nil
		default:
			return nil, errRecord
		}
	}
	return nil, nil
}

// head is the part of a record that look-ups and paging read.
type head struct {
	ms     int64
	flags  byte
	client []byte // the client's id, nil for a server-made one
	random uint64
	rest   []byte // the record after its head
}

func readHead(body []byte) (head, error) {
	h := head{flags: body[0], ms: int64(read48(body[1:]))}
	body = body[7:]
	if h.flags&clientIDFlag != 0 {
		n := int(body[0])
		if n == 0 || n > len(body)-1 {
			return head{}, errRecord
		}
		h.client, h.rest = body[1:1+n], body[1+n:]
		return h, nil
	}
	if len(body) < randomBytes {
		return head{}, errRecord
	}
	h.random, h.rest = read48(body), body[randomBytes:]
	return h, nil
}

// id is the decision's id as text.
func (h *head) id() string {
	if h.client != nil {
		return string(h.client)
	}
	var room [idLength]byte
	return string(appendID(room[:0], h.ms, h.random))
}

// compareID orders the record's id against another without making text of it that outlives the call.
func (h *head) compareID(id string) int {
	var room [idLength]byte
	own := h.client
	if own == nil {
		own = appendID(room[:0], h.ms, h.random)
	}
	switch { // the comparison operators take bytes as text without a copy, strings.Compare does not
	case string(own) == id:
		return 0
	case string(own) < id:
		return -1
	}
	return 1
}

// wanted is an id to look for, taken apart once.
type wanted struct {
	id     string
	ms     int64
	random uint64
	server bool // in the form of a server-made id; a client may have made it all the same
}

func want(id string) wanted {
	w := wanted{id: id}
	w.ms, w.random, w.server = parseID(id)
	return w
}

// is reports whether the record has that id. It makes no text of it.
func (h *head) is(w *wanted) bool {
	if h.client != nil {
		return string(h.client) == w.id
	}
	return w.server && h.random == w.random && h.ms == w.ms
}

// decodeRecord reads one record. The decision shares no memory with the payload.
func decodeRecord(h head, frame []byte) (Decision, error) {
	r := reader{rest: h.rest}
	d := Decision{ID: h.id(), TimeMS: h.ms, Mode: Mode(h.flags & modeMask)}
	d.ModelVersion = r.uvarint()
	copy(d.Digest[:], r.take(len(d.Digest)))
	d.Seed = r.word()
	d.Context = r.copied(r.count(len(r.rest)))
	if h.flags&derivedFlag != 0 {
		d.Derived = r.copied(r.count(len(r.rest)))
	}
	if h.flags&reasonFlag != 0 {
		d.Reason = string(r.take(r.count(len(r.rest))))
	}
	shared := reader{rest: frame}
	if program := shared.take(int(shared.byte())); len(program) > 0 {
		d.Program = hex.EncodeToString(program)
	}
	if shared.bad {
		return Decision{}, errRecord
	}
	if h.flags&ownActionsFlag != 0 {
		d.Actions = r.actions()
	} else if d.Actions = shared.actions(); shared.bad {
		return Decision{}, errRecord
	}
	d.readDraw(&r, h.flags&allEligibleFlag != 0)
	if r.bad || len(r.rest) != 0 {
		return Decision{}, errRecord
	}
	return d, nil
}

// readDraw reads the eligible set, the probabilities and the choice.
func (d *Decision) readDraw(r *reader, all bool) {
	n := len(d.Actions)
	if !all {
		n = r.count(n)
	}
	if n == 0 || len(r.rest) < 8*n {
		r.bad = true
		return
	}
	d.Eligible = make([]int, n)
	next := 0
	for i := range d.Eligible {
		if !all {
			next += r.count(len(d.Actions))
		}
		d.Eligible[i] = next
		next++
	}
	d.PMF = make([]float64, n)
	for i := range d.PMF {
		d.PMF[i] = math.Float64frombits(r.word())
	}
	chosen := r.count(n - 1)
	if r.bad || next > len(d.Actions) {
		r.bad = true
		return
	}
	d.Chosen, d.Probability = d.Eligible[chosen], d.PMF[chosen]
}

// reader takes values off a body. After the first fault it is bad and gives zeros.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.bad, r.rest = true, nil
		return nil
	}
	out := r.rest[:n:n]
	r.rest = r.rest[n:]
	return out
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) word() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// count reads a number that must not exceed most.
func (r *reader) count(most int) int {
	v := r.uvarint()
	if r.bad || v > uint64(most) {
		r.bad, r.rest = true, nil
		return 0
	}
	return int(v)
}

func (r *reader) copied(n int) []byte {
	return append(make([]byte, 0, n), r.take(n)...)
}

func (r *reader) actions() []Action {
	n := r.count(len(r.rest) / 2) // an action takes two bytes at least
	if r.bad {
		return nil
	}
	list := make([]Action, n)
	for i := range list {
		list[i].ID = string(r.take(r.count(len(r.rest))))
		if size := r.count(len(r.rest) + 1); size > 0 {
			list[i].Features = r.copied(size - 1)
		}
	}
	return list
}

// RecordIDs calls visit for the id of every record in a stored payload; retention needs it.
func RecordIDs(payload []byte, visit func(id string)) error {
	return Records(payload, func(id string, _ int64) { visit(id) })
}

// Records calls visit for the id and the time of every record in a stored payload. It fails when the payload is damaged.
func Records(payload []byte, visit func(id string, ms int64)) error {
	it, err := unseal(payload)
	if err != nil {
		return err
	}
	for {
		body, err := it.next()
		if err != nil || body == nil {
			return err
		}
		h, err := readHead(body)
		if err != nil {
			return err
		}
		visit(h.id(), h.ms)
	}
}

// DecodePayload calls visit for every decision in a stored payload, in the order they were made, until it returns false.
func DecodePayload(payload []byte, visit func(Decision) (more bool)) error {
	it, err := unseal(payload)
	if err != nil {
		return err
	}
	for {
		body, err := it.next()
		if err != nil || body == nil {
			return err
		}
		h, err := readHead(body)
		if err != nil {
			return err
		}
		d, err := decodeRecord(h, it.frame)
		if err != nil {
			return err
		}
		if !visit(d) {
			return nil
		}
	}
}
