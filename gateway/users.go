package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"holdfast/fault"
)

// Role is what a member may do at a merchant; its text is the wire's.
type Role string

// The roles. Admins invite others.
const (
	RoleAdmin  Role = "admin"
	RoleMember Role = "member"
)

// roleOf reads a role: whatever is not admin is member.
func roleOf(text string) Role {
	if text == string(RoleAdmin) {
		return RoleAdmin
	}
	return RoleMember
}

// The bounds of a user.
const (
	emailMost      = 254  // bytes of an e-mail address
	membershipMost = 256  // merchants of one user
	memberMost     = 1000 // users of one merchant, by invitation
)

// UserRow is a user as stored.
type UserRow struct {
	ID        string // a UUID
	Email     string // lower case: addresses that differ in case are one
	Hash      string // bcrypt
	Active    bool   // false: may not sign in
	Verified  bool   // the e-mail is known to be read by the user
	CreatedMS int64
}

// Membership is one merchant of a user.
type Membership struct {
	Merchant MerchantID
	Name     string // of the merchant; its id when it has none
	Role     Role
}

// Member is one user of a merchant.
type Member struct {
	UserID, Email string
	Role          Role
}

// UserView reads users.
type UserView interface {
	UserByEmail(email string) (UserRow, error)
	User(id string) (UserRow, error)
	Memberships(user string) ([]Membership, error)             // oldest first; none is not an error
	Members(m MerchantID) ([]Member, error)                    // oldest first; none is not an error
	FindMerchants(part string, most int) ([]Membership, error) // whose id or name has the part, in any case, by id
}

// UserTx changes them.
type UserTx interface {
	// CreateUser stores a user; Conflict when the e-mail is taken.
	CreateUser(UserRow) error
	SetPassword(user, hash string) error
	SetVerified(user string) error
	// Join makes the user a member; Conflict when it is one already.
	Join(user string, m MerchantID, r Role, createdMS int64) error
}

// SignedIn is a fresh session with what a client shows of it.
type SignedIn struct {
	Token   string
	Session Session
	Members []Membership
}

// Signup is who wants to become a user.
type Signup struct {
	Email, Password string
	Merchant        MerchantID // to be an admin of; empty for none
	Vouched         bool       // the admin secret was shown
}

var (
	errLogin  = fault.New("gateway.Login", fault.Unauthenticated, "the e-mail or the password is wrong")
	errRoster = fault.New("gateway.Signup", fault.Forbidden, "this e-mail needs the admin secret to sign up")
)

// Vouched reports whether somebody who signs up has shown the admin secret. Unauthenticated when it is wrong, also where none
// is needed, and when it is missing where it is.
func (s *Service) Vouched(c Credentials) (bool, error) {
	switch {
	case c.HasAdminSecret:
		return true, s.CheckSecret(c.AdminSecret)
	case s.sessions.options.OpenSignup:
		return false, nil
	}
	return false, errSecret
}

// Signup makes a user and signs it in. Without the admin secret it is Unauthenticated, unless sign-up is open; Invalid for a
// weak password or a bad e-mail, NotFound for an unknown merchant, Conflict for an e-mail that is taken.
func (s *Service) Signup(ctx context.Context, in Signup) (SignedIn, error) {
	if !in.Vouched && !s.sessions.options.OpenSignup {
		return SignedIn{}, errSecret
	}
	email, err := normalEmail(in.Email)
	if err != nil {
		return SignedIn{}, err
	}
	if !in.Vouched && s.superAdmin(email) { // nobody becomes one by being first
		return SignedIn{}, errRoster
	}
	if err := checkPassword(in.Password); err != nil {
		return SignedIn{}, err
	}
	// Before the hash, so that what fails fails cheaply; the transaction looks again.
	if err := s.storage.Read(ctx, func(v View) error { return signupAllowed(v, email, in.Merchant) }); err != nil {
		return SignedIn{}, err
	}
	hash, err := s.sessions.hashes.hash(ctx, in.Password)
	if err != nil {
		return SignedIn{}, err
	}
	user := s.newUser(email, hash)
	err = s.write(ctx, func(tx Tx) error {
		if err := signupAllowed(tx, email, in.Merchant); err != nil {
			return err
		}
		if err := tx.CreateUser(user); err != nil || in.Merchant == "" {
			return err
		}
		return tx.Join(user.ID, in.Merchant, RoleAdmin, user.CreatedMS)
	}, nil)
	if err != nil {
		return SignedIn{}, err
	}
	return s.signIn(ctx, Session{UserID: user.ID, Email: user.Email, Merchant: in.Merchant})
}

func (s *Service) newUser(email, hash string) UserRow {
	return UserRow{ID: newUUID(), Email: email, Hash: hash, Active: true, Verified: !s.sessions.options.EmailVerification,
		CreatedMS: s.nowMS()}
}

func signupAllowed(v View, email string, m MerchantID) error {
	if m != "" {
		if _, err := v.Merchant(m); err != nil {
			return named(err, m)
		}
	}
	_, err := v.UserByEmail(email)
	switch {
	case err == nil:
		return conflict("Signup", "a user with this e-mail exists")
	case fault.KindOf(err) == fault.NotFound:
		return nil
	}
	return err
}

// named says which merchant was not found.
func named(err error, m MerchantID) error {
	if fault.KindOf(err) == fault.NotFound {
		return noMerchant(m)
	}
	return err
}

// Login signs a user in at the merchant it joined first. Unauthenticated, after the same time, whether the e-mail is unknown,
// the password wrong or the user not active; Exhausted when too many passwords are being checked.
func (s *Service) Login(ctx context.Context, email, password string) (SignedIn, error) {
	user, err := UserRow{}, error(nil)
	if email, bad := normalEmail(email); bad == nil {
		user, err = s.userByEmail(ctx, email)
	}
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return SignedIn{}, err
	}
	if !user.Active {
		user.Hash = ""
	}
	ok, err := s.sessions.hashes.matches(ctx, user.Hash, password)
	if err != nil {
		return SignedIn{}, err
	}
	if !ok {
		return SignedIn{}, errLogin
	}
	return s.signIn(ctx, Session{UserID: user.ID, Email: user.Email})
}

func (s *Service) userByEmail(ctx context.Context, email string) (user UserRow, err error) {
	err = s.storage.Read(ctx, func(v View) (err error) {
		user, err = v.UserByEmail(email)
		return err
	})
	return user, err
}

// signIn makes a new session of a user at one of its merchants, the first when it names none. NotFound when the user is no
// member of the one it names. What the session may is left as it is: a session never gains by begetting another.
func (s *Service) signIn(ctx context.Context, session Session) (SignedIn, error) {
	members, err := s.memberships(ctx, session.UserID)
	if err != nil {
		return SignedIn{}, err
	}
	at := Membership{Role: RoleAdmin} // of nothing yet: who onboards first will be its admin
	switch i := slices.IndexFunc(members, func(one Membership) bool { return one.Merchant == session.Merchant }); {
	case i >= 0:
		at = members[i]
	case session.Merchant != "":
		return SignedIn{}, notFound("Session", "you are not a member of merchant %s", clip(string(session.Merchant)))
	case len(members) > 0:
		at = members[0]
	}
	session.Kind, session.Merchant, session.Role = sessionStandard, at.Merchant, at.Role
	return s.signed(session, members)
}

func (s *Service) signed(session Session, members []Membership) (SignedIn, error) {
	token, err := s.sign(&session)
	if err != nil {
		return SignedIn{}, fmt.Errorf("gateway.sign: %w", err)
	}
	return SignedIn{Token: token, Session: session, Members: members}, nil
}

func (s *Service) memberships(ctx context.Context, user string) (members []Membership, err error) {
	err = s.storage.Read(ctx, func(v View) (err error) {
		members, err = v.Memberships(user)
		return err
	})
	return members, err
}

// Me is what a client shows of whoever has the session.
type Me struct {
	Session    Session
	Verified   bool
	SuperAdmin bool
	Members    []Membership
}

// Me tells about the bearer of a session. A token that was made elsewhere, for a user that is not stored here, shows what it
// says itself.
func (s *Service) Me(ctx context.Context, session Session) (Me, error) {
	me := Me{Session: session, SuperAdmin: s.superAdmin(session.Email)}
	err := s.storage.Read(ctx, func(v View) (err error) {
		user, err := v.User(session.UserID)
		switch {
		case err == nil:
			me.Verified = user.Verified
		case fault.KindOf(err) != fault.NotFound:
			return err
		}
		me.Members, err = s.membersOf(v, session)
		return err
	})
	return me, err
}

// membersOf lists the merchants of a session's user. A session that stands for no user has the one it is at.
func (s *Service) membersOf(v View, session Session) ([]Membership, error) {
	members, err := v.Memberships(session.UserID)
	if err != nil || session.Kind != sessionRedirect {
		return members, err
	}
	row, err := v.Merchant(session.Merchant)
	if err != nil {
		return nil, named(err, session.Merchant)
	}
	return []Membership{membershipOf(row, session.Role)}, nil
}

func membershipOf(row MerchantRow, r Role) Membership {
	if row.Name == "" {
		row.Name = string(row.ID)
	}
	return Membership{Merchant: row.ID, Name: row.Name, Role: r}
}

// SwitchMerchant signs the user of a session in at another of its merchants; NotFound when it is no member.
func (s *Service) SwitchMerchant(ctx context.Context, session Session, m MerchantID) (SignedIn, error) {
	if m == "" {
		return SignedIn{}, notFound("SwitchMerchant", "you are not a member of it")
	}
	session.Merchant = m
	return s.signIn(ctx, session)
}

// normalEmail is the one spelling of an address. Invalid when it cannot be one; that it exists is not asked.
func normalEmail(text string) (string, error) {
	email := strings.ToLower(strings.TrimSpace(text))
	local, domain, ok := strings.Cut(email, "@")
	bad := func(r rune) bool { return r <= ' ' || r == 0x7f || r == '@' || r == utf8.RuneError }
	if !ok || local == "" || domain == "" || len(email) > emailMost || strings.ContainsFunc(local, bad) || strings.ContainsFunc(domain, bad) {
		return "", invalid("email", "the e-mail address is not valid")
	}
	return email, nil
}

// newUUID makes a random UUID.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
