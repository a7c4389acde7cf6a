package gatewayapi

import (
	"encoding/json/jsontext"
	"net/http"

	"holdfast/ident"
)

// serviceConfigJSON is what is stored for all merchants under a name.
type serviceConfigJSON struct {
	Name  string         `json:"name"`
	Value jsontext.Value `json:"value"`
}

// ServiceConfig answers GET /admin/service-config/{name}, which is ours.
func (a *API) ServiceConfig(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	name := c.Params[0]
	document, err := a.service.ServiceConfig(r.Context(), name)
	a.sendServiceConfig(w, r, serviceConfigJSON{name, document}, err)
}

// PutServiceConfig answers PUT /admin/service-config/{name}. The body is the value.
func (a *API) PutServiceConfig(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	name := c.Params[0]
	var value jsontext.Value
	err := decode(r, c.Body, &value)
	if err == nil {
		err = value.Compact()
	}
	if err == nil {
		err = a.service.SetServiceConfig(r.Context(), name, value)
	}
	a.sendServiceConfig(w, r, serviceConfigJSON{name, value}, err)
}

// DeleteServiceConfig answers DELETE /admin/service-config/{name}, also when nothing is stored.
func (a *API) DeleteServiceConfig(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	a.done(w, r, "Service config removed successfully", a.service.SetServiceConfig(r.Context(), c.Params[0], nil))
}

func (a *API) sendServiceConfig(w http.ResponseWriter, r *http.Request, config serviceConfigJSON, err error) {
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, config)
}
