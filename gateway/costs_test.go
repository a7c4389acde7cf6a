package gateway_test

import (
	"context"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"holdfast/fault"
	"holdfast/gateway"
	"holdfast/store"
	"holdfast/store/gateways"
)

// costStore is a service with one merchant, and how to open it once more on the same file.
type costStore struct {
	*gateway.Service
	path  string
	close func()
}

func openCosts(t *testing.T, path string) *costStore {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: path, Migrations: gateways.Migrations()})
	if err != nil {
		t.Fatal(err)
	}
	service, err := gateway.Open(t.Context(), gateway.Options{Storage: gateways.New(db)})
	if err != nil {
		t.Fatal(err)
	}
	open := true
	shut := func() {
		if !open {
			return
		}
		open = false
		if err := service.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := db.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(shut)
	err = gateways.New(db).Write(t.Context(), gateway.Write{Change: func(tx gateway.Tx) error {
		_, err := tx.CreateMerchant(gateway.MerchantRow{ID: "shop_lisbon", Enabled: true})
		return err
	}})
	if err != nil && fault.KindOf(err) != fault.Conflict {
		t.Fatal(err)
	}
	return &costStore{service, path, shut}
}

func (s *costStore) reopen(t *testing.T) *costStore {
	t.Helper()
	s.close()
	return openCosts(t, s.path)
}

func newCosts(t *testing.T) *costStore {
	t.Helper()
	return openCosts(t, filepath.Join(t.TempDir(), "gateway.db"))
}

func TestSeedCostsAreStored(t *testing.T) {
	s := newCosts(t)
	rows := []gateway.CostRow{
		{PSP: "mercato", Interchange: 20, Scheme: 5, Markup: 12.5, Fixed: 0.1, Default: true},
		{PSP: "alphapay", Interchange: 30, Network: "VISA", MethodType: "CARD", CardType: "CREDIT", Currency: "EUR", IssuingCountry: "PT"},
	}
	if got, err := s.SeedCosts(t.Context(), "shop_lisbon"); err != nil || len(got) != 0 {
		t.Errorf("before anything is stored: %v %v", got, err)
	}
	if err := s.PutSeedCosts(t.Context(), "shop_lisbon", rows); err != nil {
		t.Fatal(err)
	}
	want := []gateway.CostRow{rows[1], rows[0]} // by PSP
	for _, state := range []string{"at once", "after a restart"} {
		got, err := s.SeedCosts(t.Context(), "shop_lisbon")
		if err != nil || !cmp.Equal(want, got) {
			t.Errorf("%s: %v %s", state, err, cmp.Diff(want, got))
		}
		s = s.reopen(t)
	}
	for range 2 { // deleting what is not there is fine
		if err := s.DeleteSeedCosts(t.Context(), "shop_lisbon"); err != nil {
			t.Error(err)
		}
		if got, err := s.SeedCosts(t.Context(), "shop_lisbon"); err != nil || len(got) != 0 {
			t.Errorf("after deleting: %v %v", got, err)
		}
	}
}

func TestSeedCostsOfNobody(t *testing.T) {
	s := newCosts(t)
	_, read := s.SeedCosts(t.Context(), "nobody")
	_, simulated := s.SimulateCosts(t.Context(), "nobody", &gateway.Payment{Amount: 1})
	for name, err := range map[string]error{"read": read, "simulate": simulated, "put": s.PutSeedCosts(t.Context(), "nobody", nil),
		"delete": s.DeleteSeedCosts(t.Context(), "nobody")} {
		if fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSeedCostsRefused(t *testing.T) {
	s := newCosts(t)
	for name, c := range map[string]struct {
		row  gateway.CostRow
		says string
	}{
		"no psp":               {gateway.CostRow{}, "rows[1]: psp is empty"},
		"blank psp":            {gateway.CostRow{PSP: " "}, "psp is empty"},
		"long psp":             {gateway.CostRow{PSP: gateway.Name(strings.Repeat("x", gateway.MaxName+1))}, "psp is too long"},
		"negative interchange": {gateway.CostRow{PSP: "p", Interchange: -1}, "interchange_bps is negative"},
		"negative scheme":      {gateway.CostRow{PSP: "p", Scheme: -0.1}, "scheme_bps is negative"},
		"negative markup":      {gateway.CostRow{PSP: "p", Markup: -5}, "markup_bps is negative"},
		"negative fixed":       {gateway.CostRow{PSP: "p", Fixed: -0.01}, "fixed is negative"},
		"not a number":         {gateway.CostRow{PSP: "p", Fixed: math.NaN()}, "fixed is too high"},
		"absurd":               {gateway.CostRow{PSP: "p", Markup: 1e300}, "markup_bps is too high"},
		"long constraint":      {gateway.CostRow{PSP: "p", Network: strings.Repeat("x", 65)}, "card_network is too long"},
		"not UTF-8":            {gateway.CostRow{PSP: "p", Network: "\xff"}, "UTF-8"},
	} {
		err := s.PutSeedCosts(t.Context(), "shop_lisbon", []gateway.CostRow{{PSP: "fine"}, c.row})
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.MessageOf(err), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.PutSeedCosts(t.Context(), "shop_lisbon", make([]gateway.CostRow, gateway.MaxCostRows+1)); fault.KindOf(err) != fault.Invalid {
		t.Errorf("too many rows: %v", err)
	}
	if got, _ := s.SeedCosts(t.Context(), "shop_lisbon"); len(got) != 0 {
		t.Errorf("refused rows were stored: %v", got)
	}
}

func TestSimulateCosts(t *testing.T) {
	s := newCosts(t)
	err := s.PutSeedCosts(t.Context(), "shop_lisbon", []gateway.CostRow{
		{PSP: "alphapay", Interchange: 100, Scheme: 20, Markup: 30, Fixed: 0.30},
		{PSP: "alphapay", Interchange: 50, Currency: "EUR"},
		{PSP: "mercato", Markup: 120},
		{PSP: "kestrel", Markup: 1, Currency: "GBP"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		currency string
		want     []string
	}{
		{"EUR", []string{"alphapay 0.5", "mercato 1.2"}}, // 100*50/10000; 100*120/10000
		{"USD", []string{"mercato 1.2", "alphapay 1.8"}}, // 100*150/10000 + 0.30
		{"GBP", []string{"kestrel 0.01", "mercato 1.2", "alphapay 1.8"}},
	} {
		costs, err := s.SimulateCosts(t.Context(), "shop_lisbon", &gateway.Payment{Amount: 100, Currency: c.currency})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, k := range costs {
			got = append(got, string(k.Row.PSP)+" "+strconv.FormatFloat(k.Amount, 'f', -1, 64))
			if want := k.Amount / 100 * 10000; math.Abs(k.BPS-want) > 1e-6 {
				t.Errorf("%s: %v bps, want %v", k.Row.PSP, k.BPS, want)
			}
		}
		if !cmp.Equal(c.want, got) {
			t.Errorf("%s: %v, want %v", c.currency, got, c.want)
		}
	}
	for _, amount := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := s.SimulateCosts(t.Context(), "shop_lisbon", &gateway.Payment{Amount: amount}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("amount %v: %v", amount, err)
		}
	}
}

func TestErrorRulesAreImported(t *testing.T) {
	s := newCosts(t)
	shipped := s.ErrorRules()
	if len(shipped) == 0 {
		t.Fatal("no rules are shipped")
	}
	rules := []gateway.ErrorRule{{Connector: "mercato", Code: "E1", Decision: "retry", StepUp: true, UnifiedMessage: "x"}, {Code: "E2", Decision: "do_default"}}
	if err := s.ImportErrorRules(t.Context(), rules); err != nil {
		t.Fatal(err)
	}
	want := []gateway.ErrorRule{
		{Connector: "mercato", Flow: "*", SubFlow: "*", Code: "E1", Message: "*", Decision: "retry", StepUp: true, UnifiedMessage: "x"},
		{Connector: "*", Flow: "*", SubFlow: "*", Code: "E2", Message: "*", Decision: "do_default"},
	}
	for _, state := range []string{"at once", "after a restart"} {
		if got := s.ErrorRules(); !cmp.Equal(want, got) {
			t.Errorf("%s: %s", state, cmp.Diff(want, got))
		}
		s = s.reopen(t)
	}
	for name, rule := range map[string]gateway.ErrorRule{"no code": {Decision: "retry"}, "no decision": {Code: "1"},
		"long": {Code: "1", Decision: "retry", Description: strings.Repeat("x", 1025)}} {
		if err := s.ImportErrorRules(t.Context(), []gateway.ErrorRule{rule}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.ImportErrorRules(t.Context(), make([]gateway.ErrorRule, gateway.MaxErrorRules+1)); fault.KindOf(err) != fault.Invalid {
		t.Errorf("too many: %v", err)
	}
	if err := s.ImportErrorRules(t.Context(), []gateway.ErrorRule{}); err != nil || len(s.ErrorRules()) != 0 {
		t.Errorf("an empty table: %v, %d rules", err, len(s.ErrorRules()))
	}
	if err := s.ImportErrorRules(t.Context(), nil); err != nil || !cmp.Equal(shipped, s.ErrorRules()) {
		t.Errorf("the shipped table did not come back: %v", err)
	}
}

func TestDebitTablesAreImported(t *testing.T) {
	s := newCosts(t)
	tables := &gateway.DebitTables{
		Currency: "EUR", Networks: map[gateway.Network]gateway.Rate{gateway.Visa: {Percent: 0.1, Fixed: 0.01}},
		Categories:      map[string]map[gateway.Network]gateway.Rate{"5411": {gateway.Visa: {Percent: 1}}},
		DefaultCategory: "5411", FraudCheck: 0.02,
		BINs: []gateway.BINRow{{From: 1, To: 2, Networks: []gateway.Network{gateway.Visa, gateway.Pulse}, CardType: "debit"}},
	}
	if err := s.ImportDebitTables(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	same := cmpopts.IgnoreUnexported(gateway.DebitTables{})
	for _, state := range []string{"at once", "after a restart"} {
		if got := s.DebitTables(); !cmp.Equal(tables, got, same) {
			t.Errorf("%s: %s", state, cmp.Diff(tables, got, same))
		}
		s = s.reopen(t)
	}
	if err := s.ImportDebitTables(t.Context(), nil); err != nil || !cmp.Equal(gateway.DefaultDebitTables(), s.DebitTables(), same) {
		t.Errorf("the shipped tables did not come back: %v", err)
	}
}

func TestDebitTablesRefused(t *testing.T) {
	s := newCosts(t)
	for name, spoil := range map[string]func(*gateway.DebitTables){
		"currency":           func(d *gateway.DebitTables) { d.Currency = "usd" },
		"no currency":        func(d *gateway.DebitTables) { d.Currency = "" },
		"default category":   func(d *gateway.DebitTables) { d.DefaultCategory = "none" },
		"negative":           func(d *gateway.DebitTables) { d.Regulated.Fixed = -1 },
		"not a number":       func(d *gateway.DebitTables) { d.FraudCheck = math.NaN() },
		"too high":           func(d *gateway.DebitTables) { d.Networks[gateway.Visa] = gateway.Rate{Percent: 101} },
		"unknown network":    func(d *gateway.DebitTables) { d.Networks["SHOPCARD"] = gateway.Rate{} },
		"category's network": func(d *gateway.DebitTables) { d.Categories["0001"]["visa"] = gateway.Rate{} },
		"empty category":     func(d *gateway.DebitTables) { d.Categories[""] = nil },
		"backward range": func(d *gateway.DebitTables) {
			d.BINs = []gateway.BINRow{{From: 2, To: 1, Networks: []gateway.Network{gateway.Visa}}}
		},
		"no networks":   func(d *gateway.DebitTables) { d.BINs = []gateway.BINRow{{}} },
		"BIN's network": func(d *gateway.DebitTables) { d.BINs = []gateway.BINRow{{Networks: []gateway.Network{"X"}}} },
		"long text": func(d *gateway.DebitTables) {
			d.BINs = []gateway.BINRow{{Networks: []gateway.Network{gateway.Visa}, CardType: strings.Repeat("x", 129)}}
		},
		"too many BINs": func(d *gateway.DebitTables) { d.BINs = make([]gateway.BINRow, gateway.MaxBINRows+1) },
	} {
		tables := gateway.DefaultDebitTables()
		spoil(tables)
		if err := s.ImportDebitTables(t.Context(), tables); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := s.DebitTables(); got.Currency != "USD" || len(got.Networks) != 6 {
		t.Errorf("refused tables are in use: %+v", got)
	}
}

// What is stored counts for the next payment.
func TestCostsDecideTheNextPayment(t *testing.T) {
	s := newCosts(t)
	r := &gateway.Request{Merchant: "shop_lisbon", Eligible: []gateway.Name{"alphapay", "mercato"}, Ranking: gateway.RankSuccess, Cost: gateway.Yes,
		Payment: gateway.Payment{ID: "ord-1", Amount: 50, Currency: "EUR", OrderType: "ORDER_PAYMENT", MethodType: "CARD", Method: "CREDIT"}}
	decide := func() *gateway.Answer {
		t.Helper()
		a := &gateway.Answer{}
		if err := s.Decide(t.Context(), r, a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := decide(); a.Gateway != "alphapay" || a.Cost != nil || a.Approach != gateway.ApproachSuccess {
		t.Errorf("without costs: %+v", a)
	}
	err := s.PutSeedCosts(t.Context(), "shop_lisbon", []gateway.CostRow{{PSP: "alphapay", Markup: 250}, {PSP: "mercato", Markup: 200, Fixed: 0.2}})
	if err != nil {
		t.Fatal(err)
	}
	// all windows are empty: 1*(1-0.025) = 0.975; 1*(1-0.02-0.2/50) = 0.976
	a := decide()
	if a.Gateway != "mercato" || a.Approach != gateway.ApproachCost || a.Cost == nil || a.Cost.Outcome != gateway.CostWon ||
		math.Abs(a.Cost.SavedBPS-10) > 1e-9 || len(a.Fallbacks) != 1 || a.Fallbacks[0] != "alphapay" {
		t.Errorf("with costs: %+v %+v", a, a.Cost)
	}
	r.Cost = gateway.No
	if a := decide(); a.Gateway != "alphapay" || a.Cost != nil {
		t.Errorf("switched off: %+v", a)
	}
	r.Cost = gateway.Yes
	if err := s.DeleteSeedCosts(t.Context(), "shop_lisbon"); err != nil {
		t.Fatal(err)
	}
	if a := decide(); a.Gateway != "alphapay" || a.Cost != nil {
		t.Errorf("costs removed: %+v", a)
	}
}

func TestErrorRulesExplainTheNextOutcome(t *testing.T) {
	s := newCosts(t)
	f := &gateway.Feedback{Merchant: "shop_lisbon", Gateway: "mercato", PaymentID: "ord-1", Status: "FAILURE",
		Error: gateway.ErrorInfo{Connector: "mercato", Flow: "Authorize", Code: "51", Message: "no funds"}}
	rule := func() *gateway.ErrorRule {
		t.Helper()
		a, err := s.Update(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		return a.Rule
	}
	if r := rule(); r == nil || r.UnifiedCode != "insufficient_funds" {
		t.Errorf("as shipped: %+v", r)
	}
	if err := s.ImportErrorRules(t.Context(), []gateway.ErrorRule{{Connector: "mercato", Code: "51", Decision: "retry", UnifiedCode: "ours"}}); err != nil {
		t.Fatal(err)
	}
	if r := rule(); r == nil || r.UnifiedCode != "ours" {
		t.Errorf("imported: %+v", r)
	}
	f.Error.Connector = "alphapay"
	if r := rule(); r != nil {
		t.Errorf("another connector's: %+v", r)
	}
}
