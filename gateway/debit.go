package gateway

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Network is a card network that debit routing knows; its text is the wire's.
type Network string

// The networks: the first five are accepted everywhere, the other four in one country.
const (
	Visa       Network = "VISA"
	Mastercard Network = "MASTERCARD"
	Amex       Network = "AMEX"
	Diners     Network = "DINERS"
	RuPay      Network = "RUPAY"
	Star       Network = "STAR"
	Pulse      Network = "PULSE"
	Accel      Network = "ACCEL"
	NYCE       Network = "NYCE"
)

// networkOf finds the network that a text names, in any mix of cases; empty when it names none.
func networkOf(text string) Network {
	for _, n := range [...]Network{Visa, Mastercard, Amex, Diners, RuPay, Star, Pulse, Accel, NYCE} {
		if strings.EqualFold(text, string(n)) {
			return n
		}
	}
	return ""
}

// Global reports whether the network is accepted everywhere.
func (n Network) Global() bool {
	switch n {
	case Visa, Mastercard, Amex, Diners, RuPay:
		return true
	}
	return false
}

// Rate is a fee: Percent of the amount and Fixed on top, in the major unit of the tables' currency.
type Rate struct {
	Percent float64 `json:"percent"`
	Fixed   float64 `json:"fixed"`
}

func (r Rate) of(amount float64) float64 { return amount*r.Percent/100 + r.Fixed }

// DebitTables is what debit routing reckons with, in one currency and one unit. It is immutable once it is in use.
type DebitTables struct {
	Currency        string                      `json:"currency"`         // ISO 4217 alpha-3, of every Fixed and of FraudCheck
	Networks        map[Network]Rate            `json:"networks"`         // what a network takes
	Regulated       Rate                        `json:"regulated"`        // interchange of a regulated issuer
	Categories      map[string]map[Network]Rate `json:"categories"`       // interchange of the others, by merchant category code
	DefaultCategory string                      `json:"default_category"` // stands in for codes that Categories does not have
	FraudCheck      float64                     `json:"fraud_check_fee"`  // what a regulated issuer that checks for fraud adds
	BINs            []BINRow                    `json:"bins"`

	table binTable // BINs, ordered
}

// DefaultDebitTables returns the rates that are shipped, all in US dollars, and no BINs.
func DefaultDebitTables() *DebitTables {
	return &DebitTables{
		Currency: "USD",
		Networks: map[Network]Rate{
			Visa: {0.1375, 0.02}, Mastercard: {0.15, 0.04},
			Accel: {0, 0.04}, NYCE: {0.10, 0.015}, Pulse: {0.10, 0.03}, Star: {0.10, 0.015},
		},
		Regulated: Rate{0.05, 0.21},
		Categories: map[string]map[Network]Rate{"0001": {
			Visa: {1.65, 0.15}, Mastercard: {1.65, 0.15},
			Accel: {1.55, 0.04}, NYCE: {1.30, 0.213125}, Pulse: {1.60, 0.15}, Star: {1.63, 0.15},
		}},
		DefaultCategory: "0001",
		FraudCheck:      0.01,
	}
}

// ready orders the BINs and returns t.
func (t *DebitTables) ready() *DebitTables {
	t.table = newBINTable(t.BINs)
	return t
}

// category returns the interchange table of a code, which may carry the prefix that some callers write before it.
func (t *DebitTables) category(codes ...string) map[Network]Rate {
	for _, code := range codes {
		if rates, there := t.Categories[strings.TrimPrefix(code, "merchant_category_code_")]; there {
			return rates
		}
	}
	return t.Categories[t.DefaultCategory]
}

// NetworkSaving is one network of a debit card and what routing over it saves.
type NetworkSaving struct {
	Network Network
	Saving  float64 // percent of the amount, against the cheapest global network; two decimals, never negative
}

// DebitOutput is the ranking of a debit card's networks, the cheapest first.
type DebitOutput struct {
	Networks      []NetworkSaving
	IssuerCountry string // empty when not known
	Regulated     bool
	RegulatedName string // empty when not known
	CardType      string // empty when not known
}

// rankNetworks puts the networks of a co-badged debit card in order of what the payment costs over each. The card is what the
// payment's metadata says, or what the BIN table knows of cardIsin. A *DecisionError when neither names a network.
//
// Nothing is saved, and the order stays, when the amount is not above 0 or in another currency than the rates: fees in two
// currencies cannot be compared. Networks without a rate come last.
func rankNetworks(set *settings, p *Payment, tables *DebitTables) (DebitOutput, error) {
	card, err := parseDebitMetadata(p.Metadata)
	if err != nil {
		return DebitOutput{}, err
	}
	if len(card.networks) == 0 && !tables.table.find(p.BIN, &card) {
		return DebitOutput{}, noNetworks("neither the metadata nor the BIN table names networks of the card")
	}
	out := DebitOutput{Networks: make([]NetworkSaving, len(card.networks)), IssuerCountry: card.issuerCountry,
		Regulated: card.regulated, RegulatedName: card.regulatedName, CardType: card.cardType}
	for i, n := range card.networks {
		out.Networks[i].Network = n
	}
	if p.Amount > 0 && strings.EqualFold(p.Currency, tables.Currency) {
		var own string
		if set.debit != nil {
			own = set.debit.CategoryCode
		}
		tables.rank(out.Networks, p.Amount, &card, tables.category(card.category, own, set.row.CategoryCode))
	}
	return out, nil
}

// rank sorts networks by their fee and fills in the savings. amount is above 0.
func (t *DebitTables) rank(networks []NetworkSaving, amount float64, card *debitCard, category map[Network]Rate) {
	for i := range networks { // Saving holds the fee while the order is worked out
		networks[i].Saving = t.fee(networks[i].Network, amount, card, category)
	}
	slices.SortStableFunc(networks, func(a, b NetworkSaving) int { return cmp.Compare(a.Saving, b.Saving) })
	baseline := math.Inf(1)
	for _, n := range networks {
		if n.Network.Global() {
			baseline = n.Saving
			break
		}
	}
	for i, n := range networks {
		networks[i].Saving = 0
		if saved := math.Round((baseline - n.Saving) / amount * 10000); saved > 0 && !math.IsInf(saved, 0) {
			networks[i].Saving = saved / 100
		}
	}
}

// fee returns what the amount costs over a network, infinity when there is no rate for it.
func (t *DebitTables) fee(n Network, amount float64, card *debitCard, category map[Network]Rate) float64 {
	network, there := t.Networks[n]
	if !there {
		return math.Inf(1)
	}
	if card.regulated {
		fee := t.Regulated.of(amount) + network.of(amount)
		if card.checksFraud() {
			fee += t.FraudCheck
		}
		return fee
	}
	interchange, there := category[n]
	if !there {
		return math.Inf(1)
	}
	return interchange.of(amount) + network.of(amount)
}
