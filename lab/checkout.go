package lab

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"
)

// Checkout plays a shop's payments over three gateways against a running server: each is decided, attempted and reported.
// One of the gateways degrades slowly and recovers, again and again, so that its share of the traffic falls and comes back.
type Checkout struct {
	URL, Secret string // Secret is the operator's key
	Merchant    string
	Rate        int // payments per second
	Seed        uint64

	payments, successes, failures atomic.Int64
	shares                        [3]atomic.Int64
	sick                          atomic.Int64 // success rate of the sick gateway just now, in thousandths
}

// gatewayNames are the gateways of the shop; the first is the best one, and the one that falls ill.
var gatewayNames = [3]string{"alphapay", "mercato", "kestrel"}

// sickCycle is how long the first gateway takes to be well, degrade, be ill and recover.
const sickCycle = 48 * time.Second

// health is a gateway's success rate at a moment since the start.
func health(gateway int, since time.Duration) float64 {
	switch gateway {
	case 1:
		return 0.88
	case 2:
		return 0.82
	}
	const well, ill = 0.96, 0.35
	switch at := float64(since%sickCycle) / float64(sickCycle); {
	case at < 0.25:
		return well
	case at < 0.40: // slowly down
		return well - (well-ill)*(at-0.25)/0.15
	case at < 0.60:
		return ill
	default:
		return well
	}
}

// CheckoutProgress is what happened so far.
type CheckoutProgress struct {
	Payments, Successes, Failures int64 // Failures are requests that were not answered
	Shares                        [3]int64
	Sick                          float64 // success rate of the first gateway just now
}

// Progress returns the counts so far.
func (c *Checkout) Progress() CheckoutProgress {
	p := CheckoutProgress{Payments: c.payments.Load(), Successes: c.successes.Load(), Failures: c.failures.Load(), Sick: float64(c.sick.Load()) / 1000}
	for i := range c.shares {
		p.Shares[i] = c.shares[i].Load()
	}
	return p
}

// GatewayNames returns the gateways in the order of the shares.
func (c *Checkout) GatewayNames() [3]string { return gatewayNames }

// Run creates the merchant, lets it explore, and plays until ctx ends. It returns the first error that kept it from
// starting; later failures are counted.
func (c *Checkout) Run(ctx context.Context) error {
	client := &http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	for n, step := range [...][2]string{
		{"/merchant-account/create", fmt.Sprintf(`{"merchant_id":%q}`, c.Merchant)},
		{"/merchant-account/" + c.Merchant + "/features/explore-exploit-srv3", `{"enabled":true}`},
		// Small windows and much exploration: people who watch shall not wait for minutes until a gateway is found well again.
		{"/rule/create", fmt.Sprintf(`{"merchant_id":%q,"config":{"type":"successRate","data":{"defaultBucketSize":50,"defaultHedgingPercent":15}}}`, c.Merchant)},
	} {
		if _, err := c.post(ctx, client, step[0], step[1]); errors.Is(err, errNotOK) && n != 1 {
			continue // made by an earlier demo in the same folder; if not, the first payment says so
		} else if err != nil {
			return fmt.Errorf("creating the demo merchant: %w", err)
		}
	}
	draw := rand.New(rand.NewPCG(c.Seed, 2))
	begin := time.Now()
	tick := time.NewTicker(time.Second / time.Duration(max(c.Rate, 1)))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := c.pay(ctx, client, draw, time.Since(begin)); err != nil && ctx.Err() == nil {
			c.failures.Add(1)
		}
	}
}

// pay is one payment: decide, attempt, report.
func (c *Checkout) pay(ctx context.Context, client *http.Client, draw *rand.Rand, since time.Duration) error {
	id := fmt.Sprintf("demo-%016x", draw.Uint64())
	text, err := c.post(ctx, client, "/decide-gateway", fmt.Sprintf(`{"merchantId":%q,"eligibleGatewayList":["alphapay","mercato","kestrel"],`+
		`"rankingAlgorithm":"SR_BASED_ROUTING","paymentInfo":{"paymentId":%q,"amount":%d.50,"currency":"EUR","country":"PT","paymentType":"ORDER_PAYMENT",`+
		`"paymentMethodType":"CARD","paymentMethod":"CREDIT","cardType":"CREDIT"}}`, c.Merchant, id, 5+draw.IntN(200)))
	if err != nil {
		return err
	}
	var answer struct {
		Decided string `json:"decided_gateway"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return err
	}
	status := "FAILURE"
	for i, name := range gatewayNames {
		if name == answer.Decided {
			c.shares[i].Add(1)
			if draw.Float64() < health(i, since) {
				status = "CHARGED"
				c.successes.Add(1)
			}
		}
	}
	c.sick.Store(int64(1000 * health(0, since)))
	c.payments.Add(1)
	_, err = c.post(ctx, client, "/update-gateway-score", fmt.Sprintf(`{"merchantId":%q,"gateway":%q,"status":%q,"paymentId":%q}`, c.Merchant, answer.Decided, status, id))
	return err
}

// post sends one body and returns that of a 2xx answer.
func (c *Checkout) post(ctx context.Context, client *http.Client, path, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("x-admin-secret", c.Secret)
	req.Header.Set("Content-Type", "application/json")
	return answerOf(client, req)
}

// errNotOK is an answer with a status outside 2xx.
var errNotOK = errors.New("refused")

// answerOf sends a request and returns the body of a 2xx answer.
func answerOf(client *http.Client, req *http.Request) ([]byte, error) {
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%w: %s %s: %s: %s", errNotOK, req.Method, req.URL.Path, resp.Status, text)
	}
	return text, nil
}
