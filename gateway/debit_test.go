package gateway

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// usCard is metadata of a co-badged card.
func usCard(networks, rest string) string {
	return `{"merchant_category_code":"merchant_category_code_0001","acquirer_country":"US","co_badged_card_data":{"co_badged_card_networks":[` +
		networks + `],"issuer_country":"US",` + rest + `"card_type":"debit"}}`
}

const (
	unregulated = `"is_regulated":false,"regulated_name":null,`
	regulated   = `"is_regulated":true,"regulated_name":null,`
)

// Fees of 100 dollars at the default rates, interchange + network fee, worked out by hand:
//
//	            not regulated                              regulated: (0.05+0.21) + network fee
//	VISA        1.65+0.15     + 0.1375+0.02  = 1.9575      0.26 + 0.1575 = 0.4175
//	MASTERCARD  1.65+0.15     + 0.15+0.04    = 1.99        0.26 + 0.19   = 0.45
//	ACCEL       1.55+0.04     + 0+0.04       = 1.63        0.26 + 0.04   = 0.30
//	NYCE        1.30+0.213125 + 0.10+0.015   = 1.628125    0.26 + 0.115  = 0.375
//	PULSE       1.60+0.15     + 0.10+0.03    = 1.88        0.26 + 0.13   = 0.39
//	STAR        1.63+0.15     + 0.10+0.015   = 1.895       0.26 + 0.115  = 0.375
func TestRankNetworks(t *testing.T) {
	all := `"STAR","VISA","PULSE","NYCE","ACCEL"`
	for _, c := range []struct {
		name     string
		amount   float64
		currency string
		metadata string
		want     string
	}{
		// (1.9575-1.628125)/100 = 0.329 % -> 0.33; (1.9575-1.63)/100 -> 0.33; 0.0775 -> 0.08; 0.0625 -> 0.06
		{"default rates", 100, "USD", usCard(all, unregulated), "NYCE 0.33, ACCEL 0.33, PULSE 0.08, STAR 0.06, VISA 0"},
		// (0.4175-0.30) -> 0.12; 0.0425 -> 0.04 twice, STAR before NYCE as sent; 0.0275 -> 0.03
		{"regulated", 100, "USD", usCard(all, regulated), "ACCEL 0.12, STAR 0.04, NYCE 0.04, PULSE 0.03, VISA 0"},
		// the fraud check is added to every network: nothing changes but the fees
		{"regulated with fraud check", 100, "USD", usCard(all, `"is_regulated":true,"regulated_name":"GOVERNMENT NON-EXEMPT FEE (WITH FRAUD)",`),
			"ACCEL 0.12, STAR 0.04, NYCE 0.04, PULSE 0.03, VISA 0"},
		// the baseline is the cheaper of the two global ones, VISA; MASTERCARD is dearer: 0, not negative
		{"two global networks", 100, "USD", usCard(`"MASTERCARD","VISA","PULSE"`, unregulated), "PULSE 0.08, VISA 0, MASTERCARD 0"},
		// of 1 dollar: VISA 0.017875+0.17 = 0.187875; NYCE 0.014+0.228125 = 0.242125: the global one is the cheapest
		{"the cheapest is global", 1, "USD", usCard(`"NYCE","VISA"`, unregulated), "VISA 0, NYCE 0"},
		{"none is global", 100, "USD", usCard(`"PULSE","NYCE"`, unregulated), "NYCE 0, PULSE 0"},
		{"no rate for a network", 100, "USD", usCard(`"AMEX","PULSE","VISA"`, unregulated), "PULSE 0.08, VISA 0, AMEX 0"},
		{"only the network without a rate is global", 100, "USD", usCard(`"AMEX","PULSE"`, unregulated), "PULSE 0, AMEX 0"},
		{"spellings", 100, "usd", usCard(`"visa","Pulse","nyce"`, unregulated), "NYCE 0.33, PULSE 0.08, VISA 0"},
		{"repeats and strangers", 100, "USD", usCard(`"VISA","visa","SHOPCARD","PULSE"`, unregulated), "PULSE 0.08, VISA 0"},
		{"one network", 100, "USD", usCard(`"VISA"`, unregulated), "VISA 0"},
		{"another currency", 100, "EUR", usCard(`"VISA","PULSE"`, unregulated), "VISA 0, PULSE 0"},
		{"nothing to pay", 0, "USD", usCard(`"VISA","PULSE"`, unregulated), "VISA 0, PULSE 0"},
		{"a refund", -5, "USD", usCard(`"VISA","PULSE"`, unregulated), "VISA 0, PULSE 0"},
		{"another category", 100, "USD", strings.Replace(usCard(`"VISA","PULSE"`, unregulated), "0001", "9999", 1), "PULSE 0.08, VISA 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &Payment{Amount: c.amount, Currency: c.currency, Metadata: c.metadata}
			out, err := rankNetworks(&settings{}, p, DefaultDebitTables())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range out.Networks {
				got = append(got, fmt.Sprintf("%s %v", n.Network, n.Saving))
			}
			if s := strings.Join(got, ", "); s != c.want {
				t.Errorf("got %s\nwant %s", s, c.want)
			}
			if out.IssuerCountry != "US" || out.CardType != "debit" || out.Regulated != strings.Contains(c.name, "regulated") {
				t.Errorf("card: %+v", out)
			}
		})
	}
}

func TestFee(t *testing.T) {
	tables := DefaultDebitTables()
	fraud := &debitCard{regulated: true, regulatedName: "government_non_exempt_with_fraud"}
	for _, c := range []struct {
		name string
		card *debitCard
		n    Network
		want float64
	}{
		{"visa", &debitCard{}, Visa, 1.9575},
		{"mastercard", &debitCard{}, Mastercard, 1.99},
		{"accel", &debitCard{}, Accel, 1.63},
		{"nyce", &debitCard{}, NYCE, 1.628125},
		{"pulse", &debitCard{}, Pulse, 1.88},
		{"star", &debitCard{}, Star, 1.895},
		{"regulated", &debitCard{regulated: true}, Visa, 0.4175},
		{"regulated by another name", &debitCard{regulated: true, regulatedName: "GOVERNMENT EXEMPT"}, Visa, 0.4175},
		{"with fraud check", fraud, Visa, 0.4275},
		{"no network rate", &debitCard{}, RuPay, math.Inf(1)},
	} {
		if got := tables.fee(c.n, 100, c.card, tables.category("0001")); got != c.want && !about(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestCategory(t *testing.T) {
	groceries := map[Network]Rate{Visa: {1, 0}}
	tables := &DebitTables{Categories: map[string]map[Network]Rate{"5411": groceries, "0001": {Visa: {2, 0}}}, DefaultCategory: "0001"}
	for want, codes := range map[float64][]string{1: {"", "5411", "0001"}, 2: {"", "", "9999"}} {
		if got := tables.category(codes...)[Visa].Percent; got != want {
			t.Errorf("%v: %v", codes, got)
		}
	}
	// what the payment says, then the debit configuration, then the merchant
	set := &settings{debit: &DebitConfig{CategoryCode: "5411"}, row: MerchantRow{CategoryCode: "0001"}}
	tables.Networks, tables.Currency = map[Network]Rate{Visa: {}, Pulse: {}}, "USD"
	groceries[Pulse] = Rate{0.5, 0}
	p := &Payment{Amount: 10, Currency: "USD", Metadata: strings.Replace(usCard(`"VISA","PULSE"`, unregulated), "merchant_category_code_0001", "", 1)}
	out, err := rankNetworks(set, p, tables) // 1 % less 0.5 %
	if err != nil || out.Networks[0] != (NetworkSaving{Pulse, 0.5}) {
		t.Errorf("%+v %v", out, err)
	}
}

func TestRankNetworksWithoutNetworks(t *testing.T) {
	for name, metadata := range map[string]string{
		"none":           "",
		"null":           "null",
		"an empty list":  usCard("", unregulated),
		"no card":        `{"merchant_category_code":"0001"}`,
		"strangers":      usCard(`"SHOPCARD"`, unregulated),
		"not JSON":       `{"co_badged_card_data":`,
		"another type":   `{"co_badged_card_data":{"co_badged_card_networks":"VISA"}}`,
		"too long":       `{"x":"` + strings.Repeat("x", maxDebitMetadata) + `"}`,
		"too many":       usCard(strings.Repeat(`"VISA",`, maxCardNetworks)+`"VISA"`, unregulated),
		"not an object":  `["VISA"]`,
		"nested deeply":  strings.Repeat("[", 30000),
		"invalid UTF-8":  "{\"x\":\"\xff\"}",
		"trailing bytes": usCard(`"VISA"`, unregulated) + "x",
	} {
		_, err := rankNetworks(&settings{}, &Payment{Amount: 1, Currency: "USD", Metadata: metadata, BIN: "453210"}, DefaultDebitTables())
		refusal, ok := errors.AsType[*DecisionError](err)
		if !ok || refusal.InfoCode != "CO_BADGED_NETWORK_NOT_FOUND" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBINTable(t *testing.T) {
	row := func(from, to string, networks ...Network) BINRow {
		lo, _ := padded(from)
		hi, _ := padded(to)
		return BINRow{From: lo, To: hi, Networks: networks, IssuerCountry: from, CardType: "Debit"}
	}
	prepaid := row("400004", "400004", Visa, Star)
	prepaid.Prepaid = true
	credit := row("400005", "400005", Visa, Star)
	credit.CardType = "credit"
	table := newBINTable([]BINRow{
		row("45321077", "45321079", Visa, NYCE),
		row("453210", "453211", Visa, Pulse),
		row("400001", "400009", Accel),       // wide, found from within narrower ones
		row("400002", "400002", Visa),        // adds up with the wide one
		row("400003", "400003", Visa, Amex),  // two global ones
		row("400006", "400006", Pulse, NYCE), // none global
		prepaid, credit,
		row("5555555555555555555", "5555555555555555555", Mastercard, Star),
	})
	for _, c := range []struct {
		bin, country string
		networks     []Network
	}{
		{"453210", "453210", []Network{Visa, Pulse}},
		{"45321000", "453210", []Network{Visa, Pulse}},
		{"45321078", "453210", []Network{Visa, Pulse, NYCE}},
		{"45321099", "453210", []Network{Visa, Pulse}}, // by eight digits within the range of the six
		{"45321199", "453210", []Network{Visa, Pulse}}, // by the first six only
		{"400002", "400001", []Network{Accel, Visa}},
		{"5555555555555555555", "5555555555555555555", []Network{Mastercard, Star}},
		{"400001", "", nil}, // one network
		{"400003", "", nil}, // two global ones, although three in all
		{"400006", "", nil},
		{"400004", "", nil}, // prepaid
		{"400005", "", nil}, // credit
		{"411111", "", nil},
		{"45321", "", nil},
		{"45321a", "", nil},
		{"", "", nil},
		{"45321000000000000000", "453210", []Network{Visa, Pulse}}, // 20 digits: the first six
	} {
		var card debitCard
		if found := table.find(c.bin, &card); found != (c.networks != nil) || !slices.Equal(card.networks, c.networks) || card.issuerCountry != c.country {
			t.Errorf("%s: %v %+v", c.bin, found, card)
		}
	}
	var card debitCard
	if (&binTable{}).find("453210", &card) {
		t.Error("an empty table knows a card")
	}
	tables := DefaultDebitTables()
	tables.table = table
	out, err := rankNetworks(&settings{}, &Payment{Amount: 100, Currency: "USD", BIN: "45321010"}, tables)
	if err != nil || out.Networks[0] != (NetworkSaving{Pulse, 0.08}) || out.IssuerCountry != "453210" || out.CardType != "Debit" {
		t.Errorf("%+v %v", out, err)
	}
}

// The search over ordered ranges finds what a look at every row finds.
func TestBINTableProperties(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var rows []BINRow
		for range rapid.IntRange(0, 12).Draw(r, "rows") {
			from := rapid.Uint64Range(100000, 100020).Draw(r, "from")
			to := from + rapid.Uint64Range(0, 10).Draw(r, "width")
			rows = append(rows, BINRow{From: from * 1e13, To: to * 1e13, CardType: "debit",
				Networks: []Network{rapid.SampledFrom([]Network{Visa, Pulse, NYCE, Mastercard}).Draw(r, "network")}})
		}
		bin := fmt.Sprint(rapid.IntRange(100000, 100030).Draw(r, "bin"))
		number, _ := padded(bin)
		want := map[Network]bool{}
		global := 0
		for _, row := range rows {
			if n := row.Networks[0]; row.From <= number && number <= row.To && !want[n] {
				want[n] = true
				if n.Global() {
					global++
				}
			}
		}
		table := newBINTable(rows)
		var card debitCard
		found := table.find(bin, &card)
		if found != (len(want) >= 2 && global == 1) || found && len(card.networks) != len(want) {
			r.Fatalf("found %v %v, want %v", found, card.networks, want)
		}
	})
}

// Whatever is paid: no NaN, no negative saving, the list is a permutation, dearer networks never save more.
func TestRankNetworksProperties(t *testing.T) {
	tables := DefaultDebitTables()
	names := []string{"VISA", "MASTERCARD", "AMEX", "DINERS", "RUPAY", "STAR", "PULSE", "ACCEL", "NYCE"}
	rapid.Check(t, func(r *rapid.T) {
		sent := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 9, rapid.ID[string]).Draw(r, "networks")
		p := &Payment{Amount: rapid.Float64().Draw(r, "amount"), Currency: "USD",
			Metadata: usCard(`"`+strings.Join(sent, `","`)+`"`, rapid.SampledFrom([]string{regulated, unregulated}).Draw(r, "class"))}
		out, err := rankNetworks(&settings{}, p, tables)
		if err != nil || len(out.Networks) != len(sent) {
			r.Fatalf("%v %v", out, err)
		}
		for i, n := range out.Networks {
			if !slices.Contains(sent, string(n.Network)) || !(n.Saving >= 0) || math.IsInf(n.Saving, 0) || n.Network.Global() && n.Saving != 0 {
				r.Fatalf("%+v", out)
			}
			if i > 0 && n.Saving > out.Networks[i-1].Saving {
				r.Fatalf("a dearer network saves more: %+v", out)
			}
		}
	})
}

func FuzzDebitMetadata(f *testing.F) {
	f.Add(usCard(`"VISA","PULSE"`, regulated))
	f.Add(`{"co_badged_card_data":null}`)
	f.Add("[[[[")
	f.Fuzz(func(t *testing.T, text string) {
		card, err := parseDebitMetadata(text)
		if len(card.networks) > maxCardNetworks || err != nil && len(card.networks) > 0 {
			t.Fatalf("%q: %+v %v", text, card, err)
		}
	})
}

func TestRankingAllocates(t *testing.T) {
	tables := DefaultDebitTables()
	tables.table = newBINTable([]BINRow{{From: 4e18, To: 5e18, Networks: []Network{Visa, Pulse}, CardType: "debit"}})
	p := &Payment{Amount: 100, Currency: "USD", BIN: "453210"}
	set := &settings{}
	// its output, and the list of the card's networks as it grows to two
	if n := testing.AllocsPerRun(100, func() { _, _ = rankNetworks(set, p, tables) }); n > 3 {
		t.Errorf("%v allocations", n)
	}
}
