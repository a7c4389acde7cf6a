package gatewayapi

import (
	"net/http"

	"holdfast/gateway"
	"holdfast/ident"
)

// Onboard answers POST /onboarding/merchant.
func (a *API) Onboard(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	in, name, err := a.onboard(r, c)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	private(w)
	a.send(w, r, http.StatusOK, struct {
		Token     string             `json:"token"`
		Merchant  gateway.MerchantID `json:"merchant_id"`
		Name      string             `json:"merchant_name"`
		Merchants []membershipJSON   `json:"merchants"`
	}{in.Token, in.Session.Merchant, name, showMemberships(in.Members)})
}

func (a *API) onboard(r *http.Request, c *ident.Call) (in gateway.SignedIn, name string, err error) {
	session, err := a.session(r)
	if err != nil {
		return in, "", err
	}
	var body struct {
		Name *string `json:"merchant_name"`
	}
	if err := decode(r, c.Body, &body); err != nil {
		return in, "", err
	}
	if body.Name == nil {
		return in, "", missing("merchant_name")
	}
	in, err = a.service.Onboard(r.Context(), session, *body.Name)
	return in, *body.Name, err
}

// Members answers GET /merchant/members.
func (a *API) Members(w http.ResponseWriter, r *http.Request, _ *ident.Call) {
	session, err := a.session(r)
	var members []gateway.Member
	if err == nil {
		members, err = a.service.MembersOf(r.Context(), session)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	type member struct {
		UserID string       `json:"user_id"`
		Email  string       `json:"email"`
		Role   gateway.Role `json:"role"`
	}
	shown := make([]member, 0, len(members))
	for _, m := range members {
		shown = append(shown, member(m))
	}
	a.send(w, r, http.StatusOK, shown)
}

// Invite answers POST /merchant/members/invite. The password of a new user is shown here and never again.
func (a *API) Invite(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	invited, err := a.invite(r, c)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	private(w)
	a.send(w, r, http.StatusOK, struct {
		Email    string       `json:"email"`
		New      bool         `json:"is_new_user"`
		Password string       `json:"password,omitempty"`
		Role     gateway.Role `json:"role"`
	}{invited.Email, invited.New, invited.Password, invited.Role})
}

func (a *API) invite(r *http.Request, c *ident.Call) (invited gateway.Invited, err error) {
	session, err := a.session(r)
	if err != nil {
		return invited, err
	}
	var body struct {
		Email *string `json:"email"`
		Role  string  `json:"role"`
	}
	if err := decode(r, c.Body, &body); err != nil {
		return invited, err
	}
	if body.Email == nil {
		return invited, missing("email")
	}
	role := gateway.RoleMember // whatever else was asked for
	if body.Role == string(gateway.RoleAdmin) {
		role = gateway.RoleAdmin
	}
	return a.service.Invite(r.Context(), session, *body.Email, role)
}
