package decisionapi

import (
	"net/http"
	"time"

	"holdfast/decision"
	"holdfast/ident"
	"holdfast/wire/reply"
)

// decideCall is everything one decide needs, kept between calls.
type decideCall struct {
	body   decideBody
	answer decision.Answer
	text   []byte

	capsule *decision.Capsule // that answered
}

// maxKept bounds the memory a pooled call may keep: one huge body must not stay for ever.
const maxKept = 64 << 10

func (a *API) borrow() *decideCall {
	if d, ok := a.decides.Get().(*decideCall); ok {
		return d
	}
	return &decideCall{}
}

func (a *API) giveBack(d *decideCall) {
	if cap(d.text) > maxKept || cap(d.body.names) > maxKept || cap(d.body.merged) > maxKept ||
		cap(d.body.actions) > decision.MaxActions || cap(d.body.excluded) > decision.MaxActions {
		return
	}
	d.capsule = nil
	d.body.reset() // a pooled call must not hold a body that the server reuses
	a.decides.Put(d)
}

// Decide answers POST C/decide: one draw.
func (a *API) Decide(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	d := a.borrow()
	defer a.giveBack(d)
	if err := a.decide(d, r, c, (*decideBody).decode); err != nil {
		a.refuse(w, r, err)
		return
	}
	d.text = append(appendAnswer(d.text[:0], &d.answer), '}')
	reply.JSON(w, http.StatusOK, d.text)
}

// decide reads the body by read, draws and notes how long that took.
func (a *API) decide(d *decideCall, r *http.Request, c *ident.Call, read func(*decideBody, []byte) error) error {
	governed, err := governed(r, c)
	if err != nil {
		return err
	}
	id, err := capsuleID(c)
	if err != nil {
		return err
	}
	if err := read(&d.body, c.Body); err != nil {
		return err
	}
	start := time.Now()
	d.body.req.Durable = d.body.req.Durable || governed
	d.body.req.RequestID = c.RequestID
	if d.capsule, err = a.service.Capsule(r.Context(), id); err != nil {
		return err
	}
	if err := d.capsule.Decide(r.Context(), &d.body.req, &d.answer); err != nil {
		return err
	}
	c.Handled = max(1, int64(time.Since(start)))
	return nil
}

// governed reports whether the caller asked with ?learn=true to wait for the disk and may: a read token asking for it is
// silently served without.
func governed(r *http.Request, c *ident.Call) (bool, error) {
	if r.URL.RawQuery == "" { // nearly always
		return false, nil
	}
	q, err := query(r)
	if err != nil {
		return false, err
	}
	learn, err := q.flag("learn")
	return learn && c.Principal.Scope.Role != ident.Reader, err
}
