package decision

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var programName = strings.Repeat("0f", 32)

// sampleDraft is a usual decision: two context features, three actions of the spec.
func sampleDraft(f *frame) *draft {
	d := &draft{frame: f, random: 0xabcdef012345, ms: 1790000000123, version: 812, context: []byte(`{"plan":"pro","basket":63.5}`),
		count: 3, eligible: []int{0, 1, 2}, pmf: []float64{0.9, 0.05, 0.05}, chosen: 0, seed: 15824617304438902051}
	copy(d.digest[:], "digest")
	return d
}

var sampleActions = []Action{{ID: "small", Features: []byte(`{"cost":0.1}`)}, {ID: "medium"}, {ID: "large", Features: []byte(`{}`)}}

// decoded puts drafts into one payload and reads it back.
func decoded(t interface{ Fatal(...any) }, drafts ...*draft) (list []Decision) {
	var b batch
	for _, d := range drafts {
		b.add(d)
	}
	if err := DecodePayload(seal(b.payload), func(d Decision) bool {
		list = append(list, d)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestRecordRoundTrip(t *testing.T) {
	f := newFrame(programName, sampleActions)
	plain := newFrame("", nil)
	full := sampleDraft(f)
	full.id, full.mode, full.derived, full.reason = "cart-9917", Unverified, []byte(`{"n":3}`), "because"
	full.eligible, full.pmf, full.chosen = []int{0, 2}, []float64{0.25, 0.75}, 1
	own := sampleDraft(plain)
	own.own, own.actions, own.count, own.eligible, own.pmf = true, []Action{{ID: "x"}}, 1, []int{0}, []float64{1}
	got := decoded(t, sampleDraft(f), full, own)
	want := []Decision{
		{ID: "dec_1a0c4f4047babcdef012345", TimeMS: 1790000000123, ModelVersion: 812, Context: full.context, Actions: sampleActions,
			Eligible: []int{0, 1, 2}, PMF: []float64{0.9, 0.05, 0.05}, Probability: 0.9, Seed: full.seed, Digest: full.digest, Program: programName},
		{ID: "cart-9917", TimeMS: 1790000000123, ModelVersion: 812, Mode: Unverified, Context: full.context, Derived: []byte(`{"n":3}`),
			Actions: sampleActions, Eligible: []int{0, 2}, PMF: []float64{0.25, 0.75}, Chosen: 2, Probability: 0.75, Seed: full.seed,
			Reason: "because", Digest: full.digest, Program: programName},
		{ID: "dec_1a0c4f4047babcdef012345", TimeMS: 1790000000123, ModelVersion: 812, Context: full.context, Actions: []Action{{ID: "x"}},
			Eligible: []int{0}, PMF: []float64{1}, Probability: 1, Seed: full.seed, Digest: full.digest},
	}
	want[0].ID = string(appendID(nil, 1790000000123, 0xabcdef012345))
	want[2].ID = want[0].ID
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var ids []string
	var b batch
	b.add(full)
	if err := RecordIDs(seal(b.payload), func(id string) { ids = append(ids, id) }); err != nil || !slices.Equal(ids, []string{"cart-9917"}) {
		t.Errorf("ids %v, %v", ids, err)
	}
}

func TestRecordRoundTripOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := sampleDraft(newFrame("", nil))
		d.context = []byte(`{"k":"` + rapid.StringMatching(`[a-z]{0,300}`).Draw(t, "context") + `"}`)
		d.version, d.seed = rapid.Uint64().Draw(t, "version"), rapid.Uint64().Draw(t, "seed")
		d.ms = rapid.Int64Range(0, 1<<44-1).Draw(t, "ms")
		d.random = rapid.Uint64Range(0, mask48).Draw(t, "random")
		d.id = rapid.StringMatching(`([A-Za-z0-9_.:-]{1,128})?`).Draw(t, "id")
		d.mode = Mode(rapid.IntRange(0, 3).Draw(t, "mode"))
		d.own, d.count = true, rapid.IntRange(1, 40).Draw(t, "count")
		d.actions = nil
		d.eligible, d.pmf = nil, nil
		for i := range d.count {
			d.actions = append(d.actions, Action{ID: fmt.Sprint(i)})
			if rapid.Bool().Draw(t, "eligible") || len(d.eligible) == 0 {
				d.eligible = append(d.eligible, i)
				d.pmf = append(d.pmf, rapid.Float64Range(0, 1).Draw(t, "p"))
			}
		}
		d.chosen = rapid.IntRange(0, len(d.eligible)-1).Draw(t, "chosen")
		got := decoded(t, d)[0]
		id := d.id
		if id == "" {
			id = string(appendID(nil, d.ms, d.random))
		}
		want := Decision{ID: id, TimeMS: d.ms, ModelVersion: d.version, Mode: d.mode, Context: d.context, Actions: d.actions, Eligible: d.eligible,
			PMF: d.pmf, Chosen: d.eligible[d.chosen], Probability: d.pmf[d.chosen], Seed: d.seed, Digest: d.digest}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestParseID(t *testing.T) {
	id := string(appendID(nil, 1790000000123, mask48))
	if ms, random, ok := parseID(id); !ok || ms != 1790000000123 || random != mask48 {
		t.Errorf("%s reads as %d %x %v", id, ms, random, ok)
	}
	for _, bad := range []string{"", "dec_", id[:26], id + "0", "loc_" + id[4:], strings.ToUpper(id), id[:20] + "g" + id[21:]} {
		if _, _, ok := parseID(bad); ok {
			t.Errorf("%q passes for a server-made id", bad)
		}
	}
}

func TestNamesDoNotRepeat(t *testing.T) {
	var n names
	n.fill()
	seen := make(map[uint64]bool, 100000)
	for range 100000 {
		r := n.random()
		if seen[r] || r > mask48 {
			t.Fatalf("%x came twice or is too large", r)
		}
		seen[r] = true
	}
}

func TestDamagedPayloadsAreRefused(t *testing.T) {
	var b batch
	f := newFrame(programName, sampleActions)
	for range 3 {
		b.add(sampleDraft(f))
	}
	good := seal(bytes.Clone(b.payload))
	all := func(Decision) bool { return true }
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		if DecodePayload(bad, all) == nil {
			t.Errorf("a flipped bit in byte %d is not noticed", i)
		}
	}
	for n := range good {
		if DecodePayload(good[:n], all) == nil {
			t.Errorf("a payload cut to %d bytes is not noticed", n)
		}
	}
}

// FuzzPayload feeds items behind a right checksum: whatever they hold, reading ends with decisions that make sense.
func FuzzPayload(f *testing.F) {
	var b batch
	shared := newFrame(programName, sampleActions)
	own := sampleDraft(shared)
	own.own, own.actions, own.id, own.derived, own.reason = true, sampleActions, "id", []byte("{}"), "r"
	own.eligible, own.pmf, own.chosen = []int{1}, []float64{1}, 0
	b.add(sampleDraft(shared))
	b.add(own)
	f.Add(b.payload[1:])
	f.Add([]byte{recordItem, 8, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, text []byte) {
		payload := seal(append([]byte{payloadVersion}, text...))
		n := 0
		err := DecodePayload(payload, func(d Decision) bool {
			n++
			if len(d.Eligible) == 0 || len(d.Eligible) != len(d.PMF) || !slices.Contains(d.Eligible, d.Chosen) || d.Chosen >= len(d.Actions) ||
				!slices.IsSorted(d.Eligible) || d.ID == "" {
				t.Errorf("decoded %+v", d)
			}
			return true
		})
		ids := 0
		if idsErr := RecordIDs(payload, func(string) { ids++ }); err == nil && (idsErr != nil || ids != n) {
			t.Errorf("%d decisions but %d ids, %v", n, ids, idsErr)
		}
	})
}

// jsonRecord is the decision as JSON text would hold it, for the comparison of the two encodings.
type jsonRecord struct {
	ID       string         `json:"decisionId"`
	TimeMS   int64          `json:"tsMs"`
	Version  uint64         `json:"modelVersion"`
	Mode     string         `json:"mode"`
	Context  jsontext.Value `json:"context"`
	Actions  []jsonAction   `json:"actions"`
	Eligible []int          `json:"eligible"`
	PMF      []float64      `json:"pmf"`
	Chosen   int            `json:"chosenIndex"`
	Seed     string         `json:"seed"`
	Digest   string         `json:"requestSha256"`
}

type jsonAction struct {
	ID       string         `json:"id"`
	Features jsontext.Value `json:"features,omitempty"`
}

// BenchmarkEncoding compares the binary record with the JSON text of the same decision, appended by hand as the hot path
// would: once with the actions in every record, once without them. bytes/record is what the log pays.
func BenchmarkEncoding(b *testing.B) {
	f := newFrame("", sampleActions)
	d := sampleDraft(f)
	pmf := []float64{0.6903030303030303, 0.10303030303030304, 0.20666666666666667}
	d.pmf = pmf
	b.Run("binary", func(b *testing.B) {
		var buf []byte
		size := 0
		for b.Loop() {
			buf = appendRecord(buf[:0], d)
			size = len(buf)
		}
		b.ReportMetric(float64(size), "bytes/record")
	})
	for _, with := range []string{"JSON without actions", "JSON with actions"} {
		b.Run(with, func(b *testing.B) {
			var buf []byte
			size := 0
			for b.Loop() {
				buf = appendJSONRecord(buf[:0], d, with == "JSON with actions")
				size = len(buf)
			}
			b.ReportMetric(float64(size), "bytes/record")
			var back jsonRecord
			if err := json.Unmarshal(buf, &back); err != nil || back.PMF[0] != pmf[0] {
				b.Fatalf("the JSON form does not read back: %v", err)
			}
		})
	}
	payload := []byte{payloadVersion}
	payload = appendRecord(append(payload, f.item...), d)
	payload = seal(payload)
	b.Run("binary, decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := DecodePayload(payload, func(Decision) bool { return true }); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func TestFloatBitsSurvive(t *testing.T) {
	d := sampleDraft(newFrame("", sampleActions))
	d.pmf = []float64{math.Nextafter(0.3, 1), math.SmallestNonzeroFloat64, 1 - 1e-16}
	if got := decoded(t, d)[0]; !slices.Equal(got.PMF, d.pmf) {
		t.Errorf("%v became %v", d.pmf, got.PMF)
	}
}
