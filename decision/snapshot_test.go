package decision

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"holdfast/fault"
)

// randomModel has seen a few hundred updates of mixed terms.
func randomModel(bits int) *Model {
	r := rand.New(rand.NewPCG(11, uint64(bits)))
	m := NewModel(bits)
	for range 300 {
		m.Update(randomInput(r).AppendTerms(nil, bits), r.Float64(), 1+r.Float64(), 0.5)
	}
	return m
}

func TestSnapshotRoundTrip(t *testing.T) {
	for _, bits := range []int{10, 18, 24} {
		m := randomModel(bits)
		first := m.AppendSnapshot([]byte("before"), 0.125)[len("before"):]
		again, rate, err := DecodeSnapshot(first)
		if err != nil {
			t.Fatal(err)
		}
		if rate != 0.125 || again.Bits() != bits || again.Updates() != 300 || !bytes.Equal(again.AppendSnapshot(nil, rate), first) {
			t.Errorf("%d bits: rate %v, n %d", bits, rate, again.Updates())
		}
		// Learning goes on from a snapshot exactly as it would have without one.
		r := rand.New(rand.NewPCG(13, 14))
		for range 50 {
			terms, y := randomInput(r).AppendTerms(nil, bits), r.Float64()
			m.Update(terms, y, 1, 0.5)
			again.Update(terms, y, 1, 0.5)
		}
		if !bytes.Equal(again.AppendSnapshot(nil, 0.5), m.AppendSnapshot(nil, 0.5)) {
			t.Errorf("%d bits: the restored model learns something else", bits)
		}
	}
}

// resealed returns a copy of a snapshot with a change and a checksum that fits it.
func resealed(snapshot []byte, change func(body []byte)) []byte {
	body := bytes.Clone(snapshot[:len(snapshot)-sha256.Size])
	change(body)
	sum := sha256.Sum256(body)
	return append(body, sum[:]...)
}

func TestSnapshotRejections(t *testing.T) {
	m := NewModel(12)
	m.Update([]Term{{1, 1}, {2, -3}, {4095, 2}}, 1, 1, 0.5)
	good := m.AppendSnapshot(nil, 0.5)
	u64 := func(at int, v uint64) func([]byte) {
		return func(b []byte) { binary.LittleEndian.PutUint64(b[at:], v) }
	}
	u32 := func(at int, v uint32) func([]byte) {
		return func(b []byte) { binary.LittleEndian.PutUint32(b[at:], v) }
	}
	set := func(at int, v byte) func([]byte) { return func(b []byte) { b[at] = v } }
	nan, inf := math.Float32bits(float32(math.NaN())), math.Float32bits(float32(math.Inf(-1)))
	second := snapshotHeader + snapshotEntry
	bad := map[string][]byte{
		"empty": nil, "header cut": good[:40], "body cut": good[:len(good)-20], "one byte short": good[:len(good)-1],
		"one byte more": append(bytes.Clone(good), 0), "checksum": append(bytes.Clone(good[:len(good)-1]), good[len(good)-1]^1),
		"magic": resealed(good, set(0, 's')), "version": resealed(good, set(8, 2)), "bits low": resealed(good, set(10, 9)),
		"bits high": resealed(good, set(10, 25)), "reserved": resealed(good, set(11, 1)),
		"rate": resealed(good, u64(12, math.Float64bits(math.Inf(1)))), "t": resealed(good, u64(28, math.Float64bits(math.NaN()))),
		"negative t": resealed(good, u64(28, math.Float64bits(-1))), "N": resealed(good, u64(36, math.Float64bits(math.Inf(1)))),
		"negative N": resealed(good, u64(36, math.Float64bits(-1))), "count low": resealed(good, u64(44, 2)), "count high": resealed(good, u64(44, 4)),
		"count huge": resealed(good, u64(44, 1<<60)), "u": resealed(good, u32(second+4, nan)), "s": resealed(good, u32(second+8, inf)),
		"negative s": resealed(good, u32(second+8, math.Float32bits(-1))), "zero s": resealed(good, u32(second+8, 0)),
		"A": resealed(good, u32(second+12, nan)), "negative A": resealed(good, u32(second+12, math.Float32bits(-1))),
		"slot again": resealed(good, u32(second, 1)), "slot below": resealed(good, u32(second, 0)), "slot outside": resealed(good, u32(second+snapshotEntry, 4096)),
	}
	for name, data := range bad {
		if m, _, err := DecodeSnapshot(data); m != nil || fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := DecodeSnapshot(good); err != nil {
		t.Errorf("the good one: %v", err)
	}
}

func FuzzSnapshot(f *testing.F) {
	m := NewModel(10)
	f.Add(m.AppendSnapshot(nil, 0.5)[:snapshotHeader])
	m.Update([]Term{{1, 1}, {2, -3}}, 1, 1, 0.5)
	f.Add(m.AppendSnapshot(nil, 0.5)[:snapshotHeader+2*snapshotEntry])
	f.Fuzz(func(t *testing.T, body []byte) {
		// The checksum is made to fit, or nothing behind it would ever be reached.
		sum := sha256.Sum256(body)
		data := append(bytes.Clone(body), sum[:]...)
		m, rate, err := DecodeSnapshot(data)
		if err != nil {
			return
		}
		if got := m.AppendSnapshot(nil, rate); !bytes.Equal(got, data) {
			t.Errorf("%x came back as %x", data, got)
		}
	})
}

func BenchmarkSnapshot(b *testing.B) {
	m, buf := randomModel(18), []byte(nil)
	b.ReportAllocs()
	for b.Loop() {
		buf = m.AppendSnapshot(buf[:0], 0.5)
	}
}
