package gatewayapi

import (
	"net/http"
	"time"

	"holdfast/gateway"
	"holdfast/ident"
	"holdfast/internal/strictjson"
	"holdfast/wire/reply"
)

// feedbackCall is everything one outcome needs, kept between calls.
type feedbackCall struct {
	fields
	feedback gateway.Feedback
	text     []byte
}

// Feedback answers POST /update-gateway-score.
func (a *API) Feedback(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	start := time.Now()
	f, _ := a.feedbacks.Get().(*feedbackCall)
	if f == nil {
		f = &feedbackCall{}
	}
	defer a.putFeedback(f)
	if err := f.decode(c.Body); err != nil {
		a.service.Misread("update_gateway", c.RequestID, err)
		a.decline(w, r, err)
		return
	}
	f.feedback.RequestID = c.RequestID
	if err := a.service.Covers(c.Principal, f.feedback.Merchant); err != nil {
		a.decline(w, r, err)
		return
	}
	answer, err := a.service.Update(r.Context(), &f.feedback)
	if err != nil {
		a.decline(w, r, err)
		return
	}
	f.text = appendFeedback(f.text[:0], &f.feedback, answer)
	timed(w.Header(), time.Since(start))
	reply.JSON(w, http.StatusOK, f.text)
}

func (a *API) putFeedback(f *feedbackCall) {
	if cap(f.text) > maxKept || len(f.copy) > maxKept {
		return
	}
	f.fields, f.feedback = fields{}, gateway.Feedback{}
	a.feedbacks.Put(f)
}

// decode reads a whole body; members that the dialect does not know are ignored.
func (f *feedbackCall) decode(body []byte) error {
	f.feedback = gateway.Feedback{Latency: -1}
	c, ok := f.open(body)
	if !ok {
		return f.err
	}
	b := &f.feedback
	for c.More() {
		switch key := string(c.Key()); key {
		case "merchantId":
			b.Merchant = gateway.MerchantID(f.str(key, &c))
		case "gateway":
			b.Gateway = gateway.Name(f.str(key, &c))
		case "gatewayReferenceId":
			b.Reference = f.str(key, &c)
		case "status":
			b.Status = gateway.Status(f.str(key, &c))
		case "paymentId":
			b.PaymentID = f.str(key, &c)
		case "enforceDynamicRoutingFailure":
			b.EnforceFailure = f.choice(key, c.Skip()) == gateway.Yes
		case "isSmartRetry":
			b.Retry = f.choice(key, c.Skip()) == gateway.Yes
		case "txnLatency":
			f.latency(&c)
		case "errorInfo":
			f.errorInfo(&c)
		default:
			c.Skip()
		}
	}
	for _, need := range [...][2]string{{"merchantId", string(b.Merchant)}, {"gateway", string(b.Gateway)}, {"status", string(b.Status)},
		{"paymentId", b.PaymentID}} {
		f.require(need[0], need[1])
		f.bound(need[0], need[1])
	}
	return f.err
}

func (f *feedbackCall) str(key string, c *strictjson.Cursor) string {
	return f.fields.text(key, c.Skip())
}

// enter steps into an object; a null is skipped.
func (f *feedbackCall) enter(key string, c *strictjson.Cursor) bool {
	switch c.Kind() {
	case strictjson.Object:
		return c.Enter()
	case strictjson.Null:
	default:
		f.fail(key, "an object")
	}
	c.Skip()
	return false
}

func (f *feedbackCall) latency(c *strictjson.Cursor) {
	if !f.enter("txnLatency", c) {
		return
	}
	for c.More() {
		key, raw := string(c.Key()), c.Skip()
		if key == "gatewayLatency" && strictjson.KindOf(raw) != strictjson.Null {
			f.feedback.Latency = f.number("txnLatency.gatewayLatency", raw)
		}
	}
}

func (f *feedbackCall) errorInfo(c *strictjson.Cursor) {
	if !f.enter("errorInfo", c) {
		return
	}
	e := &f.feedback.Error
	for c.More() {
		key, raw := string(c.Key()), c.Skip()
		switch key {
		case "connector":
			e.Connector = f.fields.text(key, raw)
		case "flow":
			e.Flow = f.fields.text(key, raw)
		case "subFlow":
			e.SubFlow = f.fields.text(key, raw)
		case "errorCode":
			e.Code = f.fields.text(key, raw)
		case "errorMessage":
			e.Message = f.fields.text(key, raw)
		case "issuerErrorCode":
			e.IssuerCode = f.fields.text(key, raw)
		case "cardNetwork":
			e.Network = f.fields.text(key, raw)
		}
	}
}

// appendFeedback appends the answer to an outcome.
func appendFeedback(b []byte, f *gateway.Feedback, a gateway.FeedbackAnswer) []byte {
	b = append(b, `{"message":"Gateway score updated successfully","merchant_id":`...)
	b = strictjson.AppendString(b, string(f.Merchant))
	b = strictjson.AppendString(append(b, `,"gateway":`...), string(f.Gateway))
	b = strictjson.AppendString(append(b, `,"payment_id":`...), f.PaymentID)
	if r := a.Rule; r != nil {
		b = appendOptional(append(b, `,"gsm_info":{"decision":`...), r.Decision)
		b = strictjson.AppendBool(append(b, `,"stepUpPossible":`...), r.StepUp)
		b = strictjson.AppendBool(append(b, `,"clearPanPossible":`...), r.ClearPAN)
		b = strictjson.AppendBool(append(b, `,"alternateNetworkPossible":`...), r.AlternateNetwork)
		b = appendOptional(append(b, `,"unifiedCode":`...), r.UnifiedCode)
		b = appendOptional(append(b, `,"unifiedMessage":`...), r.UnifiedMessage)
		b = appendOptional(append(b, `,"errorCategory":`...), r.Category)
		b = appendOptional(append(b, `,"standardisedCode":`...), r.Standardised)
		b = appendOptional(append(b, `,"description":`...), r.Description)
		b = append(appendOptional(append(b, `,"userGuidanceMessage":`...), r.Guidance), '}')
	}
	b = strictjson.AppendBool(append(b, `,"applied":`...), a.Applied)
	b = appendOptional(append(b, `,"reason":`...), a.Reason)
	return append(b, '}')
}
