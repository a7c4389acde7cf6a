package gatewayapi

import (
	"cmp"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"net/http"

	"holdfast/gateway"
	"holdfast/ident"
)

// configBody is the body of /rule/create and /rule/update.
type configBody struct {
	Merchant *gateway.MerchantID `json:"merchant_id"`
	Config   *struct {
		Type *gateway.ConfigKind `json:"type"`
		Data jsontext.Value      `json:"data"`
	} `json:"config"`
}

// configJSON is a config with its type.
type configJSON struct {
	Type gateway.ConfigKind `json:"type"`
	Data gateway.ConfigData `json:"data"`
}

// CreateConfig answers POST /rule/create.
func (a *API) CreateConfig(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, config, err := a.configOf(r, c)
	if err == nil {
		err = a.service.CreateConfig(r.Context(), id, config.Data)
	}
	a.configDone(w, r, configAnswer{confirmation{config.Type.Title() + " Configuration created successfully", id}, config}, err)
}

// UpdateConfig answers POST /rule/update.
func (a *API) UpdateConfig(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, config, err := a.configOf(r, c)
	if err == nil {
		err = a.service.UpdateConfig(r.Context(), id, config.Data)
	}
	a.configDone(w, r, configAnswer{confirmation{config.Type.Title() + " Configuration updated successfully", id}, config}, err)
}

// configAnswer says what is stored now.
type configAnswer struct {
	confirmation
	Config configJSON `json:"config"`
}

func (a *API) configDone(w http.ResponseWriter, r *http.Request, answer configAnswer, err error) {
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, answer)
}

// configOf reads a config for a merchant that the caller's credential covers.
func (a *API) configOf(r *http.Request, c *ident.Call) (id gateway.MerchantID, config configJSON, err error) {
	var body configBody
	if err := decode(r, c.Body, &body); err != nil {
		return "", config, err
	}
	switch {
	case body.Merchant == nil:
		return "", config, missing("merchant_id")
	case body.Config == nil:
		return "", config, missing("config")
	case body.Config.Type == nil:
		return "", config, missing("type")
	case body.Config.Data.Kind() != '{':
		return "", config, unfit("`data` must be an object")
	}
	id = *body.Merchant
	if err := a.service.Covers(c.Principal, id); err != nil {
		return id, config, err
	}
	config.Type = *body.Config.Type
	config.Data, err = configData(config.Type, body.Config.Data)
	return id, config, err
}

// configData reads the data of a config, in any of the forms that clients send.
func configData(kind gateway.ConfigKind, raw []byte) (gateway.ConfigData, error) {
	switch kind {
	case gateway.ConfigSuccess:
		var body struct {
			gateway.SuccessData
			Rows subLevels `json:"subLevelInputConfig"`
		}
		err := typed(json.Unmarshal(raw, &body))
		body.SuccessData.Rows = gateway.List[gateway.SuccessRowData](body.Rows)
		return &body.SuccessData, err
	case gateway.ConfigDebit:
		var body struct {
			gateway.DebitData
			CategoryCode    *string `json:"merchant_category_code"`
			AcquirerCountry *string `json:"acquirer_country"`
		}
		err := typed(json.Unmarshal(raw, &body))
		data := body.DebitData
		data.CategoryCode = cmp.Or(data.CategoryCode, body.CategoryCode)
		data.AcquirerCountry = cmp.Or(data.AcquirerCountry, body.AcquirerCountry)
		return &data, err
	}
	data, err := gateway.NewData(kind)
	if err != nil {
		return nil, err
	}
	return data, typed(json.Unmarshal(raw, data))
}

// subLevels are the rows of a success-rate config. Besides an array of rows, a published client sends an object keyed by
// dimension and value, {"paymentMethodType":{"CARD":{"bucketSize":60}}}; each of its inner objects is a row.
type subLevels []gateway.SuccessRowData

var errRows = errors.New("neither rows nor an object of dimensions")

// UnmarshalJSONFrom reads either form.
func (s *subLevels) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	switch d.PeekKind() {
	case '[':
		return json.UnmarshalDecode(d, (*[]gateway.SuccessRowData)(s))
	case '{':
		return members(d, func(dimension string) error {
			if new(gateway.SuccessRowData).Constraint(dimension) == nil {
				return d.SkipValue() // unknown members are ignored
			}
			return members(d, func(value string) error { return s.row(d, dimension, value) })
		})
	case 'n':
		return d.SkipValue()
	}
	return errRows
}

// row reads one inner object. A row that does not say for which method type it is, is for cards when its dimension is one of
// cards; others would match nothing.
func (s *subLevels) row(d *jsontext.Decoder, dimension, value string) error {
	var row gateway.SuccessRowData
	if err := json.UnmarshalDecode(d, &row); err != nil {
		return err
	}
	*row.Constraint(dimension) = &value
	if row.MethodType == nil {
		if dimension != "cardNetwork" && dimension != "cardIsIn" {
			return invalid("subLevelInputConfig.%s.%s needs a paymentMethodType", dimension, clip(value))
		}
		cards := "CARD"
		row.MethodType = &cards
	}
	*s = append(*s, row)
	return nil
}

// members reads an object; read must take each member's value.
func members(d *jsontext.Decoder, read func(name string) error) error {
	open, err := d.ReadToken()
	if err != nil {
		return err
	}
	if open.Kind() != '{' {
		return errRows
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := read(name.String()); err != nil {
			return err
		}
	}
	_, err = d.ReadToken()
	return err
}

// askedConfig reads which config /rule/get and /rule/delete are about.
func (a *API) askedConfig(r *http.Request, c *ident.Call) (id gateway.MerchantID, kind gateway.ConfigKind, err error) {
	var body struct {
		Merchant  *gateway.MerchantID `json:"merchant_id"`
		Algorithm *gateway.ConfigKind `json:"algorithm"`
	}
	if err := decode(r, c.Body, &body); err != nil {
		return "", "", err
	}
	switch {
	case body.Merchant == nil:
		return "", "", missing("merchant_id")
	case body.Algorithm == nil:
		return "", "", missing("algorithm")
	}
	return *body.Merchant, *body.Algorithm, a.service.Covers(c.Principal, *body.Merchant)
}

// Config answers POST /rule/get.
func (a *API) Config(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, kind, err := a.askedConfig(r, c)
	var data gateway.ConfigData
	if err == nil {
		data, err = a.service.Config(r.Context(), id, kind)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, struct {
		Merchant gateway.MerchantID `json:"merchant_id"`
		Config   configJSON         `json:"config"`
	}{id, configJSON{kind, data}})
}

// DeleteConfig answers POST /rule/delete.
func (a *API) DeleteConfig(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, kind, err := a.askedConfig(r, c)
	if err == nil {
		err = a.service.DeleteConfig(r.Context(), id, kind)
	}
	a.doneAt(w, r, confirmation{kind.Title() + " Configuration deleted successfully", id}, err)
}

// dimensionsJSON is a merchant's choice of dimensions.
type dimensionsJSON struct {
	Merchant *gateway.MerchantID    `json:"merchant_id"`
	Info     *gateway.DimensionData `json:"paymentInfo"`
}

// SetDimensions answers POST /config-sr-dimension with a JSON string.
func (a *API) SetDimensions(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	if err := a.setDimensions(r, c); err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, "The success-rate dimensions were stored")
}

func (a *API) setDimensions(r *http.Request, c *ident.Call) error {
	var body dimensionsJSON
	if err := decode(r, c.Body, &body); err != nil {
		return err
	}
	switch {
	case body.Merchant == nil:
		return missing("merchant_id")
	case body.Info == nil:
		return missing("paymentInfo")
	}
	if err := a.service.Covers(c.Principal, *body.Merchant); err != nil {
		return err
	}
	return a.service.SetDimensions(r.Context(), *body.Merchant, *body.Info)
}

// Dimensions answers GET /config-sr-dimension/{merchant_id}, also for a merchant that has stored nothing.
func (a *API) Dimensions(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := a.merchantInPath(c)
	var data gateway.DimensionData
	if err == nil {
		data, err = a.service.Dimensions(r.Context(), id)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, dimensionsJSON{&id, &data})
}
