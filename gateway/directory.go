package gateway

import (
	"hash/maphash"
	"sync"
	"time"
)

// parts is how many parts the directory has: adding a merchant locks one, and readers of one part share its lock.
const parts = 64

// absentFor is how long it is remembered that there is no such merchant, and absentMost of how many in one part.
const (
	absentFor  = 5 * time.Second
	absentMost = 1024
)

// directory holds the merchants in memory, and the ids asked for in vain.
type directory struct {
	seed  maphash.Seed
	parts [parts]part
}

type part struct {
	mu        sync.RWMutex // guards both maps; held for a look-up
	merchants map[MerchantID]*merchant
	absent    map[MerchantID]time.Time // until when
}

func (d *directory) open() {
	d.seed = maphash.MakeSeed()
	for i := range d.parts {
		d.parts[i].merchants, d.parts[i].absent = map[MerchantID]*merchant{}, map[MerchantID]time.Time{}
	}
}

func (d *directory) part(id MerchantID) *part {
	return &d.parts[maphash.String(d.seed, string(id))%parts]
}

// find returns the merchant in memory, nil when it is not.
func (d *directory) find(id MerchantID) *merchant {
	p := d.part(id)
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.merchants[id]
}

// add puts m in, unless the id is there already, and returns the one that is there.
func (d *directory) add(m *merchant) *merchant {
	p := d.part(m.id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if there := p.merchants[m.id]; there != nil {
		return there
	}
	p.merchants[m.id] = m
	delete(p.absent, m.id)
	return m
}

// remove takes the merchant out and marks it as gone.
func (d *directory) remove(id MerchantID) {
	p := d.part(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.merchants[id]; m != nil {
		m.gone.Store(true)
		delete(p.merchants, id)
	}
}

// leave takes m out of memory; what comes for it finds or loads another.
func (d *directory) leave(m *merchant) {
	p := d.part(m.id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.merchants[m.id] == m {
		m.left.Store(true)
		delete(p.merchants, m.id)
	}
}

// count returns how many merchants are in memory.
func (d *directory) count() (n int) {
	for i := range d.parts {
		p := &d.parts[i]
		p.mu.RLock()
		n += len(p.merchants)
		p.mu.RUnlock()
	}
	return n
}

// unknown reports whether the id was asked for in vain lately.
func (d *directory) unknown(id MerchantID, now time.Time) bool {
	p := d.part(id)
	p.mu.RLock()
	defer p.mu.RUnlock()
	until, there := p.absent[id]
	return there && now.Before(until)
}

// miss remembers that there is no such merchant. A full part forgets the others first: they cost a look-up each.
func (d *directory) miss(id MerchantID, now time.Time) {
	p := d.part(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.merchants[id] != nil {
		return
	}
	if len(p.absent) >= absentMost {
		clear(p.absent)
	}
	p.absent[id] = now.Add(absentFor)
}

// appear forgets that the id was asked for in vain: it exists now.
func (d *directory) appear(id MerchantID) {
	p := d.part(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.absent, id)
}

// all calls visit for every merchant in memory.
func (d *directory) all(visit func(*merchant)) {
	for i := range d.parts {
		p := &d.parts[i]
		p.mu.RLock()
		here := make([]*merchant, 0, len(p.merchants))
		for _, m := range p.merchants {
			here = append(here, m)
		}
		p.mu.RUnlock()
		for _, m := range here {
			visit(m)
		}
	}
}
