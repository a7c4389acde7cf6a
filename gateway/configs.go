package gateway

import (
	"context"
	"log/slog"
)

// SettingView reads what merchants configure; each setting is one document that this package packs.
type SettingView interface {
	// Setting returns a merchant's document of a kind; nil when none is stored.
	Setting(merchant int64, kind string) ([]byte, error)
	Settings(merchant int64) ([]Setting, error)
	Features(merchant int64) ([]FeatureRow, error)
}

// SettingTx changes it.
type SettingTx interface {
	// SetSetting replaces a merchant's document of a kind; nil removes it.
	SetSetting(merchant int64, kind string, document []byte) error
	SetFeature(merchant int64, row FeatureRow) error
}

// Setting is one stored document.
type Setting struct {
	Kind     string
	Document []byte
}

// The kinds of setting. Those of rule configs are the names by which the API knows them.
const (
	settingSuccess     = "successRate"
	settingElimination = "elimination"
	settingDebit       = "debitRouting"
	settingDebitOn     = "debitRoutingEnabled"
	settingDimensions  = "srDimensions"
)

// ConfigKind is a rule config's type; its text is the wire's.
type ConfigKind string

// The rule configs.
const (
	ConfigSuccess     ConfigKind = settingSuccess
	ConfigElimination ConfigKind = settingElimination
	ConfigDebit       ConfigKind = settingDebit
)

// Title is how messages name the config; "" for a kind that there is not.
func (k ConfigKind) Title() string {
	switch k {
	case ConfigSuccess:
		return "Success Rate"
	case ConfigElimination:
		return "Elimination"
	case ConfigDebit:
		return "Debit Routing"
	}
	return ""
}

// ConfigData is the data of a rule config: *SuccessData, *EliminationData or *DebitData.
type ConfigData interface {
	check() error
	kind() ConfigKind
}

// NewData returns empty data of a kind, to be decoded into; Invalid for a kind that there is not.
func NewData(k ConfigKind) (ConfigData, error) {
	switch k {
	case ConfigSuccess:
		return &SuccessData{}, nil
	case ConfigElimination:
		return &EliminationData{}, nil
	case ConfigDebit:
		return &DebitData{}, nil
	}
	return nil, invalid("Config", "unknown config type %q: it must be successRate, elimination or debitRouting", clip(string(k)))
}

// Config returns the data that a merchant has stored of a kind. NotFound when there is none, or no such merchant.
func (s *Service) Config(ctx context.Context, id MerchantID, k ConfigKind) (ConfigData, error) {
	const op = "Config"
	data, err := NewData(k)
	if err != nil {
		return nil, err
	}
	if err := checkMerchant(op, id); err != nil {
		return nil, err
	}
	err = s.storage.Read(ctx, func(v View) error {
		m, err := v.Merchant(id)
		if err != nil {
			return named(err, id)
		}
		return stored(v, m, data)
	})
	return data, err
}

// stored reads the merchant's data of a kind into data.
func stored(v View, m MerchantRow, data ConfigData) error {
	document, err := v.Setting(m.Key, string(data.kind()))
	switch {
	case err != nil:
		return err
	case document == nil:
		return noConfig(m.ID, data.kind())
	}
	return unpack("Config", document, data)
}

func noConfig(id MerchantID, k ConfigKind) error {
	return notFound("Config", "merchant %s has no %s configuration", clip(string(id)), k.Title())
}

// CreateConfig stores data for a merchant that has none of its kind; elimination data takes the place of older. Invalid when
// there is some already or a value is out of its bounds, NotFound when there is no such merchant.
func (s *Service) CreateConfig(ctx context.Context, id MerchantID, data ConfigData) error {
	return s.setConfig(ctx, id, data, func(there bool) error {
		if there && data.kind() != ConfigElimination {
			return invalid("CreateConfig", "merchant %s has a %s configuration already", clip(string(id)), data.kind().Title())
		}
		return nil
	})
}

// UpdateConfig replaces the data of a merchant. NotFound when there is none, or no such merchant; Invalid as in CreateConfig.
func (s *Service) UpdateConfig(ctx context.Context, id MerchantID, data ConfigData) error {
	return s.setConfig(ctx, id, data, func(there bool) error {
		if !there {
			return noConfig(id, data.kind())
		}
		return nil
	})
}

// setConfig stores data when may allows it; there says whether something is stored.
func (s *Service) setConfig(ctx context.Context, id MerchantID, data ConfigData, may func(there bool) error) error {
	const op = "SetConfig"
	if err := checkMerchant(op, id); err != nil {
		return err
	}
	if err := data.check(); err != nil {
		return err
	}
	document, err := pack(op, data)
	if err != nil {
		return err
	}
	after, err := s.reconfigured(ctx, id, func(tx Tx, m MerchantRow) error {
		old, err := tx.Setting(m.Key, string(data.kind()))
		if err != nil {
			return err
		}
		if err := may(old != nil); err != nil {
			return err
		}
		return tx.SetSetting(m.Key, string(data.kind()), document)
	})
	if err != nil {
		return err
	}
	if data.kind() == ConfigSuccess {
		s.warnOfHedging(after)
	}
	return nil
}

// DeleteConfig removes the data of a merchant. NotFound when there is none, or no such merchant.
func (s *Service) DeleteConfig(ctx context.Context, id MerchantID, k ConfigKind) error {
	data, err := NewData(k)
	if err != nil {
		return err
	}
	if err := checkMerchant("DeleteConfig", id); err != nil {
		return err
	}
	return s.reconfigure(ctx, id, func(tx Tx, m MerchantRow) error {
		if err := stored(tx, m, data); err != nil {
			return err
		}
		return tx.SetSetting(m.Key, string(k), nil)
	})
}

// DebitRouting reports whether a merchant's debit switch is on. NotFound when there is no such merchant.
func (s *Service) DebitRouting(ctx context.Context, id MerchantID) (bool, error) {
	m, err := s.known(ctx, "DebitRouting", id)
	if err != nil {
		return false, err
	}
	return m.settings.Load().debitOn, nil
}

// debitSwitch is the stored form of the debit switch.
type debitSwitch struct {
	Enabled bool `json:"enabled"`
}

// SetDebitRouting turns a merchant's debit switch. NotFound when there is no such merchant.
func (s *Service) SetDebitRouting(ctx context.Context, id MerchantID, to Choice) error {
	if err := checkMerchant("SetDebitRouting", id); err != nil {
		return err
	}
	document, err := pack("SetDebitRouting", debitSwitch{to == Yes})
	if err != nil {
		return err
	}
	return s.reconfigure(ctx, id, func(tx Tx, m MerchantRow) error { return tx.SetSetting(m.Key, settingDebitOn, document) })
}

// loadConfigs reads the merchant's documents.
func (set *settings) loadConfigs(v View) error {
	all, err := v.Settings(set.row.Key)
	if err != nil {
		return err
	}
	for _, one := range all {
		if err := set.loadConfig(one); err != nil {
			return err
		}
	}
	return nil
}

func (set *settings) loadConfig(one Setting) error {
	const op = "loadConfig"
	switch one.Kind {
	case settingSuccess:
		var data SuccessData
		err := unpack(op, one.Document, &data)
		set.success = data.config()
		return err
	case settingElimination:
		var data EliminationData
		err := unpack(op, one.Document, &data)
		set.elimination, set.input = data.config(), one.Document
		return err
	case settingDebit:
		var data DebitData
		err := unpack(op, one.Document, &data)
		set.debit = &DebitConfig{CategoryCode: orNothing(data.CategoryCode), AcquirerCountry: orNothing(data.AcquirerCountry)}
		return err
	case settingDebitOn:
		var data debitSwitch
		err := unpack(op, one.Document, &data)
		set.debitOn = data.Enabled
		return err
	case settingDimensions:
		var data DimensionData
		err := unpack(op, one.Document, &data)
		set.dimensions = data.dimensions()
		return err
	}
	return nil // of a later release
}

func orNothing[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// warnOfHedging logs that a stored hedging percentage has no effect while the explore switch is off: a frequent surprise.
func (s *Service) warnOfHedging(set *settings) {
	if set.success.hedges() && set.rollout(FeatureExplore) == 0 {
		s.log.Warn("hedgingPercent is stored but has no effect: the feature is off", slog.String("merchant", string(set.row.ID)),
			slog.String("feature", FeatureExplore.String()))
	}
}
