package gateways

import (
	"holdfast/gateway"
	"holdfast/store"
)

const (
	keyColumns      = `SELECT k.id, m.id, k.hash, k.prefix, k.description, k.active, k.created_ms FROM api_keys k JOIN merchants m ON m.key = k.merchant`
	selectKeyByHash = keyColumns + ` WHERE k.hash = ?`
	selectKey       = keyColumns + ` WHERE k.id = ?`
	selectKeys      = keyColumns + ` WHERE k.merchant = ? ORDER BY k.number`
	countKeys       = `SELECT count(*) FROM api_keys WHERE merchant = ? AND active = 1`
	insertKey       = `INSERT INTO api_keys (id, merchant, hash, prefix, description, active, created_ms) VALUES (?, ?, ?, ?, ?, ?, ?)`
	revokeKey       = `UPDATE api_keys SET active = 0 WHERE id = ?`
	pruneKeys       = `DELETE FROM api_keys WHERE number IN
		(SELECT number FROM api_keys WHERE merchant = ? AND active = 0 ORDER BY number DESC LIMIT -1 OFFSET ?)`
)

// KeyByHash returns the API key with the hash.
func (v view) KeyByHash(hash string) (gateway.KeyRow, error) {
	return v.key("KeyByHash", selectKeyByHash, hash)
}

// Key returns the API key with the id.
func (v view) Key(id string) (gateway.KeyRow, error) { return v.key("Key", selectKey, id) }

func (v view) key(op, sql, arg string) (k gateway.KeyRow, err error) {
	err = v.one(func(row *store.Stmt) { k = keyOf(row) }, missing(op, "API key"), sql, arg)
	return k, err
}

func keyOf(row *store.Stmt) gateway.KeyRow {
	return gateway.KeyRow{ID: row.TextAt(0), Merchant: gateway.MerchantID(row.TextAt(1)), Hash: row.TextAt(2), Prefix: row.TextAt(3),
		Description: row.TextAt(4), Active: row.BoolAt(5), CreatedMS: row.IntAt(6)}
}

// Keys returns the API keys of a merchant, oldest first.
func (v view) Keys(merchant int64) (all []gateway.KeyRow, err error) {
	err = v.each(func(row *store.Stmt) { all = append(all, keyOf(row)) }, selectKeys, merchant)
	return all, err
}

// ActiveKeys counts the API keys of a merchant that are not revoked.
func (v view) ActiveKeys(merchant int64) (n int64, err error) {
	err = v.each(func(row *store.Stmt) { n = row.IntAt(0) }, countKeys, merchant)
	return n, err
}

// CreateKey stores an API key.
func (t tx) CreateKey(merchant int64, k gateway.KeyRow) error {
	_, err := t.exec(insertKey, k.ID, merchant, k.Hash, k.Prefix, k.Description, k.Active, k.CreatedMS)
	return err
}

// RevokeKey makes a key useless.
func (t tx) RevokeKey(id string) error {
	_, err := t.exec(revokeKey, id)
	return err
}

// PruneKeys forgets the older revoked keys of a merchant.
func (t tx) PruneKeys(merchant int64, keep int) error {
	_, err := t.exec(pruneKeys, merchant, keep)
	return err
}
