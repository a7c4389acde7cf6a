package gateway

import (
	"bytes"
	"strings"
	"testing"
)

func sampleRecord() record {
	return record{merchant: 7, timeMS: 1_772_366_400_123, flags: flagElimination | flagExplored, payment: "ord-7741-1",
		facts: Facts{OrderType: "ORDER_PAYMENT", MethodType: "CARD", Method: "CREDIT", CardType: "DEBIT", Network: "VISA", BIN: "453210",
			Currency: "EUR", Country: "PT", AuthType: "THREE_DS"}, dimension: "\x1fVISA"}
}

func TestRecordsReadBack(t *testing.T) {
	one, two := sampleRecord(), record{merchant: 1 << 40, payment: strings.Repeat("ü", 100)}
	payload := one.appendTo(nil)
	second := len(payload)
	payload = two.appendTo(payload)
	for _, c := range []struct {
		at   int
		want record
	}{{0, one}, {second, two}} {
		var got record
		if err := got.readFrom(payload, c.at); err != nil {
			t.Fatal(err)
		}
		end := got.end
		got.end = 0
		if got != c.want {
			t.Errorf("at %d: %+v", c.at, got)
		}
		if c.at == 0 && end != second || c.at == second && end != len(payload) {
			t.Errorf("at %d: ends at %d", c.at, end)
		}
	}
	if one.windowKey() != "ORDER_PAYMENT\x1fCARD\x1fCREDIT\x1fVISA" {
		t.Errorf("window key %q", one.windowKey())
	}
}

func FuzzRecord(f *testing.F) {
	one := sampleRecord()
	f.Add(one.appendTo(nil), 0)
	f.Add([]byte{}, 0)
	f.Add([]byte{1, 0}, -1)
	f.Fuzz(func(t *testing.T, payload []byte, at int) {
		var r, again record
		if r.readFrom(payload, at) != nil {
			return
		}
		if err := again.readFrom(r.appendTo(nil), 0); err != nil {
			t.Fatal(err)
		}
		r.end, again.end = 0, 0
		if r != again {
			t.Errorf("%+v became %+v", r, again)
		}
	})
}

func FuzzSavedScores(f *testing.F) {
	s := newScores()
	for i, o := range []Outcome{
		{Kind: KindPush, Gateway: "a", Window: "w", Size: 10}, {Kind: KindPush, Gateway: "b", Window: "w", Value: true, Size: 3},
		{Kind: KindPenalty, Standing: "s", Move: Penalise, Factor: 5}, {Kind: KindPush, Gateway: "a", Window: "v", Size: 200, Standing: "s", Move: Reward, Factor: 5.26, Value: true},
	} {
		o.Seq, o.TimeMS = int64(i+1), int64(1000*i)
		s.apply(&o)
	}
	f.Add(s.appendTo(nil))
	f.Add([]byte{scoresVersion})
	f.Fuzz(func(t *testing.T, blob []byte) {
		read := newScores()
		if read.readFrom(blob) != nil {
			return
		}
		again := newScores()
		once := read.appendTo(nil)
		if err := again.readFrom(once); err != nil {
			t.Fatalf("what was read does not read back: %v", err)
		}
		if !bytes.Equal(once, again.appendTo(nil)) {
			t.Error("reading and writing changes saved scores")
		}
	})
}

func TestSavedScoresGoOnAsIfNeverSaved(t *testing.T) {
	live, copied := newScores(), newScores()
	for i := range 900 {
		o := Outcome{Seq: int64(i + 1), TimeMS: int64(i) * 1000, Kind: KindPush, Gateway: Name([]string{"a", "b", "c"}[i*7%3]), Window: []string{"w", "v"}[i*5%2],
			Value: i*13%4 != 0, Size: 20 + i/100*30, Standing: "s", Move: Move(1 - 2*(i%2)), Factor: 5}
		if i%11 == 0 && i > 50 {
			o.Kind, o.Number = KindAmend, uint64(i/6)
		}
		if i == 450 {
			if err := copied.readFrom(live.appendTo(nil)); err != nil {
				t.Fatal(err)
			}
		}
		a := live.apply(&o)
		if i >= 450 {
			if b := copied.apply(&o); a != b {
				t.Fatalf("outcome %d changes one of them only", i)
			}
		}
	}
	if !bytes.Equal(live.appendTo(nil), copied.appendTo(nil)) {
		t.Error("the scores differ")
	}
}

func TestANumberNamesOnePushForEver(t *testing.T) {
	s := newScores()
	s.apply(&Outcome{Seq: 1, Kind: KindPush, Gateway: "a", Window: "w", Size: 10, Value: true})
	number := s.find([]byte("w")).base + 1
	s.apply(&Outcome{Seq: 2, Kind: KindReset})
	s.apply(&Outcome{Seq: 3, Kind: KindPush, Gateway: "a", Window: "w", Size: 10, Value: true})
	if s.apply(&Outcome{Seq: 4, Kind: KindAmend, Gateway: "a", Window: "w", Number: number, Value: false}) {
		t.Error("an outcome from before the reset was amended in a window that does not have it")
	}
	if !s.apply(&Outcome{Seq: 5, Kind: KindAmend, Gateway: "a", Window: "w", Number: s.find([]byte("w")).base + 1, Value: false}) {
		t.Error("an outcome after the reset was not amended")
	}
}

func TestKeysHoldTheConfiguredDimensions(t *testing.T) {
	f := sampleRecord().facts
	set := &settings{dimensions: Dimensions{Fields: []string{"card_network", "country", "auth_type"}, UDFs: []int{1, 4}}}
	key := func(f Facts, udfs ...string) string {
		k, from := windowKey(nil, set, &f, udfs)
		return strings.ReplaceAll(string(k[from:]), "\x1f", "/")
	}
	if got := key(f, "x", "one"); got != "/VISA/PT/THREE_DS/one" {
		t.Errorf("key %q", got)
	}
	f.AuthType = "OBO_OTP"
	if got := key(f); got != "/VISA/PT/OTP" {
		t.Errorf("key %q", got)
	}
	f.AuthType, f.Country = "FIDO", ""
	if got := key(f, "x", "one"); got != "/VISA/UNKNOWN" {
		t.Errorf("without a country the fields of the user stay out: %q", got)
	}
	f.MethodType, f.AuthType = "UPI", "FIDO"
	if got := key(f); got != "/VISA/FIDO" {
		t.Errorf("key %q", got)
	}
}

func TestPositions(t *testing.T) {
	got := positions(nil, []Name{"a", "b", "c", "d"}, []Name{"c", "x", "a", "c"})
	want := []Scored{{"c", 1}, {"a", 0.9}, {"b", 0.8}, {"d", 0.8}}
	if len(got) != 4 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] || got[3] != want[3] {
		t.Errorf("got %v", got)
	}
	if got := positions(nil, []Name{"a", "b"}, nil); got[0].Score != 1 || got[1].Score != 1 {
		t.Errorf("nothing listed: %v", got)
	}
}

func TestStatuses(t *testing.T) {
	count := map[Class]int{}
	for _, s := range strings.Fields(`CHARGED AUTHORIZED COD_INITIATED VOIDED VOID_INITIATED CAPTURE_INITIATED CAPTURE_FAILED VOID_FAILED AUTO_REFUNDED
		PARTIAL_CHARGED TO_BE_CHARGED AUTHENTICATION_FAILED AUTHORIZATION_FAILED JUSPAY_DECLINED FAILURE STARTED PENDING PENDING_VBV VBV_SUCCESSFUL
		AUTHORIZING NOP DECLINED`) {
		c, ok := classOf(Status(s))
		if !ok {
			t.Errorf("%s is not known", s)
		}
		count[c]++
	}
	if count[Success] != 11 || count[Failure] != 5 || count[Pending] != 6 {
		t.Errorf("classes %v", count)
	}
	for _, s := range []Status{"", "success", "charged", "SUCCESS", "CHARGED "} {
		if _, ok := classOf(s); ok {
			t.Errorf("%q is known", s)
		}
	}
}
