package decision

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"

	"holdfast/fault"
)

// The layout of a snapshot, little-endian: the header (magic, u16 version, u8 bits, u8 zero, f64 learning rate, u64 n,
// f64 t, f64 N, u64 entry count), per touched slot in slot order an entry (u32 slot, f32 u, f32 s, f32 A), and the SHA-256
// of all that.
const (
	snapshotMagic   = "SYNTRALM"
	snapshotVersion = 1
	snapshotHeader  = 52
	snapshotEntry   = 16
)

// AppendSnapshot appends the model's state between two updates to dst; equal states give equal bytes. The learning rate
// is a part of the format only. Updates wait meanwhile, readers do not.
func (m *Model) AppendSnapshot(dst []byte, rate float64) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	from := len(dst)
	dst = append(dst, snapshotMagic...)
	dst = binary.LittleEndian.AppendUint16(dst, snapshotVersion)
	dst = append(dst, byte(m.bits), 0)
	dst = appendFloat64(dst, rate)
	dst = binary.LittleEndian.AppendUint64(dst, m.updates.Load())
	dst = appendFloat64(dst, m.total)
	dst = appendFloat64(dst, m.norm)
	countAt, count := len(dst), uint64(0)
	dst = binary.LittleEndian.AppendUint64(dst, 0)
	for i := range m.pages {
		p := m.pages[i].Load()
		if p == nil {
			continue
		}
		for at := range p.words {
			weight, scale := unpack(p.words[at].Load())
			if scale == 0 {
				continue
			}
			count++
			dst = binary.LittleEndian.AppendUint32(dst, uint32(i<<pageShift|at))
			dst = appendFloat32(appendFloat32(appendFloat32(dst, weight), scale), p.sums[at])
		}
	}
	binary.LittleEndian.PutUint64(dst[countAt:], count)
	sum := sha256.Sum256(dst[from:])
	return append(dst, sum[:]...)
}

// DecodeSnapshot returns the model that data is the snapshot of, and the learning rate noted in it. It fails with Invalid
// when data is anything but exactly what AppendSnapshot writes.
func DecodeSnapshot(data []byte) (m *Model, rate float64, err error) {
	body, err := checkedBody(data)
	if err != nil {
		return nil, 0, err
	}
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(body[at:]) }
	f64 := func(at int) float64 { return math.Float64frombits(u64(at)) }
	bits := int(body[10])
	if bits < MinModelBits || bits > MaxModelBits || body[11] != 0 {
		return nil, 0, badSnapshot("impossible size")
	}
	rate, total, norm := f64(12), f64(28), f64(36)
	if !finite(rate) || !finite(total) || !finite(norm) || total < 0 || norm < 0 {
		return nil, 0, badSnapshot("number out of range")
	}
	entries := body[snapshotHeader:]
	if count := u64(44); len(entries)%snapshotEntry != 0 || count != uint64(len(entries)/snapshotEntry) {
		return nil, 0, badSnapshot("wrong length")
	}
	m = NewModel(bits)
	m.total, m.norm = total, norm
	m.updates.Store(u64(20))
	if err := m.restore(entries); err != nil {
		return nil, 0, err
	}
	return m, rate, nil
}

// checkedBody checks what must hold before anything in data means something, and returns it without the checksum.
func checkedBody(data []byte) ([]byte, error) {
	if len(data) < snapshotHeader+sha256.Size {
		return nil, badSnapshot("too short")
	}
	if string(data[:len(snapshotMagic)]) != snapshotMagic {
		return nil, badSnapshot("not a snapshot")
	}
	if binary.LittleEndian.Uint16(data[8:]) != snapshotVersion {
		return nil, badSnapshot("unknown version")
	}
	body, sum := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	if want := sha256.Sum256(body); !bytes.Equal(sum, want[:]) {
		return nil, badSnapshot("wrong checksum")
	}
	return body, nil
}

// restore fills a new model from whole entries.
func (m *Model) restore(entries []byte) error {
	next := uint64(0) // lowest slot that may follow
	for ; len(entries) > 0; entries = entries[snapshotEntry:] {
		u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(entries[at:]) }
		slot := u32(0)
		if uint64(slot) < next || slot >= 1<<m.bits {
			return badSnapshot("slots out of order")
		}
		next = uint64(slot) + 1
		weight, scale, sum := math.Float32frombits(u32(4)), math.Float32frombits(u32(8)), math.Float32frombits(u32(12))
		if !finite(float64(weight)) || !finite(float64(scale)) || !finite(float64(sum)) {
			return badSnapshot("number out of range")
		}
		// A slot is touched only by a value other than zero, so a scale of zero is as wrong as a negative one.
		if scale <= 0 || sum < 0 {
			return badSnapshot("negative scale or sum")
		}
		p := m.own(slot)
		p.words[slot%pageSlots].Store(pack(weight, scale))
		p.sums[slot%pageSlots] = sum
	}
	return nil
}

func badSnapshot(why string) error {
	return fault.New("decision.DecodeSnapshot", fault.Invalid, "bad model snapshot: %s", why)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func appendFloat64(dst []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
}

func appendFloat32(dst []byte, v float32) []byte {
	return binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
}
