package gateway

import (
	"cmp"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"slices"
	"strconv"
	"strings"
)

// The bounds of what debit routing reads.
const (
	maxDebitMetadata = 64 << 10 // bytes of paymentInfo.metadata
	maxCardNetworks  = 32       // networks named by one card, as sent
)

// debitCard is what is known about a debit card.
type debitCard struct {
	networks      []Network // without repeats, as they came
	category      string    // merchant_category_code, as sent
	issuerCountry string
	regulated     bool
	regulatedName string
	cardType      string
}

// checksFraud reports whether the issuer is of the class "government, not exempt, with fraud check", however it is written:
// only the letters count.
func (c *debitCard) checksFraud() bool {
	letters := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		case r >= 'a' && r <= 'z':
			return r
		}
		return -1
	}, c.regulatedName)
	return strings.Contains(letters, "nonexempt") && strings.Contains(letters, "withfraud")
}

// debitMetadata is the part of paymentInfo.metadata that debit routing reads.
type debitMetadata struct {
	Category string `json:"merchant_category_code"`
	Card     struct {
		Networks      []string `json:"co_badged_card_networks"`
		IssuerCountry string   `json:"issuer_country"`
		Regulated     bool     `json:"is_regulated"`
		RegulatedName string   `json:"regulated_name"`
		CardType      string   `json:"card_type"`
	} `json:"co_badged_card_data"`
}

// parseDebitMetadata reads the metadata of a payment; no metadata is a card about which nothing is known. Networks that
// nobody knows are left out. Invalid when the text is too long or not such a document.
func parseDebitMetadata(text string) (card debitCard, err error) {
	if text == "" {
		return card, nil
	}
	if len(text) > maxDebitMetadata {
		return card, noNetworks("metadata is longer than " + strconv.Itoa(maxDebitMetadata) + " bytes")
	}
	var m debitMetadata
	if err := json.Unmarshal([]byte(text), &m, jsontext.AllowDuplicateNames(true)); err != nil {
		return card, noNetworks("metadata does not describe a card: " + err.Error())
	}
	if len(m.Card.Networks) > maxCardNetworks {
		return card, noNetworks("metadata names more than " + strconv.Itoa(maxCardNetworks) + " networks")
	}
	for _, name := range m.Card.Networks {
		card.add(networkOf(name))
	}
	card.category = m.Category
	card.issuerCountry, card.cardType = m.Card.IssuerCountry, m.Card.CardType
	card.regulated, card.regulatedName = m.Card.Regulated, m.Card.RegulatedName
	return card, nil
}

// add appends a network that is known and not there yet.
func (c *debitCard) add(n Network) {
	if n != "" && !slices.Contains(c.networks, n) {
		c.networks = append(c.networks, n)
	}
}

// BINRow says what is known of the cards whose number lies between From and To, both included and padded with zeros to 19
// digits. Several rows may speak of one card: their networks add up, the first row says the rest.
type BINRow struct {
	From          uint64    `json:"from"`
	To            uint64    `json:"to"`
	Networks      []Network `json:"networks"`
	IssuerCountry string    `json:"issuer_country,omitzero"`
	Regulated     bool      `json:"is_regulated,omitzero"`
	RegulatedName string    `json:"regulated_name,omitzero"`
	CardType      string    `json:"card_type"`        // debit cards are routed only
	Prepaid       bool      `json:"prepaid,omitzero"` // prepaid cards are not
}

// binTable finds the rows of a card number. It is immutable.
type binTable struct {
	rows   []BINRow // by From
	newest []uint64 // at i: the largest To of rows[:i+1], where a search backwards may stop
}

// newBINTable orders rows; it keeps no reference to the slice.
func newBINTable(rows []BINRow) binTable {
	t := binTable{rows: slices.Clone(rows), newest: make([]uint64, len(rows))}
	slices.SortStableFunc(t.rows, func(a, b BINRow) int { return cmp.Compare(a.From, b.From) })
	var most uint64
	for i, r := range t.rows {
		most = max(most, r.To)
		t.newest[i] = most
	}
	return t
}

// panDigits is the length to which card numbers are padded.
const panDigits = 19

// padded turns the leading digits of a card number into the number with zeros to 19 digits; false unless there are 6 to 19
// digits and nothing else.
func padded(bin string) (number uint64, ok bool) {
	if len(bin) < 6 || len(bin) > panDigits {
		return 0, false
	}
	for i := range panDigits {
		number *= 10
		if i < len(bin) {
			if bin[i] < '0' || bin[i] > '9' {
				return 0, false
			}
			number += uint64(bin[i] - '0')
		}
	}
	return number, true
}

// BINRange turns the first and the last leading digits of a range of cards into the numbers that a BINRow holds: from is filled
// up with zeros, to with nines. It reports false unless each has 6 to 19 digits and nothing else.
func BINRange(from, to string) (lo, hi uint64, ok bool) {
	lo, ok = padded(from)
	if !ok || len(to) > panDigits {
		return 0, 0, false
	}
	if len(to) >= 6 {
		to += strings.Repeat("9", panDigits-len(to))
	}
	hi, ok = padded(to)
	return lo, hi, ok
}

// find fills in what the table knows of a card by its first digits, trying 8 digits or more, then 6. It reports whether the
// card can be routed: debit, not prepaid, at least two networks, exactly one of them global.
func (t *binTable) find(bin string, card *debitCard) bool {
	if len(t.rows) == 0 || len(bin) < 6 {
		return false
	}
	return t.routable(bin, card) || len(bin) > 6 && t.routable(bin[:6], card)
}

func (t *binTable) routable(bin string, card *debitCard) bool {
	number, ok := padded(bin)
	if !ok {
		return false
	}
	found := debitCard{category: card.category}
	after, _ := slices.BinarySearchFunc(t.rows, number, func(r BINRow, n uint64) int {
		if r.From <= n {
			return -1
		}
		return 1
	})
	first := after
	for first > 0 && t.newest[first-1] >= number {
		first--
	}
	matched := false
	for i := first; i < after; i++ {
		r := &t.rows[i]
		if r.To < number || r.Prepaid || !strings.EqualFold(r.CardType, "debit") {
			continue
		}
		if !matched {
			matched = true
			found.issuerCountry, found.cardType = r.IssuerCountry, r.CardType
			found.regulated, found.regulatedName = r.Regulated, r.RegulatedName
		}
		for _, n := range r.Networks {
			found.add(n)
		}
	}
	global := 0
	for _, n := range found.networks {
		if n.Global() {
			global++
		}
	}
	if len(found.networks) < 2 || global != 1 {
		return false
	}
	*card = found
	return true
}
