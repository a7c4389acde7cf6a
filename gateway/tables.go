package gateway

import (
	"context"
	"strings"
)

// The tables of the deployment, as the store names them.
const (
	tableErrors = "errors"
	tableDebit  = "debit"
)

// loadTables reads the tables that apply to all merchants; where nothing is stored it takes what is shipped.
func (s *Service) loadTables(v View) error {
	rules, tables := defaultErrorRules(), s.shippedDebit()
	if what := tables.wrong(); what != "" {
		return invalid("loadTables", "debit routing: %s", what)
	}
	document, err := v.Table(tableErrors)
	if err != nil {
		return err
	}
	if document != nil {
		rules = nil
		if err := unpack("loadTables", document, &rules); err != nil {
			return err
		}
	}
	document, err = v.Table(tableDebit)
	if err != nil {
		return err
	}
	if document != nil {
		tables = &DebitTables{}
		if err := unpack("loadTables", document, tables); err != nil {
			return err
		}
	}
	s.errors.Store(newErrorTable(rules))
	s.debits.Store(tables.ready())
	return nil
}

// shippedDebit is what debit routing reckons with until other tables are imported.
func (s *Service) shippedDebit() *DebitTables {
	if s.options.Debit == nil {
		return DefaultDebitTables()
	}
	fresh := *s.options.Debit
	return &fresh
}

// setTable stores a table, or removes it when document is nil, and runs applied once that is on disk.
func (s *Service) setTable(ctx context.Context, name string, document []byte, applied func()) error {
	return s.write(ctx, func(tx Tx) error { return tx.SetTable(name, document) }, applied)
}

// ErrorRules returns the rules of the error table, in order.
func (s *Service) ErrorRules() []ErrorRule {
	t := s.errors.Load()
	rules := make([]ErrorRule, len(t.rules))
	for i := range t.rules {
		rules[i] = t.rules[i].ErrorRule
	}
	return rules
}

// ImportErrorRules replaces the error table, for all merchants, by rules, at most MaxErrorRules; empty connectors, flows,
// sub-flows and messages match everything. nil brings back the table that is shipped. Invalid when a rule has no code or no
// decision, or a text that is too long.
func (s *Service) ImportErrorRules(ctx context.Context, rules []ErrorRule) error {
	const op = "ImportErrorRules"
	if rules == nil {
		return s.setTable(ctx, tableErrors, nil, func() { s.errors.Store(newErrorTable(defaultErrorRules())) })
	}
	if len(rules) > MaxErrorRules {
		return invalid(op, "%d rules are more than %d", len(rules), MaxErrorRules)
	}
	stored := make([]ErrorRule, len(rules))
	for i, r := range rules {
		for _, text := range [...]*string{&r.Connector, &r.Flow, &r.SubFlow, &r.Message} {
			if *text == "" {
				*text = anything
			}
		}
		if what := r.wrong(); what != "" {
			return invalid(op, "rules[%d]: %s", i, what)
		}
		stored[i] = r
	}
	document, err := pack(op, stored)
	if err != nil {
		return err
	}
	table := newErrorTable(stored)
	return s.setTable(ctx, tableErrors, document, func() { s.errors.Store(table) })
}

// DebitTables returns what debit routing reckons with. It must not be changed.
func (s *Service) DebitTables() *DebitTables { return s.debits.Load() }

// ImportDebitTables replaces what debit routing reckons with, for all merchants, and keeps what t refers to; nil brings back
// what is shipped. Invalid when a rate, a network, a category or a BIN row cannot be.
func (s *Service) ImportDebitTables(ctx context.Context, t *DebitTables) error {
	const op = "ImportDebitTables"
	if t == nil {
		return s.setTable(ctx, tableDebit, nil, func() { s.debits.Store(s.shippedDebit().ready()) })
	}
	if what := t.wrong(); what != "" {
		return invalid(op, "%s", what)
	}
	document, err := pack(op, t)
	if err != nil {
		return err
	}
	fresh := *t
	ready := fresh.ready()
	return s.setTable(ctx, tableDebit, document, func() { s.debits.Store(ready) })
}

// The bounds of the debit tables.
const (
	MaxBINRows    = 50_000
	maxCategories = 2_000
	maxDebitFixed = 1e6 // of a rate, and of the fraud check
	maxDebitText  = 128 // bytes of the texts of a BIN row, or of a category code
)

// wrong says what is wrong with tables that are to be imported, nothing when they may be.
func (t *DebitTables) wrong() string {
	if len(t.Currency) != 3 || strings.ToUpper(t.Currency) != t.Currency {
		return "currency must be an ISO 4217 code such as USD"
	}
	if _, there := t.Categories[t.DefaultCategory]; !there && len(t.Categories) > 0 {
		return "default_category is not one of the categories"
	}
	if len(t.Categories) > maxCategories {
		return "there are too many categories"
	}
	if t.Regulated.wrong() || (Rate{Fixed: t.FraudCheck}).wrong() || wrongRates(t.Networks) {
		return "a rate of regulated, fraud_check_fee or networks is negative, too high, or of an unknown network"
	}
	for code, rates := range t.Categories {
		if code == "" || len(code) > maxDebitText || wrongRates(rates) {
			return "category " + clip(code) + ": the code is empty or too long, or a rate is negative, too high, or of an unknown network"
		}
	}
	return wrongBINs(t.BINs)
}

func wrongBINs(rows []BINRow) string {
	if len(rows) > MaxBINRows {
		return "there are too many bins"
	}
	for i := range rows {
		r := &rows[i]
		if r.From > r.To || len(r.Networks) == 0 || len(r.Networks) > maxCardNetworks ||
			len(r.IssuerCountry)+len(r.RegulatedName)+len(r.CardType) > maxDebitText {
			return "a row of bins ends before it begins, names no network or too many, or has a text that is too long"
		}
		for _, n := range r.Networks {
			if networkOf(string(n)) != n || n == "" {
				return "a row of bins names an unknown network: " + clip(string(n))
			}
		}
	}
	return ""
}

func (r Rate) wrong() bool {
	return !(r.Percent >= 0 && r.Percent <= 100 && r.Fixed >= 0 && r.Fixed <= maxDebitFixed)
}

func wrongRates(rates map[Network]Rate) bool {
	for n, r := range rates {
		if n == "" || networkOf(string(n)) != n || r.wrong() {
			return true
		}
	}
	return false
}
