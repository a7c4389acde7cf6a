package admission

import (
	"hash/maphash"
	"sync"
	"time"
)

// account is what a gate remembers of one principal.
type account struct {
	bucket bucket
	line   line
}

// shardBits spreads the accounts over so many locks that two principals rarely share one.
const shardBits = 6

// sweepPause is the least time between two searches of one full shard for accounts to forget.
const sweepPause = int64(100*time.Millisecond) * ticksPerNano

// accounts finds a principal's account. Its memory is bounded: a full shard forgets the accounts that are full and idle,
// which cannot be told from new ones, and takes no new principal while it has none of those.
type accounts struct {
	seed   maphash.Seed
	most   int // accounts per shard
	shards [1 << shardBits]shard
}

type shard struct {
	mu    sync.RWMutex // guards both below; nothing else is locked under it
	known map[string]*account
	next  int64 // no sweep before this tick
}

func newAccounts(principals int) *accounts {
	return &accounts{seed: maphash.MakeSeed(), most: (principals + 1<<shardBits - 1) >> shardBits}
}

// find returns the account of a principal, a full one if it is new; nil when there is no room for one more.
func (s *accounts) find(principal string, now int64) *account {
	sh := &s.shards[maphash.String(s.seed, principal)>>(64-shardBits)]
	sh.mu.RLock()
	a := sh.known[principal]
	sh.mu.RUnlock()
	if a != nil && a.bucket.full.Load() != dead {
		return a
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if a := sh.known[principal]; a != nil {
		return a
	}
	if len(sh.known) >= s.most && !sh.sweep(now) {
		return nil
	}
	if sh.known == nil {
		sh.known = make(map[string]*account)
	}
	a = &account{}
	sh.known[principal] = a
	return a
}

// sweep forgets every account that is full and has nobody in line, and reports whether it found one. The caller holds mu.
func (sh *shard) sweep(now int64) bool {
	if now < sh.next {
		return false
	}
	sh.next = now + sweepPause
	before := len(sh.known)
	for principal, a := range sh.known {
		if a.line.n.Load() == 0 && a.bucket.retire(now) {
			delete(sh.known, principal)
		}
	}
	return len(sh.known) < before
}

// size counts the accounts.
func (s *accounts) size() int {
	n := 0
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.RLock()
		n += len(sh.known)
		sh.mu.RUnlock()
	}
	return n
}
