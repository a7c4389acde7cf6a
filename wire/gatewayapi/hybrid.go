package gatewayapi

import (
	"net/http"
	"strings"
	"time"

	"holdfast/gateway"
	"holdfast/ident"
	"holdfast/internal/strictjson"
	"holdfast/wire/reply"
)

// hybrid is one call of the hybrid route: rules first, then a decision among what they gave.
type hybrid struct {
	api  *API
	r    *http.Request
	call *ident.Call

	static    *evaluateBody // nil when not asked for
	dynamic   *decideBody   // nil when not asked for
	evaluated gateway.EvaluateAnswer
	failed    error // of the rules
	answer    gateway.Answer
	list      []gateway.Connector // what the rules gave, or their fallback
	took      time.Duration       // of the rules
}

// Hybrid answers POST /routing/hybrid.
func (a *API) Hybrid(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	h := &hybrid{api: a, r: r, call: c}
	if err := h.decode(c.Body); err != nil {
		a.refuse(w, r, err)
		return
	}
	h.rules()
	if h.dynamic == nil {
		if h.failed != nil && len(h.list) == 0 {
			a.refuse(w, r, h.failed)
			return
		}
		reply.JSON(w, http.StatusOK, h.append(nil, nil, 0))
		return
	}
	if len(h.dynamic.req.Eligible) == 0 {
		for _, connector := range h.list {
			h.dynamic.req.Eligible = append(h.dynamic.req.Eligible, joined(connector))
		}
	}
	h.dynamic.req.RequestID = c.RequestID
	start := time.Now()
	err := a.service.Decide(r.Context(), &h.dynamic.req, &h.answer)
	if err != nil && len(h.list) == 0 {
		a.decline(w, r, err)
		return
	}
	reply.JSON(w, http.StatusOK, h.append(nil, err, time.Since(start)))
}

// decode reads the two bodies inside the body, and asks whether the caller's credential covers their merchants.
func (h *hybrid) decode(body []byte) error {
	var f fields
	c, ok := f.open(body)
	if !ok {
		return invalid("could not parse the request: %s", detail(f.err))
	}
	for c.More() {
		key := string(c.Key())
		raw := c.Skip()
		if strictjson.KindOf(raw) == strictjson.Null {
			continue
		}
		switch key {
		case "static_routing_request":
			h.static = &evaluateBody{}
			if err := h.static.decode(raw); err != nil {
				return err
			}
		case "dynamic_routing_request":
			h.dynamic = &decideBody{}
			if err := h.dynamic.decode(raw); err != nil {
				return unfit("could not parse the request: dynamic_routing_request: %s", detail(err))
			}
		}
	}
	switch {
	case h.static == nil && h.dynamic == nil:
		return invalid("At least one of static_routing_request and dynamic_routing_request is needed")
	case h.static != nil:
		if err := h.api.service.Covers(h.call.Principal, h.static.req.Owner); err != nil {
			return err
		}
	}
	if h.dynamic != nil {
		return h.api.service.Covers(h.call.Principal, h.dynamic.req.Merchant)
	}
	return nil
}

// rules evaluates the static part. What fails leaves the caller's fallback.
func (h *hybrid) rules() {
	if h.static == nil {
		return
	}
	start := time.Now()
	h.static.req.RequestID = h.call.RequestID
	h.failed = h.api.service.Evaluate(h.r.Context(), &h.static.req, &h.evaluated)
	h.took = time.Since(start)
	h.list = h.evaluated.Connectors
	if h.failed != nil {
		h.list = h.static.req.Fallback
	}
}

// append appends the answer; err is the decision's.
func (h *hybrid) append(b []byte, err error, took time.Duration) []byte {
	b = append(b, '{')
	if h.static != nil && h.failed == nil {
		b = appendEvaluation(append(b, `"static_routing":`...), h.static.req.PaymentID, &h.evaluated, h.took)
		b = append(b, ',')
	}
	switch {
	case h.dynamic == nil:
		b = appendConnectors(append(b, `"evaluated_connectors":`...), h.list)
	case err != nil:
		b = append(b, `"dynamic_routing":{"status":"fallback","decision":null,"fallback_connectors":`...)
		b = appendConnectors(b, h.list)
		b = appendConnectors(append(b, `},"evaluated_connectors":`...), h.list)
	default:
		b = appendDecision(append(b, `"dynamic_routing":{"status":"success","decision":`...), &h.answer, took)
		b = append(b, `,"fallback_connectors":[`...)
		for i, g := range h.answer.Fallbacks {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendConnector(b, parted(g))
		}
		b = appendConnector(append(b, `]},"evaluated_connectors":[`...), parted(h.answer.Gateway))
		b = append(b, ']')
	}
	return append(b, '}')
}

// joined is a connector as one name: the account behind a colon.
func joined(c gateway.Connector) gateway.Name {
	if c.ID == "" {
		return c.Gateway
	}
	return c.Gateway + gateway.Name(":"+c.ID)
}

// parted takes such a name apart.
func parted(g gateway.Name) *gateway.Connector {
	name, id, _ := strings.Cut(string(g), ":")
	return &gateway.Connector{Gateway: gateway.Name(name), ID: id}
}
