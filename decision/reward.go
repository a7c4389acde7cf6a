package decision

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json/v2"
	"math"
	"strings"

	"holdfast/fault"
	"holdfast/internal/strictjson"
)

// verdict is one reward on its way to the disk and into the model.
type verdict struct {
	reward Reward
	fate   *fate   // of the batch the decision waits in, nil when it is on disk
	terms  []Term  // what the model learns from, nil when it does not
	weight float64 // importance
	event  string  // a deferred event that holds the reward instead
	held   []byte  // the reward as the event holds it
	answer RewardAnswer
	err    error
}

// Reward joins an outcome to its decision and learns from it. It returns once the reward is on disk. A repeated reward is
// a duplicate and no error. It fails with Invalid for a bad value, key or detail, NotFound when the decision is not in the
// log, and Unavailable when the queue is full or the storage refuses.
func (c *Capsule) Reward(ctx context.Context, r RewardRequest) (RewardAnswer, error) {
	var one [1]verdict
	c.rewardAll(ctx, []RewardRequest{r}, one[:])
	return one[0].answer, one[0].err
}

// Rewards does what Reward does for several outcomes with one write: one fails without the others.
func (c *Capsule) Rewards(ctx context.Context, rs []RewardRequest) []RewardResult {
	all := make([]verdict, len(rs))
	c.rewardAll(ctx, rs, all)
	results := make([]RewardResult, len(rs))
	for i := range all {
		results[i] = RewardResult{Answer: all[i].answer, Err: all[i].err}
	}
	return results
}

func (c *Capsule) rewardAll(ctx context.Context, rs []RewardRequest, all []verdict) {
	c.admin.RLock()
	defer c.admin.RUnlock()
	if refusal := c.service.queue.admits(); refusal != nil {
		failAll(all, refusal)
		return
	}
	if c.isGone() {
		failAll(all, c.missing())
		return
	}
	e := c.engine.Load() // stays while admin is held
	queued, ready := false, 0
	for i := range rs {
		o := &all[i]
		if o.err = c.prepare(ctx, e, &rs[i], o); o.err == nil {
			ready++
		}
		queued = queued || o.fate != nil
	}
	if queued {
		c.service.queue.flushCapsule(c)
	}
	if ready == 0 {
		return
	}
	w := &verdicts{capsule: c, engine: e, all: all, purges: c.purges}
	// The caller may leave, the change goes on: it must be applied while admin is still held.
	err := c.service.storage.Write(context.WithoutCancel(ctx), Write{Change: w.change, Applied: w.applied, Rows: ready})
	if err != nil {
		failAll(all, err)
	}
}

func failAll(all []verdict, err error) {
	for i := range all {
		if all[i].err == nil {
			all[i].answer, all[i].err = RewardAnswer{}, err
		}
	}
}

func badReward(format string, args ...any) error {
	return fault.New("decision.Reward", fault.Invalid, format, args...)
}

// prepare finds a reward's decision, checks the reward, and works out what the model will learn.
func (c *Capsule) prepare(ctx context.Context, e *engine, r *RewardRequest, o *verdict) error {
	if err := checkReward(e, r); err != nil {
		return err
	}
	d, f, err := c.findThen(ctx, r.DecisionID, c.keepRead)
	if err != nil {
		if fault.KindOf(err) == fault.NotFound {
			return c.prepareHeld(ctx, e, r, o)
		}
		return err
	}
	o.fate = f
	return c.judge(e, r, &d, o)
}

// checkReward says what is wrong with a reward, whatever its decision.
func checkReward(e *engine, r *RewardRequest) error {
	if _, err := rewardKey(e.spec.Rewards, r); err != nil {
		return err
	}
	if math.IsNaN(r.Value) || math.IsInf(r.Value, 0) {
		return badReward("the reward must be a finite number")
	}
	_, err := rewardDetail(r.Detail, true)
	return err
}

// judge fills a verdict from a checked reward and its decision.
func (c *Capsule) judge(e *engine, r *RewardRequest, d *Decision, o *verdict) error {
	key, err := rewardKey(e.spec.Rewards, r)
	if err != nil {
		return err
	}
	learned := e.spec.Mode != Frozen
	detail, err := rewardDetail(r.Detail, learned)
	if err != nil {
		return err
	}
	o.reward = Reward{TimeMS: c.service.nowMS(), DecisionID: d.ID, Value: r.Value, Key: key, Detail: detail, Learned: learned,
		Normalized: Normalize(r.Value, e.spec.Lo, e.spec.Hi)}
	if !learned {
		return nil
	}
	o.weight = e.spec.Learner.Weight(d.Probability)
	o.terms, err = lesson(d, e.spec.Learner.Bits)
	return err
}

// lesson is the vector that a reward of d teaches a model of the given bits.
func lesson(d *Decision, bits int) ([]Term, error) {
	context, err := AppendFeatures(nil, ContextNamespace, d.Context)
	if err != nil {
		return nil, err
	}
	derived, err := AppendFeatures(nil, DerivedNamespace, d.Derived)
	if err != nil {
		return nil, err
	}
	chosen := &d.Actions[d.Chosen]
	action, err := AppendActionFeatures(nil, chosen.ID, chosen.Features)
	if err != nil {
		return nil, err
	}
	in := Input{Context: context, Derived: derived, Action: action}
	return in.AppendTerms(make([]Term, 0, in.Cost()+1), bits), nil
}

// rewardKey is the key under which a reward counts once.
func rewardKey(by Aggregation, r *RewardRequest) (string, error) {
	if r.HasKey {
		switch {
		case r.Key == "":
			return "", badReward("idempotencyKey must not be empty")
		case len(r.Key) > MaxIdempotencyKey:
			return "", badReward("idempotencyKey is longer than %d bytes", MaxIdempotencyKey)
		case strings.IndexByte(r.Key, 0) >= 0:
			return "", badReward("idempotencyKey must not contain NUL")
		}
	}
	switch {
	case by == First:
		return r.DecisionID, nil // whatever the caller sends: the first reward of a decision wins
	case r.HasKey:
		return r.Key, nil
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return "rwd_" + hex.EncodeToString(b[:]), nil
}

// rewardDetail is the detail as it is stored: an object, with a note when the model did not learn.
func rewardDetail(raw []byte, learned bool) ([]byte, error) {
	switch strictjson.KindOf(raw) {
	case strictjson.None, strictjson.Null:
		raw = nil
	case strictjson.Object:
		cursor := strictjson.Walk(raw)
		for cursor.Enter(); cursor.More(); cursor.Skip() {
			if string(cursor.Key()) == "learned" {
				return nil, badReward("detail.learned is reserved")
			}
		}
		raw = append([]byte(nil), raw...)
	default:
		raw = append(append([]byte(`{"value":`), raw...), '}')
	}
	if learned {
		return raw, nil
	}
	if raw == nil {
		return []byte(`{"learned":false}`), nil
	}
	end := len(raw) - 1 // the closing brace
	text := append([]byte(nil), raw[:end]...)
	if cursor := strictjson.Walk(raw); cursor.Enter() && cursor.More() {
		text = append(text, ',')
	}
	return append(text, `"learned":false}`...), nil
}

// verdicts is one write of prepared rewards.
type verdicts struct {
	capsule *Capsule
	engine  *engine
	all     []verdict
	purges  int64
}

// change stores the rewards, each with the capsule's next sequence number.
func (w *verdicts) change(tx Tx) error {
	for i := range w.all {
		o := &w.all[i]
		if o.err == nil && o.event != "" {
			o.err = w.hold(tx, o)
		}
		switch {
		case o.err != nil || o.answer.Held:
			continue
		case o.fate != nil && !o.fate.stored.Load():
			// The queue is in order: its batch could not be stored.
			o.err = unavailable("decision.Reward", "the decision is not on disk yet; try again later")
			continue
		}
		seq, err := tx.AppendReward(w.capsule.key, w.purges, o.reward)
		if err != nil && fault.KindOf(err) == fault.NotFound {
			o.err = noDecision(o.reward.DecisionID)
			continue
		}
		if err != nil {
			return err
		}
		o.reward.Seq = seq
	}
	return nil
}

// applied teaches the model what is on disk now. It runs in commit order, which is the order of the sequence numbers.
func (w *verdicts) applied(err error) {
	if err != nil {
		return
	}
	c, model, rate := w.capsule, w.engine.model, w.engine.spec.Learner.Rate
	stored, last := int64(0), int64(0)
	c.apply.Lock()
	for i := range w.all {
		o := &w.all[i]
		if o.err != nil || o.answer.Held {
			continue
		}
		if o.reward.Seq == 0 {
			o.answer.Duplicate = true
		} else {
			stored, last = stored+1, o.reward.Seq
			o.answer.Applied, o.answer.Learned = true, o.reward.Learned
			c.appliedSeq = o.reward.Seq
			if o.reward.Learned {
				model.Update(o.terms, o.reward.Normalized, o.weight, rate)
			}
		}
		o.answer.ModelVersion = model.Updates()
	}
	due := !c.snapshotDue && model.Updates()-c.savedAt >= w.engine.spec.SnapshotEvery
	c.snapshotDue = c.snapshotDue || due
	c.apply.Unlock()
	if stored > 0 {
		c.service.metrics.rewards.Add(float64(stored))
		c.mu.Lock()
		c.stored.Rewards += stored
		c.stored.LastRewardSeq = max(c.stored.LastRewardSeq, last)
		c.mu.Unlock()
	}
	if due {
		c.service.requestSnapshot(c)
	}
}

// heldReward is a reward as a deferred event holds it until it is activated.
type heldReward struct {
	Value  float64 `json:"value"`
	Key    string  `json:"key,omitzero"`
	HasKey bool    `json:"hasKey,omitzero"`
	Detail string  `json:"detail,omitzero"` // JSON text
}

// prepareHeld turns a reward whose decision is not in the log into one that a deferred event holds. It looks into the log
// again: the event may have been activated between the two looks.
func (c *Capsule) prepareHeld(ctx context.Context, e *engine, r *RewardRequest, o *verdict) error {
	var d Decision
	err := c.service.storage.Read(ctx, func(v View) error {
		_, err := v.Held(c.key, r.DecisionID)
		if err != nil && fault.KindOf(err) == fault.NotFound {
			d, err = findStored(v, c.key, r.DecisionID)
		}
		return err
	})
	if err != nil {
		return err
	}
	if d.ID != "" {
		return c.judge(e, r, &d, o)
	}
	o.event = r.DecisionID
	o.reward.DecisionID = r.DecisionID
	o.held, err = json.Marshal(heldReward{Value: r.Value, Key: r.Key, HasKey: r.HasKey, Detail: string(r.Detail)})
	return err
}

// maxHeld bounds the rewards that one deferred event holds, in bytes.
const maxHeld = 64 << 10

// hold adds a reward to those that a deferred event holds.
func (w *verdicts) hold(tx Tx, o *verdict) error {
	held, err := tx.Held(w.capsule.key, o.event)
	if err != nil {
		if fault.KindOf(err) == fault.NotFound {
			return w.late(tx, o)
		}
		return err
	}
	list := held.Rewards
	switch {
	case len(list)+len(o.held) > maxHeld:
		return badReward("the event holds too many rewards; activate it first")
	case len(list) == 0:
		list = append(append([]byte{'['}, o.held...), ']')
	default:
		list = append(append(append(append([]byte(nil), list[:len(list)-1]...), ','), o.held...), ']')
	}
	held.Rewards = list
	if err := tx.SaveHeld(held); err != nil {
		return err
	}
	o.answer = RewardAnswer{Held: true, ModelVersion: w.engine.model.Updates()}
	return nil
}

// late prepares a reward whose event was activated, or dropped, since it was looked up.
func (w *verdicts) late(tx Tx, o *verdict) error {
	d, err := findStored(tx, w.capsule.key, o.event)
	if err != nil {
		return err
	}
	early, err := heldRewards(append(append([]byte{'['}, o.held...), ']'))
	if err != nil {
		return err
	}
	early[0].DecisionID = d.ID
	return w.capsule.judge(w.engine, &early[0], &d, o)
}

// heldRewards reads what an event holds.
func heldRewards(text []byte) ([]RewardRequest, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var list []heldReward
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fault.Wrap("decision.Activate", fault.Internal, err, "")
	}
	out := make([]RewardRequest, len(list))
	for i, h := range list {
		out[i] = RewardRequest{Value: h.Value, Key: h.Key, HasKey: h.HasKey}
		if h.Detail != "" {
			out[i].Detail = []byte(h.Detail)
		}
	}
	return out, nil
}
