package gatewayapi

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"net/http"

	"holdfast/gateway"
	"holdfast/ident"
)

// newMerchantBody is the body of POST /merchant-account/create. Beside the two members that every client sends it takes what
// else there is of a merchant.
type newMerchantBody struct {
	Merchant     *string        `json:"merchant_id"`
	Input        jsontext.Value `json:"gateway_success_rate_based_decider_input"`
	Name         *string        `json:"merchant_name"`
	Priority     *string        `json:"gateway_priority"`
	CodePriority *bool          `json:"use_code_for_gateway_priority"`
	CategoryCode *string        `json:"merchant_category_code"`
	Country      *string        `json:"country"`
}

// CreateMerchant answers POST /merchant-account/create, which the admin secret alone opens. The API key is shown here and never
// again; clients compare the message whole, and find the key by a pattern.
func (a *API) CreateMerchant(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	body, key, err := a.createMerchant(r, c)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	private(w)
	a.send(w, r, http.StatusOK, struct {
		Message  string         `json:"message"`
		Merchant string         `json:"merchant_id"`
		Input    jsontext.Value `json:"gateway_success_rate_based_decider_input"`
		Key      string         `json:"api_key"`
	}{"Merchant account created successfully", *body.Merchant, body.Input, key})
}

func (a *API) createMerchant(r *http.Request, c *ident.Call) (body newMerchantBody, key string, err error) {
	if err := a.secret(r); err != nil {
		return body, "", err
	}
	if err := decode(r, c.Body, &body); err != nil {
		return body, "", err
	}
	if body.Merchant == nil {
		return body, "", missing("merchant_id")
	}
	text, err := body.input()
	if err != nil {
		return body, "", err
	}
	key, err = a.service.CreateMerchant(r.Context(), gateway.NewMerchant{ID: gateway.MerchantID(*body.Merchant), Name: orEmpty(body.Name),
		Priority: orEmpty(body.Priority), CodePriority: body.CodePriority != nil && *body.CodePriority,
		CategoryCode: orEmpty(body.CategoryCode), Country: orEmpty(body.Country), Input: text})
	return body, key, err
}

// input returns the decider's input as the text that is kept: a string's own, anything else as compact JSON.
func (b *newMerchantBody) input() (text []byte, err error) {
	switch b.Input.Kind() {
	case 0, 'n':
		b.Input = jsontext.Value("null")
		return nil, nil
	case '"':
		var s string
		err = json.Unmarshal(b.Input, &s)
		return []byte(s), err
	}
	err = b.Input.Compact()
	return b.Input, err
}

// Account answers GET /merchant-account/{merchant_id}. The input is a string, empty when nothing is stored.
func (a *API) Account(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := a.merchantInPath(c)
	var account gateway.Account
	if err == nil {
		account, err = a.service.Account(r.Context(), id)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, struct {
		Merchant gateway.MerchantID `json:"merchant_id"`
		Input    string             `json:"gateway_success_rate_based_decider_input"`
	}{account.ID, account.Input})
}

// DeleteMerchant answers DELETE /merchant-account/{merchant_id}.
func (a *API) DeleteMerchant(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := a.merchantInPath(c)
	if err == nil {
		err = a.service.DeleteMerchant(r.Context(), id)
	}
	a.doneAt(w, r, confirmation{"Merchant account deleted successfully", id}, err)
}

// confirmation says what was done at a merchant.
type confirmation struct {
	Message  string             `json:"message"`
	Merchant gateway.MerchantID `json:"merchant_id"`
}

func (a *API) doneAt(w http.ResponseWriter, r *http.Request, done confirmation, err error) {
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, done)
}

// enabledBody turns a switch.
type enabledBody struct {
	Enabled *bool `json:"enabled"`
	Rollout int   `json:"rollout"` // percent of the traffic; of features only
}

// enabled returns the merchant that the path names and the switch of the body.
func (a *API) enabled(r *http.Request, c *ident.Call) (id gateway.MerchantID, to gateway.Switch, err error) {
	var body enabledBody
	if id, err = a.merchantInPath(c); err != nil {
		return id, to, err
	}
	if err := decode(r, c.Body, &body); err != nil {
		return id, to, err
	}
	if body.Enabled == nil {
		return id, to, missing("enabled")
	}
	return id, gateway.Switch{On: *body.Enabled, Rollout: body.Rollout}, nil
}

// DebitRouting answers GET /merchant-account/{merchant_id}/debit-routing.
func (a *API) DebitRouting(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := a.merchantInPath(c)
	on := false
	if err == nil {
		on, err = a.service.DebitRouting(r.Context(), id)
	}
	a.sendDebitRouting(w, r, debitRouting{id, on}, err)
}

// SetDebitRouting answers POST /merchant-account/{merchant_id}/debit-routing.
func (a *API) SetDebitRouting(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, to, err := a.enabled(r, c)
	choice := gateway.No
	if to.On {
		choice = gateway.Yes
	}
	if err == nil {
		err = a.service.SetDebitRouting(r.Context(), id, choice)
	}
	a.sendDebitRouting(w, r, debitRouting{id, to.On}, err)
}

// debitRouting is the state of a merchant's debit switch.
type debitRouting struct {
	Merchant gateway.MerchantID `json:"merchant_id"`
	Enabled  bool               `json:"debit_routing_enabled"`
}

func (a *API) sendDebitRouting(w http.ResponseWriter, r *http.Request, state debitRouting, err error) {
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, state)
}

// Features answers GET /merchant-account/{merchant_id}/features.
func (a *API) Features(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := a.merchantInPath(c)
	var all []gateway.FeatureState
	if err == nil {
		all, err = a.service.Features(r.Context(), id)
	}
	a.sendFeatures(w, r, features{Merchant: id, states: all}, err)
}

// SetFeature answers POST /merchant-account/{merchant_id}/features/{feature}.
func (a *API) SetFeature(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, all, err := a.setFeature(r, c)
	a.sendFeatures(w, r, features{Merchant: id, states: all}, err)
}

func (a *API) setFeature(r *http.Request, c *ident.Call) (id gateway.MerchantID, all []gateway.FeatureState, err error) {
	id, to, err := a.enabled(r, c)
	if err != nil {
		return id, nil, err
	}
	f, err := gateway.FeatureOf(c.Params[1])
	if err != nil {
		return id, nil, err
	}
	all, err = a.service.SetFeature(r.Context(), id, f, to)
	return id, all, err
}

// features are the switches of a merchant, in the order of the API.
type features struct {
	Merchant gateway.MerchantID `json:"merchant_id"`
	All      []featureJSON      `json:"features"`
	states   []gateway.FeatureState
}

type featureJSON struct {
	Feature string `json:"feature"`
	Enabled bool   `json:"enabled"`
}

func (a *API) sendFeatures(w http.ResponseWriter, r *http.Request, f features, err error) {
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	for _, s := range f.states {
		f.All = append(f.All, featureJSON(s))
	}
	a.send(w, r, http.StatusOK, f)
}

// ResetScores answers POST /gateway-score/reset.
func (a *API) ResetScores(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := a.resetOf(r, c)
	var reset gateway.ScoreReset
	if err == nil {
		reset, err = a.service.ResetScores(r.Context(), id)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, struct {
		Merchant  gateway.MerchantID `json:"merchant_id"`
		Deleted   int                `json:"deleted_keys"`
		Overrides int                `json:"removed_overrides"`
	}{id, reset.Windows, reset.Overrides})
}

// resetOf reads the merchant of a reset, under either of its spellings.
func (a *API) resetOf(r *http.Request, c *ident.Call) (gateway.MerchantID, error) {
	var body struct {
		Snake *gateway.MerchantID `json:"merchant_id"`
		Camel *gateway.MerchantID `json:"merchantId"`
	}
	if err := decode(r, c.Body, &body); err != nil {
		return "", err
	}
	id := body.Snake
	if id == nil {
		id = body.Camel
	}
	if id == nil {
		return "", missing("merchant_id")
	}
	if *id == "" {
		return "", invalid("merchant_id is empty")
	}
	return *id, a.service.Covers(c.Principal, *id)
}
