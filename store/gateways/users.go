package gateways

import (
	"holdfast/fault"
	"holdfast/gateway"
	"holdfast/store"
)

const (
	selectUserByEmail = `SELECT id, email, hash, active, verified, created_ms FROM users WHERE email = ?`
	selectUser        = `SELECT id, email, hash, active, verified, created_ms FROM users WHERE id = ?`
	insertUser        = `INSERT INTO users (id, email, hash, active, verified, created_ms) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
	updatePassword    = `UPDATE users SET hash = ? WHERE id = ?`
	updateVerified    = `UPDATE users SET verified = 1 WHERE id = ?`

	selectMemberships = `SELECT m.merchant, coalesce(nullif(a.name, ''), a.id), m.role FROM memberships m JOIN merchants a ON a.id = m.merchant
		WHERE m.user = ? ORDER BY m.number`
	selectMembers = `SELECT u.id, u.email, m.role FROM memberships m JOIN users u ON u.id = m.user WHERE m.merchant = ? ORDER BY m.number`
	insertMember  = `INSERT INTO memberships (user, merchant, role, created_ms) VALUES (?, ?, ?, ?) ON CONFLICT (user, merchant) DO NOTHING`
	findMerchants = `SELECT id, coalesce(nullif(name, ''), id) FROM merchants
		WHERE instr(lower(id), lower(?)) > 0 OR instr(lower(name), lower(?)) > 0 ORDER BY id LIMIT ?`
)

// UserByEmail returns the user with that e-mail, spelled as stored.
func (v view) UserByEmail(email string) (gateway.UserRow, error) {
	return v.user("UserByEmail", selectUserByEmail, email)
}

// User returns the user with that id.
func (v view) User(id string) (gateway.UserRow, error) { return v.user("User", selectUser, id) }

func (v view) user(op, sql, arg string) (u gateway.UserRow, err error) {
	err = v.one(func(row *store.Stmt) {
		u = gateway.UserRow{ID: row.TextAt(0), Email: row.TextAt(1), Hash: row.TextAt(2), Active: row.BoolAt(3), Verified: row.BoolAt(4),
			CreatedMS: row.IntAt(5)}
	}, missing(op, "user"), sql, arg)
	return u, err
}

// Memberships returns the merchants of a user, in the order of joining.
func (v view) Memberships(user string) (all []gateway.Membership, err error) {
	err = v.each(func(row *store.Stmt) {
		all = append(all, gateway.Membership{Merchant: gateway.MerchantID(row.TextAt(0)), Name: row.TextAt(1), Role: gateway.Role(row.TextAt(2))})
	}, selectMemberships, user)
	return all, err
}

// Members returns the users of a merchant, in the order of joining.
func (v view) Members(m gateway.MerchantID) (all []gateway.Member, err error) {
	err = v.each(func(row *store.Stmt) {
		all = append(all, gateway.Member{UserID: row.TextAt(0), Email: row.TextAt(1), Role: gateway.Role(row.TextAt(2))})
	}, selectMembers, string(m))
	return all, err
}

// FindMerchants returns merchants whose id or name has the part, by id.
func (v view) FindMerchants(part string, most int) (all []gateway.Membership, err error) {
	err = v.each(func(row *store.Stmt) {
		all = append(all, gateway.Membership{Merchant: gateway.MerchantID(row.TextAt(0)), Name: row.TextAt(1)})
	}, findMerchants, part, part, most)
	return all, err
}

// CreateUser stores a user.
func (t tx) CreateUser(u gateway.UserRow) error {
	n, err := t.exec(insertUser, u.ID, u.Email, u.Hash, u.Active, u.Verified, u.CreatedMS)
	if err == nil && n == 0 {
		return fault.New("gateways.CreateUser", fault.Conflict, "a user with this e-mail exists")
	}
	return err
}

// SetPassword replaces the hash of a user's password.
func (t tx) SetPassword(user, hash string) error {
	return t.update("SetPassword", updatePassword, hash, user)
}

// SetVerified notes that a user's e-mail is read by the user.
func (t tx) SetVerified(user string) error { return t.update("SetVerified", updateVerified, user) }

// update changes the one row of a user.
func (t tx) update(op, sql string, args ...any) error {
	n, err := t.exec(sql, args...)
	if err == nil && n == 0 {
		return missing(op, "user")
	}
	return err
}

// Join stores a membership.
func (t tx) Join(user string, m gateway.MerchantID, r gateway.Role, createdMS int64) error {
	n, err := t.exec(insertMember, user, string(m), string(r), createdMS)
	if err == nil && n == 0 {
		return fault.New("gateways.Join", fault.Conflict, "the user is a member already")
	}
	return err
}
