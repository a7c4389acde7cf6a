package gatewayapi

import (
	"net/http"
	"strconv"
	"time"

	"holdfast/gateway"
	"holdfast/ident"
	"holdfast/internal/strictjson"
	"holdfast/wire/reply"
)

// decideCall is everything one decision needs, kept between calls.
type decideCall struct {
	body   decideBody
	answer gateway.Answer
	text   []byte
}

// maxKept bounds the memory that a pooled call may keep: one huge body must not stay for ever.
const maxKept = 64 << 10

// Decide answers POST /decide-gateway.
func (a *API) Decide(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	start := time.Now()
	d, _ := a.decides.Get().(*decideCall)
	if d == nil {
		d = &decideCall{}
	}
	defer a.putDecide(d)
	if err := d.body.decode(c.Body); err != nil {
		a.service.Misread("decide_gateway", c.RequestID, err)
		a.decline(w, r, err)
		return
	}
	d.body.req.RequestID = c.RequestID
	if err := a.service.Covers(c.Principal, d.body.req.Merchant); err != nil {
		a.decline(w, r, err)
		return
	}
	if err := a.service.Decide(r.Context(), &d.body.req, &d.answer); err != nil {
		a.decline(w, r, err)
		return
	}
	took := time.Since(start)
	d.text = appendDecision(d.text[:0], &d.answer, took)
	timed(w.Header(), took)
	reply.JSON(w, http.StatusOK, d.text)
}

func (a *API) putDecide(d *decideCall) {
	if cap(d.text) > maxKept || len(d.body.copy) > maxKept {
		return
	}
	d.body.fields = fields{} // a pooled call must not hold a body that the server uses again
	a.decides.Put(d)
}

// timed tells how long the handler took, in whole milliseconds and in microseconds.
func timed(h http.Header, took time.Duration) {
	h["X-Response-Time"] = numeral(took.Milliseconds())
	h["X-Routing-Latency-Us"] = numeral(took.Microseconds())
}

// numerals holds the header values of small numbers, where nearly all times lie.
var numerals = func() []string {
	all := make([]string, 1024)
	for i := range all {
		all[i] = strconv.Itoa(i)
	}
	return all
}()

func numeral(n int64) []string {
	if n >= 0 && n < int64(len(numerals)) {
		return numerals[n : n+1 : n+1]
	}
	return []string{strconv.FormatInt(n, 10)}
}

// appendDecision appends the answer of a decision, every member present.
func appendDecision(b []byte, a *gateway.Answer, took time.Duration) []byte {
	b = appendNames(append(strictjson.AppendString(append(b, `{"decided_gateway":`...), string(a.Gateway)), `,"fallback_gateways":`...), a.Fallbacks)
	b = append(b, `,"gateway_priority_map":`...)
	if len(a.Ranked) == 0 {
		b = append(b, "null"...)
	} else {
		b = append(b, '{')
		for i := range a.Ranked {
			if i > 0 {
				b = append(b, ',')
			}
			b = strictjson.AppendString(b, string(a.Ranked[i].Gateway))
			b = strictjson.AppendFloat(append(b, ':'), a.Ranked[i].Score)
		}
		b = append(b, '}')
	}
	b = append(b, `,"filter_wise_gateways":null,"priority_logic_tag":`...)
	tag := ""
	if a.Logic != nil {
		tag = a.Logic.Tag
	}
	b = appendOptional(b, tag)
	b = append(append(append(b, `,"routing_approach":"`...), a.Approach...), `","gateway_before_evaluation":`...)
	b = appendOptional(b, string(a.Before))
	b = appendLogic(append(b, `,"priority_logic_output":`...), a.Logic)
	b = appendDebit(append(b, `,"debit_routing_output":`...), a.Debit)
	b = append(append(append(b, `,"reset_approach":"`...), a.Reset...), `","routing_dimension":`...)
	b = appendOptional(b, a.Dimension)
	b = appendOptional(append(b, `,"routing_dimension_level":`...), a.Level)
	b = strictjson.AppendBool(append(b, `,"is_scheduled_outage":`...), a.Outage)
	b = append(b, `,"is_dynamic_mga_enabled":false,"gateway_mga_id_map":null,"is_rust_based_decider":true,"latency":`...)
	b = strictjson.AppendInt(b, took.Milliseconds())
	b = appendCost(append(b, `,"multi_objective_info":`...), a.Cost)
	return append(b, '}')
}

// appendOptional appends a text, null for an empty one.
func appendOptional(b []byte, text string) []byte {
	if text == "" {
		return append(b, "null"...)
	}
	return strictjson.AppendString(b, text)
}

func appendNames(b []byte, names []gateway.Name) []byte {
	b = append(b, '[')
	for i, g := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(b, string(g))
	}
	return append(b, ']')
}

func appendLogic(b []byte, l *gateway.PriorityLogic) []byte {
	if l == nil {
		return append(b, "null"...)
	}
	b = strictjson.AppendBool(append(b, `{"isEnforcement":`...), l.Enforcement)
	b = appendNames(append(b, `,"gws":`...), l.Gateways)
	b = appendOptional(append(b, `,"priorityLogicTag":`...), l.Tag)
	b = append(b, `,"gatewayReferenceIds":{`...)
	for i, r := range l.References {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(b, string(r.Gateway))
		b = strictjson.AppendString(append(b, ':'), r.ID)
	}
	b = appendRun(append(b, `},"primaryLogic":`...), l.Primary)
	b = appendRun(append(b, `,"fallbackLogic":`...), l.Fallback)
	return append(b, '}')
}

func appendRun(b []byte, run *gateway.LogicRun) []byte {
	if run == nil {
		return append(b, "null"...)
	}
	b = strictjson.AppendString(append(b, `{"name":`...), run.Name)
	b = strictjson.AppendString(append(b, `,"status":`...), run.Status)
	b = appendOptional(append(b, `,"failure_reason":`...), run.Reason)
	return append(b, '}')
}

func appendDebit(b []byte, d *gateway.DebitOutput) []byte {
	if d == nil {
		return append(b, "null"...)
	}
	b = append(b, `{"co_badged_card_networks_info":[`...)
	for i, n := range d.Networks {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(append(b, `{"network":`...), string(n.Network))
		b = append(strictjson.AppendFloat(append(b, `,"saving_percentage":`...), n.Saving), '}')
	}
	b = appendOptional(append(b, `],"issuer_country":`...), d.IssuerCountry)
	b = strictjson.AppendBool(append(b, `,"is_regulated":`...), d.Regulated)
	b = appendOptional(append(b, `,"regulated_name":`...), d.RegulatedName)
	b = appendOptional(append(b, `,"card_type":`...), d.CardType)
	return append(b, '}')
}

func appendCost(b []byte, c *gateway.CostInfo) []byte {
	if c == nil {
		return append(b, "null"...)
	}
	b = strictjson.AppendString(append(b, `{"outcome":`...), string(c.Outcome))
	b = strictjson.AppendString(append(b, `,"reason":`...), c.Reason)
	b = strictjson.AppendFloat(append(b, `,"costSavedBps":`...), c.SavedBPS)
	b = strictjson.AppendInt(append(b, `,"qualifiedCount":`...), int64(c.Qualified))
	b = strictjson.AppendFloat(append(b, `,"margin":`...), c.Margin)
	b = strictjson.AppendFloat(append(b, `,"evGapTop2":`...), c.Gap)
	b = append(b, `,"ranked":[`...)
	for i := range c.Ranked {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendCostRank(b, &c.Ranked[i])
	}
	return append(b, "]}"...)
}

func appendCostRank(b []byte, r *gateway.CostRank) []byte {
	b = strictjson.AppendString(append(b, `{"psp":`...), string(r.Gateway))
	b = strictjson.AppendFloat(append(b, `,"authRate":`...), r.Auth)
	if r.Known {
		b = strictjson.AppendFloat(append(b, `,"costBps":`...), r.BPS)
		b = strictjson.AppendString(append(b, `,"costSource":`...), string(gateway.CostSeed))
		b = strictjson.AppendFloat(append(b, `,"ev":`...), r.EV)
	} else {
		b = append(b, `,"costBps":null,"costSource":null,"ev":null`...)
	}
	b = strictjson.AppendBool(append(b, `,"isSrHead":`...), r.Head)
	b = strictjson.AppendBool(append(b, `,"isChosen":`...), r.Chosen)
	return append(b, '}')
}
