package gateway

import (
	"context"
	"hash/maphash"
	"sync"

	"holdfast/fault"
)

// activeParts is how many parts the table of active algorithms has. Each keeps at most activeMost entries, made of at most
// activeBytes of text: beyond that it forgets some, which cost a look-up when they are asked for again.
const (
	activeParts = 64
	activeMost  = 2048
	activeBytes = 1 << 20
)

// activeKey names what may be active: one algorithm of each purpose for every owner.
type activeKey struct {
	owner   MerchantID
	purpose Purpose
}

// actives keeps the compiled active algorithms that were asked for, and that there is none. Owners need not be merchants. It
// is changed on the writer's goroutine alone, in the order of the changes, so that it never shows an older state.
type actives struct {
	seed  maphash.Seed
	parts [activeParts]activePart
}

type activePart struct {
	mu    sync.RWMutex // guards the two below; held for a look-up
	table map[activeKey]*Algorithm
	bytes int
}

func (a *actives) open() {
	a.seed = maphash.MakeSeed()
	for i := range a.parts {
		a.parts[i].table = map[activeKey]*Algorithm{}
	}
}

func (a *actives) part(k activeKey) *activePart {
	return &a.parts[maphash.String(a.seed, string(k.owner))%activeParts]
}

// find returns the active algorithm, nil when there is none; known is false when that has to be looked up.
func (a *actives) find(k activeKey) (alg *Algorithm, known bool) {
	p := a.part(k)
	p.mu.RLock()
	defer p.mu.RUnlock()
	alg, known = p.table[k]
	return alg, known
}

// put notes what is active now, nil for nothing.
func (a *actives) put(k activeKey, alg *Algorithm) {
	p := a.part(k)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(k)
	p.bytes += alg.cost(k)
	for other := range p.table {
		if len(p.table) < activeMost && p.bytes <= activeBytes {
			break
		}
		p.drop(other)
	}
	p.table[k] = alg
}

func (p *activePart) drop(k activeKey) {
	if old, there := p.table[k]; there {
		p.bytes -= old.cost(k)
		delete(p.table, k)
	}
}

// cost is what an entry counts for, in bytes; nil is an entry too.
func (a *Algorithm) cost(k activeKey) int {
	n := len(k.owner)
	if a != nil {
		n += a.size
	}
	return n
}

// compiled makes the algorithm of a row, unless it is the one that is active already.
func (s *Service) compiled(row *AlgorithmRow) *Algorithm {
	k := activeKey{row.Owner, row.Purpose}
	if alg, _ := s.actives.find(k); alg != nil && alg.ID == row.ID && alg.changed == row.ModifiedUS {
		return alg
	}
	alg := compileAlgorithm(row)
	if alg.broken != nil {
		s.log.Error("a stored algorithm does not read back", "algorithm", row.ID, "error", alg.broken)
	}
	return alg
}

// loadActive reads and compiles what is active for an owner.
func (s *Service) loadActive(v View, owner MerchantID) (set [purposeCount]*Algorithm, err error) {
	rows, err := v.ActiveAlgorithms(owner)
	for i := range rows {
		if rows[i].Purpose < purposeCount {
			set[rows[i].Purpose] = s.compiled(&rows[i])
		}
	}
	return set, err
}

// active returns the owner's active algorithm; Invalid when there is none. It does no I/O once it was asked for.
func (s *Service) active(ctx context.Context, k activeKey) (alg *Algorithm, err error) {
	alg, known := s.actives.find(k)
	if !known {
		if alg, err = s.lookUpActive(ctx, k); err != nil {
			return nil, err
		}
	}
	if alg == nil {
		return nil, invalid("Evaluate", "%s has no active %s algorithm", clip(string(k.owner)), k.purpose)
	}
	return alg, nil
}

// lookUpActive reads what is active, in the writer, so that it falls between two changes. A store that takes no writes is read
// instead, and what it says is not kept.
func (s *Service) lookUpActive(ctx context.Context, k activeKey) (*Algorithm, error) {
	var all [purposeCount]*Algorithm
	load := func(v View) (err error) {
		all, err = s.loadActive(v, k.owner)
		return err
	}
	err := s.write(ctx, func(tx Tx) error { return load(tx) }, func() { s.actives.put(k, all[k.purpose]) })
	if err != nil && fault.KindOf(err) == fault.Unavailable && ctx.Err() == nil {
		err = s.storage.Read(ctx, load)
	}
	if err != nil { // the change may still be running: all is not ours to look at
		return nil, err
	}
	return all[k.purpose], nil
}
