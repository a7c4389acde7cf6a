package gatewayapi

import (
	"net/http"
	"time"

	"holdfast/gateway"
	"holdfast/ident"
)

// membershipJSON is one merchant of a user.
type membershipJSON struct {
	Merchant gateway.MerchantID `json:"merchant_id"`
	Name     string             `json:"merchant_name"`
	Role     gateway.Role       `json:"role"`
}

func showMemberships(all []gateway.Membership) []membershipJSON {
	shown := make([]membershipJSON, 0, len(all))
	for _, m := range all {
		shown = append(shown, membershipJSON(m))
	}
	return shown
}

// sessionJSON is a fresh session: the only time that its token is shown.
type sessionJSON struct {
	Token     string             `json:"token"`
	UserID    string             `json:"user_id"`
	Email     string             `json:"email"`
	Merchant  gateway.MerchantID `json:"merchant_id"`
	Role      gateway.Role       `json:"role"`
	Merchants []membershipJSON   `json:"merchants"`
}

// messageJSON is the answer of a call that has nothing else to say.
type messageJSON struct {
	Message string `json:"message"`
}

// signedIn answers with a fresh session, or with why there is none.
func (a *API) signedIn(w http.ResponseWriter, r *http.Request, in gateway.SignedIn, err error) {
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	private(w)
	a.send(w, r, http.StatusOK, sessionJSON{in.Token, in.Session.UserID, in.Session.Email, in.Session.Merchant, in.Session.Role,
		showMemberships(in.Members)})
}

// done answers a call that has nothing but a message to say.
func (a *API) done(w http.ResponseWriter, r *http.Request, message string, err error) {
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, messageJSON{message})
}

// private keeps an answer that carries a credential out of caches.
func private(w http.ResponseWriter) { w.Header()["Cache-Control"] = []string{"no-store"} }

// Signup answers POST /auth/signup.
func (a *API) Signup(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	in, err := a.signup(r, c)
	a.signedIn(w, r, in, err)
}

func (a *API) signup(r *http.Request, c *ident.Call) (in gateway.SignedIn, err error) {
	var body struct {
		Email    *string `json:"email"`
		Password *string `json:"password"`
		Merchant string  `json:"merchant_id"`
	}
	vouched, err := a.service.Vouched(credentials(r.Header))
	if err != nil {
		return in, err
	}
	if err := decode(r, c.Body, &body); err != nil {
		return in, err
	}
	switch {
	case body.Email == nil:
		return in, missing("email")
	case body.Password == nil:
		return in, missing("password")
	}
	return a.service.Signup(r.Context(), gateway.Signup{Email: *body.Email, Password: *body.Password,
		Merchant: gateway.MerchantID(body.Merchant), Vouched: vouched})
}

// Login answers POST /auth/login.
func (a *API) Login(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	in, err := a.login(r, c)
	a.signedIn(w, r, in, err)
}

func (a *API) login(r *http.Request, c *ident.Call) (in gateway.SignedIn, err error) {
	var body struct {
		Email    *string `json:"email"`
		Password *string `json:"password"`
	}
	if err := decode(r, c.Body, &body); err != nil {
		return in, err
	}
	switch {
	case body.Email == nil:
		return in, missing("email")
	case body.Password == nil:
		return in, missing("password")
	}
	return a.service.Login(r.Context(), *body.Email, *body.Password)
}

// Logout answers POST /auth/logout. Its message is compared whole by clients.
func (a *API) Logout(w http.ResponseWriter, r *http.Request, _ *ident.Call) {
	a.done(w, r, "Logged out successfully", a.service.Logout(r.Context(), credentials(r.Header)))
}

// Me answers GET /auth/me.
func (a *API) Me(w http.ResponseWriter, r *http.Request, _ *ident.Call) {
	me, err := a.me(r)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	s := me.Session
	a.send(w, r, http.StatusOK, struct {
		UserID      string             `json:"user_id"`
		Email       string             `json:"email"`
		Merchant    gateway.MerchantID `json:"merchant_id"`
		Role        gateway.Role       `json:"role"`
		Verified    bool               `json:"email_verified"`
		Merchants   []membershipJSON   `json:"merchants"`
		SuperAdmin  bool               `json:"is_super_admin"`
		View        bool               `json:"is_super_admin_view"`
		Permissions []string           `json:"permissions"`
	}{s.UserID, s.Email, s.Merchant, s.Role, me.Verified, showMemberships(me.Members), me.SuperAdmin, s.View(), s.Permissions()})
}

func (a *API) me(r *http.Request) (me gateway.Me, err error) {
	session, err := a.session(r)
	if err != nil {
		return me, err
	}
	return a.service.Me(r.Context(), session)
}

// Merchants answers GET /auth/merchants.
func (a *API) Merchants(w http.ResponseWriter, r *http.Request, _ *ident.Call) {
	me, err := a.me(r)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, showMemberships(me.Members))
}

// SwitchMerchant answers POST /auth/switch-merchant.
func (a *API) SwitchMerchant(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	session, m, err := a.bearerAt(r, c)
	var in gateway.SignedIn
	if err == nil {
		in, err = a.service.SwitchMerchant(r.Context(), session, m)
	}
	a.signedIn(w, r, in, err)
}

// bearerAt opens the bearer's session and reads a body that names a merchant.
func (a *API) bearerAt(r *http.Request, c *ident.Call) (session gateway.Session, m gateway.MerchantID, err error) {
	if session, err = a.session(r); err == nil {
		m, err = merchantOf(r, c)
	}
	return session, m, err
}

// merchantOf reads a body that names a merchant.
func merchantOf(r *http.Request, c *ident.Call) (gateway.MerchantID, error) {
	var body struct {
		Merchant *gateway.MerchantID `json:"merchant_id"`
	}
	if err := decode(r, c.Body, &body); err != nil {
		return "", err
	}
	if body.Merchant == nil {
		return "", missing("merchant_id")
	}
	return *body.Merchant, nil
}

// ChangePassword answers POST /auth/change-password.
func (a *API) ChangePassword(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	a.done(w, r, "Password changed successfully", a.changePassword(r, c))
}

func (a *API) changePassword(r *http.Request, c *ident.Call) error {
	session, err := a.session(r)
	if err != nil {
		return err
	}
	var body struct {
		Current *string `json:"current_password"`
		Next    *string `json:"new_password"`
	}
	if err := decode(r, c.Body, &body); err != nil {
		return err
	}
	switch {
	case body.Current == nil:
		return missing("current_password")
	case body.Next == nil:
		return missing("new_password")
	}
	return a.service.ChangePassword(r.Context(), session, *body.Current, *body.Next)
}

// ForgotPassword answers POST /auth/forgot-password, always alike: this build sends no e-mail, so there is nothing to do, and
// whether the user exists is not told. How a user gets on is said at gateway.Service.IssueTicket.
func (a *API) ForgotPassword(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	var body struct {
		Email *string `json:"email"`
	}
	err := decode(r, c.Body, &body)
	if err == nil && body.Email == nil {
		err = missing("email")
	}
	a.done(w, r, "If the account exists, an operator can issue a token that resets its password", err)
}

// ResetPassword answers POST /auth/reset-password. The new password may also be called password.
func (a *API) ResetPassword(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	a.done(w, r, "Password reset successfully", a.resetPassword(r, c))
}

func (a *API) resetPassword(r *http.Request, c *ident.Call) error {
	var body struct {
		Token    *string `json:"token"`
		Next     *string `json:"new_password"`
		Password *string `json:"password"`
	}
	if err := decode(r, c.Body, &body); err != nil {
		return err
	}
	if body.Next == nil {
		body.Next = body.Password
	}
	switch {
	case body.Token == nil:
		return missing("token")
	case body.Next == nil:
		return missing("new_password")
	}
	return a.service.ResetPassword(r.Context(), *body.Token, *body.Next)
}

// VerifyEmail answers POST /auth/verify-email.
func (a *API) VerifyEmail(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	var body struct {
		Token *string `json:"token"`
	}
	err := decode(r, c.Body, &body)
	switch {
	case err != nil:
	case body.Token == nil:
		err = missing("token")
	default:
		err = a.service.VerifyEmail(r.Context(), *body.Token)
	}
	a.done(w, r, "Email verified successfully", err)
}

// IssueTicket answers POST /auth/admin/user-token, which is ours: with the admin secret an operator gets the token that
// reset-password or verify-email takes, to hand it over by a way of their own.
func (a *API) IssueTicket(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	var body struct {
		Email   *string           `json:"email"`
		Purpose gateway.TicketUse `json:"purpose"`
	}
	err := a.secret(r)
	if err == nil {
		err = decode(r, c.Body, &body)
	}
	if err == nil && body.Email == nil {
		err = missing("email")
	}
	var ticket string
	var life time.Duration
	if err == nil {
		ticket, life, err = a.service.IssueTicket(r.Context(), *body.Email, body.Purpose)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	private(w)
	a.send(w, r, http.StatusOK, struct {
		Token   string            `json:"token"`
		Purpose gateway.TicketUse `json:"purpose"`
		Expires int64             `json:"expires_in"`
	}{ticket, body.Purpose, int64(life / time.Second)})
}

// MerchantCode answers POST /auth/admin/merchant-token.
func (a *API) MerchantCode(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	code, err := a.merchantCode(r, c)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	private(w)
	a.send(w, r, http.StatusOK, struct {
		Code    string `json:"code"`
		Expires int64  `json:"expires_in"`
	}{code, int64(gateway.CodeLife / time.Second)})
}

func (a *API) merchantCode(r *http.Request, c *ident.Call) (string, error) {
	if err := a.secret(r); err != nil {
		return "", err
	}
	m, err := merchantOf(r, c)
	if err != nil {
		return "", err
	}
	return a.service.MerchantCode(r.Context(), m)
}

// ExchangeCode answers POST /auth/admin/merchant-token/exchange.
func (a *API) ExchangeCode(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	var body struct {
		Code *string `json:"code"`
	}
	var in gateway.SignedIn
	err := decode(r, c.Body, &body)
	switch {
	case err != nil:
	case body.Code == nil:
		err = missing("code")
	default:
		in, err = a.service.ExchangeCode(r.Context(), *body.Code)
	}
	a.signedIn(w, r, in, err)
}

// EnterMerchant answers POST /auth/super-admin/enter-merchant.
func (a *API) EnterMerchant(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	session, m, err := a.bearerAt(r, c)
	var in gateway.SignedIn
	if err == nil {
		in, err = a.service.EnterMerchant(r.Context(), session, m)
	}
	a.signedIn(w, r, in, err)
}

// ExitMerchant answers POST /auth/super-admin/exit.
func (a *API) ExitMerchant(w http.ResponseWriter, r *http.Request, _ *ident.Call) {
	session, err := a.session(r)
	var in gateway.SignedIn
	if err == nil {
		in, err = a.service.ExitMerchant(r.Context(), session)
	}
	a.signedIn(w, r, in, err)
}

// LookupMerchants answers POST /auth/super-admin/lookup.
func (a *API) LookupMerchants(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	found, err := a.lookup(r, c)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	type merchant struct {
		ID   gateway.MerchantID `json:"merchant_id"`
		Name string             `json:"merchant_name"`
	}
	shown := make([]merchant, 0, len(found))
	for _, m := range found {
		shown = append(shown, merchant{m.Merchant, m.Name})
	}
	a.send(w, r, http.StatusOK, shown)
}

func (a *API) lookup(r *http.Request, c *ident.Call) ([]gateway.Membership, error) {
	session, err := a.session(r)
	if err != nil {
		return nil, err
	}
	var body struct {
		Query string `json:"query"`
	}
	if err := decode(r, c.Body, &body); err != nil {
		return nil, err
	}
	return a.service.LookupMerchants(r.Context(), session, body.Query)
}
