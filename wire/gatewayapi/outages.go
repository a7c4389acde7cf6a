package gatewayapi

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"net/http"
	"strings"
	"time"

	"holdfast/gateway"
	"holdfast/ident"
)

// outageBody is the body of POST /gateway-outage.
type outageBody struct {
	Gateway    *string        `json:"gateway"`
	Merchant   *string        `json:"merchant_id"`
	Start      *string        `json:"start_time"`
	End        *string        `json:"end_time"`
	MethodType *string        `json:"payment_method_type"`
	Method     *string        `json:"payment_method"`
	Bank       *string        `json:"bank"`
	Metadata   jsontext.Value `json:"metadata"`
}

// outageJSON is an outage as shown. What it matches everything of is null.
type outageJSON struct {
	ID         string                  `json:"id"`
	Gateway    gateway.Name            `json:"gateway"`
	Merchant   *string                 `json:"merchant_id"`
	Start      string                  `json:"start_time"`
	End        string                  `json:"end_time"`
	MethodType *string                 `json:"payment_method_type"`
	Method     *string                 `json:"payment_method"`
	Bank       *string                 `json:"bank"`
	Metadata   *gateway.OutageMetadata `json:"metadata"`
	Warning    string                  `json:"warning,omitzero"`
}

func showOutage(o *gateway.Outage) outageJSON {
	shown := outageJSON{ID: o.ID, Gateway: o.Gateway, Merchant: notEmpty(string(o.Merchant)), Start: stamp(o.StartMS), End: stamp(o.EndMS),
		MethodType: notEmpty(o.MethodType), Method: notEmpty(o.Method), Bank: notEmpty(o.Bank)}
	if o.Metadata != (gateway.OutageMetadata{}) {
		shown.Metadata = &o.Metadata
	}
	if o.Ignored() {
		shown.Warning = "an outage that names a payment_method_type alone counts for UPI only: it has no effect"
	}
	return shown
}

// stamp writes a time as this API reads it.
func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// CreateOutage answers POST /gateway-outage with the row.
func (a *API) CreateOutage(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	o, err := outageOf(r, c)
	if err == nil {
		o, err = a.service.CreateOutage(r.Context(), c.Principal, o)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, showOutage(&o))
}

// outageOf reads an outage.
func outageOf(r *http.Request, c *ident.Call) (o gateway.Outage, err error) {
	var body outageBody
	if err := decode(r, c.Body, &body); err != nil {
		return o, err
	}
	if body.Gateway == nil {
		return o, missing("gateway")
	}
	o = gateway.Outage{Gateway: gateway.Name(*body.Gateway), Merchant: gateway.MerchantID(orEmpty(body.Merchant)), Bank: orEmpty(body.Bank),
		MethodType: strings.ToUpper(orEmpty(body.MethodType)), Method: orEmpty(body.Method)}
	if o.StartMS, err = moment("start_time", body.Start); err != nil {
		return o, err
	}
	if o.EndMS, err = moment("end_time", body.End); err != nil {
		return o, err
	}
	if kind := body.Metadata.Kind(); kind == 0 || kind == 'n' {
		return o, nil
	}
	// A matcher that is not known must not be dropped: the outage would match more than was meant.
	if err := json.Unmarshal(body.Metadata, &o.Metadata, json.RejectUnknownMembers(true)); err != nil {
		return o, invalid("metadata must be an object of texts named cardType, transactionType, sourceObject, app and handle")
	}
	return o, nil
}

// moment reads a time.
func moment(name string, text *string) (ms int64, err error) {
	if text == nil {
		return 0, missing(name)
	}
	at, err := time.Parse(time.RFC3339, *text)
	if err != nil {
		return 0, invalid("%s must be a time such as 2026-03-09T08:15:30Z", name)
	}
	return at.UnixMilli(), nil
}

// Outages answers GET /gateway-outage with a bare array.
func (a *API) Outages(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	q := r.URL.Query()
	query := gateway.OutageQuery{Merchant: gateway.MerchantID(q.Get("merchant_id"))}
	if q.Get("active") == "true" {
		query.Running = gateway.Yes
	}
	all, err := a.service.Outages(r.Context(), c.Principal, query)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	shown := make([]outageJSON, len(all))
	for i := range all {
		shown[i] = showOutage(&all[i])
	}
	a.send(w, r, http.StatusOK, shown)
}

// EndOutage answers DELETE /gateway-outage/{outage_id}.
func (a *API) EndOutage(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id := c.Params[0]
	if err := a.service.EndOutage(r.Context(), c.Principal, id); err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, struct {
		Message string `json:"message"`
		ID      string `json:"id"`
	}{"Gateway outage ended successfully", id})
}
