package gateway

import "sync"

// tallies holds the roll-ups that are not stored yet. What it says and what is stored add up, whatever moment a reader
// catches: see memory and stored in panels.go.
type tallies struct {
	mu      sync.Mutex // guards everything below; held to count one bundle, or to copy one merchant's pages
	current map[pageID]*page
	cells   int   // in current
	counted int64 // the last bundle counted in current
	// closing is what is being stored, or was stored last: a reader may have looked at the store before. It does not change.
	closing map[pageID]*page
	through int64 // the last bundle counted in closing
	stored  bool  // closing is stored
}

func (t *tallies) open(counted int64) {
	t.current, t.counted, t.through, t.stored = map[pageID]*page{}, counted, counted, true
}

// count counts the events of one bundle: each calls its argument for every event.
func (t *tallies) count(number int64, each func(note func(merchant int64, e *Event))) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var at pageID
	var p *page
	each(func(merchant int64, e *Event) {
		id := pageID{start: floorMS(e.TimeMS, minuteMS), merchant: merchant}
		if p == nil || id != at {
			if at, p = id, t.current[id]; p == nil {
				p = newPage()
				t.current[id] = p
			}
		}
		before := len(p.cells)
		p.note(e)
		t.cells += len(p.cells) - before
	})
	t.counted = max(t.counted, number)
}

// recount counts the stored bundles after counted, but for those that a page in the store counts already: the last save
// did not end.
func (t *tallies) recount(v View, counted int64) error {
	through := map[pageID]int64{}
	return v.BundlesAfter(counted, func(c BundleRow) error {
		var failed error
		t.count(c.Number, func(note func(int64, *Event)) {
			failed = c.eachEvent(func(merchant int64, e *Event) {
				id := pageID{start: floorMS(e.TimeMS, minuteMS), merchant: merchant}
				upTo, known := through[id]
				if !known {
					_, err := v.Tally(id.key(), func(row TallyRow) error { upTo = row.Through; return nil })
					if err != nil {
						failed = err
					}
					through[id] = upTo
				}
				if c.Number > upTo {
					note(merchant, e)
				}
			})
		})
		return failed
	})
}

// heavy reports whether so much is in memory that it should be stored before its time.
func (t *tallies) heavy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cells >= tallyCells
}

// close returns the pages to store now and the last bundle they count. What a failed save left comes first.
func (t *tallies) close() (map[pageID]*page, int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stored {
		if len(t.current) == 0 {
			return nil, 0
		}
		t.closing, t.through, t.stored = t.current, t.counted, false
		t.current, t.cells = map[pageID]*page{}, 0
	}
	return t.closing, t.through
}

func (t *tallies) saved() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stored = true
}

// forget takes pages out that have become part of another level's.
func (t *tallies) forget(ids []pageID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stored {
		return
	}
	kept := make(map[pageID]*page, len(t.closing))
	for id, p := range t.closing {
		kept[id] = p
	}
	for _, id := range ids {
		delete(kept, id)
	}
	t.closing = kept
}

// unsaved is what memory adds to one stored page.
type unsaved struct {
	page    *page
	through int64 // a stored page that counts this bundle contains it
}

// of copies what memory has of a merchant's pages in the span.
func (t *tallies) of(merchant int64, span Span) map[pageID][]unsaved {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := map[pageID][]unsaved{}
	within := func(id pageID) bool {
		return id.merchant == merchant && id.start+minuteMS > span.Since && id.start < span.Until
	}
	for id, p := range t.closing {
		if within(id) {
			found[id] = append(found[id], unsaved{p, t.through})
		}
	}
	for id, p := range t.current {
		if within(id) {
			found[id] = append(found[id], unsaved{p.clone(), t.counted})
		}
	}
	return found
}

// clone copies a page that may change.
func (p *page) clone() *page {
	c := &page{cells: make(map[cellKey]*tallyCell, len(p.cells)), folded: p.folded}
	for k, one := range p.cells {
		copied := *one
		c.cells[k] = &copied
	}
	return c
}
