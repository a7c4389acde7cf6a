package decision

import (
	"context"
	"encoding/json/v2"
	"math"
	"slices"
	"time"

	"holdfast/fault"
)

// The bounds of an upload.
const (
	MaxUpload    = 4096
	uploadPast   = 7 * 24 * time.Hour
	uploadFuture = 5 * time.Minute
	replayWithin = 1e-9 // every probability
)

// Upload takes decisions that clients made from a publication: each is made again and must come out the same. Accepted ones
// are on disk when it returns. TooLarge for more than MaxUpload, Invalid for a capsule with a graph, which clients cannot
// run.
func (c *Capsule) Upload(ctx context.Context, items []Upload) (UploadReport, error) {
	if len(items) > MaxUpload {
		return UploadReport{}, fault.New("decision.Upload", fault.TooLarge, "at most %d decisions at once, payload too large", MaxUpload)
	}
	if c.isGone() {
		return UploadReport{}, c.missing()
	}
	if c.engine.Load().graph != nil {
		return UploadReport{}, fault.New("decision.Upload", fault.Invalid, "a capsule with a graph takes no uploads: clients cannot run it")
	}
	c.admin.RLock()
	defer c.admin.RUnlock()
	u := &uploading{capsule: c, items: items, seen: map[string]int{}}
	unlock := u.lockIDs()
	defer unlock()
	for i := range items {
		if err := u.take(ctx, i); err != nil {
			return UploadReport{}, err
		}
	}
	return u.store(ctx)
}

// uploading is one call of Upload.
type uploading struct {
	capsule *Capsule
	items   []Upload
	seen    map[string]int // index of the item that was taken with an id
	taken   []*uploadBatch
	report  UploadReport
}

// uploadBatch gathers the records of one engine, which share a frame.
type uploadBatch struct {
	*batch
	items []int
}

// lockIDs holds the stripes of every id, in one order, so that no decide makes one of them meanwhile.
func (u *uploading) lockIDs() (unlock func()) {
	var need [len(u.capsule.stripes)]bool
	for i := range u.items {
		need[HashText(u.items[i].ID)%uint64(len(need))] = true
	}
	for i, held := range need {
		if held {
			u.capsule.stripes[i].Lock()
		}
	}
	return func() {
		for i, held := range need {
			if held {
				u.capsule.stripes[i].Unlock()
			}
		}
	}
}

func (u *uploading) reject(i int, format string, args ...any) {
	err := fault.New("decision.Upload", fault.Invalid, format, args...)
	u.report.Rejected = append(u.report.Rejected, Rejection{Index: i, ID: u.items[i].ID, Err: err})
}

// take checks one item and adds it to a batch. An error is the storage's; what is wrong with the item is a rejection.
func (u *uploading) take(ctx context.Context, i int) error {
	c, item := u.capsule, &u.items[i]
	now := c.service.nowMS()
	switch {
	case !ValidDecisionID(item.ID):
		u.reject(i, "decisionId must be 1 to 128 characters of A-Z a-z 0-9 _ . : -")
		return nil
	case item.TimeMS < now-uploadPast.Milliseconds() || item.TimeMS > now+uploadFuture.Milliseconds():
		u.reject(i, "tsMs is more than 7 days ago or 5 minutes ahead")
		return nil
	}
	if first, twice := u.seen[item.ID]; twice {
		if u.items[first].same(item) {
			u.report.Duplicates++
		} else {
			u.reject(i, "decisionId %q is already used for a different request", item.ID)
		}
		return nil
	}
	done, err := u.known(ctx, i)
	if done || err != nil {
		return err
	}
	published, retired, err := c.publisher.policyOf(ctx, c, item.Tag)
	if err != nil {
		return err
	}
	switch {
	case published != nil:
		u.verify(i, published)
	case retired:
		u.trust(i)
	default:
		u.reject(i, "modelTag %q is not a published model", item.Tag)
	}
	return nil
}

// same reports whether two uploads say the same: input, seed and choice.
func (u *Upload) same(other *Upload) bool {
	return u.Seed == other.Seed && u.ChosenIndex == other.ChosenIndex && u.Input.Digest == other.Input.Digest
}

// known settles an item whose id was used before.
func (u *uploading) known(ctx context.Context, i int) (done bool, err error) {
	c, item := u.capsule, &u.items[i]
	if !c.service.remembers(c, item.ID) {
		return false, nil
	}
	d, _, err := c.find(ctx, item.ID)
	switch {
	case err == nil && d.Seed == item.Seed && d.Chosen == item.ChosenIndex && d.Digest == item.Input.Digest:
		u.report.Duplicates++
		return true, nil
	case err == nil:
		u.reject(i, "decisionId %q is already used for a different request", item.ID)
		return true, nil
	case fault.KindOf(err) != fault.NotFound:
		return true, err
	}
	if err := c.refuseHeld(ctx, item.ID); err != nil {
		if fault.KindOf(err) != fault.Conflict {
			return true, err
		}
		u.reject(i, "%s", fault.MessageOf(err))
		return true, nil
	}
	return false, nil
}

// verify makes the decision again from the publication.
func (u *uploading) verify(i int, p *Policy) {
	c, item := u.capsule, &u.items[i]
	x := c.service.takeScratch()
	defer c.service.putScratch(x)
	if !u.plan(i, p.engine, x) {
		return
	}
	d := &x.draft
	for k, v := range d.pmf {
		if !(math.Abs(v-item.PMF[k]) <= replayWithin) {
			u.reject(i, "the decision does not replay: pmf[%d] is %v, the model gives %v", k, item.PMF[k], v)
			return
		}
	}
	d.chosen = Draw(d.pmf, item.Seed)
	if d.eligible[d.chosen] != item.ChosenIndex {
		u.reject(i, "the decision does not replay: the seed draws action %d, not %d", d.eligible[d.chosen], item.ChosenIndex)
		return
	}
	d.version, d.mode = p.Version(), p.engine.spec.Mode
	u.add(i, p.engine, x)
}

// trust takes a decision whose model is no longer kept, if it agrees with itself. It trains but is not evaluated.
func (u *uploading) trust(i int) {
	c, item := u.capsule, &u.items[i]
	x := c.service.takeScratch()
	defer c.service.putScratch(x)
	e := c.engine.Load()
	if !u.plan(i, e, x) {
		return
	}
	sum := 0.0
	for _, p := range item.PMF {
		sum += p
	}
	d := &x.draft
	copy(d.pmf, item.PMF)
	if !(math.Abs(sum-1) <= 1e-6) || slices.ContainsFunc(item.PMF, func(p float64) bool { return !(p >= 0) }) {
		u.reject(i, "the decision does not replay: its model is retired and its pmf does not sum to 1")
		return
	}
	d.chosen = Draw(d.pmf, item.Seed)
	if d.eligible[d.chosen] != item.ChosenIndex {
		u.reject(i, "the decision does not replay: its model is retired and its seed draws another action")
		return
	}
	d.mode, d.version = Unverified, 0
	if item.ModelVersion != nil {
		d.version = *item.ModelVersion
	}
	if u.add(i, e, x) {
		u.report.Unverified++
	}
}

// plan fills x.draft by an engine and compares everything that does not depend on the model.
func (u *uploading) plan(i int, e *engine, x *scratch) bool {
	item := &u.items[i]
	if _, err := e.plan(x, &item.Input, u.capsule.service.options.Now); err != nil {
		u.reject(i, "the decision does not replay: %s", fault.MessageOf(err))
		return false
	}
	d := &x.draft
	at := slices.Index(d.eligible, item.ChosenIndex)
	switch {
	case !slices.Equal(d.eligible, item.Eligible):
		u.reject(i, "the decision does not replay: other actions are eligible")
	case len(item.PMF) != len(d.pmf):
		u.reject(i, "the decision does not replay: pmf has another length than eligible")
	case at < 0:
		u.reject(i, "the decision does not replay: the chosen action is not eligible")
	case !(math.Abs(item.Probability-item.PMF[at]) <= replayWithin) || !(item.Probability > 0):
		u.reject(i, "the decision does not replay: probability is not that of the chosen action")
	case item.ChosenID != "" && item.ChosenID != d.actions[item.ChosenIndex].ID:
		u.reject(i, "the decision does not replay: chosenId is not the action at chosenIndex")
	default:
		return true
	}
	return false
}

// add appends the planned decision to a batch of its engine.
func (u *uploading) add(i int, e *engine, x *scratch) bool {
	item, d := &u.items[i], &x.draft
	d.id, d.ms, d.seed, d.digest = item.ID, item.TimeMS, item.Seed, item.Input.Digest
	limit := u.capsule.service.options.BatchRecords
	k := slices.IndexFunc(u.taken, func(b *uploadBatch) bool {
		return b.frame == e.frame && len(b.keys) < limit && len(b.payload) < fullBytes
	})
	if k < 0 {
		k = len(u.taken)
		u.taken = append(u.taken, &uploadBatch{batch: &batch{capsule: u.capsule, fate: new(fate)}})
	}
	u.taken[k].add(d)
	u.taken[k].items = append(u.taken[k].items, i)
	u.seen[item.ID] = i
	return true
}

// store writes the batches and what the audit trail says of the call.
func (u *uploading) store(ctx context.Context) (UploadReport, error) {
	c := u.capsule
	trail, err := u.trail()
	if err != nil {
		return UploadReport{}, err
	}
	oldest := int64(math.MaxInt64)
	for _, b := range u.taken {
		b.payload = seal(b.payload)
		oldest = min(oldest, b.firstMS)
		for _, id := range b.events {
			c.events.add(id)
		}
	}
	if len(u.taken) > 0 || len(trail) > 0 {
		if err := u.write(ctx, trail); err != nil {
			return u.refused(err)
		}
	}
	if len(u.taken) > 0 {
		c.service.sweepFrom(c.id, oldest)
	}
	m := c.service.metrics
	m.uploaded.Add(float64(len(u.seen)))
	m.rejected.Add(float64(len(u.report.Rejected)))
	u.report.Accepted = len(u.seen) + u.report.Duplicates
	return u.report, nil
}

func (u *uploading) write(ctx context.Context, trail []AuditRow) error {
	c := u.capsule
	var row CapsuleRow
	return c.service.storage.Write(context.WithoutCancel(ctx), Write{Rows: len(u.taken) + len(u.seen) + len(trail), Change: func(tx Tx) (err error) {
		if _, err := c.own(tx); err != nil {
			return err
		}
		for _, b := range u.taken {
			err := tx.AppendBatch(Batch{Capsule: c.key, FirstMS: b.firstMS, LastMS: b.lastMS, Count: len(b.keys), Payload: b.payload, Events: b.events})
			if err != nil {
				return err
			}
		}
		for _, r := range trail {
			if err := tx.AppendAudit(c.id, r); err != nil {
				return err
			}
		}
		row, err = tx.Capsule(c.id)
		return err
	}, Applied: func(err error) {
		if err == nil {
			c.recount(&row)
		}
	}})
}

// refused turns a storage that takes nothing now into rejections that may be tried again.
func (u *uploading) refused(err error) (UploadReport, error) {
	if fault.KindOf(err) != fault.Unavailable {
		return UploadReport{}, err
	}
	for _, b := range u.taken {
		for _, i := range b.items {
			u.report.Rejected = append(u.report.Rejected, Rejection{Index: i, ID: u.items[i].ID, Err: err, Retryable: true})
		}
	}
	slices.SortFunc(u.report.Rejected, func(a, b Rejection) int { return a.Index - b.Index })
	u.report.Accepted, u.report.Unverified = u.report.Duplicates, 0
	u.capsule.service.metrics.rejected.Add(float64(len(u.report.Rejected)))
	return u.report, nil
}

// trail is at most one event for the rejections and one for what could not be verified.
func (u *uploading) trail() ([]AuditRow, error) {
	var rows []AuditRow
	if n := len(u.report.Rejected); n > 0 {
		first := u.report.Rejected[0]
		row, err := u.capsule.service.auditRow("upload_rejected", struct {
			Count int    `json:"count"`
			ID    string `json:"decisionId"`
			Error string `json:"error"`
		}{n, first.ID, fault.MessageOf(first.Err)})
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	if u.report.Unverified > 0 {
		row, err := u.capsule.service.auditRow("upload_unverified", struct {
			Count int `json:"count"`
		}{u.report.Unverified})
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// auditRow is a row of a trail whose detail is v as JSON.
func (s *Service) auditRow(event string, v any) (AuditRow, error) {
	detail, err := json.Marshal(v)
	return AuditRow{TimeMS: s.nowMS(), Event: event, Detail: detail}, err
}

// own returns the capsule's row, NotFound when it was deleted, or deleted and made again.
func (c *Capsule) own(tx Tx) (CapsuleRow, error) {
	row, err := tx.Capsule(c.id)
	if err == nil && row.Key != c.key || err != nil && fault.KindOf(err) == fault.NotFound {
		return row, c.missing()
	}
	return row, err
}
