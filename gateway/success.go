package gateway

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"math"
	"strings"
)

// List is a list in a document; none is null.
type List[T any] []T

// MarshalJSONTo writes the list.
func (l List[T]) MarshalJSONTo(e *jsontext.Encoder) error {
	if l == nil {
		return e.WriteToken(jsontext.Null)
	}
	return json.MarshalEncode(e, []T(l))
}

// SuccessData is a merchant's success-rate config as it was sent: members that were not are nil.
type SuccessData struct {
	LatencyThreshold *float64             `json:"defaultLatencyThreshold"` // seconds
	Bucket           *int                 `json:"defaultBucketSize"`
	Hedging          *float64             `json:"defaultHedgingPercent"` // 0 to 100
	LowerReset       *float64             `json:"defaultLowerResetFactor"`
	UpperReset       *float64             `json:"defaultUpperResetFactor"`
	ExtraScores      List[ExtraScoreData] `json:"defaultGatewayExtraScore"`
	Margin           *float64             `json:"margin"`
	Rows             List[SuccessRowData] `json:"subLevelInputConfig"`
}

// SuccessRowData is one row of it: constraints, of which those that are nil match everything, and values.
type SuccessRowData struct {
	MethodType *string `json:"paymentMethodType"`
	Method     *string `json:"paymentMethod"`
	Network    *string `json:"cardNetwork"`
	BIN        *string `json:"cardIsIn"`
	Currency   *string `json:"currency"`
	Country    *string `json:"country"`
	AuthType   *string `json:"authType"`
	Source     *string `json:"source"` // autopilot for rows that nobody wrote by hand

	LatencyThreshold *float64             `json:"latencyThreshold"`
	Bucket           *int                 `json:"bucketSize"`
	Hedging          *float64             `json:"hedgingPercent"`
	LowerReset       *float64             `json:"lowerResetFactor"`
	UpperReset       *float64             `json:"upperResetFactor"`
	ExtraScores      List[ExtraScoreData] `json:"gatewayExtraScore"`
}

// Constraint returns where the row keeps the constraint that a member of its JSON names, nil for another name.
func (r *SuccessRowData) Constraint(name string) **string {
	switch name {
	case "paymentMethodType":
		return &r.MethodType
	case "paymentMethod":
		return &r.Method
	case "cardNetwork":
		return &r.Network
	case "cardIsIn":
		return &r.BIN
	case "currency":
		return &r.Currency
	case "country":
		return &r.Country
	case "authType":
		return &r.AuthType
	}
	return nil
}

// ExtraScoreData is a gateway's sigma factor.
type ExtraScoreData struct {
	Gateway string  `json:"gatewayName"`
	Sigma   float64 `json:"gatewaySigmaFactor"`
}

// The bounds of a success-rate config.
const (
	MaxSuccessRows = 1024
	maxExtraScores = MaxEligible
	maxFactor      = 1e6 // of resets, sigmas and the margin
	maxSeconds     = 1e7 // of a latency threshold
)

// sourceAutopilot marks the rows that a reset of scores removes.
const sourceAutopilot = "autopilot"

func (*SuccessData) kind() ConfigKind { return ConfigSuccess }

// check returns Invalid when something is out of its bounds. Values below what counts are not: they are as good as absent.
func (d *SuccessData) check() error {
	if len(d.Rows) > MaxSuccessRows {
		return invalid("Config", "subLevelInputConfig has %d rows, more than %d", len(d.Rows), MaxSuccessRows)
	}
	top := SuccessRowData{LatencyThreshold: d.LatencyThreshold, Bucket: d.Bucket, Hedging: d.Hedging, LowerReset: d.LowerReset,
		UpperReset: d.UpperReset, ExtraScores: d.ExtraScores}
	what := top.wrong()
	if what == "" {
		what = above("margin", d.Margin, maxFactor)
	}
	if what != "" {
		return invalid("Config", "%s", what)
	}
	for i := range d.Rows {
		if what := d.Rows[i].wrong(); what != "" {
			return invalid("Config", "subLevelInputConfig[%d]: %s", i, what)
		}
	}
	return nil
}

// wrong says what is wrong with a row, nothing when it may be stored.
func (r *SuccessRowData) wrong() string {
	for _, c := range [...]struct {
		name string
		text *string
	}{
		{"paymentMethodType", r.MethodType}, {"paymentMethod", r.Method}, {"cardNetwork", r.Network}, {"cardIsIn", r.BIN},
		{"currency", r.Currency}, {"country", r.Country}, {"authType", r.AuthType}, {"source", r.Source},
	} {
		if c.text != nil && len(*c.text) > MaxName {
			return c.name + " is too long"
		}
	}
	if r.Bucket != nil && *r.Bucket > maxBucket {
		return "the bucket size is more than 100000"
	}
	for _, v := range [...]struct {
		name  string
		value *float64
		most  float64
	}{
		{"the hedging percentage", r.Hedging, 100}, {"the latency threshold", r.LatencyThreshold, maxSeconds},
		{"the lower reset factor", r.LowerReset, maxFactor}, {"the upper reset factor", r.UpperReset, maxFactor},
	} {
		if what := above(v.name, v.value, v.most); what != "" {
			return what
		}
	}
	if len(r.ExtraScores) > maxExtraScores {
		return "there are too many extra scores"
	}
	for i := range r.ExtraScores {
		switch e := &r.ExtraScores[i]; {
		case e.Gateway == "" || len(e.Gateway) > MaxName:
			return "a gatewayName is empty or too long"
		case math.Abs(e.Sigma) > maxFactor:
			return "a gatewaySigmaFactor is too high"
		}
	}
	return ""
}

func above(name string, v *float64, most float64) string {
	if v != nil && *v > most {
		return name + " is too high"
	}
	return ""
}

// dropAutopilot removes the rows that nobody wrote by hand and returns how many there were.
func (d *SuccessData) dropAutopilot() (removed int) {
	kept := d.Rows[:0]
	for _, r := range d.Rows {
		if orNothing(r.Source) != sourceAutopilot {
			kept = append(kept, r)
		}
	}
	removed = len(d.Rows) - len(kept)
	d.Rows = kept
	return removed
}

// config makes what decisions read.
func (d *SuccessData) config() *SuccessConfig {
	c := &SuccessConfig{LatencyThreshold: orNothing(d.LatencyThreshold), Bucket: orNothing(d.Bucket), Hedging: orUnset(d.Hedging),
		LowerReset: orUnset(d.LowerReset), UpperReset: orUnset(d.UpperReset), Margin: orNothing(d.Margin), ExtraScores: extraScores(d.ExtraScores)}
	for i := range d.Rows {
		r := &d.Rows[i]
		c.Rows = append(c.Rows, SuccessRow{MethodType: strings.ToUpper(orNothing(r.MethodType)), Method: orNothing(r.Method),
			Network: orNothing(r.Network), BIN: orNothing(r.BIN), Currency: orNothing(r.Currency), Country: orNothing(r.Country),
			AuthType: authOf(orNothing(r.AuthType)), Source: orNothing(r.Source),
			LatencyThreshold: orNothing(r.LatencyThreshold), Bucket: orNothing(r.Bucket), Hedging: orUnset(r.Hedging),
			LowerReset: orUnset(r.LowerReset), UpperReset: orUnset(r.UpperReset), ExtraScores: extraScores(r.ExtraScores)})
	}
	return c
}

// authOf is the one spelling of a kind of authentication: requests are read with it too.
func authOf(kind string) string {
	if kind == "THREE_DS_2" {
		return "THREE_DS2"
	}
	return kind
}

func extraScores(data []ExtraScoreData) (all []ExtraScore) {
	for _, e := range data {
		all = append(all, ExtraScore{Name(e.Gateway), e.Sigma})
	}
	return all
}

// orUnset is the value of a percentage or a factor, for which 0 means something.
func orUnset(v *float64) float64 {
	if v == nil {
		return -1
	}
	return *v
}

// hedges reports whether a hedging percentage above 0 is stored at any level.
func (c *SuccessConfig) hedges() bool {
	if c == nil {
		return false
	}
	hedges := c.Hedging > 0
	for i := range c.Rows {
		hedges = hedges || c.Rows[i].Hedging > 0
	}
	return hedges
}

// EliminationData is a merchant's elimination config as it was sent.
type EliminationData struct {
	Threshold *float64     `json:"threshold"` // 0 to 1
	Latency   *LatencyData `json:"txnLatency"`
}

// LatencyData says from when on an outcome is slow.
type LatencyData struct {
	Gateway *float64 `json:"gatewayLatency"` // ms
}

func (*EliminationData) kind() ConfigKind { return ConfigElimination }

func (d *EliminationData) check() error {
	if what := above("the threshold", d.Threshold, 1); what != "" {
		return invalid("Config", "%s: it is at most 1", what)
	}
	if d.Latency != nil {
		if what := above("gatewayLatency", d.Latency.Gateway, maxSeconds*1000); what != "" {
			return invalid("Config", "%s", what)
		}
	}
	return nil
}

func (d *EliminationData) config() *EliminationConfig {
	c := &EliminationConfig{Threshold: orNothing(d.Threshold)}
	if d.Latency != nil {
		c.Latency = orNothing(d.Latency.Gateway)
	}
	return c
}

// DebitData is a merchant's debit routing config as it was sent.
type DebitData struct {
	CategoryCode    *string `json:"merchantCategoryCode"`
	AcquirerCountry *string `json:"acquirerCountry"`
}

func (*DebitData) kind() ConfigKind { return ConfigDebit }

func (d *DebitData) check() error {
	for _, m := range [...]struct {
		name string
		text *string
	}{{"merchantCategoryCode", d.CategoryCode}, {"acquirerCountry", d.AcquirerCountry}} {
		if m.text != nil && len(*m.text) > maxCode {
			return invalid("Config", "%s is longer than %d bytes", m.name, maxCode)
		}
	}
	return nil
}
