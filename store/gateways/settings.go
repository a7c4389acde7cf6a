package gateways

import (
	"holdfast/gateway"
	"holdfast/store"
)

const (
	selectSetting  = `SELECT document FROM merchant_settings WHERE merchant = ? AND kind = ?`
	selectSettings = `SELECT kind, document FROM merchant_settings WHERE merchant = ?`
	upsertSetting  = `INSERT INTO merchant_settings (merchant, kind, document) VALUES (?, ?, ?)
		ON CONFLICT (merchant, kind) DO UPDATE SET document = excluded.document`
	deleteSetting  = `DELETE FROM merchant_settings WHERE merchant = ? AND kind = ?`
	selectFeatures = `SELECT feature, enabled, rollout FROM features WHERE merchant = ?`
	upsertFeature  = `INSERT INTO features (merchant, feature, enabled, rollout) VALUES (?, ?, ?, ?)
		ON CONFLICT (merchant, feature) DO UPDATE SET enabled = excluded.enabled, rollout = excluded.rollout`
)

// Setting returns a merchant's document of a kind; nil when none is stored.
func (v view) Setting(merchant int64, kind string) (document []byte, err error) {
	err = v.each(func(row *store.Stmt) { document = row.BlobAt(0, nil) }, selectSetting, merchant, kind)
	return document, err
}

// Settings returns all documents of a merchant.
func (v view) Settings(merchant int64) (all []gateway.Setting, err error) {
	err = v.each(func(row *store.Stmt) {
		all = append(all, gateway.Setting{Kind: row.TextAt(0), Document: row.BlobAt(1, nil)})
	}, selectSettings, merchant)
	return all, err
}

// Features returns the switches of a merchant that are stored.
func (v view) Features(merchant int64) (all []gateway.FeatureRow, err error) {
	err = v.each(func(row *store.Stmt) {
		all = append(all, gateway.FeatureRow{Feature: row.TextAt(0), Switch: gateway.Switch{On: row.BoolAt(1), Rollout: int(row.IntAt(2))}})
	}, selectFeatures, merchant)
	return all, err
}

// SetSetting replaces a merchant's document of a kind; nil removes it.
func (t tx) SetSetting(merchant int64, kind string, document []byte) error {
	if document == nil {
		_, err := t.exec(deleteSetting, merchant, kind)
		return err
	}
	_, err := t.exec(upsertSetting, merchant, kind, document)
	return err
}

// SetFeature replaces one switch of a merchant.
func (t tx) SetFeature(merchant int64, row gateway.FeatureRow) error {
	_, err := t.exec(upsertFeature, merchant, row.Feature, row.On, row.Rollout)
	return err
}
