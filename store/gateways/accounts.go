package gateways

import (
	"holdfast/fault"
	"holdfast/gateway"
	"holdfast/store"
)

const (
	selectMerchant   = `SELECT key, id, name, created_ms, enabled, priority, code_priority, category_code, country, input FROM merchants WHERE id = ?`
	selectMerchantOf = `SELECT id FROM merchants WHERE key = ?`
	insertMerchant   = `INSERT INTO merchants (id, name, created_ms, enabled, priority, code_priority, category_code, country, input)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING RETURNING key`
	deleteMerchant       = `DELETE FROM merchants WHERE key = ?` // what refers to it goes with it
	deleteMerchantScores = `DELETE FROM scores WHERE merchant = ?`
)

// Merchant returns the merchant with the id.
func (v view) Merchant(id gateway.MerchantID) (m gateway.MerchantRow, err error) {
	err = v.one(func(row *store.Stmt) {
		m = gateway.MerchantRow{Key: row.IntAt(0), ID: gateway.MerchantID(row.TextAt(1)), Name: row.TextAt(2), CreatedMS: row.IntAt(3),
			Enabled: row.BoolAt(4), Priority: row.TextAt(5), CodePriority: row.BoolAt(6), CategoryCode: row.TextAt(7), Country: row.TextAt(8), Input: row.TextAt(9)}
	}, missing("Merchant", "merchant"), selectMerchant, string(id))
	return m, err
}

// MerchantOf returns the id of a key.
func (v view) MerchantOf(key int64) (id gateway.MerchantID, err error) {
	_, err = v.q.Stmt(selectMerchantOf).Int(key).One(func(row *store.Stmt) { id = gateway.MerchantID(row.TextAt(0)) })
	return id, err
}

// CreateMerchant stores a merchant under a new key.
func (t tx) CreateMerchant(m gateway.MerchantRow) (key int64, err error) {
	row := t.q.Stmt(insertMerchant).Bind(string(m.ID), m.Name, m.CreatedMS, m.Enabled, m.Priority, m.CodePriority, m.CategoryCode, m.Country, m.Input)
	for row.Next() {
		key = row.IntAt(0)
	}
	if err := row.Err(); err != nil {
		return 0, err
	}
	if key == 0 {
		return 0, fault.New("gateways.CreateMerchant", fault.Conflict, "merchant %s exists", string(m.ID))
	}
	return key, nil
}

// DeleteMerchant removes a merchant and what is stored under its key.
func (t tx) DeleteMerchant(key int64) error {
	_, err := t.exec(deleteMerchant, key)
	if err == nil {
		_, err = t.exec(deleteMerchantScores, key)
	}
	return err
}
