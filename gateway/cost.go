package gateway

import (
	"cmp"
	"slices"
	"strings"
)

// CostRow is one row of a merchant's cost model: fees in basis points, Fixed in the currency's major unit. Empty constraints
// match everything.
type CostRow struct {
	PSP         Name    `json:"psp"`
	Interchange float64 `json:"interchange_bps,omitzero"`
	Scheme      float64 `json:"scheme_bps,omitzero"`
	Markup      float64 `json:"markup_bps,omitzero"`
	Fixed       float64 `json:"fixed,omitzero"`
	Default     bool    `json:"is_default,omitzero"` // stands in when no other row of the PSP matches

	Network        string `json:"card_network,omitzero"`
	MethodType     string `json:"payment_method_type,omitzero"`
	CardType       string `json:"card_type,omitzero"`
	Currency       string `json:"transaction_currency,omitzero"`
	IssuingCountry string `json:"card_issuing_country,omitzero"`
}

// CostOutcome says what the cost step did to a decision; its text is the wire's.
type CostOutcome string

// The outcomes.
const (
	CostWon CostOutcome = "COST_WON" // a gateway of higher expected value took the leader's place
	AuthWon CostOutcome = "AUTH_WON" // the leader stays
)

// CostSource says where a cost comes from; its text is the wire's.
type CostSource string

// CostSeed marks costs of the merchant's own rows, the only source there is.
const CostSeed CostSource = "SEED"

// The reasons of an outcome, as the answer gives them.
const (
	reasonHigher = "HIGHER_EXPECTED_VALUE"
	reasonLeader = "LEADER_HAS_HIGHEST_EXPECTED_VALUE"
)

// CostRank is one gateway as the cost step saw it.
type CostRank struct {
	Gateway Name
	Auth    float64 // the decision score it came with, 0 to 1
	BPS     float64 // of the amount, in basis points; 0 unless Known
	EV      float64 // expected value per unit of the amount; 0 unless Known
	Known   bool    // a cost row matches the payment
	Head    bool    // the leader before the step
	Chosen  bool    // the leader after it
}

// CostInfo is what the cost step tells about itself.
type CostInfo struct {
	Outcome   CostOutcome
	Reason    string
	SavedBPS  float64 // the leader's cost less the chosen one's, in basis points
	Qualified int     // gateways with a known cost
	Margin    float64
	Gap       float64 // between the two highest expected values; 0 with fewer than two
	// Ranked is in the decision's new order: by expected value when cost won, then the gateways without a cost by score;
	// as it came when the leader stays.
	Ranked []CostRank
}

// costInput is what the cost step works on.
type costInput struct {
	Payment *Payment
	Margin  float64  // of the success-rate configuration; 1 when not above 0
	Scores  []Scored // best first, ties already broken: the first is the leader
	Costs   costBook
}

// costStep weighs what the gateways cost against how often they succeed, and reports whether it could: with fewer than two
// gateways, an amount that is not above 0 or no known cost for the leader it leaves out as it was. It keeps the memory of
// out.Ranked.
//
//	EV(g) = auth(g) * (margin - cost_bps(g)/10000)
//
// The highest EV wins when it is strictly above the leader's; of equal ones the first of Scores.
func costStep(in costInput, out *CostInfo) bool {
	if len(in.Scores) < 2 || !(in.Payment.Amount > 0) || len(in.Costs.rows) == 0 {
		return false
	}
	head, known := in.Costs.bps(in.Scores[0].Gateway, in.Payment)
	if !known {
		return false
	}
	margin := in.Margin
	if !(margin > 0) {
		margin = 1
	}
	*out = CostInfo{Outcome: AuthWon, Reason: reasonLeader, Margin: margin, Ranked: out.Ranked[:0]}
	best, second := -1, -1
	for i, c := range in.Scores {
		rank := CostRank{Gateway: c.Gateway, Auth: c.Score, Head: i == 0}
		rank.BPS, rank.Known = head, true
		if i > 0 {
			rank.BPS, rank.Known = in.Costs.bps(c.Gateway, in.Payment)
		}
		if rank.Known {
			out.Qualified++
			rank.EV = rank.Auth * (margin - rank.BPS/10000)
		}
		out.Ranked = append(out.Ranked, rank)
		switch {
		case !rank.Known:
		case best < 0 || rank.EV > out.Ranked[best].EV:
			best, second = i, best
		case second < 0 || rank.EV > out.Ranked[second].EV:
			second = i
		}
	}
	if second >= 0 {
		out.Gap = out.Ranked[best].EV - out.Ranked[second].EV
	}
	out.Ranked[best].Chosen = true
	if best > 0 {
		out.Outcome, out.Reason, out.SavedBPS = CostWon, reasonHigher, head-out.Ranked[best].BPS
		slices.SortStableFunc(out.Ranked, byValue)
	}
	return true
}

// byValue puts known costs first, by expected value, and the others after them, by score; the best first.
func byValue(a, b CostRank) int {
	switch {
	case a.Known != b.Known && a.Known:
		return -1
	case a.Known != b.Known:
		return 1
	case a.Known:
		return cmp.Compare(b.EV, a.EV)
	}
	return cmp.Compare(b.Auth, a.Auth)
}

// costBook is a merchant's cost rows, ordered by PSP so that a look-up visits one PSP's rows only. It is immutable.
type costBook struct{ rows []CostRow }

// newCostBook orders rows by PSP; those of one PSP keep their order. It keeps no reference to rows.
func newCostBook(rows []CostRow) costBook {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b CostRow) int { return cmp.Compare(a.PSP, b.PSP) })
	return costBook{rows}
}

// bps returns what the payment costs at gateway g, in basis points of its amount, which is above 0. Rows are looked up under
// the whole name first, then, for a name such as alphapay:acc_11, under what stands before the colon.
func (b costBook) bps(g Name, p *Payment) (bps float64, known bool) {
	row := b.row(g, p)
	if row == nil {
		if psp, _, account := strings.Cut(string(g), ":"); account {
			row = b.row(Name(psp), p)
		}
	}
	if row == nil {
		return 0, false
	}
	return row.bps(p.Amount), true
}

// row returns the row of g that matches most of the payment's facts, the first of equal ones. A default row stands in when no
// other row matches.
func (b costBook) row(g Name, p *Payment) *CostRow {
	i, _ := slices.BinarySearchFunc(b.rows, g, func(r CostRow, g Name) int { return cmp.Compare(r.PSP, g) })
	var found *CostRow
	best := -1
	for ; i < len(b.rows) && b.rows[i].PSP == g; i++ {
		r := &b.rows[i]
		weight, matches := r.matches(p)
		if !matches && r.Default {
			weight, matches = 0, true
		}
		if matches && weight > best {
			found, best = r, weight
		}
	}
	return found
}

// matches reports whether every constraint of the row holds, and how closely the row fits: more constraints first, then those
// on country and currency, then network, then funding, then program.
func (r *CostRow) matches(p *Payment) (weight int, all bool) {
	for _, c := range [...]struct {
		want, is string
		weight   int
	}{
		{r.IssuingCountry, p.IssuerCountry, 1<<8 | 1<<4},
		{r.Currency, p.Currency, 1<<8 | 1<<4},
		{r.Network, p.Network, 1<<8 | 1<<3},
		{r.CardType, p.CardType, 1<<8 | 1<<2},
		{r.MethodType, p.MethodType, 1<<8 | 1<<1},
	} {
		if c.want == "" {
			continue
		}
		if !strings.EqualFold(c.want, c.is) {
			return 0, false
		}
		weight += c.weight
	}
	return weight, true
}

// PercentBPS returns the part of the fee that grows with the amount, in basis points.
func (r *CostRow) PercentBPS() float64 { return r.Interchange + r.Scheme + r.Markup }

// mostBPS bounds a fee: a fixed one on next to nothing would be infinite, and differences of infinities are no numbers.
const mostBPS = 1e15

// bps returns the whole fee of an amount above 0, in basis points of it, at most mostBPS.
func (r *CostRow) bps(amount float64) float64 {
	return min(r.PercentBPS()+r.Fixed/amount*10000, mostBPS)
}
