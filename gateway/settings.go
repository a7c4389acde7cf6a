package gateway

import "sync/atomic"

// settings is everything that a decision reads of one merchant's configuration. It is immutable: a change makes a new one,
// and every request reads one of them whole.
type settings struct {
	row         MerchantRow
	features    [featureCount]Switch
	excluded    [featureCount]bool // the deployment's switches do not count
	wide        *atomic.Pointer[deployment]
	success     *SuccessConfig     // nil when nothing is stored
	elimination *EliminationConfig // nil when nothing is stored
	debit       *DebitConfig       // nil when nothing is stored
	debitOn     bool               // the debit-routing switch
	dimensions  Dimensions
	priority    []Name                   // gateway_priority, in order
	active      [purposeCount]*Algorithm // compiled; nil when none is active
	costs       costBook                 // seed costs
	outages     *outageList              // the merchant's own
	input       []byte                   // the elimination config as stored
}

// Feature is one of the switches of the management API, in the order in which it lists them.
type Feature uint8

// The features.
const (
	FeatureGSM         Feature = iota // gsm-scoring-filter
	FeatureExplore                    // explore-exploit-srv3
	FeatureExperiments                // ab-test-real-payments
	FeatureCost                       // multi-objective-routing
	FeatureElimination                // elimination
	FeatureCalibration                // auto-calibration
	FeatureAutopilot                  // autopilot
	featureCount
)

// Switch says for how much of a merchant's traffic a feature is on: a uniform draw of 1 to 100 must not exceed Rollout.
type Switch struct {
	On      bool
	Rollout int // 1 to 100
}

// Purpose is what an algorithm routes.
type Purpose uint8

// The purposes.
const (
	ForPayment Purpose = iota
	ForPayout
	ForThreeDS
	purposeCount
)

// SuccessConfig is a merchant's, or the deployment's, success-rate configuration. A zero value is not set; the spec's
// built-in values are resolved in resolve.go.
type SuccessConfig struct {
	LatencyThreshold float64 // seconds; 0 when not set
	Bucket           int     // entries of a window; 0 when not set
	Hedging          float64 // percent; negative when not set
	LowerReset       float64 // negative when not set
	UpperReset       float64 // negative when not set
	ExtraScores      []ExtraScore
	Margin           float64 // 0 when not set
	Rows             []SuccessRow
}

// ExtraScore is a gateway's sigma factor.
type ExtraScore struct {
	Gateway Name
	Sigma   float64
}

// SuccessRow is one subLevelInputConfig row: constraints (empty matches all) and values as in SuccessConfig.
type SuccessRow struct {
	MethodType, Method, Network, BIN, Currency, Country, AuthType, Source string
	LatencyThreshold                                                      float64
	Bucket                                                                int
	Hedging, LowerReset, UpperReset                                       float64
	ExtraScores                                                           []ExtraScore
}

// EliminationConfig says when a gateway counts as down.
type EliminationConfig struct {
	Threshold float64 // 0 to 1; 0 when not set
	Latency   float64 // ms: slower outcomes than this are judged apart; 0 when not set
}

// DebitConfig is a merchant's debit routing data.
type DebitConfig struct {
	CategoryCode    string
	AcquirerCountry string
}

// Dimensions says which facts of a payment make windows of their own, in order.
type Dimensions struct {
	Fields []string // of card_network, card_is_in, currency, country, auth_type
	UDFs   []int    // numbers of user-defined fields
	Stored bool     // something was stored, if only an empty list
}

// deployment is what applies to all merchants; immutable as settings are.
type deployment struct {
	features    [featureCount]Switch // on for merchants that are not excluded
	success     *SuccessConfig       // SR_V3_INPUT_CONFIG_DEFAULT
	threshold   float64              // elimination threshold without another
	penalty     float64              // gateway_penalty_factor, percent
	reward      float64              // gateway_reward_factor, percent
	softReset   bool                 // gateway_reset_score_enabled
	exploreOnly bool                 // count only the feedback of explored decisions, as the reference does
}
