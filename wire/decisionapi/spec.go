package decisionapi

import (
	"bytes"
	"net/http"

	"holdfast/decision"
	"holdfast/ident"
	"holdfast/wire/reply"
)

// Spec answers GET C/spec: the whole spec, as stored.
func (a *API) Spec(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	capsule, err := a.capsule(r, c)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	reply.JSON(w, http.StatusOK, capsule.Spec())
}

// PutSpec answers PUT C/spec: a merge patch that also creates.
func (a *API) PutSpec(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	spec, created, err := a.putSpec(r, c)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	reply.JSON(w, status, spec)
}

func (a *API) putSpec(r *http.Request, c *ident.Call) (spec []byte, created bool, err error) {
	q, err := query(r)
	if err != nil {
		return nil, false, err
	}
	replace, err := q.flag("replace")
	if err != nil {
		return nil, false, err
	}
	id, err := capsuleID(c)
	if err != nil {
		return nil, false, err
	}
	if err := check(c.Body); err != nil {
		return nil, false, err
	}
	return a.service.PutSpec(r.Context(), id, bytes.Clone(c.Body), decision.Replace(replace))
}

// Mode answers POST C/mode: a patch of the mode and the baseline's exploration only. It answers the whole spec.
func (a *API) Mode(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := capsuleID(c)
	if err == nil {
		err = check(c.Body)
	}
	var spec []byte
	if err == nil {
		spec, err = a.service.SetMode(r.Context(), id, bytes.Clone(c.Body))
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	reply.JSON(w, http.StatusOK, spec)
}
