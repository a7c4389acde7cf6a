package gateway

import (
	"context"
	"slices"
)

// featureSlugs are the names of the features in the management API, in its order.
var featureSlugs = [featureCount]string{"gsm-scoring-filter", "explore-exploit-srv3", "ab-test-real-payments", "multi-objective-routing",
	"elimination", "auto-calibration", "autopilot"}

// String is the feature's slug.
func (f Feature) String() string { return featureSlugs[f] }

// FeatureOf returns the feature with the slug; Invalid when there is none.
func FeatureOf(slug string) (Feature, error) {
	i := slices.Index(featureSlugs[:], slug)
	if i < 0 {
		return 0, invalid("Feature", "unknown feature %q", clip(slug))
	}
	return Feature(i), nil
}

// FeatureRow is what is stored of one feature and one merchant. Without a row the deployment's switch counts alone; with one
// that is off the merchant does not have the feature, whatever the deployment says.
type FeatureRow struct {
	Feature string // slug
	Switch
}

// FeatureState is one feature as shown.
type FeatureState struct {
	Feature string
	Enabled bool // for some of the merchant's traffic at least
}

// Features returns all features of a merchant, in the API's order. NotFound when there is no such merchant.
func (s *Service) Features(ctx context.Context, id MerchantID) ([]FeatureState, error) {
	m, err := s.known(ctx, "Features", id)
	if err != nil {
		return nil, err
	}
	return m.settings.Load().states(), nil
}

// states shows all features.
func (set *settings) states() []FeatureState {
	all := make([]FeatureState, featureCount)
	for f := range featureCount {
		all[f] = FeatureState{Feature: f.String(), Enabled: set.rollout(f) > 0}
	}
	return all
}

// SetFeature switches one feature of a merchant and leaves the others as they are; a rollout of 0 counts as 100. Invalid for a
// rollout past 100, NotFound when there is no such merchant.
func (s *Service) SetFeature(ctx context.Context, id MerchantID, f Feature, to Switch) ([]FeatureState, error) {
	const op = "SetFeature"
	if err := checkMerchant(op, id); err != nil {
		return nil, err
	}
	if to.Rollout == 0 {
		to.Rollout = 100
	}
	if to.Rollout < 0 || to.Rollout > 100 {
		return nil, invalid(op, "rollout must be from 1 to 100")
	}
	after, err := s.reconfigured(ctx, id, func(tx Tx, m MerchantRow) error {
		return tx.SetFeature(m.Key, FeatureRow{f.String(), to})
	})
	if err != nil {
		return nil, err
	}
	s.warnOfHedging(after)
	return after.states(), nil
}

// loadFeatures reads the merchant's switches.
func (set *settings) loadFeatures(v View) error {
	rows, err := v.Features(set.row.Key)
	for _, row := range rows {
		f, unknown := FeatureOf(row.Feature)
		if unknown != nil {
			continue // of a later release
		}
		set.features[f] = row.Switch
		set.excluded[f] = !row.On
	}
	return err
}

// has reports whether a feature is on for this request: a uniform draw of 1 to 100 must not exceed the rollout.
func (set *settings) has(f Feature, draw uint64) bool { return int(draw%100)+1 <= set.rollout(f) }

// rollout is the percentage of the merchant's traffic that has the feature: the wider of its own switch and the deployment's,
// 0 when the merchant is excluded.
func (set *settings) rollout(f Feature) int {
	rollout := 0
	if own := set.features[f]; own.On {
		rollout = own.Rollout
	}
	if set.wide == nil || set.excluded[f] {
		return rollout
	}
	if d := set.wide.Load(); d != nil && d.features[f].On {
		rollout = max(rollout, d.features[f].Rollout)
	}
	return rollout
}
