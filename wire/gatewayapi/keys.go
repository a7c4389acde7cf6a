package gatewayapi

import (
	"net/http"

	"holdfast/gateway"
	"holdfast/ident"
)

// keyJSON is an API key as it is listed: without itself.
type keyJSON struct {
	ID          string             `json:"key_id"`
	Prefix      string             `json:"key_prefix"`
	Merchant    gateway.MerchantID `json:"merchant_id"`
	Description *string            `json:"description"`
	Active      bool               `json:"is_active"`
	Created     string             `json:"created_at"`
}

func showKey(k *gateway.KeyRow) keyJSON {
	return keyJSON{k.ID, k.Prefix, k.Merchant, notEmpty(k.Description), k.Active, gateway.Stamp(k.CreatedMS * 1000)}
}

// CreateKey answers POST /api-key/create. The key is shown here and never again.
func (a *API) CreateKey(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	key, row, err := a.createKey(r, c)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	private(w)
	shown := showKey(&row)
	a.send(w, r, http.StatusOK, struct {
		ID          string             `json:"key_id"`
		Key         string             `json:"api_key"`
		Prefix      string             `json:"key_prefix"`
		Merchant    gateway.MerchantID `json:"merchant_id"`
		Description *string            `json:"description"`
		Created     string             `json:"created_at"`
	}{shown.ID, key, shown.Prefix, shown.Merchant, shown.Description, shown.Created})
}

func (a *API) createKey(r *http.Request, c *ident.Call) (key string, row gateway.KeyRow, err error) {
	var body struct {
		Merchant    *gateway.MerchantID `json:"merchant_id"`
		Description *string             `json:"description"`
	}
	if err := decode(r, c.Body, &body); err != nil {
		return "", row, err
	}
	if body.Merchant == nil {
		return "", row, missing("merchant_id")
	}
	if err := a.service.Covers(c.Principal, *body.Merchant); err != nil {
		return "", row, err
	}
	return a.service.CreateKey(r.Context(), *body.Merchant, orEmpty(body.Description))
}

// Keys answers GET /api-key/list/{merchant_id} with a bare array.
func (a *API) Keys(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := a.merchantInPath(c)
	var all []gateway.KeyRow
	if err == nil {
		all, err = a.service.Keys(r.Context(), id)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	shown := make([]keyJSON, len(all))
	for i := range all {
		shown[i] = showKey(&all[i])
	}
	a.send(w, r, http.StatusOK, shown)
}

// RevokeKey answers DELETE /api-key/{key_id}, again too.
func (a *API) RevokeKey(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id := c.Params[0]
	if err := a.service.RevokeKey(r.Context(), c.Principal, id); err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, struct {
		ID      string `json:"key_id"`
		Message string `json:"message"`
	}{id, "API key revoked successfully"})
}
