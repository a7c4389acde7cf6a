package decisionapi

import (
	"crypto/sha256"
	"encoding/json/v2"
	"net/http"
	"slices"
	"strings"

	"holdfast/decision"
	"holdfast/fault"
	"holdfast/ident"
	"holdfast/internal/strictjson"
	"holdfast/wire/reply"
)

// Personalizer serves a path below C: next sees the tenant, job and capsule, then what follows the version. Clients put
// their own version into the path; v1.0 and the v1.1 previews ask for the same things.
func (a *API) Personalizer(next Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request, c *ident.Call) {
		if err := version(c.Params[3]); err != nil {
			a.decline(w, r, err)
			return
		}
		c.Params = slices.Delete(slices.Clone(c.Params), 3, 4)
		next(w, r, c)
	}
}

// PersonalizerByToken serves a path that names no capsule: the read token that came with the call does.
func (a *API) PersonalizerByToken(next Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request, c *ident.Call) {
		err := version(c.Params[0])
		scope := c.Principal.Scope
		if err == nil && (c.Principal.Kind != ident.Token || scope.Role != ident.Reader) {
			err = invalid("this path takes its capsule from a read token; with another credential use " +
				"/v1/tenants/{tenant}/jobs/{job}/capsules/{capsule}/personalizer/v1.0")
		}
		if err != nil {
			a.decline(w, r, err)
			return
		}
		params := append(make([]string, 0, 4), scope.Tenant, scope.Job, scope.Capsule)
		c.Params = append(params, c.Params[1:]...)
		next(w, r, c)
	}
}

// version accepts the versions whose calls have the form served here.
func version(segment string) error {
	if segment == "v1.0" || segment == "v1.1" || strings.HasPrefix(segment, "v1.1-preview.") {
		return nil
	}
	return fault.New("decisionapi.version", fault.NotFound, "no such version: use v1.0")
}

// rankBody is what a rank sends. Members that it does not know are left alone: clients send more than this.
type rankBody struct {
	Context  []map[string]any `json:"contextFeatures"`
	Actions  []rankAction     `json:"actions"`
	Excluded []string         `json:"excludedActions"`
	EventID  *string          `json:"eventId"`
	Deferred bool             `json:"deferActivation"`
}

type rankAction struct {
	ID       *string          `json:"id"`
	Features []map[string]any `json:"features"`
}

// Rank answers POST …/rank: one draw, or with deferActivation one that counts only when it is activated.
func (a *API) Rank(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	text, err := a.rank(r, c)
	if err != nil {
		a.decline(w, r, err)
		return
	}
	reply.JSON(w, http.StatusCreated, text)
}

func (a *API) rank(r *http.Request, c *ident.Call) ([]byte, error) {
	id, err := capsuleID(c)
	if err != nil {
		return nil, err
	}
	req, deferred, err := decodeRank(c.Body)
	if err != nil {
		return nil, err
	}
	capsule, err := a.service.Capsule(r.Context(), id)
	if err != nil {
		return nil, err
	}
	req.RequestID = c.RequestID
	if capsule.Mode() == decision.BaselineExplore {
		req.Baseline = baseline(&req)
	}
	var answer decision.Answer
	if deferred {
		err = capsule.Hold(r.Context(), &req, &answer)
	} else {
		err = capsule.Decide(r.Context(), &req, &answer)
	}
	if err != nil {
		return nil, err
	}
	return appendRank(nil, &answer, req.Actions), nil
}

// decodeRank reads the body of a rank and whether it is deferred.
func decodeRank(text []byte) (req decision.Request, deferred bool, err error) {
	if err := check(text); err != nil {
		return req, false, err
	}
	var body rankBody
	if err := explain(json.Unmarshal(text, &body)); err != nil {
		return req, false, err
	}
	req, err = body.request()
	req.Digest = sha256.Sum256(text)
	return req, body.Deferred, err
}

// request turns the body into what the service decides on.
func (b *rankBody) request() (req decision.Request, err error) {
	if len(b.Actions) == 0 {
		return req, invalid("no actions: `actions` must not be empty")
	}
	if req.Context, err = mergeAll(b.Context); err != nil {
		return req, err
	}
	req.Actions = make([]decision.Action, len(b.Actions))
	for i, action := range b.Actions {
		if action.ID == nil {
			return req, missing("id")
		}
		req.Actions[i].ID = *action.ID
		if len(action.Features) == 0 {
			continue
		}
		if req.Actions[i].Features, err = mergeAll(action.Features); err != nil {
			return req, err
		}
	}
	req.Excluded = b.Excluded
	if b.EventID != nil {
		if *b.EventID == "" {
			return req, emptyText("eventId")
		}
		req.EventID = *b.EventID
	}
	return req, nil
}

// baseline is the first action that is not excluded: the one the caller would take by itself.
func baseline(req *decision.Request) string {
	for i := range req.Actions {
		if !slices.Contains(req.Excluded, req.Actions[i].ID) {
			return req.Actions[i].ID
		}
	}
	return req.Actions[0].ID
}

// mergeAll makes one object of several: objects under one name are merged, of other values the last wins.
func mergeAll(objects []map[string]any) ([]byte, error) {
	merged := map[string]any{}
	for _, o := range objects {
		mergeInto(merged, o)
	}
	text, err := json.Marshal(merged, json.Deterministic(true))
	if err != nil {
		return nil, invalid("the features cannot be read")
	}
	return text, nil
}

func mergeInto(dst, src map[string]any) {
	for name, value := range src {
		from, fromObject := value.(map[string]any)
		into, intoObject := dst[name].(map[string]any)
		switch {
		case fromObject && intoObject:
			mergeInto(into, from)
		case fromObject:
			copied := map[string]any{}
			mergeInto(copied, from)
			dst[name] = copied
		default:
			dst[name] = value
		}
	}
}

// appendRank appends the answer: the chosen action first, the others by probability, those left out last with none.
func appendRank(dst []byte, a *decision.Answer, actions []decision.Action) []byte {
	dst = append(dst, `{"ranking":[`...)
	dst = appendRanked(dst, 0, &decision.Ranked{ID: a.Action, Probability: a.Probability})
	listed := map[string]bool{a.Action: true}
	for i := range a.Ranking {
		if id := a.Ranking[i].ID; id != a.Action {
			dst = appendRanked(dst, 1, &a.Ranking[i])
			listed[id] = true
		}
	}
	for i := range actions {
		if !listed[actions[i].ID] {
			dst = appendRanked(dst, 1, &decision.Ranked{ID: actions[i].ID})
		}
	}
	dst = strictjson.AppendString(append(dst, `],"eventId":`...), a.ID)
	dst = strictjson.AppendString(append(dst, `,"rewardActionId":`...), a.Action)
	return append(dst, '}')
}

// EventReward answers POST …/events/{id}/reward.
func (a *API) EventReward(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := capsuleID(c)
	var body struct {
		Value *float64 `json:"value"`
	}
	if err == nil {
		err = decode(c.Body, &body)
	}
	if err == nil && body.Value == nil {
		err = missing("value")
	}
	var capsule *decision.Capsule
	if err == nil {
		capsule, err = a.service.Capsule(r.Context(), id)
	}
	if err == nil {
		_, err = capsule.Reward(r.Context(), decision.RewardRequest{DecisionID: c.Params[3], Value: *body.Value})
	}
	a.done(w, r, err)
}

// Activate answers POST …/events/{id}/activate. There is nothing to read: clients send no body, or an empty one.
func (a *API) Activate(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	capsule, err := a.capsule(r, c)
	if err == nil {
		err = capsule.Activate(r.Context(), c.Params[3])
	}
	a.done(w, r, err)
}

func (a *API) done(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		a.decline(w, r, err)
		return
	}
	reply.Empty(w, http.StatusNoContent)
}

// Missing answers a path below the Personalizer's that nothing else answers.
func Missing(decline reply.Refusal) Handler {
	return func(w http.ResponseWriter, r *http.Request, _ *ident.Call) {
		decline(w, r, fault.New("decisionapi.Missing", fault.NotFound, "no such route"))
	}
}
