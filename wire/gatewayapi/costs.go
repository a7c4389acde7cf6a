package gatewayapi

import (
	"encoding/json/v2"
	"fmt"
	"net/http"

	"holdfast/fault"
	"holdfast/gateway"
	"holdfast/ident"
	"holdfast/wire/reply"
)

// costRowJSON is a row of a cost model. EffectiveBPS is worked out and ignored when it is sent.
type costRowJSON struct {
	PSP            string  `json:"psp"`
	Interchange    float64 `json:"interchange_bps"`
	Scheme         float64 `json:"scheme_bps"`
	Markup         float64 `json:"markup_bps"`
	Fixed          float64 `json:"fixed"`
	EffectiveBPS   float64 `json:"effective_pct_bps"`
	Default        bool    `json:"is_default"`
	Network        *string `json:"card_network"`
	MethodType     *string `json:"payment_method_type"`
	CardType       *string `json:"card_type"`
	Currency       *string `json:"transaction_currency"`
	IssuingCountry *string `json:"card_issuing_country"`
}

func (j *costRowJSON) row() gateway.CostRow {
	return gateway.CostRow{PSP: gateway.Name(j.PSP), Interchange: j.Interchange, Scheme: j.Scheme, Markup: j.Markup, Fixed: j.Fixed,
		Default: j.Default, Network: orEmpty(j.Network), MethodType: orEmpty(j.MethodType), CardType: orEmpty(j.CardType),
		Currency: orEmpty(j.Currency), IssuingCountry: orEmpty(j.IssuingCountry)}
}

func costRow(r *gateway.CostRow) costRowJSON {
	return costRowJSON{PSP: string(r.PSP), Interchange: r.Interchange, Scheme: r.Scheme, Markup: r.Markup, Fixed: r.Fixed,
		EffectiveBPS: r.PercentBPS(), Default: r.Default, Network: notEmpty(r.Network), MethodType: notEmpty(r.MethodType),
		CardType: notEmpty(r.CardType), Currency: notEmpty(r.Currency), IssuingCountry: notEmpty(r.IssuingCountry)}
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func notEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// seedCostsJSON is a merchant's cost model.
type seedCostsJSON struct {
	Merchant string        `json:"merchant_id"`
	Rows     []costRowJSON `json:"rows"`
}

// merchantInPath returns the merchant that the path names, once it is sure that the caller's credential covers it.
func (a *API) merchantInPath(c *ident.Call) (gateway.MerchantID, error) {
	id := gateway.MerchantID(c.Params[0])
	return id, a.service.Covers(c.Principal, id)
}

// SeedCosts answers GET /merchant-account/{merchant_id}/seed-costs.
func (a *API) SeedCosts(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := a.merchantInPath(c)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.sendSeedCosts(w, r, id)
}

func (a *API) sendSeedCosts(w http.ResponseWriter, r *http.Request, id gateway.MerchantID) {
	rows, err := a.service.SeedCosts(r.Context(), id)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	answer := seedCostsJSON{Merchant: string(id), Rows: make([]costRowJSON, len(rows))}
	for i := range rows {
		answer.Rows[i] = costRow(&rows[i])
	}
	a.send(w, r, http.StatusOK, answer)
}

// PutSeedCosts answers PUT /merchant-account/{merchant_id}/seed-costs: the rows replace what is stored.
func (a *API) PutSeedCosts(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := a.merchantInPath(c)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	var body struct {
		Rows *[]costRowJSON `json:"rows"`
	}
	err = decode(r, c.Body, &body)
	if err == nil && body.Rows == nil {
		err = missing("rows")
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	rows := make([]gateway.CostRow, len(*body.Rows))
	for i := range rows {
		rows[i] = (*body.Rows)[i].row()
	}
	if err := a.service.PutSeedCosts(r.Context(), id, rows); err != nil {
		a.refuse(w, r, err)
		return
	}
	a.sendSeedCosts(w, r, id)
}

// DeleteSeedCosts answers DELETE /merchant-account/{merchant_id}/seed-costs, also when nothing is stored.
func (a *API) DeleteSeedCosts(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := a.merchantInPath(c)
	if err == nil {
		err = a.service.DeleteSeedCosts(r.Context(), id)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, struct {
		Message  string `json:"message"`
		Merchant string `json:"merchant_id"`
	}{"Seed costs deleted successfully", string(id)})
}

// simulatedJSON is what a payment would cost at one PSP.
type simulatedJSON struct {
	PSP          string  `json:"psp"`
	Cost         float64 `json:"cost_amount"`
	CostBPS      float64 `json:"cost_bps"`
	EffectiveBPS float64 `json:"effective_pct_bps"`
	Fixed        float64 `json:"fixed"`
	Currency     *string `json:"transaction_currency"`
	Source       string  `json:"cost_source"`
}

// SimulateCosts answers POST /merchant-account/{merchant_id}/seed-costs/simulate: nothing is stored.
func (a *API) SimulateCosts(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := a.merchantInPath(c)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	var body struct {
		Amount         float64 `json:"amount"`
		Currency       string  `json:"transaction_currency"`
		Network        string  `json:"card_network"`
		MethodType     string  `json:"payment_method_type"`
		CardType       string  `json:"card_type"`
		IssuingCountry string  `json:"card_issuing_country"`
	}
	if err := decode(r, c.Body, &body); err != nil {
		a.refuse(w, r, err)
		return
	}
	costs, err := a.service.SimulateCosts(r.Context(), id, &gateway.Payment{Amount: body.Amount, Currency: body.Currency,
		Network: body.Network, MethodType: body.MethodType, CardType: body.CardType, IssuerCountry: body.IssuingCountry})
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	answer := make([]simulatedJSON, len(costs))
	for i, k := range costs {
		answer[i] = simulatedJSON{PSP: string(k.Row.PSP), Cost: k.Amount, CostBPS: k.BPS, EffectiveBPS: k.Row.PercentBPS(),
			Fixed: k.Row.Fixed, Currency: notEmpty(body.Currency), Source: string(gateway.CostSeed)}
	}
	a.send(w, r, http.StatusOK, answer)
}

// Operates serves next to the operator alone: what it changes concerns every merchant.
func (a *API) Operates(next Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request, c *ident.Call) {
		if c.Principal.Kind != ident.Operator && c.Principal.Kind != ident.DevMode {
			a.refuse(w, r, fault.New("gatewayapi.Operates", fault.Forbidden, "this needs the admin secret"))
			return
		}
		next(w, r, c)
	}
}

// binJSON is a range of card numbers. From is filled up with zeros to 19 digits, To with nines.
type binJSON struct {
	From          string            `json:"from"`
	To            string            `json:"to"`
	Networks      []gateway.Network `json:"networks"`
	IssuerCountry *string           `json:"issuer_country"`
	Regulated     bool              `json:"is_regulated"`
	RegulatedName *string           `json:"regulated_name"`
	CardType      string            `json:"card_type"`
	Prepaid       bool              `json:"prepaid"`
}

// debitTablesJSON is what debit routing reckons with. What an import leaves out is as it is shipped.
type debitTablesJSON struct {
	Currency        string                                      `json:"currency"`
	Networks        map[gateway.Network]gateway.Rate            `json:"networks"`
	Regulated       *gateway.Rate                               `json:"regulated"`
	Categories      map[string]map[gateway.Network]gateway.Rate `json:"categories"`
	DefaultCategory string                                      `json:"default_category"`
	FraudCheck      *float64                                    `json:"fraud_check_fee"`
	BINs            []binJSON                                   `json:"bins"`
}

// DebitTables answers GET /debit-routing/tables.
func (a *API) DebitTables(w http.ResponseWriter, r *http.Request, _ *ident.Call) {
	t := a.service.DebitTables()
	answer := debitTablesJSON{Currency: t.Currency, Networks: t.Networks, Regulated: &t.Regulated, Categories: t.Categories,
		DefaultCategory: t.DefaultCategory, FraudCheck: &t.FraudCheck, BINs: make([]binJSON, len(t.BINs))}
	for i, b := range t.BINs {
		answer.BINs[i] = binJSON{From: fmt.Sprintf("%019d", b.From), To: fmt.Sprintf("%019d", b.To), Networks: b.Networks,
			IssuerCountry: notEmpty(b.IssuerCountry), Regulated: b.Regulated, RegulatedName: notEmpty(b.RegulatedName),
			CardType: b.CardType, Prepaid: b.Prepaid}
	}
	body, err := json.Marshal(answer, json.Deterministic(true)) // the same tables read the same every time
	if err != nil {
		a.refuseDebit(w, r, err)
		return
	}
	reply.JSON(w, http.StatusOK, body)
}

// ImportDebitTables answers PUT /debit-routing/tables: the tables replace those in use, for all merchants.
func (a *API) ImportDebitTables(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	var body debitTablesJSON
	err := decode(r, c.Body, &body)
	if err == nil {
		var t *gateway.DebitTables
		if t, err = body.tables(); err == nil {
			err = a.service.ImportDebitTables(r.Context(), t)
		}
	}
	if err != nil {
		a.refuseDebit(w, r, err)
		return
	}
	a.DebitTables(w, r, c)
}

// ResetDebitTables answers DELETE /debit-routing/tables: what is shipped comes back.
func (a *API) ResetDebitTables(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	if err := a.service.ImportDebitTables(r.Context(), nil); err != nil {
		a.refuseDebit(w, r, err)
		return
	}
	a.DebitTables(w, r, c)
}

// ParseDebitTables makes tables of configuration that has the members of an import, as a TOML parser returns it. What it leaves
// out is as it is shipped. Errors are Invalid and say what does not fit.
func ParseDebitTables(config map[string]any) (*gateway.DebitTables, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, invalid("the configuration of debit routing cannot be read: %s", err)
	}
	var body debitTablesJSON
	if err := json.Unmarshal(text, &body, json.RejectUnknownMembers(true)); err != nil {
		return nil, invalid("the configuration of debit routing does not fit: %s", err)
	}
	return body.tables()
}

// DebitMembers names what ParseDebitTables knows.
func DebitMembers() []string {
	return []string{"currency", "networks", "regulated", "categories", "default_category", "fraud_check_fee", "bins"}
}

// tables fills what was left out with what is shipped, each group whole.
func (j *debitTablesJSON) tables() (*gateway.DebitTables, error) {
	t := gateway.DefaultDebitTables()
	if j.Currency != "" {
		t.Currency = j.Currency
	}
	if j.Networks != nil {
		t.Networks = j.Networks
	}
	if j.Regulated != nil {
		t.Regulated = *j.Regulated
	}
	if j.Categories != nil {
		t.Categories, t.DefaultCategory = j.Categories, ""
	}
	if j.DefaultCategory != "" {
		t.DefaultCategory = j.DefaultCategory
	}
	if j.FraudCheck != nil {
		t.FraudCheck = *j.FraudCheck
	}
	t.BINs = make([]gateway.BINRow, len(j.BINs))
	for i, b := range j.BINs {
		from, to, ok := gateway.BINRange(b.From, b.To)
		if !ok {
			return nil, invalid("bins[%d]: from and to must be 6 to 19 digits", i)
		}
		t.BINs[i] = gateway.BINRow{From: from, To: to, Networks: b.Networks, IssuerCountry: orEmpty(b.IssuerCountry),
			Regulated: b.Regulated, RegulatedName: orEmpty(b.RegulatedName), CardType: b.CardType, Prepaid: b.Prepaid}
	}
	return t, nil
}
