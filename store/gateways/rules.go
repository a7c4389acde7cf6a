package gateways

import (
	"holdfast/gateway"
	"holdfast/store"
)

const (
	algorithmColumns = `a.id, a.owner, a.name, a.description, a.purpose, a.data, a.metadata, a.created_us, a.modified_us`

	selectAlgorithm  = `SELECT ` + algorithmColumns + ` FROM algorithms a WHERE a.id = ?`
	selectAlgorithms = `SELECT ` + algorithmColumns + ` FROM algorithms a WHERE a.owner = ? ORDER BY a.number`
	selectActives    = `SELECT ` + algorithmColumns + ` FROM active_algorithms x JOIN algorithms a ON a.id = x.algorithm WHERE x.owner = ? ORDER BY x.purpose`
	selectUse        = `SELECT count(*), coalesce(sum(octet_length(data) + octet_length(metadata)), 0) FROM algorithms WHERE owner = ?`
	upsertAlgorithm  = `INSERT INTO algorithms (id, owner, name, description, purpose, data, metadata, created_us, modified_us)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, name = excluded.name,
		description = excluded.description, purpose = excluded.purpose, data = excluded.data, metadata = excluded.metadata,
		modified_us = excluded.modified_us`
	deleteAlgorithm = `DELETE FROM algorithms WHERE id = ?`
	upsertActive    = `INSERT INTO active_algorithms (owner, purpose, algorithm) VALUES (?, ?, ?)
		ON CONFLICT (owner, purpose) DO UPDATE SET algorithm = excluded.algorithm`
	deleteActive = `DELETE FROM active_algorithms WHERE owner = ? AND algorithm = ?`
)

func algorithm(row *store.Stmt) gateway.AlgorithmRow {
	a := gateway.AlgorithmRow{ID: row.TextAt(0), Owner: gateway.MerchantID(row.TextAt(1)), Name: row.TextAt(2), Description: row.TextAt(3),
		Purpose: gateway.Purpose(row.IntAt(4)), Data: []byte(row.TextAt(5)), CreatedUS: row.IntAt(7), ModifiedUS: row.IntAt(8)}
	if metadata := row.TextAt(6); metadata != "" {
		a.Metadata = []byte(metadata)
	}
	return a
}

// Algorithm returns the algorithm with the id.
func (v view) Algorithm(id string) (a gateway.AlgorithmRow, err error) {
	err = v.one(func(row *store.Stmt) { a = algorithm(row) }, missing("Algorithm", "algorithm"), selectAlgorithm, id)
	return a, err
}

// Algorithms returns an owner's algorithms, oldest first.
func (v view) Algorithms(owner gateway.MerchantID) (all []gateway.AlgorithmRow, err error) {
	err = v.each(func(row *store.Stmt) { all = append(all, algorithm(row)) }, selectAlgorithms, string(owner))
	return all, err
}

// ActiveAlgorithms returns an owner's active algorithms, by purpose.
func (v view) ActiveAlgorithms(owner gateway.MerchantID) (all []gateway.AlgorithmRow, err error) {
	err = v.each(func(row *store.Stmt) { all = append(all, algorithm(row)) }, selectActives, string(owner))
	return all, err
}

// AlgorithmUse returns how many algorithms an owner has, and their bytes.
func (v view) AlgorithmUse(owner gateway.MerchantID) (count, bytes int64, err error) {
	_, err = v.q.Stmt(selectUse).Bind(string(owner)).One(func(row *store.Stmt) { count, bytes = row.IntAt(0), row.IntAt(1) })
	return count, bytes, err
}

// PutAlgorithm stores an algorithm in place of the one with its id.
func (t tx) PutAlgorithm(a gateway.AlgorithmRow) error {
	_, err := t.exec(upsertAlgorithm, a.ID, string(a.Owner), a.Name, a.Description, int64(a.Purpose), string(a.Data), string(a.Metadata),
		a.CreatedUS, a.ModifiedUS)
	return err
}

// DropAlgorithm forgets an algorithm, which must not be active.
func (t tx) DropAlgorithm(id string) error {
	_, err := t.exec(deleteAlgorithm, id)
	return err
}

// Activate makes an algorithm the active one of its owner and purpose.
func (t tx) Activate(owner gateway.MerchantID, p gateway.Purpose, id string) error {
	_, err := t.exec(upsertActive, string(owner), int64(p), id)
	return err
}

// Deactivate makes an algorithm of the owner no longer the active one.
func (t tx) Deactivate(owner gateway.MerchantID, id string) error {
	_, err := t.exec(deleteActive, string(owner), id)
	return err
}
