package gateway

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// about compares what was worked out by hand with what floating point gives.
func about(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestCostStep(t *testing.T) {
	card := &Payment{Amount: 10, Currency: "EUR"}
	rows := []CostRow{
		{PSP: "alphapay", Interchange: 200, Scheme: 50, Markup: 50}, // 300 bps
		{PSP: "mercato", Interchange: 70, Scheme: 10, Markup: 20},   // 100 bps
		{PSP: "kestrel", Markup: 50, Fixed: 0.30},                   // 50 + 0.30/10*10000 = 350 bps
		{PSP: "twin", Markup: 300},                                  // as alphapay
	}
	for _, c := range []struct {
		name    string
		margin  float64
		scores  []Scored
		ran     bool
		outcome CostOutcome
		order   []Name
		saved   float64
		gap     float64
		count   int
	}{
		// 0.95*(1-0.03) = 0.9215; 0.94*(1-0.01) = 0.9306; 0.9306-0.9215 = 0.0091
		{"cheaper wins", 0, []Scored{{"alphapay", 0.95}, {"mercato", 0.94}}, true, CostWon, []Name{"mercato", "alphapay"}, 200, 0.0091, 2},
		// 0.95*0.97 = 0.9215; 0.90*0.99 = 0.891; gap 0.0305
		{"cheaper is not enough", 0, []Scored{{"alphapay", 0.95}, {"mercato", 0.90}}, true, AuthWon, []Name{"alphapay", "mercato"}, 0, 0.0305, 2},
		// margin 0.05: 0.95*(0.05-0.03) = 0.019; 0.90*(0.05-0.01) = 0.036; gap 0.017
		{"a thin margin makes cost weigh", 0.05, []Scored{{"alphapay", 0.95}, {"mercato", 0.90}}, true, CostWon, []Name{"mercato", "alphapay"}, 200, 0.017, 2},
		{"equal is not higher", 0, []Scored{{"twin", 0.9}, {"alphapay", 0.9}}, true, AuthWon, []Name{"twin", "alphapay"}, 0, 0, 2},
		// 0.9*0.97 = 0.873; unknown; 0.89*0.99 = 0.8811; 0.5*(1-0.035) = 0.4825; gap 0.0081
		{"without a cost comes last, by score", 0, []Scored{{"alphapay", 0.9}, {"stranger", 0.9}, {"mercato", 0.89}, {"kestrel", 0.5}, {"other", 0.4}}, true,
			CostWon, []Name{"mercato", "alphapay", "kestrel", "stranger", "other"}, 200, 0.0081, 3},
		{"the success order stands whole", 0, []Scored{{"mercato", 0.9}, {"stranger", 0.8}, {"kestrel", 0.2}, {"alphapay", 0.7}}, true,
			AuthWon, []Name{"mercato", "stranger", "kestrel", "alphapay"}, 0, 0.9*0.99 - 0.7*0.97, 3},
		{"only the leader has a cost", 0, []Scored{{"alphapay", 0.9}, {"stranger", 0.9}}, true, AuthWon, []Name{"alphapay", "stranger"}, 0, 0, 1},
		{"accounts of a PSP", 0, []Scored{{"alphapay:eu", 0.95}, {"mercato:eu", 0.94}}, true, CostWon, []Name{"mercato:eu", "alphapay:eu"}, 200, 0.0091, 2},
		{"one gateway", 0, []Scored{{"alphapay", 0.9}}, false, "", nil, 0, 0, 0},
		{"the leader has no cost", 0, []Scored{{"stranger", 0.95}, {"mercato", 0.94}}, false, "", nil, 0, 0, 0},
		{"nothing to choose from", 0, nil, false, "", nil, 0, 0, 0},
		{"all fail", 0, []Scored{{"alphapay", 0}, {"mercato", 0}}, true, AuthWon, []Name{"alphapay", "mercato"}, 0, 0, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out CostInfo
			ran := costStep(costInput{Payment: card, Margin: c.margin, Scores: c.scores, Costs: newCostBook(rows)}, &out)
			if ran != c.ran || out.Outcome != c.outcome || !about(out.SavedBPS, c.saved) || !about(out.Gap, c.gap) || out.Qualified != c.count {
				t.Fatalf("ran %v, got %+v", ran, out)
			}
			if !ran {
				return
			}
			var order []Name
			for i, r := range out.Ranked {
				order = append(order, r.Gateway)
				if r.Head != (r.Gateway == c.scores[0].Gateway) || r.Chosen != (i == 0) {
					t.Errorf("%+v: head or chosen", r)
				}
			}
			if !slices.Equal(order, c.order) {
				t.Errorf("order %v, want %v", order, c.order)
			}
		})
	}
}

func TestCostStepNeedsAnAmount(t *testing.T) {
	book := newCostBook([]CostRow{{PSP: "a", Fixed: 1}, {PSP: "b"}})
	for _, amount := range []float64{0, -1, math.NaN(), math.Inf(-1)} {
		var out CostInfo
		if costStep(costInput{Payment: &Payment{Amount: amount}, Scores: []Scored{{"a", 1}, {"b", 1}}, Costs: book}, &out) || out.Outcome != "" {
			t.Errorf("amount %v was weighed: %+v", amount, out)
		}
	}
}

// Fees differ by 1 bp from row to row, so that the fee names the row that was found.
func TestCostRow(t *testing.T) {
	visa := &Payment{Amount: 100, Currency: "EUR", Network: "VISA", MethodType: "CARD", CardType: "CREDIT", IssuerCountry: "PT"}
	for _, c := range []struct {
		name string
		rows []CostRow
		want float64 // -1: none
	}{
		{"most constraints", []CostRow{{Markup: 1}, {Markup: 2, Network: "visa", CardType: "credit"}, {Markup: 3, Currency: "EUR"}}, 2},
		{"country or currency before network", []CostRow{{Markup: 1, Network: "VISA"}, {Markup: 2, Currency: "eur"}}, 2},
		{"country before network", []CostRow{{Markup: 1, Network: "VISA"}, {Markup: 2, IssuingCountry: "PT"}}, 2},
		{"network before funding", []CostRow{{Markup: 1, CardType: "CREDIT"}, {Markup: 2, Network: "VISA"}}, 2},
		{"funding before program", []CostRow{{Markup: 1, MethodType: "CARD"}, {Markup: 2, CardType: "CREDIT"}}, 2},
		{"two of the first kind before one", []CostRow{{Markup: 1, Currency: "EUR", Network: "VISA"}, {Markup: 2, Currency: "EUR", IssuingCountry: "PT"}}, 2},
		{"three lesser before two greater", []CostRow{{Markup: 1, Currency: "EUR", IssuingCountry: "PT"}, {Markup: 2, Network: "VISA", CardType: "CREDIT", MethodType: "CARD"}}, 2},
		{"the first of equals", []CostRow{{Markup: 1, Currency: "EUR"}, {Markup: 2, IssuingCountry: "PT"}}, 1},
		{"a constraint that fails", []CostRow{{Markup: 1, Currency: "USD"}}, -1},
		{"one of two constraints fails", []CostRow{{Markup: 1, Currency: "EUR", Network: "AMEX"}, {Markup: 2}}, 2},
		{"a default stands in", []CostRow{{Markup: 1, Currency: "USD", Default: true}, {Markup: 2, Currency: "GBP"}}, 1},
		{"a default gives way", []CostRow{{Markup: 1, Default: true}, {Markup: 2, Currency: "EUR"}}, 2},
		{"a fixed fee", []CostRow{{Markup: 1, Fixed: 0.25}}, 26}, // 1 + 0.25/100*10000
	} {
		for i := range c.rows {
			c.rows[i].PSP = "p"
		}
		book := newCostBook(append([]CostRow{{PSP: "z", Markup: 99}, {PSP: "a", Markup: 98}}, c.rows...))
		bps, known := book.bps("p", visa)
		if known != (c.want >= 0) || known && !about(bps, c.want) {
			t.Errorf("%s: %v %v, want %v", c.name, bps, known, c.want)
		}
	}
}

func TestCostRowOfAnAccountBeforeItsPSP(t *testing.T) {
	book := newCostBook([]CostRow{{PSP: "p", Markup: 1}, {PSP: "p:two", Markup: 2}})
	for name, want := range map[Name]float64{"p": 1, "p:one": 1, "p:two": 2} {
		if bps, known := book.bps(name, &Payment{Amount: 1}); !known || bps != want {
			t.Errorf("%s: %v %v, want %v", name, bps, known, want)
		}
	}
	if _, known := book.bps("q", &Payment{Amount: 1}); known {
		t.Error("q has a cost")
	}
}

func TestAFixedFeeOnNextToNothingIsFinite(t *testing.T) {
	rows := newCostBook([]CostRow{{PSP: "a", Fixed: 1}, {PSP: "b", Fixed: 1}})
	var out CostInfo
	in := costInput{Payment: &Payment{Amount: 5e-324}, Scores: []Scored{{"a", 1}, {"b", 1}}, Costs: rows, Margin: 1}
	if !costStep(in, &out) || math.IsNaN(out.Gap) || math.IsInf(out.Ranked[0].BPS, 0) || math.IsInf(out.Ranked[0].EV, 0) {
		t.Errorf("%+v", out)
	}
}

// Whatever comes in: no NaN, every gateway once, one chosen, and nothing strictly better than it.
func TestCostStepProperties(t *testing.T) {
	names := []Name{"a", "b", "c", "d"}
	rapid.Check(t, func(r *rapid.T) {
		var rows []CostRow
		for range rapid.IntRange(0, 6).Draw(r, "rows") {
			rows = append(rows, CostRow{PSP: rapid.SampledFrom(names).Draw(r, "psp"), Interchange: rapid.Float64Range(0, 20000).Draw(r, "bps"),
				Fixed: rapid.Float64Range(0, 1e6).Draw(r, "fixed"), Currency: rapid.SampledFrom([]string{"", "EUR", "USD"}).Draw(r, "currency")})
		}
		var scores []Scored
		for _, n := range names[:rapid.IntRange(0, len(names)).Draw(r, "gateways")] {
			scores = append(scores, Scored{n, rapid.Float64Range(0, 1).Draw(r, "score")})
		}
		slices.SortStableFunc(scores, func(a, b Scored) int {
			return -cmpFloat(a.Score, b.Score)
		})
		in := costInput{Payment: &Payment{Amount: rapid.Float64().Draw(r, "amount"), Currency: "EUR"}, Scores: scores, Costs: newCostBook(rows),
			Margin: rapid.Float64Range(-1, 2).Draw(r, "margin")}
		var out CostInfo
		if !costStep(in, &out) {
			if out.Ranked != nil || out.Outcome != "" {
				r.Fatalf("it did not run but left %+v", out)
			}
			return
		}
		if len(out.Ranked) != len(scores) || !out.Ranked[0].Chosen || math.IsNaN(out.Gap) || math.IsNaN(out.SavedBPS) || out.Gap < 0 {
			r.Fatalf("%+v", out)
		}
		if (out.Outcome == CostWon) == out.Ranked[0].Head {
			r.Fatalf("outcome %s, first %+v", out.Outcome, out.Ranked[0])
		}
		for i, g := range out.Ranked {
			if math.IsNaN(g.EV) || math.IsNaN(g.BPS) || g.Chosen != (i == 0) || g.Known && g.EV > out.Ranked[0].EV {
				r.Fatalf("%d: %+v of %+v", i, g, out)
			}
		}
	})
}

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestCostStepAllocatesNothing(t *testing.T) {
	in := costInput{Payment: &Payment{Amount: 10}, Scores: []Scored{{"alphapay:1", 0.95}, {"mercato", 0.94}, {"kestrel", 0.2}},
		Costs: newCostBook([]CostRow{{PSP: "alphapay", Markup: 300}, {PSP: "mercato", Markup: 100}, {PSP: "kestrel", Fixed: 1}})}
	out := CostInfo{Ranked: make([]CostRank, 0, 3)}
	if n := testing.AllocsPerRun(100, func() { costStep(in, &out) }); n != 0 || out.Outcome != CostWon {
		t.Errorf("%v allocations, outcome %s", n, out.Outcome)
	}
}

func BenchmarkCostStep(b *testing.B) {
	in := costInput{Payment: &Payment{Amount: 10, Currency: "EUR"}, Scores: []Scored{{"alphapay", 0.95}, {"mercato", 0.94}, {"kestrel", 0.2}},
		Costs: newCostBook([]CostRow{{PSP: "alphapay", Markup: 300, Currency: "EUR"}, {PSP: "mercato", Markup: 100}, {PSP: "kestrel", Fixed: 1}})}
	var out CostInfo
	b.ReportAllocs()
	for b.Loop() {
		costStep(in, &out)
	}
}
