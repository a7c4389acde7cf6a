package decision

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"holdfast/fault"
)

// find returns the decision of an id: from the queue, else from the log. The fate is that of the batch it waits in, nil
// when it is on disk. NotFound when there is none.
func (c *Capsule) find(ctx context.Context, id string) (Decision, *fate, error) {
	return c.findThen(ctx, id, nil)
}

// findThen is find that shows the batch it read, if it had to read one, to keep.
func (c *Capsule) findThen(ctx context.Context, id string, keep func(Batch)) (Decision, *fate, error) {
	if d, f, ok, err := c.findInMemory(id); ok || err != nil {
		return d, f, err
	}
	var d Decision
	err := c.service.storage.Read(ctx, func(v View) (err error) {
		r := batchReader{view: v, capsule: c.key, keep: keep}
		d, err = r.find(id)
		return err
	})
	return d, nil, err
}

// findInMemory looks an id up among the batches that are not settled, newest first, and those that were lately.
func (c *Capsule) findInMemory(id string) (d Decision, f *fate, ok bool, err error) {
	key := recordKey(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.open; b != nil {
		if d, ok, err := b.find(id, key); ok || err != nil {
			return d, b.fate, ok, err
		}
	}
	for i := len(c.waiting) - 1; i >= 0; i-- {
		if d, ok, err := c.waiting[i].find(id, key); ok || err != nil {
			return d, c.waiting[i].fate, ok, err
		}
	}
	d, ok, err = c.findRecent(id, key)
	return d, nil, ok, err
}

func noDecision(id string) error {
	return fault.New("decision.Find", fault.NotFound, "decision %q not found", id)
}

// findStored looks an id up in the log.
func findStored(v View, capsule int64, id string) (Decision, error) {
	r := batchReader{view: v, capsule: capsule}
	return r.find(id)
}

// batchReader looks ids up in the log. It keeps the batch it found the last one in when it is asked again: rewards come in
// about the order of their decisions.
type batchReader struct {
	view    View
	capsule int64
	asked   bool
	payload []byte      // of the last batch
	keep    func(Batch) // is shown the batch that an id is found in; may be nil
}

// find looks an id up: a server-made one tells its time, a client-made one has an entry that does.
func (r *batchReader) find(id string) (Decision, error) {
	w := want(id)
	if d, ok, err := findIn(r.payload, &w); ok || err != nil {
		return d, err
	}
	if w.server {
		d, err := r.findAt(&w, w.ms)
		if err == nil || fault.KindOf(err) != fault.NotFound {
			return d, err
		}
	}
	ms, err := r.view.EventTime(r.capsule, id)
	if err != nil {
		if fault.KindOf(err) == fault.NotFound {
			return Decision{}, noDecision(id)
		}
		return Decision{}, err
	}
	return r.findAt(&w, ms)
}

// findAt looks an id up among the batches that cover a moment.
func (r *batchReader) findAt(w *wanted, ms int64) (d Decision, err error) {
	found := false
	err = r.view.Batches(r.capsule, BatchQuery{Span: Span{Since: ms, Until: ms + 1}}, func(b Batch) (bool, error) {
		if _, err := unseal(b.Payload); err != nil {
			return false, err
		}
		d, found, err = findIn(b.Payload, w)
		if found && r.asked {
			r.payload = append(r.payload[:0], b.Payload...)
		}
		if found && r.keep != nil {
			r.keep(b)
		}
		return !found && err == nil, err
	})
	r.asked = true
	if err == nil && !found {
		err = noDecision(w.id)
	}
	return d, err
}

// findIn looks an id up in a payload that was checked before.
func findIn(payload []byte, w *wanted) (d Decision, found bool, err error) {
	if len(payload) < 1+trailerBytes {
		return Decision{}, false, nil
	}
	it := items{rest: payload[1 : len(payload)-trailerBytes]}
	for {
		body, err := it.next()
		if err != nil || body == nil {
			return Decision{}, false, err
		}
		h, err := readHead(body)
		if err != nil {
			return Decision{}, false, err
		}
		if h.is(w) {
			d, err = decodeRecord(h, it.frame)
			return d, err == nil, err
		}
	}
}

// refuseHeld refuses a decide whose id belongs to a deferred event.
func (c *Capsule) refuseHeld(ctx context.Context, id string) error {
	err := c.service.storage.Read(ctx, func(v View) error {
		_, err := v.Held(c.key, id)
		return err
	})
	switch {
	case err == nil:
		return fault.New("decision.Decide", fault.Conflict, "eventId %q is already used for a different request", id)
	case fault.KindOf(err) == fault.NotFound:
		return nil
	}
	return err
}

// Decision returns one logged decision with its rewards by ascending sequence. NotFound when there is none.
func (c *Capsule) Decision(ctx context.Context, id string) (Decision, []Reward, error) {
	d, _, err := c.find(ctx, id)
	if err != nil {
		return Decision{}, nil, err
	}
	var rewards []Reward
	err = c.service.storage.Read(ctx, func(v View) (err error) {
		rewards, err = v.RewardsOf(c.key, d.ID)
		return err
	})
	return d, rewards, err
}

// The bounds of a page.
const (
	defaultPage = 100
	maxPage     = 1000
)

// readWait is how long a read of the log waits for the queue.
const readWait = 250 * time.Millisecond

// Decisions returns a page of the log, ordered by time and id. It waits up to 250 ms for the queue. Invalid when q.After
// names no decision.
func (c *Capsule) Decisions(ctx context.Context, q Query) (Page, error) {
	if q.Limit == 0 {
		q.Limit = defaultPage
	}
	q.Limit = min(max(q.Limit, 1), maxPage)
	c.settle(ctx, readWait)
	var page Page
	err := c.service.storage.Read(ctx, func(v View) error {
		p := pager{query: q}
		if err := p.start(v, c.key); err != nil {
			return err
		}
		if err := v.Batches(c.key, BatchQuery{Span: p.query.Span, Newest: q.Newest}, p.visit); err != nil {
			return err
		}
		var err error
		page, err = p.page()
		return err
	})
	return page, err
}

// pager gathers a page. Batches come by time but may overlap, so it keeps the best candidates until no later batch can hold
// a better one.
type pager struct {
	query   Query
	afterMS int64
	found   []candidate
}

// candidate is a record that may be on the page, with memory of its own.
type candidate struct {
	ms    int64
	id    string
	body  []byte
	frame []byte
}

// start resolves the cursor.
func (p *pager) start(v View, capsule int64) error {
	if p.query.After == "" {
		return nil
	}
	d, err := findStored(v, capsule, p.query.After)
	if fault.KindOf(err) == fault.NotFound && err != nil {
		return fault.New("decision.Decisions", fault.Invalid, "after: no decision %q", p.query.After)
	}
	if err != nil {
		return err
	}
	p.afterMS = d.TimeMS
	if p.query.Newest {
		if p.query.Until == 0 || p.query.Until > d.TimeMS+1 {
			p.query.Until = d.TimeMS + 1
		}
	} else {
		p.query.Since = max(p.query.Since, d.TimeMS)
	}
	return nil
}

// compare orders candidates as the page does.
func (p *pager) compare(a, b candidate) int {
	order := cmp.Or(cmp.Compare(a.ms, b.ms), strings.Compare(a.id, b.id))
	if p.query.Newest {
		return -order
	}
	return order
}

// wants reports whether a record belongs to the span and comes after the cursor.
func (p *pager) wants(h *head) bool {
	q := &p.query
	if h.ms < q.Since || q.Until != 0 && h.ms >= q.Until {
		return false
	}
	if q.After == "" || h.ms != p.afterMS {
		return true // the span begins at the cursor's time
	}
	if q.Newest {
		return h.compareID(q.After) < 0
	}
	return h.compareID(q.After) > 0
}

// visit takes the candidates of a batch; false when the page is complete.
func (p *pager) visit(b Batch) (bool, error) {
	if p.complete(b) {
		return false, nil
	}
	it, err := unseal(b.Payload)
	if err != nil {
		return false, err
	}
	var frame, from []byte
	for {
		body, err := it.next()
		if err != nil {
			return false, err
		}
		if body == nil {
			break
		}
		h, err := readHead(body)
		if err != nil {
			return false, err
		}
		if !p.wants(&h) {
			continue
		}
		if frame == nil || !same(from, it.frame) {
			frame, from = bytes.Clone(it.frame), it.frame
		}
		p.found = append(p.found, candidate{ms: h.ms, id: h.id(), body: bytes.Clone(body), frame: frame})
	}
	p.trim()
	return true, nil
}

// same reports whether two slices are the same memory.
func same(a, b []byte) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// complete reports whether neither b nor a batch after it can improve the page.
func (p *pager) complete(b Batch) bool {
	if len(p.found) < p.query.Limit {
		return false
	}
	worst := p.found[p.query.Limit-1].ms // trimmed: sorted and no longer than the limit
	if p.query.Newest {
		return b.LastMS < worst
	}
	return b.FirstMS > worst
}

func (p *pager) trim() {
	slices.SortFunc(p.found, p.compare)
	if len(p.found) > p.query.Limit {
		clear(p.found[p.query.Limit:])
		p.found = p.found[:p.query.Limit]
	}
}

func (p *pager) page() (Page, error) {
	page := Page{Decisions: make([]Decision, 0, len(p.found))}
	for _, f := range p.found {
		h, err := readHead(f.body)
		if err != nil {
			return Page{}, err
		}
		d, err := decodeRecord(h, f.frame)
		if err != nil {
			return Page{}, err
		}
		page.Decisions = append(page.Decisions, d)
	}
	if len(page.Decisions) == p.query.Limit {
		page.Next = page.Decisions[len(page.Decisions)-1].ID
	}
	return page, nil
}
