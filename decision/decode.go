package decision

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"math"

	"holdfast/fault"
)

// errRecord says that a batch does not read back.
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

// eachRecord checks a stored payload and calls visit for every record in it, with the frame that the record refers to, in
// the order they were made, until visit returns false.
func eachRecord(payload []byte, visit func(h head, frame []byte) (more bool, err error)) error {
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
		if more, err := visit(h, it.frame); err != nil || !more {
			return err
		}
	}
}

// RecordIDs calls visit for the id of every record in a stored payload; retention needs it.
func RecordIDs(payload []byte, visit func(id string)) error {
	return Records(payload, func(id string, _ int64) { visit(id) })
}

// Records calls visit for the id and the time of every record in a stored payload. It fails when the payload is damaged.
func Records(payload []byte, visit func(id string, ms int64)) error {
	return eachRecord(payload, func(h head, _ []byte) (bool, error) {
		visit(h.id(), h.ms)
		return true, nil
	})
}

// DecodePayload calls visit for every decision in a stored payload, in the order they were made, until it returns false.
func DecodePayload(payload []byte, visit func(Decision) (more bool)) error {
	return eachRecord(payload, func(h head, frame []byte) (bool, error) {
		d, err := decodeRecord(h, frame)
		return err == nil && visit(d), err
	})
}
