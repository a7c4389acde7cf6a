package gateway

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// maxCounted is how many gateways of one merchant are counted by name; the others are not shown.
const maxCounted = 64

// shares counts what became of a merchant's traffic since it came into memory, by gateway. Counting takes no lock.
type shares struct {
	list atomic.Pointer[[]*share]
	mu   sync.Mutex // held to add a gateway
}

type share struct {
	gateway                    Name
	decided, succeeded, failed atomic.Int64
}

// of returns the counters of a gateway, nil when there are too many.
func (s *shares) of(g Name) *share {
	if c := s.find(g); c != nil {
		return c
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.find(g); c != nil {
		return c
	}
	var list []*share
	if there := s.list.Load(); there != nil {
		list = *there
	}
	if len(list) >= maxCounted {
		return nil
	}
	c := &share{gateway: Name(strings.Clone(string(g)))}
	list = append(slices.Clip(list), c)
	s.list.Store(&list)
	return c
}

func (s *shares) find(g Name) *share {
	if list := s.list.Load(); list != nil {
		for _, c := range *list {
			if c.gateway == g {
				return c
			}
		}
	}
	return nil
}

func (s *shares) decided(g Name) {
	if c := s.of(g); c != nil {
		c.decided.Add(1)
	}
}

func (s *shares) settled(g Name, success bool) {
	c := s.of(g)
	switch {
	case c == nil:
	case success:
		c.succeeded.Add(1)
	default:
		c.failed.Add(1)
	}
}

// GatewayStats is one gateway of a merchant.
type GatewayStats struct {
	Gateway                    Name
	Decided, Succeeded, Failed int64 // since the merchant came into memory
}

// WindowStats is one gateway's window.
type WindowStats struct {
	Key     []string // order type, method type, method and the configured dimensions
	Gateway Name
	Mean    float64 // 0 to 1
	Entries int
}

// MerchantStats is a merchant as people look at it.
type MerchantStats struct {
	ID       MerchantID
	Name     string
	Decided  int64
	Gateways []GatewayStats // by name
}

func (m *merchant) stats() MerchantStats {
	row := m.settings.Load().row
	all := MerchantStats{ID: m.id, Name: row.Name}
	if list := m.shares.list.Load(); list != nil {
		for _, c := range *list {
			g := GatewayStats{Gateway: c.gateway, Decided: c.decided.Load(), Succeeded: c.succeeded.Load(), Failed: c.failed.Load()}
			all.Decided += g.Decided
			all.Gateways = append(all.Gateways, g)
		}
	}
	slices.SortFunc(all.Gateways, func(a, b GatewayStats) int { return cmp.Compare(a.Gateway, b.Gateway) })
	return all
}

// Busiest returns the merchants in memory that decided most, at most n of them.
func (s *Service) Busiest(n int) []MerchantStats {
	var all []*merchant
	count := map[*merchant]int64{}
	s.merchants.all(func(m *merchant) {
		list := m.shares.list.Load()
		if list == nil {
			return
		}
		for _, c := range *list {
			count[m] += c.decided.Load()
		}
		all = append(all, m)
	})
	slices.SortFunc(all, func(a, b *merchant) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a.id, b.id))
	})
	var stats []MerchantStats
	for _, m := range all[:min(n, len(all))] {
		stats = append(stats, m.stats())
	}
	return stats
}

// Stats returns one merchant as people look at it; NotFound when it is not in memory.
func (s *Service) Stats(id MerchantID) (MerchantStats, error) {
	m := s.merchants.find(id)
	if m == nil {
		return MerchantStats{}, noMerchant(id)
	}
	return m.stats(), nil
}

// Windows returns a merchant's windows by key and gateway, at most limit of them; none when it is not in memory.
func (s *Service) Windows(id MerchantID, limit int) (all []WindowStats) {
	m := s.merchants.find(id)
	if m == nil {
		return nil
	}
	m.scores.mu.RLock()
	defer m.scores.mu.RUnlock()
	for _, key := range sortedKeys(m.scores.cells) {
		h := m.scores.cells[key]
		names := h.names()
		means := h.means(names, maxBucket, nil)
		for i, g := range names {
			if len(all) == limit {
				return all
			}
			all = append(all, WindowStats{Key: strings.Split(key, string(separator)), Gateway: g, Mean: means[i].Score, Entries: h.entries(g)})
		}
	}
	return all
}

// names returns the gateways that have a window here.
func (c *cell) names() []Name {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := make([]Name, len(c.list))
	for i := range c.list {
		names[i] = c.list[i].gateway
	}
	return names
}
