package main

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/gateway"
	"holdfast/store"
	"holdfast/store/gateways"
)

// The gateways of the kills and the size of their windows.
var killedGateways = []string{"alphapay", "mercato", "kestrel"}

const killedBucket = 125

// reportedOutcomes is what callers were told about feedback.
type reportedOutcomes struct {
	mu     sync.Mutex        // guards what follows
	acked  map[string]string // gateway and status by payment
	sent   map[string]bool
	number int
}

// gatewayCall sends a body with the operator's secret and returns the status and the body, 0 when no answer came.
func (s *served) gatewayCall(path, body string) (int, []byte) {
	req, err := http.NewRequest(http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		panic(err) // the tests' own paths are well formed
	}
	req.Header.Set("x-admin-secret", s.key)
	req.Header.Set("Content-Type", "application/json")
	resp, text := s.do(req)
	if resp == nil {
		return 0, nil
	}
	return resp.StatusCode, text
}

const killedPayment = `{"merchantId":"shop","eligibleGatewayList":["alphapay","mercato","kestrel"],"rankingAlgorithm":"SR_BASED_ROUTING",` +
	`"paymentInfo":{"paymentId":%q,"amount":10,"currency":"EUR","paymentType":"ORDER_PAYMENT","paymentMethodType":"CARD","paymentMethod":"CREDIT"}}`

// pair is a decide and its feedback, which is sometimes sent twice. It reports whether the server still answers.
func (h *reportedOutcomes) pair(s *served, random *rand.Rand) bool {
	h.mu.Lock()
	h.number++
	id := fmt.Sprintf("pay-%d", h.number)
	h.mu.Unlock()
	status, _ := s.gatewayCall("/decide-gateway", fmt.Sprintf(killedPayment, id))
	if status != http.StatusOK {
		return false
	}
	g := killedGateways[random.IntN(len(killedGateways))]
	outcome := "CHARGED"
	if random.IntN(3) == 0 {
		outcome = "FAILURE"
	}
	h.mu.Lock()
	h.sent[id] = true
	h.mu.Unlock()
	for range 1 + random.IntN(2) {
		status, text := s.gatewayCall("/update-gateway-score", fmt.Sprintf(`{"merchantId":"shop","gateway":%q,"status":%q,"paymentId":%q}`, g, outcome, id))
		if status != http.StatusOK {
			return false
		}
		var a struct {
			Applied bool   `json:"applied"`
			Reason  string `json:"reason"`
		}
		if json.Unmarshal(text, &a) != nil || !a.Applied && a.Reason != gateway.ReasonDuplicate {
			s.Errorf("feedback for %s: %s", id, text)
		}
		h.mu.Lock()
		h.acked[id] = g + " " + outcome
		h.mu.Unlock()
	}
	return true
}

// stored reads the outcomes of a store that nobody serves.
func stored(t *testing.T, data string) []gateway.Outcome {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(data, "gateways.db"), ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.WithoutCancel(t.Context()))
	var rows []gateway.Outcome
	err = gateways.New(db).Read(t.Context(), func(v gateway.View) error {
		return v.Outcomes(0, func(o *gateway.Outcome) error {
			rows = append(rows, *o)
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// recount plays the stored outcomes on plain lists: the newest 125 of each gateway, full of successes at first.
func recount(rows []gateway.Outcome) map[string]float64 {
	lists := map[string][]float64{}
	for _, o := range rows {
		list := lists[string(o.Gateway)]
		if list == nil {
			for range killedBucket {
				list = append(list, 1)
			}
		}
		v := 0.0
		if o.Value {
			v = 1
		}
		lists[string(o.Gateway)] = append(list[1:], v)
	}
	means := map[string]float64{}
	for g, list := range lists {
		sum := 0.0
		for _, v := range list {
			sum += v
		}
		means[g] = sum / float64(len(list))
	}
	return means
}

// TestTwentyKillsDuringFeedback kills a real server with SIGKILL 20 times while payments are decided and reported: no
// acknowledged outcome is missing, none is there twice, and the windows of the next start equal a recount of the rows.
func TestTwentyKillsDuringFeedback(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	h := &reportedOutcomes{acked: map[string]string{}, sent: map[string]bool{}}
	random := rand.New(rand.NewPCG(4, 20))
	for cycle := range 20 {
		s := startServer(t, data)
		if cycle == 0 {
			if status, text := s.gatewayCall("/merchant-account/create", `{"merchant_id":"shop"}`); status != http.StatusOK {
				t.Fatalf("%d %s", status, text)
			}
		} else {
			compareWindows(s, recount(stored(t, data)))
		}
		timer := time.AfterFunc(20*time.Millisecond+time.Duration(random.Int64N(int64(150*time.Millisecond))), s.kill)
		var all sync.WaitGroup
		for worker := range uint64(8) {
			all.Go(func() {
				own := rand.New(rand.NewPCG(uint64(cycle), worker))
				for h.pair(s, own) {
				}
			})
		}
		all.Wait()
		timer.Stop()
		s.kill()
		h.audit(t, cycle, stored(t, data))
	}
	if len(h.acked) < 100 {
		t.Errorf("only %d outcomes were acknowledged in all: the kills proved little", len(h.acked))
	}
}

// audit holds the stored outcomes to what callers were told.
func (h *reportedOutcomes) audit(t *testing.T, cycle int, rows []gateway.Outcome) {
	t.Helper()
	found := map[string]string{}
	for _, o := range rows {
		if _, twice := found[o.Payment]; twice {
			t.Errorf("cycle %d: the outcome of %s is stored twice", cycle, o.Payment)
		}
		if !h.sent[o.Payment] {
			t.Errorf("cycle %d: the outcome of %s was never sent", cycle, o.Payment)
		}
		status := "FAILURE"
		if o.Value {
			status = "CHARGED"
		}
		found[o.Payment] = string(o.Gateway) + " " + status
	}
	for id, outcome := range h.acked {
		if found[id] != outcome {
			t.Errorf("cycle %d: %s was acknowledged for %s; stored is %q", cycle, outcome, id, found[id])
		}
	}
}

// compareWindows reads the windows through a decision.
func compareWindows(s *served, want map[string]float64) {
	s.Helper()
	status, text := s.gatewayCall("/decide-gateway", fmt.Sprintf(killedPayment, "probe"))
	var a struct {
		Map map[string]float64 `json:"gateway_priority_map"`
	}
	if status != http.StatusOK || json.Unmarshal(text, &a) != nil {
		s.Fatalf("%d %s", status, text)
	}
	for g, mean := range want {
		if math.Abs(a.Map[g]-mean) > 1e-12 {
			s.Errorf("after a restart %s has %v, a recount gives %v", g, a.Map[g], mean)
		}
	}
}
