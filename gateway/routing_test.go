package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/fault"
	"holdfast/gateway"
)

const (
	single = `{"type":"single","data":{"gateway_name":"%s","gateway_id":null}}`
	// euro routes card payments of more than 50.00 in euro by Visa, and defaults to alphapay.
	euro = `{"type":"advanced","data":{"globals":{},"default_selection":{"priority":[{"gateway_name":"alphapay","gateway_id":null}]},
	 "rules":[{"name":"big euro cards","routing_type":"priority",
	   "output":{"priority":[{"gateway_name":"mercato","gateway_id":"acc_7"},{"gateway_name":"kestrel","gateway_id":null}]},
	   "statements":[{"condition":[
	       {"lhs":"payment_method","comparison":"equal","value":{"type":"enum_variant","value":"card"},"metadata":{}},
	       {"lhs":"amount","comparison":"greater_than","value":{"type":"number","value":5000},"metadata":{}}],
	     "nested":[{"condition":[{"lhs":"currency","comparison":"equal","value":{"type":"enum_variant","value":"EUR"},"metadata":{}}]},
	               {"condition":[{"lhs":"card_network","comparison":"equal","value":{"type":"enum_variant","value":"Visa"},"metadata":{}}]}]}]}],
	 "metadata":{}}}`
)

func (r *rig) algorithm(owner, text string) string {
	r.t.Helper()
	row, _, err := r.service.CreateAlgorithm(r.t.Context(), gateway.NewAlgorithm{Owner: gateway.MerchantID(owner), Name: "rule of " + owner, Algorithm: []byte(text)})
	if err != nil {
		r.t.Fatal(err)
	}
	return row.ID
}

func (r *rig) activate(owner, id string) {
	r.t.Helper()
	if err := r.service.ActivateAlgorithm(r.t.Context(), gateway.MerchantID(owner), id); err != nil {
		r.t.Fatal(err)
	}
}

// evaluate returns the status and the names of the connectors, or the error's message.
func (r *rig) evaluate(owner string, params ...gateway.Parameter) string {
	r.t.Helper()
	var a gateway.EvaluateAnswer
	err := r.service.Evaluate(r.t.Context(), &gateway.EvaluateRequest{Owner: gateway.MerchantID(owner), PaymentID: "p", Parameters: params}, &a)
	if err != nil {
		if fault.KindOf(err) != fault.Invalid {
			r.t.Errorf("%v is not Invalid", err)
		}
		return fault.MessageOf(err)
	}
	var names []string
	for _, c := range a.Connectors {
		names = append(names, string(c.Gateway))
	}
	return a.Status + " " + strings.Join(names, ",")
}

func number(key string, n uint64) gateway.Parameter {
	return gateway.Parameter{Key: key, Kind: gateway.ValueNumber, Number: n}
}

func enum(key, word string) gateway.Parameter {
	return gateway.Parameter{Key: key, Kind: gateway.ValueEnum, Text: word}
}

func TestTheLifeOfAnAlgorithm(t *testing.T) {
	r := newRig(t, gateway.Options{})
	ctx, s := t.Context(), r.service
	const owner = "nobody_created_this_merchant"
	if got := r.evaluate(owner); !strings.Contains(got, "no active payment algorithm") {
		t.Errorf("before anything is stored: %s", got)
	}
	first, second := r.algorithm(owner, fmt.Sprintf(single, "a")), r.algorithm(owner, fmt.Sprintf(single, "b"))
	if !strings.HasPrefix(first, "routing_") || len(first) != len("routing_")+36 {
		t.Errorf("id %q", first)
	}
	if got := r.evaluate(owner); !strings.Contains(got, "no active") {
		t.Errorf("stored is not active: %s", got)
	}
	r.activate(owner, first)
	if got := r.evaluate(owner); got != "success a" {
		t.Errorf("after the first activation: %s", got)
	}
	r.activate(owner, second)
	if got := r.evaluate(owner); got != "success b" {
		t.Errorf("activation does not replace: %s", got)
	}
	active, err := s.ActiveAlgorithms(ctx, owner)
	if err != nil || len(active) != 1 || active[0].ID != second {
		t.Errorf("active: %v, %v", active, err)
	}
	change := gateway.AlgorithmChange{ID: second, Owner: owner, Name: "new", Algorithm: fmt.Appendf(nil, single, "c")}
	if _, _, err := s.UpdateAlgorithm(ctx, change); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "is active") {
		t.Errorf("update of an active one: %v", err)
	}
	if err := s.DeleteAlgorithm(ctx, owner, second); fault.KindOf(err) != fault.Invalid {
		t.Errorf("delete of an active one: %v", err)
	}
	for range 2 {
		if err := s.DeactivateAlgorithm(ctx, owner, second); err != nil {
			t.Errorf("deactivate: %v", err)
		}
	}
	if got := r.evaluate(owner); !strings.Contains(got, "no active") {
		t.Errorf("deactivated: %s", got)
	}
	row, _, err := s.UpdateAlgorithm(ctx, change)
	if err != nil || row.Name != "new" || row.ModifiedUS <= row.CreatedUS {
		t.Errorf("update: %+v, %v", row, err)
	}
	r.activate(owner, second)
	if got := r.evaluate(owner); got != "success c" {
		t.Errorf("after the update: %s", got)
	}
	r.stop()
	r.start()
	if got := r.evaluate(owner); got != "success c" {
		t.Errorf("after a restart: %s", got)
	}
	if err := r.service.DeleteAlgorithm(ctx, owner, first); err != nil {
		t.Error(err)
	}
	if err := r.service.DeleteAlgorithm(ctx, owner, first); fault.KindOf(err) != fault.NotFound {
		t.Errorf("delete of an unknown one: %v", err)
	}
	if rows, err := r.service.Algorithms(ctx, owner); err != nil || len(rows) != 1 {
		t.Errorf("listed %v, %v", rows, err)
	}
}

func TestAlgorithmsBelongToTheirOwner(t *testing.T) {
	r := newRig(t, gateway.Options{})
	ctx, s := t.Context(), r.service
	id := r.algorithm("mine", fmt.Sprintf(single, "a"))
	for what, err := range map[string]error{
		"activate":            s.ActivateAlgorithm(ctx, "other", id),
		"activate unknown":    s.ActivateAlgorithm(ctx, "mine", "routing_none"),
		"deactivate":          s.DeactivateAlgorithm(ctx, "other", id),
		"delete":              s.DeleteAlgorithm(ctx, "other", id),
		"update":              second(s.UpdateAlgorithm(ctx, gateway.AlgorithmChange{ID: id, Owner: "other", Name: "n", Algorithm: fmt.Appendf(nil, single, "b")})),
		"update unknown":      second(s.UpdateAlgorithm(ctx, gateway.AlgorithmChange{ID: "none", Owner: "mine", Name: "n", Algorithm: fmt.Appendf(nil, single, "b")})),
		"update without name": second(s.UpdateAlgorithm(ctx, gateway.AlgorithmChange{ID: id, Owner: "mine", Algorithm: fmt.Appendf(nil, single, "b")})),
		"a bad update":        second(s.UpdateAlgorithm(ctx, gateway.AlgorithmChange{ID: id, Owner: "mine", Name: "n", Algorithm: []byte(`{}`)})),
	} {
		if fault.KindOf(err) != fault.Invalid || err == nil {
			t.Errorf("%s: %v, want Invalid", what, err)
		}
	}
	if err := s.DeactivateAlgorithm(ctx, "mine", "routing_none"); err != nil {
		t.Errorf("deactivating what is not there: %v", err)
	}
	_, _, err := s.CreateAlgorithm(ctx, gateway.NewAlgorithm{ID: id, Owner: "other", Name: "n", Algorithm: fmt.Appendf(nil, single, "b")})
	if fault.KindOf(err) != fault.Conflict {
		t.Errorf("an id that is taken: %v", err)
	}
}

func second(_ gateway.AlgorithmRow, _ []string, err error) error { return err }

func TestPurposesAreApart(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.activate("o", r.algorithm("o", fmt.Sprintf(single, "pay")))
	row, _, err := r.service.CreateAlgorithm(t.Context(), gateway.NewAlgorithm{Owner: "o", Name: "n", Purpose: "payout", Algorithm: fmt.Appendf(nil, single, "out")})
	if err != nil {
		t.Fatal(err)
	}
	r.activate("o", row.ID)
	if got := r.evaluate("o"); got != "success pay" {
		t.Errorf("a payout algorithm took the place of the payment one: %s", got)
	}
	var a gateway.EvaluateAnswer
	if err := r.service.Evaluate(t.Context(), &gateway.EvaluateRequest{Owner: "o", Purpose: gateway.ForPayout}, &a); err != nil || a.Connectors[0].Gateway != "out" {
		t.Errorf("payout: %v, %v", a.Connectors, err)
	}
	if active, err := r.service.ActiveAlgorithms(t.Context(), "o"); err != nil || len(active) != 2 {
		t.Errorf("active: %v, %v", active, err)
	}
	if _, _, err := r.service.CreateAlgorithm(t.Context(), gateway.NewAlgorithm{Owner: "o", Name: "n", Purpose: "other", Algorithm: fmt.Appendf(nil, single, "x")}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("an unknown purpose: %v", err)
	}
}

// A merchant that is in memory must see an activation in its next decision.
func TestTheNextDecisionSeesAnActivation(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.merchant("shop")
	q := request("shop", "p1")
	q.Ranking = gateway.RankPriority
	if a := r.decide(q); a.Gateway != "alphapay" {
		t.Errorf("without a rule: %s", a.Gateway)
	}
	id := r.algorithm("shop", fmt.Sprintf(single, "kestrel"))
	r.activate("shop", id)
	if a := r.decide(q); a.Gateway != "kestrel" || a.Approach != gateway.ApproachPriority || a.Logic.Primary == nil || a.Logic.Primary.Name != "rule of shop" {
		t.Errorf("with a rule: %s by %s, %+v", a.Gateway, a.Approach, a.Logic)
	}
	if err := r.service.DeactivateAlgorithm(t.Context(), "shop", id); err != nil {
		t.Fatal(err)
	}
	if a := r.decide(q); a.Gateway != "alphapay" {
		t.Errorf("after it was deactivated: %s", a.Gateway)
	}
	r.activate("shop", id)
	r.stop()
	r.start()
	if a := r.decide(q); a.Gateway != "kestrel" {
		t.Errorf("after a restart: %s", a.Gateway)
	}
}

func TestStatusAndFallback(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.activate("o", r.algorithm("o", euro))
	hit := []gateway.Parameter{enum("payment_method", "card"), number("amount", 9900), enum("currency", "EUR"), {Key: "metadata"}}
	if got := r.evaluate("o", hit...); got != "success mercato,kestrel" {
		t.Errorf("the rule: %s", got)
	}
	if got := r.evaluate("o", enum("payment_method", "card"), number("amount", 5000), enum("currency", "EUR")); got != "default_selection alphapay" {
		t.Errorf("no rule: %s", got)
	}
	fallback := []gateway.Connector{{Gateway: "x", ID: "1"}, {Gateway: "y"}}
	var a gateway.EvaluateAnswer
	if err := r.service.Evaluate(t.Context(), &gateway.EvaluateRequest{Owner: "o", Fallback: fallback}, &a); err != nil ||
		a.Status != gateway.StatusDefault || a.Output.Kind != gateway.OutputPriority || !slices.Equal(a.Connectors, fallback) {
		t.Errorf("fallback: %+v, %v", a, err)
	}
	if err := r.service.Evaluate(t.Context(), &gateway.EvaluateRequest{Owner: "o", Fallback: fallback, Parameters: hit}, &a); err != nil ||
		a.Status != gateway.StatusSuccess || a.Rule != "big euro cards" || a.Connectors[0] != (gateway.Connector{Gateway: "mercato", ID: "acc_7"}) {
		t.Errorf("a rule and a fallback: %+v, %v", a, err)
	}
	if err := r.service.Evaluate(t.Context(), &gateway.EvaluateRequest{Owner: "none", Fallback: fallback}, &a); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a fallback does not stand in for an algorithm: %v", err)
	}
}

func TestParametersAreHeldToTheCatalogue(t *testing.T) {
	params := map[string]struct {
		p    gateway.Parameter
		want string
	}{
		"unknown key":          {number("shoe_size", 44), `parameter "shoe_size"`},
		"unknown key, null":    {gateway.Parameter{Key: "shoe_size"}, "default_selection"},
		"unknown, metadata":    {gateway.Parameter{Key: "shoe_size", Kind: gateway.ValueMetadata, Meta: "a", Text: "b"}, "default_selection"},
		"unknown word":         {enum("currency", "eur"), `parameter "currency": the value "eur"`},
		"enum of another type": {gateway.Parameter{Key: "currency", Kind: gateway.ValueText, Text: "EUR"}, "enum_variant is needed"},
		"enum, null":           {gateway.Parameter{Key: "currency"}, "enum_variant is needed"},
		"number, null":         {gateway.Parameter{Key: "surcharge_amount"}, "default_selection"},
		"never compared":       {enum("surcharge_amount", "many"), "default_selection"},
	}
	r := newRig(t, gateway.Options{})
	r.activate("o", r.algorithm("o", euro))
	for name, c := range params {
		if got := r.evaluate("o", c.p); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	// The amount is compared only once the payment method holds.
	wrong := gateway.Parameter{Key: "amount", Kind: gateway.ValueText, Text: "many"}
	if got := r.evaluate("o", enum("payment_method", "wallet"), wrong); got != "default_selection alphapay" {
		t.Errorf("a condition that is not reached: %s", got)
	}
	if got := r.evaluate("o", enum("payment_method", "card"), wrong); !strings.Contains(got, `InvalidComparison: rule "big euro cards" compares "amount"`) {
		t.Errorf("a condition that is reached: %s", got)
	}
	lenient := newRig(t, gateway.Options{Deployment: gateway.Deployment{IgnoreUnknown: true}})
	lenient.activate("o", lenient.algorithm("o", euro))
	var a gateway.EvaluateAnswer
	err := lenient.service.Evaluate(t.Context(), &gateway.EvaluateRequest{Owner: "o", Parameters: []gateway.Parameter{number("shoe_size", 44)}}, &a)
	if err != nil || !slices.Equal(a.Ignored, []string{"shoe_size"}) {
		t.Errorf("ignored %v, %v", a.Ignored, err)
	}
}

func TestFiltersDropConnectors(t *testing.T) {
	filters, err := gateway.ParseFilters(map[string]any{
		"mercato": map[string]any{"apple_pay": map[string]any{"country": "US, PT", "currency": []any{"EUR"}, "not_available_flows": map[string]any{"capture_method": "manual"}}},
		"default": map[string]any{"apple_pay": map[string]any{"country": "Germany"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, gateway.Options{Filters: filters})
	r.activate("o", r.algorithm("o", `{"type":"priority","data":[{"gateway_name":"mercato"},{"gateway_name":"kestrel"}]}`))
	pay := enum("payment_method_type", "apple_pay")
	for _, c := range []struct {
		want   string
		params []gateway.Parameter
	}{
		{"success mercato,kestrel", []gateway.Parameter{enum("billing_country", "France")}},
		{"success mercato,kestrel", []gateway.Parameter{pay}},
		{"success ", []gateway.Parameter{pay, enum("billing_country", "France")}},
		{"success mercato", []gateway.Parameter{pay, enum("billing_country", "UnitedStates"), enum("currency", "EUR")}},
		{"success kestrel", []gateway.Parameter{pay, enum("billing_country", "Germany")}},
		{"success kestrel", []gateway.Parameter{pay, enum("currency", "USD")}},
		{"success kestrel", []gateway.Parameter{pay, enum("capture_method", "manual")}},
		{"success mercato,kestrel", []gateway.Parameter{enum("payment_method_type", "klarna"), enum("billing_country", "France")}},
	} {
		if got := r.evaluate("o", c.params...); got != c.want {
			t.Errorf("%v: %s, want %s", c.params, got, c.want)
		}
	}
	for _, bad := range []map[string]any{{"x": 1}, {"x": map[string]any{"y": 1}}, {"x": map[string]any{"y": map[string]any{"country": 1}}},
		{"x": map[string]any{"y": map[string]any{"not_available_flows": 1}}}} {
		if _, err := gateway.ParseFilters(bad); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "pm_filters.x") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestAnExperimentIsStoredAndDoesNotSteer(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.activate("o", r.algorithm("o", `{"type":"ab_test","data":{"control_algorithm_id":"sr_routing","variant_algorithm_id":"routing_1","variant_split_pct":10}}`))
	if got := r.evaluate("o"); !strings.Contains(got, "ab_test") {
		t.Errorf("evaluated: %s", got)
	}
}

func TestAnOwnersAlgorithmsHaveBounds(t *testing.T) {
	r := newRig(t, gateway.Options{})
	big := []byte(`"` + strings.Repeat("x", 3<<20) + `"`)
	var err error
	stored := 0
	for ; err == nil && stored < 20; stored++ {
		_, _, err = r.service.CreateAlgorithm(t.Context(), gateway.NewAlgorithm{Owner: "o", Name: "n", Algorithm: fmt.Appendf(nil, single, "a"), Metadata: big})
	}
	if fault.KindOf(err) != fault.Invalid || stored != 11 {
		t.Errorf("%d were stored, then %v", stored-1, err)
	}
	if _, _, err := r.service.CreateAlgorithm(t.Context(), gateway.NewAlgorithm{Owner: "p", Name: "n", Algorithm: fmt.Appendf(nil, single, "a")}); err != nil {
		t.Errorf("another owner: %v", err)
	}
}

func TestTimesOfAlgorithms(t *testing.T) {
	at := time.Date(2026, 3, 9, 8, 15, 30, 120045000, time.UTC)
	r := newRig(t, gateway.Options{Now: func() time.Time { return at }})
	r.algorithm("o", euro)
	rows, err := r.service.Algorithms(t.Context(), "o")
	if err != nil || gateway.Stamp(rows[0].CreatedUS) != "2026-03-09 08:15:30.120045" || rows[0].ModifiedUS != rows[0].CreatedUS {
		t.Errorf("%+v, %v", rows, err)
	}
	if strings.ContainsAny(string(rows[0].Data), "\n\t") || !strings.HasPrefix(string(rows[0].Data), `{"type":"advanced","data":{"globals"`) {
		t.Errorf("stored as %s", rows[0].Data)
	}
}

// evaluation is the example of the contract as a request.
func evaluation() *gateway.EvaluateRequest {
	return &gateway.EvaluateRequest{Owner: "o", PaymentID: "ord-7741-1", Parameters: []gateway.Parameter{
		enum("payment_method", "card"), number("amount", 9900), enum("currency", "EUR"), enum("card_network", "VISA"),
		{Key: "card_bin", Kind: gateway.ValueText, Text: "453210"}, enum("billing_country", "Portugal")}}
}

func TestEvaluateAllocatesNothing(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.activate("o", r.algorithm("o", euro))
	q, ctx := evaluation(), t.Context()
	var a gateway.EvaluateAnswer
	n := testing.AllocsPerRun(2000, func() {
		if err := r.service.Evaluate(ctx, q, &a); err != nil {
			t.Fatal(err)
		}
	})
	if n > 0 { // the trail's queue is the only one that grows, and not with every event
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEvaluate(b *testing.B) {
	r := newRig(b, gateway.Options{})
	r.activate("o", r.algorithm("o", euro))
	q, ctx := evaluation(), b.Context()
	var a gateway.EvaluateAnswer
	b.ReportAllocs()
	for b.Loop() {
		if err := r.service.Evaluate(ctx, q, &a); err != nil {
			b.Fatal(err)
		}
	}
}

// Whoever was answered that an algorithm is active sees it, whatever others ask meanwhile.
func TestActivationsAreSeenAtOnce(t *testing.T) {
	r := newRig(t, gateway.Options{})
	ids := [2]string{r.algorithm("o", fmt.Sprintf(single, "g0")), r.algorithm("o", fmt.Sprintf(single, "g1"))}
	done := make(chan struct{})
	var others sync.WaitGroup
	for range 2 {
		others.Go(func() {
			var a gateway.EvaluateAnswer
			for {
				select {
				case <-done:
					return
				default:
					_ = r.service.Evaluate(t.Context(), &gateway.EvaluateRequest{Owner: "o"}, &a)
				}
			}
		})
	}
	for i := range 50 {
		r.activate("o", ids[i%2])
		if got, want := r.evaluate("o"), fmt.Sprintf("success g%d", i%2); got != want {
			t.Errorf("after activation %d: %s, want %s", i, got, want)
		}
	}
	close(done)
	others.Wait()
}

func TestWhatTheOperatorConfiguresOfRules(t *testing.T) {
	r := newRig(t, gateway.Options{Deployment: gateway.Deployment{
		RoutingKeys: map[string]any{"shoe_size": map[string]any{"type": "integer"}},
		Filters:     map[string]any{"default": map[string]any{}},
	}})
	if keys := r.service.RoutingKeys(); len(keys) != 1 || keys[0].Name != "shoe_size" {
		t.Errorf("keys %v", keys)
	}
	for _, d := range []gateway.Deployment{{RoutingKeys: map[string]any{"k": 1}}, {Filters: map[string]any{"k": 1}}} {
		if _, err := gateway.Open(t.Context(), gateway.Options{Deployment: d}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%+v: %v", d, err)
		}
	}
}

func TestEvaluationsGoOnWhileTheDiskIsFull(t *testing.T) {
	r := newRig(t, gateway.Options{})
	for _, owner := range []string{"warm", "cold"} {
		r.activate(owner, r.algorithm(owner, fmt.Sprintf(single, "g")))
	}
	r.stop()
	r.start()
	if got := r.evaluate("warm"); got != "success g" {
		t.Errorf("before: %s", got)
	}
	r.full.Store(true)
	for _, owner := range []string{"warm", "cold"} {
		if got := r.evaluate(owner); got != "success g" {
			t.Errorf("%s, on a full disk: %s", owner, got)
		}
	}
	if got := r.evaluate("nobody"); !strings.Contains(got, "no active") {
		t.Errorf("nobody, on a full disk: %s", got)
	}
	if _, _, err := r.service.CreateAlgorithm(t.Context(), gateway.NewAlgorithm{Owner: "warm", Name: "n", Algorithm: fmt.Appendf(nil, single, "h")}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("stored on a full disk: %v", err)
	}
	r.full.Store(false)
	r.activate("cold", r.algorithm("cold", fmt.Sprintf(single, "h")))
	if got := r.evaluate("cold"); got != "success h" {
		t.Errorf("with room again: %s", got)
	}
}

// Whoever stops waiting does not look at what the change still writes; the race detector watches.
func TestGivenUpChangesAreLeftAlone(t *testing.T) {
	r := newRig(t, gateway.Options{})
	id := r.algorithm("o", fmt.Sprintf(single, "g"))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 20 {
		change := gateway.AlgorithmChange{ID: id, Owner: "o", Name: fmt.Sprint(i), Algorithm: fmt.Appendf(nil, single, "h")}
		if row, _, err := r.service.UpdateAlgorithm(gone, change); err != nil && row.ID != "" {
			t.Errorf("an error and a row: %v, %+v", err, row)
		}
		var a gateway.EvaluateAnswer
		if err := r.service.Evaluate(gone, &gateway.EvaluateRequest{Owner: gateway.MerchantID(fmt.Sprint("owner", i))}, &a); err == nil {
			t.Error("evaluated what is not there")
		}
	}
	if rows, err := r.service.Algorithms(t.Context(), "o"); err != nil || len(rows) != 1 {
		t.Errorf("%v, %v", rows, err)
	}
}
