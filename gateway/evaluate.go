package gateway

import (
	"context"

	"holdfast/fault"
	"holdfast/internal/strictjson"
)

// MaxParameters is how many parameters an evaluation takes.
const MaxParameters = 1024

// Parameter is one value that rules are evaluated over. Other kinds than number, enum, text and metadata are taken and
// compare with nothing.
type Parameter struct {
	Key    string
	Kind   ValueKind
	Number uint64
	Text   string // of an enum, a string or metadata
	Meta   string // the metadata's own key
}

// EvaluateRequest asks what the active algorithm of an owner says.
type EvaluateRequest struct {
	PaymentID  string
	Owner      MerchantID
	Purpose    Purpose
	Fallback   []Connector // instead of the default selection
	Parameters []Parameter // keys differ
	RequestID  string
}

// The statuses of an evaluation.
const (
	StatusSuccess = "success"           // a rule matched, or the algorithm has none
	StatusDefault = "default_selection" // no rule matched
)

// EvaluateAnswer is what an evaluation answers. It may be used again; Output may be part of the algorithm and must not be
// changed.
type EvaluateAnswer struct {
	Status     string
	Output     *Output
	Connectors []Connector // in the order in which they are to be tried, those that are not eligible left out
	Rule       string      // that matched; empty when none did
	Matched    bool        // a rule matched
	Ignored    []string    // parameters that the catalogue does not have, when those are ignored

	values   []value
	fallback Output
	facts    filterFacts
	details  []byte
}

// Evaluate runs the active algorithm of an owner over the parameters. Invalid when there is none, when a parameter is not as
// the catalogue has it, or when a condition that is reached compares values of two types. It does no I/O once the owner was
// asked for, and allocates nothing once the answer was used.
func (s *Service) Evaluate(ctx context.Context, r *EvaluateRequest, a *EvaluateAnswer) error {
	clear(a.values)
	a.Status, a.Output, a.Rule, a.Matched, a.facts = "", nil, "", false, filterFacts{}
	a.Connectors, a.Ignored = a.Connectors[:0], a.Ignored[:0]
	alg, err := s.active(ctx, activeKey{r.Owner, r.Purpose})
	if err == nil {
		err = s.evaluate(alg, r, a)
	}
	s.evaluated(alg, r, a, err)
	return err
}

func (s *Service) evaluate(alg *Algorithm, r *EvaluateRequest, a *EvaluateAnswer) error {
	if alg.broken != nil {
		return alg.broken
	}
	if alg.Kind == KindExperiment {
		return invalid("Evaluate", "the active algorithm %s is an ab_test, which has no output of its own", quoted(alg.Name))
	}
	if err := s.place(alg.program, r, a); err != nil {
		return err
	}
	a.Status, a.Output = StatusSuccess, alg.output
	if p := alg.program; p != nil {
		went := p.run(a.values)
		if went.wrong != nil {
			return p.mismatch(went, a.values)
		}
		a.Output = went.output
		if went.rule != nil {
			a.Rule, a.Matched = went.rule.name, true
		} else if a.Status = StatusDefault; len(r.Fallback) > 0 {
			a.fallback = Output{Kind: OutputPriority, Connectors: r.Fallback}
			a.Output = &a.fallback
		}
	}
	var draw uint64
	if len(a.Output.Splits) > 0 {
		draw = s.options.Entropy()
	}
	a.Connectors = a.Output.appendConnectors(a.Connectors, draw)
	a.Connectors = s.options.Filters.eligible(a.Connectors, &a.facts)
	return nil
}

// place holds the parameters to the catalogue and puts them into the program's slots. p is nil for algorithms without rules.
func (s *Service) place(p *program, r *EvaluateRequest, a *EvaluateAnswer) error {
	if p != nil {
		a.values = slots(a.values, len(p.names))
	}
	for i := range r.Parameters {
		v := &r.Parameters[i]
		key := s.options.Catalogue.key(v.Key)
		switch {
		case key == nil && v.Kind != ValueNull && v.Kind != ValueMetadata:
			if !s.options.Deployment.IgnoreUnknown {
				return badParameter(v, "the catalogue has no such key")
			}
			a.Ignored = append(a.Ignored, v.Key)
			continue
		case key != nil && key.Type == KeyEnum && v.Kind != ValueEnum:
			return badParameter(v, "an enum_variant is needed, not a "+v.Kind.String())
		case key != nil && key.Type == KeyEnum:
			if why := key.checkWord(v.Text); why != "" {
				return badParameter(v, "the value "+quoted(v.Text)+" "+why)
			}
			a.facts.note(v)
		}
		if p == nil {
			continue
		}
		if slot, used := p.slots[v.Key]; used {
			a.values[slot] = value{kind: v.Kind, number: v.Number, text: v.Text, meta: v.Meta}
		}
	}
	return nil
}

func badParameter(v *Parameter, why string) *fault.Error {
	return invalid("Evaluate", "parameter %s: %s", quoted(v.Key), why)
}

// evaluateFlows are the events of the types of algorithm.
var evaluateFlows = [...]Flow{KindSingle: FlowEvaluateSingle, KindPriority: FlowEvaluatePriority, KindSplit: FlowEvaluateSplit,
	KindAdvanced: FlowEvaluateAdvanced, KindExperiment: FlowEvaluateError}

// evaluated records an evaluation for the audit trail.
func (s *Service) evaluated(alg *Algorithm, r *EvaluateRequest, a *EvaluateAnswer, err error) {
	e := Event{TimeMS: s.nowMS(), Route: RouteEvaluate, Merchant: r.Owner, PaymentID: r.PaymentID, RequestID: r.RequestID}
	for i := range r.Parameters {
		e.note(&r.Parameters[i])
	}
	if err != nil {
		e.Flow, e.Stage, e.Status, e.Failed = FlowEvaluateError, StageFailed, "failure", true
		if fault.KindOf(err) == fault.Invalid {
			e.Stage = StageInvalid
		}
		e.ErrorCode, e.ErrorMessage = tell(err)
		s.trail.post(&e)
		return
	}
	e.Flow, e.Stage, e.Status, e.Rule = evaluateFlows[alg.Kind], StagePreview, "success", a.Rule
	if len(a.Connectors) > 0 {
		e.Gateway = a.Connectors[0].Gateway
	}
	a.details = a.appendDetails(a.details[:0], alg)
	e.Details = a.details
	s.trail.post(&e)
	if a.Matched {
		s.metrics.ruleHit(a.Rule)
	}
}

// RouteEvaluate is the route of an evaluation in the audit trail.
const RouteEvaluate = "rule_evaluate"

// note takes a parameter into the columns by which the audit trail is filtered.
func (e *Event) note(v *Parameter) {
	switch v.Key {
	case "payment_method":
		e.MethodType = v.Text
	case "payment_method_type":
		e.Method = v.Text
	case "card_network":
		e.Network = v.Text
	case "card_bin":
		e.BIN = v.Text
	case "currency":
		e.Currency = v.Text
	case "billing_country":
		e.Country = v.Text
	case "authentication_type":
		e.AuthType = v.Text
	}
}

// appendDetails appends what the audit trail shows of an evaluation. Lists are cut to what it keeps.
func (a *EvaluateAnswer) appendDetails(dst []byte, alg *Algorithm) []byte {
	const most = 64
	dst = append(dst, `{"algorithm":`...)
	dst = strictjson.AppendString(dst, alg.Name)
	dst = append(dst, `,"algorithm_id":`...)
	dst = strictjson.AppendString(dst, alg.ID)
	dst = append(dst, `,"status":"`...)
	dst = append(dst, a.Status...)
	dst = append(dst, `","output":"`...)
	dst = append(dst, a.Output.Kind.String()...)
	dst = append(dst, `","connectors":[`...)
	for i := range min(len(a.Connectors), most) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strictjson.AppendString(dst, string(a.Connectors[i].Gateway))
	}
	return append(dst, "]}"...)
}
