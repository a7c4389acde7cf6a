package gatewayapi

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"net/http"

	"holdfast/gateway"
	"holdfast/ident"
	"holdfast/internal/strictjson"
	"holdfast/wire/reply"
)

// ruleDepth bounds the nesting of a body that carries an algorithm: the language nests deeper than other bodies.
const ruleDepth = 136

// algorithmBody is the body of create and of update.
type algorithmBody struct {
	RuleID      string         `json:"rule_id"`
	Name        string         `json:"name"`
	Description *string        `json:"description"`
	CreatedBy   string         `json:"created_by"`
	For         string         `json:"algorithm_for"`
	Algorithm   jsontext.Value `json:"algorithm"`
	Metadata    jsontext.Value `json:"metadata"`
	ID          string         `json:"routing_algorithm_id"`
}

// read decodes the body. Whatever is wrong with one is a 400 that says so: clients of these routes look for the words.
func (b *algorithmBody) read(body []byte) error {
	if err := strictjson.Validate(body, ruleDepth); err != nil {
		return invalid("could not parse the request: %s", err.Error())
	}
	if err := json.Unmarshal(body, b); err != nil {
		return invalid("could not parse the request: a member has the wrong type")
	}
	for _, m := range [...]struct {
		name    string
		missing bool
	}{{"name", b.Name == ""}, {"created_by", b.CreatedBy == ""}, {"algorithm", len(b.Algorithm) == 0}} {
		if m.missing {
			return invalid("could not parse the request: missing field `%s`", m.name)
		}
	}
	return nil
}

// stored is what create answers.
type stored struct {
	RuleID   string   `json:"rule_id"`
	Name     string   `json:"name"`
	For      string   `json:"algorithm_for"`
	Created  string   `json:"created_at"`
	Modified string   `json:"modified_at"`
	Warnings []string `json:"warnings,omitempty"`
}

func storedOf(row *gateway.AlgorithmRow, warnings []string) stored {
	return stored{RuleID: row.ID, Name: row.Name, For: row.Purpose.String(), Warnings: warnings,
		Created: gateway.Stamp(row.CreatedUS), Modified: gateway.Stamp(row.ModifiedUS)}
}

// algorithmRecord is a stored algorithm as the lists show it.
type algorithmRecord struct {
	ID          string         `json:"id"`
	CreatedBy   string         `json:"created_by"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Data        jsontext.Value `json:"algorithm_data"`
	For         string         `json:"algorithm_for"`
	Created     string         `json:"created_at"`
	Modified    string         `json:"modified_at"`
}

func recordOf(row *gateway.AlgorithmRow) algorithmRecord {
	return algorithmRecord{ID: row.ID, CreatedBy: string(row.Owner), Name: row.Name, Description: row.Description, Data: row.Data,
		For: row.Purpose.String(), Created: gateway.Stamp(row.CreatedUS), Modified: gateway.Stamp(row.ModifiedUS)}
}

// CreateAlgorithm answers POST /routing/create.
func (a *API) CreateAlgorithm(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	var b algorithmBody
	err := b.read(c.Body)
	if err == nil {
		err = a.service.Covers(c.Principal, gateway.MerchantID(b.CreatedBy))
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	n := gateway.NewAlgorithm{ID: b.RuleID, Owner: gateway.MerchantID(b.CreatedBy), Name: b.Name, Purpose: b.For, Algorithm: b.Algorithm, Metadata: b.Metadata}
	if b.Description != nil {
		n.Description = *b.Description
	}
	row, warnings, err := a.service.CreateAlgorithm(r.Context(), n)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, storedOf(&row, warnings))
}

// UpdateAlgorithm answers POST /routing/update.
func (a *API) UpdateAlgorithm(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	var b algorithmBody
	err := b.read(c.Body)
	if err == nil && b.ID == "" {
		err = invalid("could not parse the request: missing field `routing_algorithm_id`")
	}
	if err == nil {
		err = a.service.Covers(c.Principal, gateway.MerchantID(b.CreatedBy))
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	row, warnings, err := a.service.UpdateAlgorithm(r.Context(), gateway.AlgorithmChange{ID: b.ID, Owner: gateway.MerchantID(b.CreatedBy),
		Name: b.Name, Description: b.Description, Algorithm: b.Algorithm})
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, struct {
		RuleID string `json:"rule_id"`
		algorithmRecord
		Warnings []string `json:"warnings,omitempty"`
	}{row.ID, recordOf(&row), warnings})
}

// namedAlgorithm is a body that names a stored algorithm.
type namedAlgorithm struct {
	CreatedBy string `json:"created_by"`
	ID        string `json:"routing_algorithm_id"`
}

// named reads such a body and asks whether the caller's credential covers the owner.
func (a *API) named(r *http.Request, c *ident.Call) (b namedAlgorithm, err error) {
	if err = decode(r, c.Body, &b); err != nil {
		return b, err
	}
	if b.CreatedBy == "" {
		return b, missing("created_by")
	}
	if b.ID == "" {
		return b, missing("routing_algorithm_id")
	}
	return b, a.service.Covers(c.Principal, gateway.MerchantID(b.CreatedBy))
}

// ActivateAlgorithm answers POST /routing/activate, with an empty body.
func (a *API) ActivateAlgorithm(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	b, err := a.named(r, c)
	if err == nil {
		err = a.service.ActivateAlgorithm(r.Context(), gateway.MerchantID(b.CreatedBy), b.ID)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	reply.Empty(w, http.StatusOK)
}

// DeactivateAlgorithm answers POST /routing/deactivate, with an empty body.
func (a *API) DeactivateAlgorithm(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	b, err := a.named(r, c)
	if err == nil {
		err = a.service.DeactivateAlgorithm(r.Context(), gateway.MerchantID(b.CreatedBy), b.ID)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	reply.Empty(w, http.StatusOK)
}

// DeleteAlgorithm answers POST /routing/delete.
func (a *API) DeleteAlgorithm(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	b, err := a.named(r, c)
	if err == nil {
		err = a.service.DeleteAlgorithm(r.Context(), gateway.MerchantID(b.CreatedBy), b.ID)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, struct {
		Status string `json:"status"`
		ID     string `json:"routing_algorithm_id"`
	}{"deleted", b.ID})
}

// ListAlgorithms answers POST /routing/list/{created_by}. A body is not looked at.
func (a *API) ListAlgorithms(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	owner := gateway.MerchantID(c.Params[0])
	if err := a.service.Covers(c.Principal, owner); err != nil {
		a.refuse(w, r, err)
		return
	}
	rows, err := a.service.Algorithms(r.Context(), owner)
	a.list(w, r, rows, err)
}

// ListActive answers POST /routing/list/active/{created_by}. A body is not looked at.
func (a *API) ListActive(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	owner := gateway.MerchantID(c.Params[0])
	if err := a.service.Covers(c.Principal, owner); err != nil {
		a.refuse(w, r, err)
		return
	}
	rows, err := a.service.ActiveAlgorithms(r.Context(), owner)
	a.list(w, r, rows, err)
}

func (a *API) list(w http.ResponseWriter, r *http.Request, rows []gateway.AlgorithmRow, err error) {
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	list := make([]algorithmRecord, 0, len(rows))
	for i := range rows {
		list = append(list, recordOf(&rows[i]))
	}
	a.send(w, r, http.StatusOK, list)
}

// routingKey is one key of the catalogue.
type routingKey struct {
	Type        string  `json:"type"`
	Values      *string `json:"values"`
	Min         *int64  `json:"min_value"`
	Max         *int64  `json:"max_value"`
	MinLength   *int64  `json:"min_length"`
	MaxLength   *int64  `json:"max_length"`
	ExactLength *int64  `json:"exact_length"`
	Regex       *string `json:"regex"`
}

// RoutingKeys answers GET /config/routing-keys: the catalogue, by name.
func (a *API) RoutingKeys(w http.ResponseWriter, r *http.Request, _ *ident.Call) {
	keys := a.service.RoutingKeys()
	all := make(map[string]routingKey, len(keys))
	for i := range keys {
		k := &keys[i]
		out := routingKey{Type: k.Type.String(), Min: k.Min, Max: k.Max, MinLength: k.MinLength, MaxLength: k.MaxLength, ExactLength: k.ExactLength}
		if k.Type == gateway.KeyEnum {
			values := k.List()
			out.Values = &values
		}
		if k.Regex != "" {
			out.Regex = &k.Regex
		}
		all[k.Name] = out
	}
	text, err := json.Marshal(map[string]any{"keys": all}, json.Deterministic(true))
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	reply.JSON(w, http.StatusOK, text)
}
