package gateway

import (
	"context"
	"strings"
	"unicode"

	"holdfast/fault"
)

// nameMost bounds the name of a merchant, in bytes.
const nameMost = 256

// Onboard makes a merchant that the session's user is the admin of, and signs the user in there. Invalid for a bad name, for a
// user who has too many merchants already, Forbidden for a session that may not write, NotFound when the session's user is not
// stored here.
func (s *Service) Onboard(ctx context.Context, session Session, name string) (SignedIn, error) {
	if name == "" || len(name) > nameMost || strings.ContainsFunc(name, unicode.IsControl) {
		return SignedIn{}, invalid("Onboard", "merchant_name must be text of 1 to %d bytes", nameMost)
	}
	if err := Writes(session.principal()); err != nil {
		return SignedIn{}, err
	}
	row := MerchantRow{ID: MerchantID("merchant_" + randomHex(6)), Name: name, CreatedMS: s.nowMS(), Enabled: true}
	err := s.write(ctx, func(tx Tx) error {
		if _, err := tx.User(session.UserID); err != nil {
			return strange(err)
		}
		members, err := tx.Memberships(session.UserID)
		if err != nil {
			return err
		}
		if len(members) >= membershipMost {
			return invalid("Onboard", "a user can have at most %d merchants", membershipMost)
		}
		if _, err := tx.CreateMerchant(row); err != nil {
			return err
		}
		return tx.Join(session.UserID, row.ID, RoleAdmin, row.CreatedMS)
	}, func() { s.merchants.appear(row.ID) })
	if err != nil {
		return SignedIn{}, err
	}
	return s.SwitchMerchant(ctx, session, row.ID)
}

// strange says that a session stands for a user who is not stored here.
func strange(err error) error {
	if fault.KindOf(err) == fault.NotFound {
		return notFound("Session", "the user of this session does not exist")
	}
	return err
}

// MembersOf lists who belongs to the session's merchant, oldest first. Invalid when the session is at none.
func (s *Service) MembersOf(ctx context.Context, session Session) (members []Member, err error) {
	if err := Reads(session.principal()); err != nil {
		return nil, err
	}
	if session.Merchant == "" {
		return nil, errNowhere
	}
	err = s.storage.Read(ctx, func(v View) error {
		if _, err := v.Merchant(session.Merchant); err != nil {
			return named(err, session.Merchant)
		}
		members, err = v.Members(session.Merchant)
		return err
	})
	return members, err
}

var errNowhere = invalid("Members", "the session is at no merchant")

// Invited is what came of an invitation.
type Invited struct {
	Email    string
	New      bool
	Password string // of a new user, to be handed over: it is not kept
	Role     Role
}

// Invite makes the user with the e-mail a member of the session's merchant; a user who does not exist yet is made, with a
// password that is told once. Conflict when it is a member already, Forbidden unless the session is an admin's and may write,
// or for a new user whose e-mail is a super admin's.
func (s *Service) Invite(ctx context.Context, session Session, email string, role Role) (Invited, error) {
	email, err := normalEmail(email)
	if err != nil {
		return Invited{}, err
	}
	if err := Writes(session.principal()); err != nil {
		return Invited{}, err
	}
	switch {
	case session.Merchant == "":
		return Invited{}, errNowhere
	case session.Role != RoleAdmin:
		return Invited{}, fault.New("gateway.Invite", fault.Forbidden, "only an admin invites others")
	}
	out := Invited{Email: email, Role: role}
	fresh := UserRow{}
	_, err = s.userByEmail(ctx, email)
	switch {
	case err == nil:
	case fault.KindOf(err) != fault.NotFound:
		return Invited{}, err
	case s.superAdmin(email): // an invitation would hand their password to the one who invites
		return Invited{}, fault.New("gateway.Invite", fault.Forbidden, "this e-mail has to sign up by itself")
	default:
		out.New, out.Password = true, madePassword()
		hash, err := s.sessions.hashes.hash(ctx, out.Password)
		if err != nil {
			return Invited{}, err
		}
		fresh = s.newUser(email, hash)
		fresh.Verified = false // whoever invites has the password: nobody has shown to read this address
	}
	return out, s.write(ctx, func(tx Tx) error { return s.join(tx, session.Merchant, fresh, out) }, nil)
}

// join makes the invited one a member. A user who appeared, or went, since it was looked for is a conflict: the password that
// was made would not be theirs.
func (s *Service) join(tx Tx, m MerchantID, fresh UserRow, in Invited) error {
	if _, err := tx.Merchant(m); err != nil {
		return named(err, m)
	}
	there, err := tx.Members(m)
	if err != nil {
		return err
	}
	if len(there) >= memberMost {
		return invalid("Invite", "a merchant can have at most %d members", memberMost)
	}
	if in.New {
		if err := tx.CreateUser(fresh); err != nil {
			return err
		}
		return tx.Join(fresh.ID, m, in.Role, s.nowMS())
	}
	user, err := tx.UserByEmail(in.Email)
	if err != nil {
		return err
	}
	members, err := tx.Memberships(user.ID)
	if err != nil {
		return err
	}
	if len(members) >= membershipMost {
		return invalid("Invite", "a user can have at most %d merchants", membershipMost)
	}
	return tx.Join(user.ID, m, in.Role, s.nowMS())
}
