package decisionapi

import (
	"testing"

	"holdfast/decision"
)

// The bodies that speed is measured with: the usual small one, and the large one of ten context features and three actions
// with two features each.
const (
	smallBody = `{"context":{"plan":"pro","basket":63.5,"device":{"os":"ios"}}}`
	largeBody = `{"context":{"plan":"pro","basket":63.5,"device":"ios","hour":14,"day":"tue","visits":7,"new":false,"ref":"mail",` +
		`"score":0.42,"zone":"eu"},"actions":[{"id":"express","features":{"fee":4.9,"days":1}},{"id":"standard","features":` +
		`{"fee":2.9,"days":3}},{"id":"pickup","features":{"fee":0,"days":2}}],"eventId":"cart-9917"}`
	rewardText = `{"decisionId":"dec_01a2b3c4d5e6f70819abcde","reward":0.7,"idempotencyKey":"paid-9917"}`
)

var benchAnswer = decision.Answer{
	ID: "dec_01a2b3c4d5e6f70819abcde", Action: "express", Probability: 0.9333333333333333, Mode: decision.Learner, ModelVersion: 812,
	Ranking: []decision.Ranked{{ID: "express", Probability: 0.9333333333333333}, {ID: "standard", Probability: 0.05}, {ID: "pickup", Probability: 0.016666666666666666}},
}

// TestAllocations holds what one decide allocates in this package: nothing for a small body; the event's id and one string
// for all names of a large one.
func TestAllocations(t *testing.T) {
	d := new(decideCall)
	for body, most := range map[string]float64{smallBody: 0, largeBody: 2} {
		text := []byte(body)
		got := testing.AllocsPerRun(200, func() {
			if err := d.body.decode(text); err != nil {
				t.Fatal(err)
			}
			d.text = append(appendAnswer(d.text[:0], &benchAnswer), '}')
		})
		if got > most {
			t.Errorf("%v allocations for %s, at most %v", got, body, most)
		}
	}
	text := []byte(rewardText)
	if got := testing.AllocsPerRun(200, func() {
		if _, err := rewardBody(text); err != nil {
			t.Fatal(err)
		}
	}); got > 2 {
		t.Errorf("%v allocations for a reward, at most 2", got)
	}
}

func BenchmarkDecodeSmall(b *testing.B) { benchmarkDecode(b, smallBody) }
func BenchmarkDecodeLarge(b *testing.B) { benchmarkDecode(b, largeBody) }
func BenchmarkDecodeReward(b *testing.B) {
	body := []byte(rewardText)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rewardBody(body); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkDecode(b *testing.B, text string) {
	body, d := []byte(text), new(decideBody)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if err := d.decode(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeAnswer(b *testing.B) {
	var text []byte
	b.ReportAllocs()
	for b.Loop() {
		text = append(appendAnswer(text[:0], &benchAnswer), '}')
	}
}
