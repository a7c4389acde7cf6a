package gatewayapi

import (
	"net/http"

	"holdfast/gateway"
	"holdfast/ident"
)

// errorRuleJSON is a rule of the error table.
type errorRuleJSON struct {
	Connector        string `json:"connector"`
	Flow             string `json:"flow"`
	SubFlow          string `json:"subFlow"`
	Code             string `json:"errorCode"`
	Message          string `json:"errorMessage"`
	Category         string `json:"errorCategory,omitzero"`
	UnifiedCode      string `json:"unifiedCode,omitzero"`
	UnifiedMessage   string `json:"unifiedMessage,omitzero"`
	Decision         string `json:"decision"`
	StepUp           bool   `json:"stepUpPossible"`
	ClearPAN         bool   `json:"clearPanPossible"`
	AlternateNetwork bool   `json:"alternateNetworkPossible"`
	Standardised     string `json:"standardisedCode,omitzero"`
	Description      string `json:"description,omitzero"`
	Guidance         string `json:"userGuidanceMessage,omitzero"`
}

func (j *errorRuleJSON) rule() gateway.ErrorRule {
	return gateway.ErrorRule{Connector: j.Connector, Flow: j.Flow, SubFlow: j.SubFlow, Code: j.Code, Message: j.Message,
		Category: j.Category, UnifiedCode: j.UnifiedCode, UnifiedMessage: j.UnifiedMessage, Decision: j.Decision,
		StepUp: j.StepUp, ClearPAN: j.ClearPAN, AlternateNetwork: j.AlternateNetwork,
		Standardised: j.Standardised, Description: j.Description, Guidance: j.Guidance}
}

func errorRule(r *gateway.ErrorRule) errorRuleJSON {
	return errorRuleJSON{Connector: r.Connector, Flow: r.Flow, SubFlow: r.SubFlow, Code: r.Code, Message: r.Message,
		Category: r.Category, UnifiedCode: r.UnifiedCode, UnifiedMessage: r.UnifiedMessage, Decision: r.Decision,
		StepUp: r.StepUp, ClearPAN: r.ClearPAN, AlternateNetwork: r.AlternateNetwork,
		Standardised: r.Standardised, Description: r.Description, Guidance: r.Guidance}
}

type errorTableJSON struct {
	Rules *[]errorRuleJSON `json:"rules"`
}

// ErrorRules answers GET /gsm/options: the error table in use.
func (a *API) ErrorRules(w http.ResponseWriter, r *http.Request, _ *ident.Call) {
	rules := a.service.ErrorRules()
	shown := make([]errorRuleJSON, len(rules))
	for i := range rules {
		shown[i] = errorRule(&rules[i])
	}
	a.send(w, r, http.StatusOK, errorTableJSON{&shown})
}

// ImportErrorRules answers PUT /gsm/options: the rules replace the table in use, for all merchants.
func (a *API) ImportErrorRules(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	var body errorTableJSON
	err := decode(r, c.Body, &body)
	if err == nil && body.Rules == nil {
		err = missing("rules")
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	rules := make([]gateway.ErrorRule, len(*body.Rules))
	for i := range rules {
		rules[i] = (*body.Rules)[i].rule()
	}
	if err := a.service.ImportErrorRules(r.Context(), rules); err != nil {
		a.refuse(w, r, err)
		return
	}
	a.ErrorRules(w, r, c)
}

// ResetErrorRules answers DELETE /gsm/options: the table that is shipped comes back.
func (a *API) ResetErrorRules(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	if err := a.service.ImportErrorRules(r.Context(), nil); err != nil {
		a.refuse(w, r, err)
		return
	}
	a.ErrorRules(w, r, c)
}
