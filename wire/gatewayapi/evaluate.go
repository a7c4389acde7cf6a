package gatewayapi

import (
	"net/http"
	"time"

	"holdfast/gateway"
	"holdfast/ident"
	"holdfast/internal/strictjson"
	"holdfast/wire/reply"
)

// evaluateCall is everything one evaluation needs, kept between calls.
type evaluateCall struct {
	body   evaluateBody
	answer gateway.EvaluateAnswer
	text   []byte
}

// Evaluate answers POST /routing/evaluate.
func (a *API) Evaluate(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	start := time.Now()
	e, _ := a.evaluations.Get().(*evaluateCall)
	if e == nil {
		e = &evaluateCall{}
	}
	defer a.putEvaluate(e)
	err := e.body.decode(c.Body)
	if err != nil {
		a.service.Misread(gateway.RouteEvaluate, c.RequestID, err)
	} else {
		e.body.req.RequestID = c.RequestID
		if err = a.service.Covers(c.Principal, e.body.req.Owner); err == nil {
			err = a.service.Evaluate(r.Context(), &e.body.req, &e.answer)
		}
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	took := time.Since(start)
	e.text = appendEvaluation(e.text[:0], e.body.req.PaymentID, &e.answer, took)
	timed(w.Header(), took)
	reply.JSON(w, http.StatusOK, e.text)
}

func (a *API) putEvaluate(e *evaluateCall) {
	if cap(e.text) > maxKept || len(e.body.copy) > maxKept || cap(e.answer.Connectors) > gateway.MaxConnectors {
		return
	}
	e.body.fields = fields{} // a pooled call must not hold a body that the server uses again
	a.evaluations.Put(e)
}

// appendEvaluation appends the answer of an evaluation.
func appendEvaluation(b []byte, payment string, a *gateway.EvaluateAnswer, took time.Duration) []byte {
	b = strictjson.AppendString(append(b, `{"payment_id":`...), payment)
	b = append(append(append(b, `,"status":"`...), a.Status...), `","output":`...)
	b = appendOutput(b, a.Output)
	b = append(b, `,"evaluated_output":`...)
	from := len(b)
	b = appendConnectors(b, a.Connectors)
	to := len(b)
	b = append(b, `,"eligible_connectors":`...)
	b = append(b, b[from:to]...)
	b = append(b, `,"rule_name":`...)
	if a.Matched {
		b = strictjson.AppendString(b, a.Rule)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"ignored_parameters":[`...)
	for i, name := range a.Ignored {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(b, name)
	}
	b = strictjson.AppendInt(append(b, `],"latency":`...), took.Milliseconds())
	return append(b, '}')
}

// appendOutput appends an output in the form of its kind.
func appendOutput(b []byte, o *gateway.Output) []byte {
	switch o.Kind {
	case gateway.OutputSingle:
		b = appendConnector(append(b, `{"type":"straight_through","connector":`...), &o.Connectors[0])
		return append(b, '}')
	case gateway.OutputPriority:
		b = appendConnectors(append(b, `{"type":"priority","connectors":`...), o.Connectors)
		return append(b, '}')
	}
	b = append(append(append(b, `{"type":"`...), o.Kind.String()...), `","splits":[`...)
	for i := range o.Splits {
		if i > 0 {
			b = append(b, ',')
		}
		s := &o.Splits[i]
		if o.Kind == gateway.OutputSplit {
			b = appendConnector(append(b, `{"connector":`...), &s.Connectors[0])
		} else {
			b = appendConnectors(append(b, `{"connectors":`...), s.Connectors)
		}
		b = append(strictjson.AppendInt(append(b, `,"split":`...), int64(s.Weight)), '}')
	}
	return append(b, "]}"...)
}

func appendConnectors(b []byte, list []gateway.Connector) []byte {
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendConnector(b, &list[i])
	}
	return append(b, ']')
}

func appendConnector(b []byte, c *gateway.Connector) []byte {
	b = strictjson.AppendString(append(b, `{"gateway_name":`...), string(c.Gateway))
	b = appendOptional(append(b, `,"gateway_id":`...), c.ID)
	return append(b, '}')
}
