package gateway

// Deployment is what the operator configures for all merchants. The zero value takes the spec's defaults.
type Deployment struct {
	FeedbackWindowSeconds int  // feedback later than this after its decision is ignored; 0 is 600
	SlowRewards           bool // an outcome slower than the elimination config allows still rewards
	ReferencePenalties    bool // penalise STARTED and PENDING_VBV only, as the reference does
	ExploredOnly          bool // with exploration on, count the feedback of explored decisions only
	IgnoreUnknown         bool // rule evaluation ignores parameters that the catalogue does not have
	APIKeysOff            bool // api_key_auth_enabled = false

	// What the operator's file holds in these sections, as a TOML parser returns it (maps, lists, texts, int64, float64, bool);
	// from the environment all values are texts. nil is the built-in table.
	RoutingKeys map[string]any // [routing_config.keys]
	Filters     map[string]any // [pm_filters]
}
