package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"holdfast/fault"
)

// ticketLife is how long a ticket may be used.
const ticketLife = 30 * time.Minute

// TicketUse is what the bearer of a ticket may do once.
type TicketUse string

// The uses of a ticket; the text is the wire's.
const (
	TicketReset  TicketUse = "reset_password"
	TicketVerify TicketUse = "verify_email"
)

// TicketRow is a ticket as stored: its SHA-256, never itself. A user has at most one for each use, the newest.
type TicketRow struct {
	Hash    string // hex SHA-256
	User    string
	Use     TicketUse
	Expires int64 // Unix seconds
}

// SessionView reads what outlives sessions.
type SessionView interface {
	Endings(now int64) ([]Ending, error) // those that still mean something at now
	Ending(key string) (Ending, error)
	Ticket(hash string) (TicketRow, error)
}

// SessionTx changes it.
type SessionTx interface {
	PutEnding(Ending) error // in place of one with the same key
	DropEndings(now int64) error
	PutTicket(TicketRow) error // in place of the user's other one for the same use
	DropTickets(user string, use TicketUse) error
}

// PeopleView reads users, their sessions and tickets.
type PeopleView interface {
	UserView
	SessionView
}

// PeopleTx changes them.
type PeopleTx interface {
	UserTx
	SessionTx
}

// IssueTicket makes a ticket for the user with the e-mail and returns it; it is kept as a hash only. This build sends no
// e-mail, so POST /auth/forgot-password answers and does nothing more; nothing is logged either. A user who forgot a password
// asks an operator, who issues a ticket with the admin secret (POST /auth/admin/user-token) and hands it over. NotFound when
// there is no such user, Invalid for another use.
func (s *Service) IssueTicket(ctx context.Context, email string, use TicketUse) (ticket string, life time.Duration, err error) {
	if use != TicketReset && use != TicketVerify {
		return "", 0, invalid("IssueTicket", "the purpose must be %s or %s", TicketReset, TicketVerify)
	}
	if email, err = normalEmail(email); err != nil {
		return "", 0, err
	}
	ticket = randomHex(32)
	err = s.write(ctx, func(tx Tx) error {
		user, err := tx.UserByEmail(email)
		if err != nil {
			return err
		}
		return tx.PutTicket(TicketRow{Hash: hashOf(ticket), User: user.ID, Use: use, Expires: s.options.Now().Add(ticketLife).Unix()})
	}, nil)
	return ticket, ticketLife, err
}

func hashOf(ticket string) string {
	sum := sha256.Sum256([]byte(ticket))
	return hex.EncodeToString(sum[:])
}

var errTicket = invalid("Ticket", "the token is invalid, used or expired")

// ticketUser returns the user whom a ticket is for.
func (s *Service) ticketUser(v View, ticket string, use TicketUse) (string, error) {
	row, err := v.Ticket(hashOf(ticket))
	switch {
	case fault.KindOf(err) == fault.NotFound && err != nil, err == nil && (row.Use != use || row.Expires <= s.options.Now().Unix()):
		return "", errTicket
	}
	return row.User, err
}

// ResetPassword takes a ticket and sets its user's password. It ends every session of the user and all other tickets to the
// same effect. Invalid for a bad ticket and for a weak password.
func (s *Service) ResetPassword(ctx context.Context, ticket, password string) error {
	if err := checkPassword(password); err != nil {
		return err
	}
	err := s.storage.Read(ctx, func(v View) error { // no hash for those who guess
		_, err := s.ticketUser(v, ticket, TicketReset)
		return err
	})
	if err != nil {
		return err
	}
	hash, err := s.sessions.hashes.hash(ctx, password)
	if err != nil {
		return err
	}
	return s.setPassword(ctx, newPassword{hash: hash, check: func(tx Tx) (string, error) { return s.ticketUser(tx, ticket, TicketReset) }})
}

// newPassword is a change of a password: check runs in the transaction and says whose it is; the session keep stays open.
type newPassword struct {
	hash, keep string
	check      func(Tx) (user string, err error)
}

func (s *Service) setPassword(ctx context.Context, p newPassword) error {
	var over Ending
	return s.write(ctx, func(tx Tx) error {
		user, err := p.check(tx)
		if err != nil {
			return err
		}
		over = endOfUser(user, p.keep, s.options.Now(), max(s.sessions.options.Life, s.sessions.options.RedirectLife))
		if err := tx.SetPassword(user, p.hash); err != nil {
			return err
		}
		if err := tx.DropTickets(user, TicketReset); err != nil {
			return err
		}
		return s.storeEnding(tx, over)
	}, func() { s.sessions.ended.add(over, s.options.Now()) })
}

// ChangePassword sets the password of the session's user and ends the user's other sessions. Unauthenticated when current is
// not the password, Invalid when the next one is weak.
func (s *Service) ChangePassword(ctx context.Context, session Session, current, next string) error {
	if err := checkPassword(next); err != nil {
		return err
	}
	var user UserRow
	err := s.storage.Read(ctx, func(v View) (err error) {
		user, err = v.User(session.UserID)
		return err
	})
	if err != nil {
		return strange(err)
	}
	ok, err := s.sessions.hashes.matches(ctx, user.Hash, current)
	if err != nil {
		return err
	}
	if !ok {
		return fault.New("gateway.ChangePassword", fault.Unauthenticated, "the current password is wrong")
	}
	hash, err := s.sessions.hashes.hash(ctx, next)
	if err != nil {
		return err
	}
	return s.setPassword(ctx, newPassword{hash: hash, keep: session.ID, check: func(tx Tx) (string, error) {
		now, err := tx.User(user.ID)
		if err == nil && now.Hash != user.Hash {
			err = conflict("ChangePassword", "the password was changed meanwhile")
		}
		return user.ID, err
	}})
}

// VerifyEmail takes a ticket and notes that its user reads the e-mail. Invalid for a bad ticket.
func (s *Service) VerifyEmail(ctx context.Context, ticket string) error {
	return s.write(ctx, func(tx Tx) error {
		user, err := s.ticketUser(tx, ticket, TicketVerify)
		if err != nil {
			return err
		}
		if err := tx.SetVerified(user); err != nil {
			return err
		}
		return tx.DropTickets(user, TicketVerify)
	}, nil)
}
