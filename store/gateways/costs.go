package gateways

import "holdfast/store"

const (
	selectSeedCosts = `SELECT document FROM seed_costs WHERE merchant = ?`
	upsertSeedCosts = `INSERT INTO seed_costs (merchant, document) VALUES (?, ?) ON CONFLICT (merchant) DO UPDATE SET document = excluded.document`
	deleteSeedCosts = `DELETE FROM seed_costs WHERE merchant = ?`
	selectTable     = `SELECT document FROM deployment_tables WHERE name = ?`
	upsertTable     = `INSERT INTO deployment_tables (name, document) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET document = excluded.document`
	deleteTable     = `DELETE FROM deployment_tables WHERE name = ?`
)

// SeedCosts returns a merchant's cost rows; nil when none are stored.
func (v view) SeedCosts(merchant int64) ([]byte, error) { return v.document(selectSeedCosts, merchant) }

// Table returns a table of the deployment; nil when none is stored.
func (v view) Table(name string) ([]byte, error) { return v.document(selectTable, name) }

func (v view) document(sql string, key any) (document []byte, err error) {
	err = v.each(func(row *store.Stmt) { document = row.BlobAt(0, nil) }, sql, key)
	return document, err
}

// SetSeedCosts replaces a merchant's cost rows; nil removes them.
func (t tx) SetSeedCosts(merchant int64, document []byte) error {
	if document == nil {
		_, err := t.exec(deleteSeedCosts, merchant)
		return err
	}
	_, err := t.exec(upsertSeedCosts, merchant, document)
	return err
}

// SetTable replaces a table of the deployment; nil removes it.
func (t tx) SetTable(name string, document []byte) error {
	if document == nil {
		_, err := t.exec(deleteTable, name)
		return err
	}
	_, err := t.exec(upsertTable, name, document)
	return err
}
