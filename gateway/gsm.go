package gateway

import "strings"

// ErrorInfo is what a caller reports about a failed attempt. Absent members are empty.
type ErrorInfo struct {
	Connector, Flow, SubFlow, Code, Message string
	IssuerCode                              string
	Network                                 string
}

// ErrorRule says what an error of a connector means and what to do about it. Of the first five members Connector, Flow,
// SubFlow and Message may be *, which matches everything; the others are compared whole.
type ErrorRule struct {
	Connector string `json:"connector"`
	Flow      string `json:"flow"`
	SubFlow   string `json:"sub_flow"`
	Code      string `json:"code"`
	Message   string `json:"message"`

	Decision         string `json:"decision"`                   // what to do: retry, requeue or do_default
	StepUp           bool   `json:"step_up,omitzero"`           // the payment may pass with stronger authentication
	ClearPAN         bool   `json:"clear_pan,omitzero"`         // it may pass with the card's own number instead of a token
	AlternateNetwork bool   `json:"alternate_network,omitzero"` // it may pass over another network of the card
	UnifiedCode      string `json:"unified_code,omitzero"`
	UnifiedMessage   string `json:"unified_message,omitzero"`
	Category         string `json:"category,omitzero"`
	Standardised     string `json:"standardised,omitzero"`
	Description      string `json:"description,omitzero"`
	Guidance         string `json:"guidance,omitzero"` // for the payer
}

// anything is what a rule says where it matches everything.
const anything = "*"

// detailsClass is what the unified messages of one class of errors have in common: the payer gave wrong details.
const detailsClass = "payment method details"

// customerCause reports whether the gateway is not to blame: the payer can still authenticate, or gave wrong details.
func (r *ErrorRule) customerCause() bool {
	return r.StepUp || strings.Contains(strings.ToLower(r.UnifiedMessage), detailsClass)
}

// ErrorTable finds the rule of an error. It is immutable.
type ErrorTable struct {
	rules []errorEntry
	index map[errorKey][]int32 // positions in rules
}

// errorEntry is a rule and what is worked out about it once.
type errorEntry struct {
	ErrorRule
	customer bool
}

type errorKey struct{ connector, code string }

// newErrorTable indexes rules; of two that match equally closely the earlier one is found.
func newErrorTable(rules []ErrorRule) *ErrorTable {
	t := &ErrorTable{rules: make([]errorEntry, len(rules)), index: make(map[errorKey][]int32, len(rules))}
	for i, r := range rules {
		t.rules[i] = errorEntry{r, r.customerCause()}
		key := errorKey{r.Connector, r.Code}
		t.index[key] = append(t.index[key], int32(i))
	}
	return t
}

// match returns the rule that fits the error best, nil when none does or t is nil: one for the connector by its whole name, or
// by what stands before a colon in it, before one for every connector; then the one that names flow, message and sub-flow, in
// this order of weight. customer reports that the gateway is not to blame.
func (t *ErrorTable) match(e *ErrorInfo) (rule *ErrorRule, customer bool) {
	if t == nil || e.Code == "" {
		return nil, false
	}
	found := t.best(e.Connector, e)
	if found == nil {
		if connector, _, account := strings.Cut(e.Connector, ":"); account {
			found = t.best(connector, e)
		}
	}
	if found == nil {
		found = t.best(anything, e)
	}
	if found == nil {
		return nil, false
	}
	return &found.ErrorRule, found.customer
}

// best returns the rule of one connector that fits best.
func (t *ErrorTable) best(connector string, e *ErrorInfo) *errorEntry {
	var found *errorEntry
	most := -1
	for _, i := range t.index[errorKey{connector, e.Code}] {
		r := &t.rules[i]
		weight := 0
		for _, c := range [...]struct {
			want, is string
			weight   int
		}{{r.Flow, e.Flow, 4}, {r.Message, e.Message, 2}, {r.SubFlow, e.SubFlow, 1}} {
			if c.want == anything {
				continue
			}
			if !strings.EqualFold(c.want, c.is) {
				weight = -1
				break
			}
			weight += c.weight
		}
		if weight > most {
			found, most = r, weight
		}
	}
	return found
}

// The bounds of an error table.
const (
	MaxErrorRules = 20_000
	maxErrorText  = 1024 // bytes of one member
)

// wrong says what is wrong with a rule that is to be imported, nothing when it may be.
func (r *ErrorRule) wrong() string {
	for _, m := range [...]struct{ name, text string }{
		{"connector", r.Connector}, {"flow", r.Flow}, {"subFlow", r.SubFlow}, {"errorCode", r.Code}, {"errorMessage", r.Message},
		{"decision", r.Decision}, {"unifiedCode", r.UnifiedCode}, {"unifiedMessage", r.UnifiedMessage},
		{"errorCategory", r.Category}, {"standardisedCode", r.Standardised}, {"description", r.Description},
		{"userGuidanceMessage", r.Guidance},
	} {
		if len(m.text) > maxErrorText {
			return m.name + " is too long"
		}
	}
	switch {
	case r.Code == "":
		return "errorCode is empty"
	case r.Decision == "":
		return "decision is empty"
	}
	return ""
}
