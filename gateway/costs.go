package gateway

import (
	"cmp"
	"context"
	"encoding/json/v2"
	"math"
	"slices"
	"strings"

	"holdfast/fault"
)

// CostView reads cost models and the tables that apply to all merchants. Each is one document that this package packs.
type CostView interface {
	// SeedCosts returns a merchant's cost rows; nil when none are stored.
	SeedCosts(merchant int64) ([]byte, error)
	// Table returns a table of the deployment; nil when none is stored.
	Table(name string) ([]byte, error)
}

// CostTx changes them.
type CostTx interface {
	// SetSeedCosts replaces a merchant's cost rows; nil removes them.
	SetSeedCosts(merchant int64, document []byte) error
	// SetTable replaces a table of the deployment; nil removes it.
	SetTable(name string, document []byte) error
}

// The bounds of a cost model.
const (
	MaxCostRows  = 4096
	maxCostBPS   = 1_000_000 // of one fee
	maxCostFixed = 1e9
	maxCostText  = 64 // bytes of a constraint
)

// loadCosts reads a merchant's cost model.
func loadCosts(v View, merchant int64) (costBook, error) {
	document, err := v.SeedCosts(merchant)
	if err != nil || document == nil {
		return costBook{}, err
	}
	var rows []CostRow
	if err := unpack("loadCosts", document, &rows); err != nil {
		return costBook{}, err
	}
	return newCostBook(rows), nil
}

// SeedCosts returns the merchant's cost rows by PSP, those of one PSP in the order they were stored in. They must not be
// changed. NotFound when there is no such merchant.
func (s *Service) SeedCosts(ctx context.Context, id MerchantID) ([]CostRow, error) {
	m, err := s.merchant(ctx, id)
	if err != nil {
		return nil, err
	}
	return m.settings.Load().costs.rows, nil
}

// PutSeedCosts replaces the merchant's cost rows, at most MaxCostRows. Invalid when a row has no PSP, a fee that is negative
// or absurdly high, or a constraint that is too long; NotFound when there is no such merchant.
func (s *Service) PutSeedCosts(ctx context.Context, id MerchantID, rows []CostRow) error {
	const op = "PutSeedCosts"
	if len(rows) > MaxCostRows {
		return invalid(op, "%d rows are more than %d", len(rows), MaxCostRows)
	}
	for i := range rows {
		if what := rows[i].wrong(); what != "" {
			return invalid(op, "rows[%d]: %s", i, what)
		}
	}
	document, err := pack(op, rows)
	if err != nil {
		return err
	}
	return s.reconfigure(ctx, id, func(tx Tx, m MerchantRow) error { return tx.SetSeedCosts(m.Key, document) })
}

// DeleteSeedCosts removes the merchant's cost rows, if there are any. NotFound when there is no such merchant.
func (s *Service) DeleteSeedCosts(ctx context.Context, id MerchantID) error {
	return s.reconfigure(ctx, id, func(tx Tx, m MerchantRow) error { return tx.SetSeedCosts(m.Key, nil) })
}

// wrong says what is wrong with a row, nothing when it may be stored.
func (r *CostRow) wrong() string {
	if strings.TrimSpace(string(r.PSP)) == "" {
		return "psp is empty"
	}
	if len(r.PSP) > MaxName {
		return "psp is too long"
	}
	for _, f := range [...]struct {
		name        string
		value, most float64
	}{
		{"interchange_bps", r.Interchange, maxCostBPS}, {"scheme_bps", r.Scheme, maxCostBPS},
		{"markup_bps", r.Markup, maxCostBPS}, {"fixed", r.Fixed, maxCostFixed},
	} {
		switch {
		case f.value < 0:
			return f.name + " is negative"
		case !(f.value <= f.most):
			return f.name + " is too high"
		}
	}
	for _, c := range [...]struct{ name, text string }{
		{"card_network", r.Network}, {"payment_method_type", r.MethodType}, {"card_type", r.CardType},
		{"transaction_currency", r.Currency}, {"card_issuing_country", r.IssuingCountry},
	} {
		if len(c.text) > maxCostText {
			return c.name + " is too long"
		}
	}
	return ""
}

// SimulatedCost is what a payment would cost at one PSP.
type SimulatedCost struct {
	Row    CostRow // the row that matched
	BPS    float64 // of the amount, the fixed part included
	Amount float64 // in the payment's currency, rounded to a millionth
}

// SimulateCosts returns what the payment would cost at every PSP that has a row for it, the cheapest first; of the payment,
// amount, currency, network, method type, card type and issuer's country count. Invalid when the amount is not above 0,
// NotFound when there is no such merchant.
func (s *Service) SimulateCosts(ctx context.Context, id MerchantID, p *Payment) ([]SimulatedCost, error) {
	if !(p.Amount > 0) || math.IsInf(p.Amount, 0) {
		return nil, invalid("SimulateCosts", "amount must be above 0")
	}
	rows, err := s.SeedCosts(ctx, id)
	if err != nil {
		return nil, err
	}
	return costBook{rows}.simulate(p), nil
}

// simulate works out the cost at every PSP of the book. The amount is above 0.
func (b costBook) simulate(p *Payment) []SimulatedCost {
	costs := []SimulatedCost{}
	for i, r := range b.rows {
		if i > 0 && b.rows[i-1].PSP == r.PSP {
			continue
		}
		if row := b.row(r.PSP, p); row != nil {
			bps := row.bps(p.Amount)
			// Not bps times amount: a fee fixed at 0.30 must come out as 0.30 of any amount.
			cost := row.PercentBPS()*p.Amount/10000 + row.Fixed
			if micro := math.Round(cost * 1e6); micro < 1<<53 {
				cost = micro / 1e6
			}
			costs = append(costs, SimulatedCost{Row: *row, BPS: bps, Amount: cost})
		}
	}
	slices.SortStableFunc(costs, func(a, b SimulatedCost) int { return cmp.Compare(a.Amount, b.Amount) })
	return costs
}

// pack writes a document for the store.
func pack(op string, v any) ([]byte, error) {
	document, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, fault.Wrap("gateway."+op, fault.Invalid, err, "the document cannot be stored: text must be UTF-8 and numbers finite")
	}
	return document, nil
}

// unpack reads a document that pack wrote.
func unpack(op string, document []byte, v any) error {
	if err := json.Unmarshal(document, v); err != nil {
		return fault.Wrap("gateway."+op, fault.Internal, err, "a stored document cannot be read")
	}
	return nil
}
