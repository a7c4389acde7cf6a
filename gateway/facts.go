package gateway

import (
	"math"
	"strings"

	"holdfast/internal/strictjson"
)

// source says which fact of a payment fills a slot when a decision runs a rule.
type source uint8

const (
	fromNothing source = iota
	fromAmount
	fromCurrency
	fromMethodType
	fromMethod
	fromSubMethod // the key is a method type, and the value the method of such a payment
	fromNetwork
	fromCardType
	fromBIN
	fromLongBIN
	fromIssuer
	fromAuthType
	fromCountry
	fromIssuerCountry
	fromPaymentType
	fromMetadata // the key is the caller's own
)

// sourceOf returns where the key's value comes from.
func sourceOf(key string) source {
	switch key {
	case "amount", "payment_amount":
		return fromAmount
	case "currency":
		return fromCurrency
	case "payment_method":
		return fromMethodType
	case "payment_method_type":
		return fromMethod
	case "card", "card_type":
		return fromCardType
	case "card_network":
		return fromNetwork
	case "card_bin":
		return fromBIN
	case "extended_card_bin":
		return fromLongBIN
	case "issuer_name":
		return fromIssuer
	case "authentication_type":
		return fromAuthType
	case "billing_country":
		return fromCountry
	case "issuer_country":
		return fromIssuerCountry
	case "payment_type":
		return fromPaymentType
	case "bank_debit", "bank_redirect", "bank_transfer", "card_redirect", "crypto", "gift_card", "mobile_payment", "network_token",
		"open_banking", "pay_later", "real_time_payment", "reward", "upi", "voucher", "wallet":
		return fromSubMethod
	}
	return fromNothing
}

// derive fills the slots of a program from a payment. The amount is taken in the unit in which the request states it. Words
// are compared without regard to case and to what joins their parts, because decisions spell them in other ways than rules.
func (p *program) derive(pay *Payment, at []value) {
	for slot, key := range p.names {
		at[slot] = fact(p.sources[slot], key, pay)
	}
	if p.metadata && pay.Metadata != "" {
		p.deriveMetadata([]byte(pay.Metadata), at)
	}
}

func fact(from source, key string, pay *Payment) value {
	switch from {
	case fromAmount:
		return amount(pay.Amount)
	case fromCurrency:
		return word(pay.Currency)
	case fromMethodType:
		return word(pay.MethodType)
	case fromMethod:
		return word(pay.Method)
	case fromSubMethod:
		if sameWord(key, pay.MethodType) {
			return word(pay.Method)
		}
	case fromNetwork:
		return word(pay.Network)
	case fromCardType:
		return word(pay.CardType)
	case fromBIN:
		return digits(pay.BIN, 6)
	case fromLongBIN:
		return digits(pay.BIN, 8)
	case fromIssuer:
		return text(pay.Issuer)
	case fromAuthType:
		return word(authentication(pay.AuthType))
	case fromCountry:
		return word(countryName(pay.Country))
	case fromIssuerCountry:
		return word(countryName(pay.IssuerCountry))
	case fromPaymentType:
		return word(paymentType(pay.OrderType))
	}
	return value{}
}

func amount(n float64) value {
	if !(n >= 0) || n >= math.MaxUint64 {
		return value{}
	}
	whole := math.Floor(n)
	return value{kind: ValueNumber, number: uint64(whole), fraction: whole != n}
}

func word(s string) value {
	if s == "" {
		return value{}
	}
	return value{kind: ValueEnum, text: s, folds: true}
}

func text(s string) value {
	if s == "" {
		return value{}
	}
	return value{kind: ValueText, text: s}
}

// digits is the first n digits of a card number, nothing when fewer are known.
func digits(bin string, n int) value {
	if len(bin) < n {
		return value{}
	}
	return value{kind: ValueText, text: bin[:n]}
}

func sameWord(folded, s string) bool {
	var room, other [foldRoom]byte
	a, fits := foldInto(&room, s)
	b, _ := foldInto(&other, folded)
	return fits && string(a) == string(b)
}

// authentication folds the kinds of 3-D Secure into the two words of the catalogue; other kinds have no word there.
func authentication(kind string) string {
	switch kind {
	case "THREE_DS", "THREE_DS2", "THREE_DS_2":
		return "three_ds"
	}
	return kind
}

// paymentType says in the catalogue's words whether a payment sets a mandate up or uses one.
func paymentType(order string) string {
	switch {
	case order == "ORDER_PAYMENT" || order == "TPV_PAYMENT" || order == "VAN_PAYMENT" || order == "MOTO_PAYMENT":
		return "normal"
	case strings.HasSuffix(order, "MANDATE_REGISTER"):
		return "new_mandate"
	case strings.HasSuffix(order, "MANDATE_PAYMENT"):
		return "recurring_mandate"
	}
	return ""
}

// metadataDepth is how deep a payment's metadata may be nested for rules to look at it.
const metadataDepth = 32

// deriveMetadata fills the slots of the caller's own keys from the top level of the payment's metadata. What is not a JSON
// object has no keys: a decision does not fail because of it.
func (p *program) deriveMetadata(doc []byte, at []value) {
	c := strictjson.Walk(doc)
	if strictjson.Validate(doc, metadataDepth) != nil || c.Kind() != strictjson.Object {
		return
	}
	for c.Enter(); c.More(); {
		slot, known := p.slots[string(c.Key())]
		raw := c.Skip()
		if !known || p.sources[slot] != fromMetadata {
			continue
		}
		switch strictjson.KindOf(raw) {
		case strictjson.String:
			at[slot] = value{kind: ValueMetadata, meta: p.names[slot], text: string(strictjson.AppendText(nil, raw))}
		case strictjson.Number, strictjson.Bool:
			at[slot] = value{kind: ValueMetadata, meta: p.names[slot], text: string(raw)}
		}
	}
}
