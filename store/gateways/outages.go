package gateways

import (
	"slices"

	"holdfast/gateway"
	"holdfast/store"
)

const (
	outageColumns = `SELECT o.id, o.gateway, coalesce(m.id, ''), o.bank, o.method_type, o.method, o.metadata, o.start_ms, o.end_ms,
		coalesce(o.merchant, 0) FROM outages o LEFT JOIN merchants m ON m.key = o.merchant`
	selectOutage      = outageColumns + ` WHERE o.id = ?`
	selectOutages     = outageColumns + ` WHERE o.merchant IS ? AND o.end_ms > ? ORDER BY o.start_ms, o.id`
	selectEveryOutage = outageColumns + ` WHERE o.end_ms > ? ORDER BY o.start_ms DESC, o.id DESC LIMIT ?`
	insertOutage      = `INSERT INTO outages (id, gateway, merchant, bank, method_type, method, metadata, start_ms, end_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
	updateOutage      = `UPDATE outages SET end_ms = ? WHERE id = ?`
	pruneOutages      = `DELETE FROM outages WHERE id IN
		(SELECT id FROM outages WHERE merchant IS ? AND end_ms <= ? ORDER BY end_ms DESC, id LIMIT -1 OFFSET ?)`
)

// Outage returns the outage with the id.
func (v view) Outage(id string) (o gateway.OutageRow, err error) {
	err = v.one(func(row *store.Stmt) { o = outageOf(row) }, missing("Outage", "outage"), selectOutage, id)
	return o, err
}

func outageOf(row *store.Stmt) gateway.OutageRow {
	return gateway.OutageRow{Key: row.IntAt(9), Document: row.BlobAt(6, nil), Outage: gateway.Outage{ID: row.TextAt(0),
		Gateway: gateway.Name(row.TextAt(1)), Merchant: gateway.MerchantID(row.TextAt(2)), Bank: row.TextAt(3), MethodType: row.TextAt(4),
		Method: row.TextAt(5), StartMS: row.IntAt(7), EndMS: row.IntAt(8)}}
}

// Outages returns the outages of a merchant, or those of all together, that end later, by start.
func (v view) Outages(merchant, endMS int64) (all []gateway.OutageRow, err error) {
	err = v.each(func(row *store.Stmt) { all = append(all, outageOf(row)) }, selectOutages, keyOrNull(merchant), endMS)
	return all, err
}

// EveryOutage returns the outages of everybody that end later, by start: those that start last.
func (v view) EveryOutage(endMS int64, most int) (all []gateway.OutageRow, err error) {
	err = v.each(func(row *store.Stmt) { all = append(all, outageOf(row)) }, selectEveryOutage, endMS, most)
	slices.Reverse(all)
	return all, err
}

// CreateOutage stores an outage.
func (t tx) CreateOutage(o gateway.OutageRow) error {
	_, err := t.exec(insertOutage, o.ID, string(o.Gateway), keyOrNull(o.Key), o.Bank, o.MethodType, o.Method, o.Document, o.StartMS, o.EndMS)
	return err
}

// EndOutage changes when an outage ends.
func (t tx) EndOutage(id string, endMS int64) error {
	_, err := t.exec(updateOutage, endMS, id)
	return err
}

// PruneOutages forgets the older ones of a merchant's outages, or of those of all together, that have ended.
func (t tx) PruneOutages(merchant, endMS int64, keep int) error {
	_, err := t.exec(pruneOutages, keyOrNull(merchant), endMS, keep)
	return err
}

// keyOrNull is how the column of a merchant's key says that there is none.
func keyOrNull(key int64) any {
	if key == 0 {
		return nil
	}
	return key
}
