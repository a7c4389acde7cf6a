package gateway

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"slices"

	"holdfast/fault"
)

// The service configs beside one for each feature, which is named by its slug. The names are those of the reference, but for
// the threshold's, which has none there.
const (
	configDefaultSuccess = "SR_V3_INPUT_CONFIG_DEFAULT"
	configPenalty        = "gateway_penalty_factor"
	configReward         = "gateway_reward_factor"
	configSoftReset      = "gateway_reset_score_enabled"
	configThreshold      = "gateway_elimination_threshold"
)

// serviceTable leads the names of service configs among the tables of the deployment.
const serviceTable = "service/"

// ServiceConfigs are the names of what can be configured for all merchants.
func ServiceConfigs() []string {
	return append([]string{configDefaultSuccess, configPenalty, configReward, configSoftReset, configThreshold}, featureSlugs[:]...)
}

// FeatureDefault is the service config of a feature: on for the merchants that are not excluded.
type FeatureDefault struct {
	EnableAll bool `json:"enableAll"`
	Rollout   *int `json:"enableAllRollout"` // percent; nil is 100
}

// loadDeployment reads what applies to all merchants.
func (s *Service) loadDeployment(v View) (*deployment, error) {
	d := &deployment{threshold: 0.05, penalty: 5, reward: 5.26, exploreOnly: s.options.Deployment.ExploredOnly}
	for _, name := range ServiceConfigs() {
		document, err := v.Table(serviceTable + name)
		if err != nil {
			return nil, err
		}
		if document == nil {
			continue
		}
		if err := d.apply(name, document); err != nil {
			return nil, fault.Wrap("gateway.loadDeployment", fault.Internal, err, "a stored service config cannot be read")
		}
	}
	return d, nil
}

// apply puts a service config into effect; Invalid when it is not what its name stands for.
func (d *deployment) apply(name string, document []byte) error {
	const op = "ServiceConfig"
	switch name {
	case configDefaultSuccess:
		var data SuccessData
		if json.Unmarshal(document, &data) != nil {
			return invalid(op, "%s must be a success-rate config", name)
		}
		d.success = data.config()
		return data.check()
	case configPenalty:
		return percentage(name, document, &d.penalty)
	case configReward:
		return percentage(name, document, &d.reward)
	case configThreshold:
		if json.Unmarshal(document, &d.threshold) != nil || !(d.threshold > 0 && d.threshold <= 1) {
			return invalid(op, "%s must be a number above 0 and at most 1", name)
		}
		return nil
	case configSoftReset:
		if json.Unmarshal(document, &d.softReset) != nil {
			return invalid(op, "%s must be true or false", name)
		}
		return nil
	}
	f, err := FeatureOf(name)
	if err != nil {
		return err
	}
	var data FeatureDefault
	if jsontext.Value(document).Kind() != '{' || json.Unmarshal(document, &data) != nil || data.Rollout != nil && (*data.Rollout < 0 || *data.Rollout > 100) {
		return invalid(op, "%s must be {\"enableAll\":true,\"enableAllRollout\":100} or the like, the rollout from 0 to 100", name)
	}
	d.features[f] = Switch{On: data.EnableAll, Rollout: 100}
	if data.Rollout != nil {
		d.features[f].Rollout = *data.Rollout
	}
	return nil
}

// percentage reads a factor. One of 100 or more would let a single outcome take or give a whole score.
func percentage(name string, document []byte, to *float64) error {
	if json.Unmarshal(document, to) != nil || !(*to >= 0 && *to < 100) {
		return invalid("ServiceConfig", "%s must be a percentage from 0 to less than 100", name)
	}
	return nil
}

// ServiceConfig returns what is stored under one of the names of ServiceConfigs. NotFound when nothing is, or for another name.
func (s *Service) ServiceConfig(ctx context.Context, name string) (document []byte, err error) {
	if !slices.Contains(ServiceConfigs(), name) {
		return nil, noServiceConfig(name)
	}
	err = s.storage.Read(ctx, func(v View) error {
		document, err = v.Table(serviceTable + name)
		return err
	})
	if err == nil && document == nil {
		err = notFound("ServiceConfig", "%s is not configured", name)
	}
	return document, err
}

func noServiceConfig(name string) *fault.Error {
	return notFound("ServiceConfig", "there is no service config %q", clip(name))
}

// SetServiceConfig stores a JSON document under one of the names of ServiceConfigs, for the next request to see; nil removes
// it. Invalid when it is not what the name stands for, NotFound for another name.
func (s *Service) SetServiceConfig(ctx context.Context, name string, document []byte) error {
	if !slices.Contains(ServiceConfigs(), name) {
		return noServiceConfig(name)
	}
	if document != nil {
		if len(document) > maxServiceConfig {
			return invalid("ServiceConfig", "%s is longer than %d bytes", name, maxServiceConfig)
		}
		if jsontext.Value(document).Kind() == 'n' {
			return invalid("ServiceConfig", "%s must not be null: remove it instead", name)
		}
		if err := new(deployment).apply(name, document); err != nil {
			return err
		}
	}
	var fresh *deployment
	return s.write(ctx, func(tx Tx) (err error) {
		if err := tx.SetTable(serviceTable+name, document); err != nil {
			return err
		}
		fresh, err = s.loadDeployment(tx)
		return err
	}, func() { s.deployment.Store(fresh) })
}

// maxServiceConfig bounds a service config, in bytes.
const maxServiceConfig = 1 << 20
