package gateways

import (
	"holdfast/gateway"
	"holdfast/store"
)

const (
	selectEndings = `SELECT key, before, spared, until FROM endings WHERE until >= ?`
	selectEnding  = `SELECT key, before, spared, until FROM endings WHERE key = ?`
	upsertEnding  = `INSERT INTO endings (key, before, spared, until) VALUES (?, ?, ?, ?)
		ON CONFLICT (key) DO UPDATE SET before = excluded.before, spared = excluded.spared, until = excluded.until`
	deleteEndings = `DELETE FROM endings WHERE until < ?`

	selectTicket = `SELECT hash, user, purpose, expires FROM tickets WHERE hash = ?`
	upsertTicket = `INSERT INTO tickets (hash, user, purpose, expires) VALUES (?, ?, ?, ?)
		ON CONFLICT (user, purpose) DO UPDATE SET hash = excluded.hash, expires = excluded.expires`
	deleteTickets = `DELETE FROM tickets WHERE user = ? AND purpose = ?`
)

// Endings returns the endings that reach to now or beyond.
func (v view) Endings(now int64) (all []gateway.Ending, err error) {
	err = v.each(func(row *store.Stmt) { all = append(all, ending(row)) }, selectEndings, now)
	return all, err
}

// Ending returns the ending with that key.
func (v view) Ending(key string) (e gateway.Ending, err error) {
	err = v.one(func(row *store.Stmt) { e = ending(row) }, missing("Ending", "ending"), selectEnding, key)
	return e, err
}

func ending(row *store.Stmt) gateway.Ending {
	return gateway.Ending{Key: row.TextAt(0), Before: row.IntAt(1), Except: row.TextAt(2), Until: row.IntAt(3)}
}

// PutEnding stores an ending in place of the one with its key.
func (t tx) PutEnding(e gateway.Ending) error {
	_, err := t.exec(upsertEnding, e.Key, e.Before, e.Except, e.Until)
	return err
}

// DropEndings forgets the endings that are over.
func (t tx) DropEndings(now int64) error {
	_, err := t.exec(deleteEndings, now)
	return err
}

// Ticket returns the ticket with that hash.
func (v view) Ticket(hash string) (k gateway.TicketRow, err error) {
	err = v.one(func(row *store.Stmt) {
		k = gateway.TicketRow{Hash: row.TextAt(0), User: row.TextAt(1), Use: gateway.TicketUse(row.TextAt(2)), Expires: row.IntAt(3)}
	}, missing("Ticket", "ticket"), selectTicket, hash)
	return k, err
}

// PutTicket stores a ticket in place of the user's other one for the same use.
func (t tx) PutTicket(k gateway.TicketRow) error {
	_, err := t.exec(upsertTicket, k.Hash, k.User, string(k.Use), k.Expires)
	return err
}

// DropTickets forgets a user's tickets for a use.
func (t tx) DropTickets(user string, use gateway.TicketUse) error {
	_, err := t.exec(deleteTickets, user, string(use))
	return err
}
