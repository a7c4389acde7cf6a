package decision

import (
	"bytes"
	"testing"
)

// fullBatch is a batch of 512 usual records.
func fullBatch() *batch {
	b, f := &batch{}, newFrame("", sampleActions)
	for i := range 512 {
		d := sampleDraft(f)
		d.random = uint64(i)
		b.add(d)
	}
	return b
}

func BenchmarkBatch(b *testing.B) {
	full := fullBatch()
	b.Run("seal", func(b *testing.B) {
		payload := bytes.Clone(full.payload)
		for b.Loop() {
			seal(payload)
		}
		b.ReportMetric(float64(len(payload)), "bytes")
	})
	b.Run("find the last of 512 on disk", func(b *testing.B) {
		m := NewMemory()
		m.data.keys[1] = newMemoryCapsule(CapsuleRow{})
		m.data.keys[1].batches = []Batch{{Payload: seal(bytes.Clone(full.payload)), FirstMS: full.firstMS, LastMS: full.lastMS}}
		id := string(appendID(nil, 1790000000123, 511))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := findStored(memoryView{&m.data}, 1, id); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("find the last of 512 in the queue", func(b *testing.B) {
		id := string(appendID(nil, 1790000000123, 511))
		b.ReportAllocs()
		for b.Loop() {
			if _, ok, err := full.find(id, recordKey(id)); !ok || err != nil {
				b.Fatal(err)
			}
		}
	})
}
