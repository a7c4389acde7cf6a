package lab

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"holdfast/lab/load"
)

// The kinds of requests of the gateway API, named as the server labels their routes.
const (
	kindDecideGateway = "decide_gateway"
	kindFeedback      = "update_gateway_score"
	kindEvaluate      = "routing_evaluate"
)

// labMerchant is the merchant that the lab creates.
const labMerchant = "lab_merchant"

// payments are the payloads of a load tool for card payments: two or three gateways, some members that the API does not know.
// {payment} stands for a fresh payment id.
var payments = []string{
	`{"merchantId":"{merchant}","eligibleGatewayList":["alphapay","mercato","kestrel"],"rankingAlgorithm":"SR_BASED_ROUTING","eliminationEnabled":true,` +
		`"paymentInfo":{"paymentId":"{payment}","amount":42.5,"currency":"EUR","country":"PT","customerId":"c-19","udfs":null,"preferredGateway":null,` +
		`"paymentType":"ORDER_PAYMENT","metadata":null,"internalMetadata":null,"isEmi":false,"emiBank":null,"emiTenure":null,"paymentMethodType":"CARD",` +
		`"paymentMethod":"CREDIT","paymentSource":null,"authType":"THREE_DS","cardIssuerBankName":null,"cardIsin":"453210","cardType":"CREDIT",` +
		`"cardSwitchProvider":"VISA","cardBrand":"VISA"}}`,
	`{"merchantId":"{merchant}","eligibleGatewayList":["alphapay","mercato","kestrel"],"rankingAlgorithm":"SR_BASED_ROUTING","eliminationEnabled":true,` +
		`"paymentInfo":{"paymentId":"{payment}","amount":1250.0,"currency":"USD","country":"US","customerId":"c-20","udfs":null,"preferredGateway":null,` +
		`"paymentType":"ORDER_PAYMENT","metadata":null,"internalMetadata":null,"isEmi":false,"emiBank":null,"emiTenure":null,"paymentMethodType":"CARD",` +
		`"paymentMethod":"DEBIT","paymentSource":null,"authType":"THREE_DS","cardIssuerBankName":null,"cardIsin":"510510","cardType":"DEBIT",` +
		`"cardSwitchProvider":"MASTERCARD","cardBrand":"MASTERCARD"}}`,
	`{"merchantId":"{merchant}","eligibleGatewayList":["alphapay","mercato"],"rankingAlgorithm":"SR_BASED_ROUTING","eliminationEnabled":true,` +
		`"paymentInfo":{"paymentId":"{payment}","amount":9.99,"currency":"EUR","country":"DE","customerId":"c-21","udfs":null,"preferredGateway":null,` +
		`"paymentType":"ORDER_PAYMENT","metadata":null,"internalMetadata":null,"isEmi":false,"emiBank":null,"emiTenure":null,"paymentMethodType":"CARD",` +
		`"paymentMethod":"CREDIT","paymentSource":null,"authType":"NO_THREE_DS","cardIssuerBankName":null,"cardIsin":"400012","cardType":"CREDIT",` +
		`"cardSwitchProvider":"VISA","cardBrand":"VISA"}}`,
}

// mold is a request text cut at its marks.
type mold struct {
	before, after []byte // of the payment id
}

// idLength is the length of every payment id, so that all requests are of one size.
const idLength = len("pay-") + 16 + len("-") + 10

// newMold cuts a payload at {payment}, with its merchant filled in and the request's head in front.
func newMold(t load.Target, line, payload, merchant string) mold {
	body := bytes.ReplaceAll([]byte(payload), []byte("{merchant}"), []byte(merchant))
	before, after, _ := bytes.Cut(body, []byte("{payment}"))
	return mold{before: append(t.AppendHead(nil, line, len(before)+idLength+len(after)), before...), after: after}
}

// eligible reports whether a payload's list holds a gateway.
func eligible(payload uint64, name []byte) bool {
	list, _, _ := strings.Cut(payments[payload], "]")
	_, list, _ = strings.Cut(list, "[")
	for one := range strings.SplitSeq(list, ",") {
		if strings.Trim(one, `"`) == string(name) {
			return true
		}
	}
	return false
}

// pairs is a decide and its feedback, again and again.
type pairs struct {
	key       *string // the API key, known once the merchant was created
	merchants int     // how many share the traffic; 0 means the lab's own
	think     bool    // only decide, for comparisons of one request
	wrong     *atomic.Uint64
	said      *latencies
}

// latencies counts what decides said of themselves in the member latency, by whole milliseconds.
type latencies struct{ ms [1000]atomic.Uint64 }

// note counts the latency that a decide's answer ends with; false when it has none.
func (l *latencies) note(answer []byte) bool {
	_, after, found := bytes.Cut(answer[max(0, len(answer)-80):], []byte(`"latency":`))
	end := bytes.IndexAny(after, ",}")
	if !found || end < 1 {
		return false
	}
	ms, err := strconv.ParseUint(string(after[:end]), 10, 32)
	if err != nil {
		return false
	}
	l.ms[min(ms, uint64(len(l.ms)-1))].Add(1)
	return true
}

// take returns the mean and a quantile of what was noted, in ms, and begins anew.
func (l *latencies) take(q float64) (mean, quantile float64) {
	var counts [1000]uint64
	var n, sum, below uint64
	for i := range l.ms {
		counts[i] = l.ms[i].Swap(0)
		n, sum = n+counts[i], sum+uint64(i)*counts[i]
	}
	for i, k := range counts {
		if below += k; k > 0 && float64(below) >= q*float64(n) {
			return float64(sum) / float64(n), float64(i)
		}
	}
	return math.NaN(), math.NaN()
}

func (p pairs) title() string { return "decide and feedback" }

// create makes the lab's merchant and returns the mean size of the two answers.
func (p pairs) create(ctx context.Context, c *control) (int, error) {
	key, err := newMerchant(ctx, c, labMerchant)
	if err != nil {
		return 0, err
	}
	*p.key = key
	with := c.as("x-api-key", key)
	id := "pay-0000000000000000-0000000000"
	body := bytes.ReplaceAll([]byte(payments[0]), []byte("{merchant}"), []byte(labMerchant))
	first, err := with.raw(ctx, "POST /decide-gateway", string(bytes.ReplaceAll(body, []byte("{payment}"), []byte(id))))
	if err != nil {
		return 0, err
	}
	second, err := with.raw(ctx, "POST /update-gateway-score", fmt.Sprintf(`{"merchantId":%q,"gateway":"alphapay","status":"CHARGED","paymentId":%q}`, labMerchant, id))
	return (len(first) + len(second)) / 2, err
}

// newMerchant creates a merchant, unless it is there, and returns a key of its own.
func newMerchant(ctx context.Context, c *control, id string) (string, error) {
	var made struct {
		Key string `json:"api_key"`
	}
	admin := c.as("x-admin-secret", c.key)
	err := admin.ask(ctx, "POST /merchant-account/create", fmt.Sprintf(`{"merchant_id":%q,"gateway_success_rate_based_decider_input":null}`, id), &made)
	if err == nil {
		return made.Key, nil
	}
	if again := admin.ask(ctx, "POST /api-key/create", fmt.Sprintf(`{"merchant_id":%q,"description":"lab"}`, id), &made); again != nil {
		return "", err
	}
	return made.Key, nil
}

func (p pairs) cell(connections int, d time.Duration) cell {
	return cell{connections: connections, duration: d, kinds: []string{kindDecideGateway, kindFeedback}, traffic: p.traffic}
}

func (p pairs) traffic(t load.Target) func(worker int) load.Traffic {
	t.Key, t.Header = "", "x-api-key: "+*p.key
	run, number := newRun(), &atomic.Uint64{}
	names := []string{labMerchant}
	if p.merchants > 0 {
		names = names[:0]
		for i := range p.merchants {
			names = append(names, manyMerchant(i))
		}
		t.Header = "x-admin-secret: " + *p.key
	}
	return func(int) load.Traffic {
		w := &pairWorker{target: t, run: run, number: number, names: names, wrong: p.wrong, said: p.said, onlyDecide: p.think}
		for _, payload := range payments {
			if len(names) == 1 {
				w.molds = append(w.molds, newMold(t, "POST /decide-gateway", payload, names[0]))
			}
		}
		return w
	}
}

// pairWorker is one connection's decides and feedback.
type pairWorker struct {
	target     load.Target
	run        string
	number     *atomic.Uint64
	names      []string
	molds      []mold
	wrong      *atomic.Uint64
	said       *latencies
	onlyDecide bool

	n        uint64 // of this worker's feedback
	nth      uint64 // of the payloads
	id       []byte
	merchant string
	gateway  []byte // decided, empty before the answer
	waiting  bool   // for the feedback to be sent
	buf      []byte
	body     []byte
}

// Next returns a decide, or the feedback for the last one.
func (w *pairWorker) Next() ([]byte, int) {
	if w.waiting && !w.onlyDecide {
		w.waiting = false
		return w.feedback(), 1
	}
	w.waiting = true
	w.gateway = w.gateway[:0]
	n := w.number.Add(1)
	w.id = append(append(append(w.id[:0], "pay-"...), w.run...), '-')
	var digits [20]byte
	text := strconv.AppendUint(digits[:0], n, 10)
	w.id = append(append(w.id, "0000000000"[len(text):]...), text...)
	w.nth = n % uint64(len(payments))
	m := w.mold(n)
	w.buf = append(append(append(w.buf[:0], m.before...), w.id...), m.after...)
	return w.buf, 0
}

// mold picks the payload, and the merchant where there are many.
func (w *pairWorker) mold(n uint64) mold {
	if len(w.molds) > 0 {
		w.merchant = w.names[0]
		return w.molds[w.nth]
	}
	w.merchant = w.names[n*2654435761%uint64(len(w.names))]
	return newMold(w.target, "POST /decide-gateway", payments[w.nth], w.merchant)
}

// feedback reports that the attempt succeeded nine times in ten.
func (w *pairWorker) feedback() []byte {
	gateway := w.gateway
	if len(gateway) == 0 { // the bare handler decides nothing
		gateway = []byte("alphapay")
	}
	w.n++
	status := "CHARGED"
	if w.n%10 == 0 {
		status = "FAILURE"
	}
	w.body = append(append(w.body[:0], `{"merchantId":"`...), w.merchant...)
	w.body = append(append(w.body, `","gateway":"`...), gateway...)
	w.body = append(append(w.body, `","gatewayReferenceId":null,"status":"`...), status...)
	w.body = append(append(w.body, `","paymentId":"`...), w.id...)
	w.body = append(w.body, `","enforceDynamicRoutingFailure":null,"txnLatency":{"gatewayLatency":2100}}`...)
	w.buf = append(w.target.AppendHead(w.buf[:0], "POST /update-gateway-score", len(w.body)), w.body...)
	return w.buf
}

// Seen checks the answer: a decide names an eligible gateway, feedback was applied.
func (w *pairWorker) Seen(kind int, a load.Answer) {
	if len(a.Body) > 0 && a.Body[0] == ' ' { // of the bare handler
		return
	}
	if kind == 1 {
		if a.Status != 200 || !bytes.Contains(a.Body, []byte(`"applied":true`)) {
			w.wrong.Add(1)
		}
		return
	}
	_, after, _ := bytes.Cut(a.Body, []byte(`"decided_gateway":"`))
	name, _, found := bytes.Cut(after, []byte(`"`))
	if a.Status != 200 || !found || !eligible(w.nth, name) || !w.said.note(a.Body) {
		w.wrong.Add(1)
		w.waiting = false
		return
	}
	w.gateway = append(w.gateway[:0], name...)
}
