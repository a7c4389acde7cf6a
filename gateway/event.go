package gateway

// Flow is the kind of an event in the audit trail; its text is the wire's flow_type.
type Flow string

// The flows this service records.
const (
	FlowDecision         Flow = "decide_gateway_decision"
	FlowRuleHit          Flow = "decide_gateway_rule_hit"
	FlowDecideError      Flow = "decide_gateway_error"
	FlowUpdate           Flow = "update_gateway_score_update"
	FlowScoreSnapshot    Flow = "update_gateway_score_score_snapshot"
	FlowUpdateError      Flow = "update_gateway_score_error"
	FlowEvaluateSingle   Flow = "routing_evaluate_single"
	FlowEvaluatePriority Flow = "routing_evaluate_priority"
	FlowEvaluateSplit    Flow = "routing_evaluate_volume_split"
	FlowEvaluateAdvanced Flow = "routing_evaluate_advanced"
	FlowEvaluatePreview  Flow = "routing_evaluate_preview"
	FlowEvaluateError    Flow = "routing_evaluate_error"
)

// Stage is how far a request came; its text is the wire's event_stage.
type Stage string

// The stages.
const (
	StageDecided      Stage = "gateway_decided"
	StageRule         Stage = "rule_applied"
	StageUpdated      Stage = "score_updated"
	StagePreview      Stage = "preview_evaluated"
	StageReadFailed   Stage = "request_read_failed"
	StageParseFailed  Stage = "request_parse_failed"
	StageInvalid      Stage = "validation_failed"
	StageFailed       Stage = "request_failed"
	StageUpdateFailed Stage = "score_update_failed"
)

// Event is one thing that happened to a payment, for the audit trail and the analytics. Events leave the hot path through
// a bounded queue (trail.go): when it is full they are dropped and counted.
type Event struct {
	TimeMS    int64
	Flow      Flow
	Stage     Stage
	Route     string // decide_gateway, update_gateway or rule_evaluate; the analytics put a slash in front
	Merchant  MerchantID
	PaymentID string
	RequestID string

	MethodType, Method, Network, BIN, Currency, Country, AuthType string

	Gateway      Name
	Approach     Approach
	Rule         string // name of the rule that matched
	Status       string // success or failure, or the payment's status for feedback
	Failed       bool   // the event counts as a failure
	Retry        bool   // feedback that said isSmartRetry
	ErrorCode    string
	ErrorMessage string

	Scored       bool    // the five below mean something
	Score        float64 // of Gateway
	Sigma        float64
	Latency      float64 // ms, average
	TP99         float64 // ms
	Transactions int64   // in the window

	Saved   float64 // cost saved, in the payment's currency
	Details []byte  // JSON object, at most 65,536 bytes; nil for none
}
