package gateway

import (
	"slices"
	"testing"
)

// payment is what a checkout tells of a card payment.
func payment() Payment {
	return Payment{ID: "p", Amount: 42.5, Currency: "EUR", Country: "PT", OrderType: "ORDER_PAYMENT", MethodType: "CARD", Method: "CREDIT",
		AuthType: "THREE_DS2", Issuer: "Banco", BIN: "45321099", CardType: "CREDIT", Network: "VISA", IssuerCountry: "US",
		Metadata: ` {"channel":"app","n":7,"deep":{"a":1},"on":true} `}
}

func TestTheActiveRuleGivesThePriority(t *testing.T) {
	for _, c := range []struct {
		name string
		cond string
		hit  bool
	}{
		{"amount above its whole part", cond("amount", "greater_than", "number", "42"), true},
		{"amount is not its whole part", cond("amount", "equal", "number", "42"), false},
		{"amount below the next", cond("amount", "less_than", "number", "43"), true},
		{"amount at most its whole part", cond("amount", "less_than_equal", "number", "42"), false},
		{"amount in a range", cond("amount", "equal", "number_comparison_array", `[{"comparison_type":"greater_than","number":10},{"comparison_type":"less_than","number":50}]`), true},
		{"currency", cond("currency", "equal", "enum_variant", `"EUR"`), true},
		{"currency among few", cond("currency", "equal", "enum_variant_array", `["GBP","EUR"]`), true},
		{"currency among many", cond("currency", "equal", "enum_variant_array", `["A","B","C","D","E","F","G","H","EUR"]`), true},
		{"currency not among many", cond("currency", "not_equal", "enum_variant_array", `["A","B","C","D","E","F","G","H","EUR"]`), false},
		{"method type", cond("payment_method", "equal", "enum_variant", `"card"`), true},
		{"method", cond("payment_method_type", "equal", "enum_variant", `"credit"`), true},
		{"another spelling of the network", cond("card_network", "equal", "enum_variant", `"Visa"`), true},
		{"another network", cond("card_network", "equal", "enum_variant", `"Mastercard"`), false},
		{"card type", cond("card_type", "equal", "enum_variant", `"credit"`), true},
		{"bin", cond("card_bin", "equal", "str_value", `"453210"`), true},
		{"long bin", cond("extended_card_bin", "equal", "str_value", `"45321099"`), true},
		{"bin in a set", cond("card_bin", "equal", "global_ref", `"bins"`), true},
		{"bin in no set", cond("card_bin", "equal", "global_ref", `"none"`), false},
		{"authentication", cond("authentication_type", "equal", "enum_variant", `"three_ds"`), true},
		{"billing country", cond("billing_country", "equal", "enum_variant", `"Portugal"`), true},
		{"issuer's country", cond("issuer_country", "equal", "enum_variant", `"UnitedStates"`), true},
		{"issuer", cond("issuer_name", "equal", "str_value", `"Banco"`), true},
		{"payment type", cond("payment_type", "equal", "enum_variant", `"normal"`), true},
		{"a method of another type", cond("wallet", "equal", "enum_variant", `"credit"`), false},
		{"metadata", cond("metadata", "equal", "metadata_variant", `{"key":"channel","value":"app"}`), true},
		{"a number in metadata", cond("metadata", "equal", "metadata_variant", `{"key":"n","value":"7"}`), true},
		{"other metadata", cond("metadata", "equal", "metadata_variant", `{"key":"channel","value":"web"}`), false},
		{"absent metadata is never unequal", cond("metadata", "not_equal", "metadata_variant", `{"key":"deep","value":"web"}`), false},
		{"what no decision knows", cond("capture_method", "not_equal", "enum_variant", `"manual"`), false},
	} {
		set := &settings{priority: []Name{"listed"}}
		set.active[ForPayment] = compiled(t, programOf(`{"bins":[{"type":"str_value","value":"453210"}]}`, rulesOf("the rule", `[{"condition":[`+c.cond+`]}]`)))
		var out PriorityLogic
		set.prioritise(&Request{Payment: payment(), Eligible: []Name{"e"}}, 0, &out)
		want, tag := []Name{"miss"}, ""
		if c.hit {
			want, tag = []Name{"hit"}, "the rule"
		}
		if !slices.Equal(out.Gateways, want) || out.Tag != tag || out.Primary == nil || *out.Primary != (LogicRun{"the algorithm", "SUCCESS", "NO_ERROR"}) {
			t.Errorf("%s: %v tag %q, %+v", c.name, out.Gateways, out.Tag, out.Primary)
		}
		if c.hit && !slices.Equal(out.References, []Reference{{"hit", "h1"}}) {
			t.Errorf("%s: references %v", c.name, out.References)
		}
	}
}

func TestWithoutARuleTheListThenTheCallersOrder(t *testing.T) {
	r := &Request{Payment: payment(), Eligible: []Name{"b", "a", "b"}}
	var out PriorityLogic
	(&settings{}).prioritise(r, 0, &out)
	if !slices.Equal(out.Gateways, r.Eligible) || out.Primary != nil || out.Fallback != nil || out.Enforcement {
		t.Errorf("nothing configured: %+v", out)
	}
	(&settings{priority: []Name{"x", "y"}}).prioritise(r, 0, &out)
	if !slices.Equal(out.Gateways, []Name{"x", "y"}) || out.Primary != nil {
		t.Errorf("a list: %+v", out)
	}
	set := &settings{priority: []Name{"x"}}
	set.active[ForPayment] = compileAlgorithm(&AlgorithmRow{Name: "bad", Data: []byte("{")})
	set.prioritise(r, 0, &out)
	if !slices.Equal(out.Gateways, []Name{"x"}) || out.Primary.Reason != "COMPILATION_ERROR" || out.Fallback.Status != "SUCCESS" {
		t.Errorf("a broken algorithm: %+v %+v", out, out.Primary)
	}
	set.active[ForPayment] = nil
	set.active[ForPayout] = compiled(t, `{"type":"single","data":{"gateway_name":"payout"}}`)
	if set.prioritise(r, 0, &out); !slices.Equal(out.Gateways, []Name{"x"}) || out.Primary != nil {
		t.Errorf("an algorithm for payouts steers payments: %+v", out)
	}
}

func TestAVolumeSplitPutsTheDrawnOneFirst(t *testing.T) {
	set := &settings{}
	set.active[ForPayment] = compiled(t, `{"type":"volume_split","data":[{"split":25,"output":{"gateway_name":"a"}},{"split":0,"output":{"gateway_name":"never"}},{"split":75,"output":{"gateway_name":"b"}}]}`)
	count := map[Name]int{}
	var out PriorityLogic
	const draws = 4000
	for i := range uint64(draws) {
		set.prioritise(&Request{Payment: payment()}, i*(^uint64(0)/draws), &out)
		count[out.Gateways[0]]++
		if len(out.Gateways) != 3 {
			t.Fatal(out.Gateways)
		}
	}
	if count["a"] < 999 || count["a"] > 1001 || count["never"] != 0 {
		t.Errorf("drawn %v, want a quarter for a", count)
	}
}

func TestTheFirstAccountOfAGatewayIsItsReference(t *testing.T) {
	set := &settings{}
	set.active[ForPayment] = compiled(t, `{"type":"priority","data":[{"gateway_name":"a","gateway_id":"1"},{"gateway_name":"b"},{"gateway_name":"a","gateway_id":"2"}]}`)
	var out PriorityLogic
	set.prioritise(&Request{}, 0, &out)
	if !slices.Equal(out.Gateways, []Name{"a", "b", "a"}) || !slices.Equal(out.References, []Reference{{"a", "1"}}) {
		t.Errorf("%v, %v", out.Gateways, out.References)
	}
}

func TestPrioritiseAllocatesNothing(t *testing.T) {
	set := &settings{}
	set.active[ForPayment] = compiled(t, advanced(`[{"condition":[`+sixConditions+`]}]`))
	r := &Request{Payment: payment(), Eligible: []Name{"e"}}
	var out PriorityLogic
	if n := testing.AllocsPerRun(200, func() { set.prioritise(r, 7, &out) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if out.Tag != "r" {
		t.Error("the rule did not match")
	}
}

// sixConditions all hold for payment.
var sixConditions = cond("payment_method", "equal", "enum_variant", `"card"`) + "," + cond("amount", "greater_than", "number", "10") + "," +
	cond("currency", "equal", "enum_variant_array", `["EUR","GBP"]`) + "," + cond("card_network", "not_equal", "enum_variant", `"Amex"`) + "," +
	cond("billing_country", "equal", "enum_variant", `"Portugal"`) + "," + cond("card_bin", "not_equal", "str_value", `"411111"`)

func BenchmarkPrioritise(b *testing.B) {
	set := &settings{}
	set.active[ForPayment] = compiled(b, advanced(`[{"condition":[`+sixConditions+`]}]`))
	r := &Request{Payment: payment(), Eligible: []Name{"e"}}
	var out PriorityLogic
	b.ReportAllocs()
	for b.Loop() {
		set.prioritise(r, 7, &out)
	}
}
