package gatewayapi

import (
	"errors"

	"holdfast/gateway"
	"holdfast/internal/strictjson"
)

// evaluateBody is a decoded evaluate body. It is used again: its slices keep their memory.
type evaluateBody struct {
	fields
	req           gateway.EvaluateRequest
	hasParameters bool
}

// decode reads a whole body; members that the dialect does not know are ignored. Broken JSON is a 400, JSON of another form
// a 422.
func (e *evaluateBody) decode(body []byte) error {
	c, ok := e.open(body)
	if !ok {
		return invalid("could not parse the request: %s", detail(e.err))
	}
	clear(e.req.Parameters) // they hold the last body's memory
	clear(e.req.Fallback)
	e.req = gateway.EvaluateRequest{Fallback: e.req.Fallback[:0], Parameters: e.req.Parameters[:0]}
	e.hasParameters = false
	for c.More() {
		e.top(string(c.Key()), &c)
	}
	e.require("created_by", string(e.req.Owner))
	if !e.hasParameters && e.err == nil {
		e.err = gateway.BadInput("missing field `parameters`")
	}
	e.bound("created_by", string(e.req.Owner))
	e.bound("payment_id", e.req.PaymentID)
	if e.err != nil {
		return unfit("could not parse the request: %s", detail(e.err))
	}
	return nil
}

// detail is what the readers of hot bodies found wrong.
func detail(err error) string {
	if d, ok := errors.AsType[*gateway.DecisionError](err); ok && d.Detail != "" {
		return d.Detail
	}
	return err.Error()
}

func (e *evaluateBody) top(key string, c *strictjson.Cursor) {
	switch key {
	case "payment_id":
		e.req.PaymentID = e.text(key, c.Skip())
	case "created_by":
		e.req.Owner = gateway.MerchantID(e.text(key, c.Skip()))
	case "algorithm_for":
		purpose, err := gateway.ParsePurpose(e.text(key, c.Skip()))
		if err != nil {
			e.fail(key, "payment, payout or three_ds_authentication")
		}
		e.req.Purpose = purpose
	case "fallback_output":
		e.fallback(c)
	case "parameters":
		e.parameters(c)
	default:
		c.Skip()
	}
}

func (e *evaluateBody) fallback(c *strictjson.Cursor) {
	switch c.Kind() {
	case strictjson.Null:
		c.Skip()
		return
	case strictjson.Array:
		c.Enter()
	default:
		c.Skip()
		e.fail("fallback_output", "an array of connectors")
		return
	}
	for c.More() {
		if c.Kind() != strictjson.Object {
			c.Skip()
			e.fail("fallback_output", "an array of connectors")
			continue
		}
		var connector gateway.Connector
		for c.Enter(); c.More(); {
			switch key := string(c.Key()); key {
			case "gateway_name":
				connector.Gateway = gateway.Name(e.text(key, c.Skip()))
			case "gateway_id":
				connector.ID = e.text(key, c.Skip())
			default:
				c.Skip()
			}
		}
		e.require("fallback_output.gateway_name", string(connector.Gateway))
		e.bound("fallback_output.gateway_name", string(connector.Gateway))
		if len(e.req.Fallback) == gateway.MaxConnectors {
			e.fail("fallback_output", "fewer connectors")
			continue
		}
		e.req.Fallback = append(e.req.Fallback, connector)
	}
}

func (e *evaluateBody) parameters(c *strictjson.Cursor) {
	if c.Kind() != strictjson.Object {
		c.Skip()
		e.fail("parameters", "an object")
		return
	}
	e.hasParameters = true
	for c.Enter(); c.More(); {
		raw := c.RawKey()
		p := gateway.Parameter{Key: e.plain(raw)}
		switch c.Kind() {
		case strictjson.Null:
			c.Skip()
		case strictjson.Object:
			e.parameter(&p, c)
		default:
			c.Skip()
			e.fail("parameters."+clip(p.Key), "an object with type and value")
		}
		if len(e.req.Parameters) == gateway.MaxParameters {
			e.fail("parameters", "fewer members")
			continue
		}
		e.req.Parameters = append(e.req.Parameters, p)
	}
}

// parameter reads {"type":…,"value":…}.
func (e *evaluateBody) parameter(p *gateway.Parameter, c *strictjson.Cursor) {
	var kind, value []byte
	for c.Enter(); c.More(); {
		switch string(c.Key()) {
		case "type":
			kind = c.Skip()
		case "value":
			value = c.Skip()
		default:
			c.Skip()
		}
	}
	known := false
	if kind != nil {
		p.Kind, known = gateway.ParseValueKind(e.text("type", kind))
	}
	ok := known && value != nil
	switch {
	case !ok:
	case p.Kind == gateway.ValueNumber:
		p.Number, ok = strictjson.Uint(value)
	case p.Kind == gateway.ValueMetadata:
		ok = e.metadata(p, value)
	case p.Kind == gateway.ValueEnum, p.Kind == gateway.ValueText, p.Kind == gateway.ValueGlobal:
		if ok = strictjson.KindOf(value) == strictjson.String; ok {
			p.Text = e.plain(value)
		}
	default: // an array: it compares with nothing
		ok = strictjson.KindOf(value) == strictjson.Array
	}
	if !ok {
		e.fail("parameters."+clip(p.Key), "a known type and a value of that type")
	}
}

// metadata reads {"key":…,"value":…}.
func (e *evaluateBody) metadata(p *gateway.Parameter, raw []byte) bool {
	c := strictjson.Walk(raw)
	if !c.Enter() || strictjson.KindOf(raw) != strictjson.Object {
		return false
	}
	var key, value bool
	for c.More() {
		switch string(c.Key()) {
		case "key":
			part := c.Skip()
			key = strictjson.KindOf(part) == strictjson.String
			p.Meta = e.plain(part)
		case "value":
			part := c.Skip()
			value = strictjson.KindOf(part) == strictjson.String
			p.Text = e.plain(part)
		default:
			c.Skip()
		}
	}
	return key && value
}
