package decisionapi

import (
	"bytes"
	"encoding/json/jsontext"
	"net/http"

	"holdfast/decision"
	"holdfast/ident"
	"holdfast/internal/strictjson"
	"holdfast/wire/reply"
)

// Decisions answers GET C/decisions: one page of the log.
func (a *API) Decisions(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	page, err := a.page(r, c)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	text := append(make([]byte, 0, 32+512*len(page.Decisions)), `{"decisions":[`...)
	for i := range page.Decisions {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(appendDecision(text, &page.Decisions[i]), '}')
	}
	text = appendNullable(append(text, `],"next":`...), page.Next)
	reply.JSON(w, http.StatusOK, append(text, '}'))
}

func (a *API) page(r *http.Request, c *ident.Call) (page decision.Page, err error) {
	q, err := query(r)
	if err != nil {
		return page, err
	}
	pick, err := pageQuery(q)
	if err != nil {
		return page, err
	}
	capsule, err := a.capsule(r, c)
	if err != nil {
		return page, err
	}
	return capsule.Decisions(r.Context(), pick)
}

// pageQuery reads since, until, limit, after and order.
func pageQuery(q params) (pick decision.Query, err error) {
	if pick.Since, err = q.integer("since", 0); err != nil {
		return pick, err
	}
	if pick.Until, err = q.integer("until", 0); err != nil {
		return pick, err
	}
	if _, given := q["until"]; given && pick.Until <= 0 {
		pick.Until = 1 // inside, 0 means no end; nothing was decided before 1970
	}
	if pick.Limit, err = q.limit(); err != nil {
		return pick, err
	}
	after, given, err := q.one("after")
	if err != nil {
		return pick, err
	}
	if given && !decision.ValidDecisionID(after) {
		return pick, invalid("`after` names no decision")
	}
	pick.After = after
	order, err := q.word("order", "oldest", "newest")
	pick.Newest = order == "newest"
	return pick, err
}

// Decision answers GET C/decisions/{id}: one decision with its rewards.
func (a *API) Decision(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	capsule, err := a.capsule(r, c)
	var d decision.Decision
	var rewards []decision.Reward
	if err == nil {
		d, rewards, err = capsule.Decision(r.Context(), c.Params[3])
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	reply.JSON(w, http.StatusOK, AppendDecision(nil, &d, rewards))
}

// AppendDecision appends a logged decision with its rewards, as GET C/decisions/{id} shows it.
func AppendDecision(dst []byte, d *decision.Decision, rewards []decision.Reward) []byte {
	dst = append(appendDecision(dst, d), `,"rewards":[`...)
	for i := range rewards {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendReward(dst, &rewards[i])
	}
	return append(dst, "]}"...)
}

// auditJSON is one administrative change.
type auditJSON struct {
	Seq    int64          `json:"seq"`
	TimeMS int64          `json:"tsMs"`
	Event  string         `json:"event"`
	Detail jsontext.Value `json:"detail"`
}

// Audits answers GET C/audits: the newest, oldest first. A trail outlives its capsule.
func (a *API) Audits(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	rows, err := a.audits(r, c)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	shown := make([]auditJSON, 0, len(rows))
	for _, row := range rows {
		shown = append(shown, auditJSON{Seq: row.Seq, TimeMS: row.TimeMS, Event: row.Event, Detail: rawOr(row.Detail, "{}")})
	}
	a.send(w, r, http.StatusOK, struct {
		Audits []auditJSON `json:"audits"`
	}{shown})
}

func (a *API) audits(r *http.Request, c *ident.Call) ([]decision.AuditRow, error) {
	q, err := query(r)
	if err != nil {
		return nil, err
	}
	limit, err := q.limit()
	if err != nil {
		return nil, err
	}
	id, err := capsuleID(c)
	if err != nil {
		return nil, err
	}
	return a.service.Audits(r.Context(), id, limit)
}

// PurgeLogs answers DELETE C/logs: decisions and rewards go, the model stays.
func (a *API) PurgeLogs(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := capsuleID(c)
	var removed decision.Removed
	if err == nil {
		removed, err = a.service.PurgeLogs(r.Context(), id)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	text := strictjson.AppendInt([]byte(`{"ok":true,"removed":{"removedDecisions":`), removed.Decisions)
	text = strictjson.AppendInt(append(text, `,"removedRewards":`...), removed.Rewards)
	reply.JSON(w, http.StatusOK, append(text, "}}"...))
}

// Install answers POST C/install: a graph, as JSON or YAML.
func (a *API) Install(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := capsuleID(c)
	var program []byte
	if err == nil {
		program, err = graphText(bytes.Clone(c.Body))
	}
	var info decision.ProgramInfo
	if err == nil {
		info, err = a.service.Install(r.Context(), id, program)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, struct {
		OK     bool   `json:"ok"`
		SHA256 string `json:"programSha256"`
		Bytes  int    `json:"bytes"`
	}{true, info.SHA256, info.Bytes})
}

// RemoveProgram answers DELETE C/program.
func (a *API) RemoveProgram(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := capsuleID(c)
	if err == nil {
		err = a.service.RemoveProgram(r.Context(), id)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	reply.JSON(w, http.StatusOK, []byte(`{"ok":true}`))
}
