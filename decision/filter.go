package decision

import (
	"context"
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
)

// filter remembers which client-made ids a capsule has seen, so that a fresh one costs no look-up on disk. It may take an
// id for known that is not, never the other way round, once it is warm.
//
// It is a list of blocked Bloom filters: an id sets four bits of one word. When the newest is full a larger one follows;
// the last size is kept and simply gets less exact. Filters only grow, so that a purge or a restart of one needs no care.
type filter struct {
	seed   maphash.Seed
	layers atomic.Pointer[[]*layer]
	grow   sync.Mutex // held to add a layer
	warm   atomic.Bool
	begun  atomic.Bool // somebody warms it
}

// A layer has one word for each four ids it is made for: with four bits each, about one id in a hundred is mistaken.
type layer struct {
	words []atomic.Uint64
	room  atomic.Int64 // ids it can still take
}

// The sizes of layers, as powers of two of words: 32 KiB, then four times that, up to 8 MiB.
const (
	firstLayer  = 12
	lastLayer   = 20
	layerGrowth = 2
	idsPerWord  = 4
)

func newLayer(power int) *layer {
	l := &layer{words: make([]atomic.Uint64, 1<<power)}
	l.room.Store(idsPerWord << power)
	return l
}

// place is the word and the bits of an id in a layer.
func (l *layer) place(h uint64) (*atomic.Uint64, uint64) {
	bits := uint64(1)<<(h&63) | uint64(1)<<(h>>6&63) | uint64(1)<<(h>>12&63) | uint64(1)<<(h>>18&63)
	return &l.words[h>>24%uint64(len(l.words))], bits
}

// add remembers an id.
func (f *filter) add(id string) {
	list := f.layers.Load()
	if list == nil {
		return // not in use: warming reads the id from the log
	}
	newest := (*list)[len(*list)-1]
	if newest.room.Add(-1) < 0 {
		newest = f.enlarge(newest)
	}
	word, bits := newest.place(maphash.String(f.seed, id))
	if word.Load()&bits != bits {
		word.Or(bits)
	}
}

// enlarge returns the layer to use after full.
func (f *filter) enlarge(full *layer) *layer {
	f.grow.Lock()
	defer f.grow.Unlock()
	list := *f.layers.Load()
	newest := list[len(list)-1]
	if newest != full || len(full.words) >= 1<<lastLayer {
		return newest
	}
	power := bits.Len(uint(len(full.words))) - 1 + layerGrowth
	next := append(append([]*layer{}, list...), newLayer(power))
	f.layers.Store(&next)
	return next[len(next)-1]
}

// has reports whether the id may have been added.
func (f *filter) has(id string) bool {
	h := maphash.String(f.seed, id)
	for _, l := range *f.layers.Load() {
		if word, bits := l.place(h); word.Load()&bits == bits {
			return true
		}
	}
	return false
}

// start makes the filter take ids; it reports whether the caller is the first and so has to warm it.
func (f *filter) start() bool {
	if f.begun.Swap(true) {
		return false
	}
	f.seed = maphash.MakeSeed()
	f.layers.Store(&[]*layer{newLayer(firstLayer)})
	return true
}

// remembers reports whether a client-made id must be looked up. The first question starts warming the filter; until that is
// done every id must be. An id in the form of a server-made one may be in no list of client-made ids, and always is.
func (s *Service) remembers(c *Capsule, id string) bool {
	if c.events.warm.Load() {
		if _, _, own := parseID(id); !own {
			return c.events.has(id)
		}
		return true
	}
	if c.events.start() {
		// Not waited for: the question itself is answered by a look-up meanwhile.
		s.spawn(func(ctx context.Context) { c.warm(ctx) })
	}
	return true
}

// warm reads every client-made id of the log. Those of later decides are added as they are made.
func (c *Capsule) warm(ctx context.Context) {
	err := c.service.storage.Read(ctx, func(v View) error {
		held, err := v.HeldBefore(1 << 62)
		if err != nil {
			return err
		}
		for _, h := range held {
			if h.Capsule == c.key {
				c.events.add(h.EventID)
			}
		}
		return v.EventIDs(c.key, c.events.add)
	})
	if err != nil {
		c.service.log.Warn("the filter of event ids stays cold", "capsule", c.id.String(), "err", err)
		c.events.begun.Store(false)
		return
	}
	c.events.warm.Store(true)
}
