package gateway_test

import (
	"strings"
	"sync"
	"testing"

	"holdfast/fault"
	"holdfast/gateway"
)

var slugs = []string{"gsm-scoring-filter", "explore-exploit-srv3", "ab-test-real-payments", "multi-objective-routing", "elimination", "auto-calibration", "autopilot"}

// on lists the slugs that are on, in the order of the answer.
func on(all []gateway.FeatureState) string {
	var on []string
	for _, f := range all {
		if f.Enabled {
			on = append(on, f.Feature)
		}
	}
	return strings.Join(on, " ")
}

func TestFeaturesInOrder(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.create("shop")
	all, err := r.service.Features(t.Context(), "shop")
	r.must(err)
	for i, f := range all {
		if f.Feature != slugs[i] || f.Enabled {
			t.Errorf("feature %d: %+v", i, f)
		}
	}
	if len(all) != len(slugs) {
		t.Errorf("%d features", len(all))
	}
	if _, err := gateway.FeatureOf("Elimination"); fault.KindOf(err) != fault.Invalid || err == nil {
		t.Errorf("an unknown slug: %v", err)
	}
	_, err = r.service.Features(t.Context(), "nobody")
	r.refused("of nobody", err, fault.NotFound)
	_, err = r.service.SetFeature(t.Context(), "nobody", gateway.FeatureCost, gateway.Switch{On: true})
	r.refused("for nobody", err, fault.NotFound)
	_, err = r.service.SetFeature(t.Context(), "shop", gateway.FeatureCost, gateway.Switch{On: true, Rollout: 101})
	r.refused("a rollout past 100", err, fault.Invalid)
}

// All features of many merchants at the same moment: nothing is lost.
func TestFeaturesAtOnceLoseNothing(t *testing.T) {
	r := newRig(t, gateway.Options{})
	merchants := []gateway.MerchantID{"a", "b", "c"}
	for _, m := range merchants {
		r.create(m)
	}
	var wait sync.WaitGroup
	for _, m := range merchants {
		for _, slug := range slugs {
			wait.Go(func() {
				f, err := gateway.FeatureOf(slug)
				if err == nil {
					_, err = r.service.SetFeature(t.Context(), m, f, gateway.Switch{On: true})
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	wait.Wait()
	for range 2 {
		for _, m := range merchants {
			if all, err := r.service.Features(t.Context(), m); err != nil || on(all) != strings.Join(slugs, " ") {
				t.Errorf("%s: %s, %v", m, on(all), err)
			}
		}
		r.stop()
		r.start()
	}
}

func TestFeaturesOfTheDeployment(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.create("shop")
	r.create("other")
	r.must(r.service.SetServiceConfig(t.Context(), "elimination", []byte(`{"enableAll":true}`)))
	for range 2 {
		for _, m := range []gateway.MerchantID{"shop", "other"} {
			if all, err := r.service.Features(t.Context(), m); err != nil || on(all) != "elimination" {
				t.Errorf("%s: %s, %v", m, on(all), err)
			}
		}
		r.stop()
		r.start()
	}
	all, err := r.service.SetFeature(t.Context(), "shop", gateway.FeatureElimination, gateway.Switch{})
	if err != nil || on(all) != "" {
		t.Errorf("a merchant that is excluded has %q, %v", on(all), err)
	}
	if all, err := r.service.Features(t.Context(), "other"); err != nil || on(all) != "elimination" {
		t.Errorf("the other has %q, %v", on(all), err)
	}
	r.must(r.service.SetServiceConfig(t.Context(), "elimination", nil))
	if all, err := r.service.Features(t.Context(), "other"); err != nil || on(all) != "" {
		t.Errorf("afterwards the other has %q, %v", on(all), err)
	}
}
