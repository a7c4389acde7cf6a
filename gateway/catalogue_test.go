package gateway

import (
	"slices"
	"strings"
	"testing"

	"holdfast/fault"
)

func TestTheDefaultCatalogue(t *testing.T) {
	c := DefaultCatalogue()
	for name, want := range map[string]KeyType{"amount": KeyInteger, "payment_amount": KeyInteger, "surcharge_amount": KeyInteger, "business_label": KeyText,
		"card_bin": KeyText, "extended_card_bin": KeyText, "issuer_name": KeyText, "metadata": KeyUDF, "payment_method": KeyEnum, "currency": KeyEnum,
		"authentication_type": KeyEnum, "capture_method": KeyEnum, "card": KeyEnum, "card_type": KeyEnum, "card_discovery": KeyEnum, "bank_debit": KeyEnum,
		"bank_redirect": KeyEnum, "bank_transfer": KeyEnum, "card_redirect": KeyEnum, "crypto": KeyEnum, "gift_card": KeyEnum, "mobile_payment": KeyEnum,
		"network_token": KeyEnum, "open_banking": KeyEnum, "pay_later": KeyEnum, "real_time_payment": KeyEnum, "reward": KeyEnum, "upi": KeyEnum,
		"voucher": KeyEnum, "wallet": KeyEnum, "payment_type": KeyEnum, "mandate_type": KeyEnum, "mandate_acceptance_type": KeyEnum,
		"setup_future_usage": KeyEnum, "transaction_initiator": KeyEnum, "customer_device_platform": KeyEnum, "customer_device_type": KeyEnum,
		"customer_device_display_size": KeyEnum, "billing_country": KeyEnum, "business_country": KeyEnum, "issuer_country": KeyEnum,
		"payment_method_type": KeyEnum, "card_network": KeyEnum} {
		if k := c.key(name); k == nil || k.Type != want || want == KeyEnum && len(k.Values) == 0 {
			t.Errorf("%s: %+v, want type %s", name, k, want)
		}
	}
	for key, words := range map[string]string{
		"currency":            "EUR USD GBP INR JPY KWD BRL CHF SEK PLN AUD",
		"billing_country":     "Portugal UnitedStatesOfAmerica UnitedStates Germany India UnitedKingdom UnitedKingdomOfGreatBritainAndNorthernIreland BosniaAndHerzegovina Turkey",
		"payment_method":      "card card_redirect pay_later wallet bank_redirect bank_transfer crypto bank_debit reward real_time_payment upi voucher gift_card open_banking mobile_payment network_token",
		"payment_method_type": "credit debit apple_pay google_pay paypal klarna ideal sepa ach pix upi_collect",
		"card_network": "visa VISA Visa mastercard MasterCard master_card amex AmericanExpress discover diners_club jcb union_pay " +
			"cartes_bancaires interac rupay maestro star pulse accel nyce Mastercard DinersClub UnionPay RuPay JCB",
		"authentication_type": "three_ds no_three_ds",
		"payment_type":        "normal new_mandate update_mandate setup_mandate recurring_mandate non_mandate ppt_mandate",
	} {
		for word := range strings.FieldsSeq(words) {
			if c.key(key).checkWord(word) != "" {
				t.Errorf("%s lacks %s", key, word)
			}
		}
	}
	if n := len(c.key("payment_method_type").Values); n < 95 {
		t.Errorf("%d payment method types", n)
	}
	if n := len(c.key("currency").Values); n < 160 {
		t.Errorf("%d currencies", n)
	}
	for i := range c.keys {
		k := &c.keys[i]
		if sorted := slices.Sorted(slices.Values(k.Values)); len(slices.Compact(sorted)) != len(k.Values) {
			t.Errorf("%s lists a value twice", k.Name)
		}
		if i > 0 && c.keys[i-1].Name >= k.Name {
			t.Errorf("%s is out of order", k.Name)
		}
	}
}

// Every name by which a country may be written leads to its own name.
func TestCountriesAreInOrder(t *testing.T) {
	for i, c := range countries {
		if countryName(c.code) != c.name || i > 0 && countries[i-1].code >= c.code {
			t.Errorf("%s is not found", c.code)
		}
	}
	for i, c := range spellings {
		if canonicalCountry(c.name) != countryName(c.code) || i > 0 && spellings[i-1].name >= c.name {
			t.Errorf("%s is not found", c.name)
		}
	}
	if countryName("ZZ") != "ZZ" || canonicalCountry("Portugal") != "Portugal" {
		t.Error("what is no code or spelling was changed")
	}
}

func TestConditionsAreHeldToTheCatalogue(t *testing.T) {
	c, err := ParseCatalogue(map[string]any{
		"amount":   map[string]any{"type": "integer", "min_value": int64(10), "max_value": "1000"},
		"currency": map[string]any{"type": "enum", "values": "EUR, USD ,GBP"},
		"bin":      map[string]any{"type": "str_value", "exact_length": int64(6), "regex": "^[0-9]+$", "note": "ours"},
		"label":    map[string]any{"type": "str_value", "min_length": 2, "max_length": float64(3)},
		"meta":     map[string]any{"type": "udf"},
		"set":      map[string]any{"type": "global_ref"},
		"status":   map[string]any{"type": "Enum", "values": []any{"on", "off"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ cond, want string }{
		{cond("amount", "less_than", "number", "10"), ""},
		{cond("amount", "less_than", "number", "9"), `key "amount": the value 9 is less`},
		{cond("amount", "less_than", "number", "1001"), `the value 1001 is more`},
		{cond("amount", "equal", "number_array", "[10,5]"), `the value 5 is less`},
		{cond("amount", "not_equal", "number_array", "[10]"), ""},
		{cond("amount", "less_than", "number_array", "[10]"), "less_than cannot be used with values of type number_array"},
		{cond("amount", "equal", "number_comparison_array", `[{"comparison_type":"less_than","number":2000}]`), "2000 is more"},
		{cond("amount", "not_equal", "number_comparison_array", `[]`), "not_equal cannot be used"},
		{cond("amount", "equal", "str_value", `"10"`), "a key of type integer is not compared with values of type str_value"},
		{cond("amount", "equal", "global_ref", `"g"`), "a key of type integer"},
		{cond("currency", "equal", "enum_variant", `"USD"`), ""},
		{cond("currency", "equal", "enum_variant", `"usd"`), `the value "usd" is not one of`},
		{cond("currency", "not_equal", "enum_variant_array", `["USD","X"]`), `the value "X" is not one of`},
		{cond("currency", "greater_than", "enum_variant", `"USD"`), "greater_than cannot be used with values of type enum_variant"},
		{cond("currency", "equal", "global_ref", `"anything"`), ""},
		{cond("currency", "not_equal", "global_ref", `"anything"`), "not_equal cannot be used"},
		{cond("currency", "equal", "number", "1"), "a key of type enum"},
		{cond("status", "equal", "enum_variant", `"off"`), ""},
		{cond("bin", "equal", "str_value", `"453210"`), ""},
		{cond("bin", "equal", "str_value", `"45321"`), "does not have the length"},
		{cond("bin", "equal", "str_value", `"45321a"`), "does not match the pattern"},
		{cond("bin", "equal", "global_ref", `"g"`), ""},
		{cond("label", "equal", "str_value", `"é"`), "shorter"},
		{cond("label", "equal", "str_value", `"éééé"`), "longer"},
		{cond("label", "equal", "str_value", `"ééé"`), ""},
		{cond("meta", "not_equal", "metadata_variant", `{"key":"k","value":"v"}`), ""},
		{cond("meta", "less_than", "metadata_variant", `{"key":"k","value":"v"}`), "less_than cannot be used"},
		{cond("meta", "equal", "str_value", `"v"`), "a key of type udf"},
		{cond("set", "equal", "global_ref", `"g"`), ""},
		{cond("shoe", "equal", "number", "1"), `rule "r", statement 2.1, condition 2: key "shoe": the catalogue has no such key`},
	} {
		doc, err := parseAlgorithm([]byte(advanced(`[{"condition":[]},{"condition":[],"nested":[{"condition":[` + cond("amount", "equal", "number", "10") + `,` + test.cond + `]}]}]`)))
		if err != nil {
			t.Fatal(err)
		}
		err = c.check(doc.program)
		if test.want == "" && err != nil || test.want != "" && (fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.MessageOf(err), test.want) ||
			!strings.Contains(fault.MessageOf(err), `rule "r", statement 2.1, condition 2`)) {
			t.Errorf("%s: %v, want %q", test.cond, err, test.want)
		}
	}
}

func TestBadCataloguesAreRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		entry any
		want  string
	}{
		{"k", 7, "must be a table"},
		{"k", map[string]any{}, "type is missing"},
		{"k", map[string]any{"type": "word"}, "the type is none of"},
		{"k", map[string]any{"type": "enum"}, "an enum needs values"},
		{"k", map[string]any{"type": "enum", "values": 7}, "values must be"},
		{"k", map[string]any{"type": "enum", "values": []any{7}}, "values must be texts"},
		{"k", map[string]any{"type": "str_value", "regex": "("}, "regex"},
		{"k", map[string]any{"type": "integer", "min_value": "x"}, "min_value must be a whole number"},
		{"k", map[string]any{"type": "integer", "min_value": 1.5}, "min_value must be a whole number"},
		{strings.Repeat("k", 300), map[string]any{"type": "integer"}, "a name has 1 to 256 bytes"},
	} {
		_, err := ParseCatalogue(map[string]any{c.name: c.entry})
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.MessageOf(err), "routing_config.keys.k") || !strings.Contains(fault.MessageOf(err), c.want) {
			t.Errorf("%v: %v, want %s", c.entry, err, c.want)
		}
	}
	if c, err := ParseCatalogue(nil); err != nil || c.key("amount") == nil {
		t.Errorf("nothing configured: %v", err)
	}
}
