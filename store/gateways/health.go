package gateways

import "holdfast/store"

const (
	selectProbe = `SELECT 1 FROM probes WHERE id = ?`
	insertProbe = `INSERT INTO probes (id) VALUES (?) ON CONFLICT (id) DO NOTHING`
	deleteProbe = `DELETE FROM probes WHERE id = ?`
)

// Probed reports whether the row of a probe is there.
func (v view) Probed(id int64) (found bool, err error) {
	return v.q.Stmt(selectProbe).Bind(id).One(func(*store.Stmt) {})
}

// PutProbe writes the row of a probe.
func (t tx) PutProbe(id int64) error {
	_, err := t.exec(insertProbe, id)
	return err
}

// DropProbe removes it.
func (t tx) DropProbe(id int64) error {
	_, err := t.exec(deleteProbe, id)
	return err
}
