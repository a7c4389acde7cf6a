package console

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"holdfast/fault"
	"holdfast/gateway"
	"holdfast/ident"
)

// Gateways is what the pages read of the gateway service. It reads memory only.
type Gateways interface {
	// Busiest returns the merchants that decided most, at most n.
	Busiest(n int) []gateway.MerchantStats
	// Stats returns one merchant; fault.NotFound when nobody asked for it lately.
	Stats(id gateway.MerchantID) (gateway.MerchantStats, error)
	// Windows returns a merchant's windows, at most limit.
	Windows(id gateway.MerchantID, limit int) []gateway.WindowStats
}

var _ Gateways = (*gateway.Service)(nil)

// How much the pages show of merchants.
const (
	shopCards    = 8
	shopWindows  = 100
	merchantPath = "/console/merchant/"
)

// shop is what one merchant did lately: decisions take the place of a capsule's, and a success is a reward of 1.
type shop struct {
	trail
	known map[gateway.Name]gateway.GatewayStats // guarded by the trail's mu
}

// shops keeps those that somebody looks at.
type shops struct {
	gateways Gateways
	mu       sync.Mutex // guards what follows
	watched  map[gateway.MerchantID]*shop
	looked   map[gateway.MerchantID]time.Time
}

// look returns the shop of a merchant, sampled now, and notes that somebody looked.
func (s *shops) look(m gateway.MerchantStats, now time.Time) *shop {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watched == nil {
		s.watched, s.looked = map[gateway.MerchantID]*shop{}, map[gateway.MerchantID]time.Time{}
	}
	one := s.watched[m.ID]
	if one == nil {
		for id := range s.watched { // one more takes the place of any that was not looked at just now
			if len(s.watched) < maxWatched {
				break
			}
			if s.looked[id].Before(now) {
				s.forget(id)
			}
		}
		one = &shop{}
		s.watched[m.ID] = one
	}
	s.looked[m.ID] = now
	one.sample(m, now)
	return one
}

// forget drops a shop. The caller holds mu.
func (s *shops) forget(id gateway.MerchantID) {
	delete(s.watched, id)
	delete(s.looked, id)
}

// round samples every shop that somebody looked at lately.
func (s *shops) round(now time.Time) {
	if s.gateways == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, one := range s.watched {
		m, err := s.gateways.Stats(id)
		if err != nil || now.Sub(s.looked[id]) > linger {
			s.forget(id)
			continue
		}
		one.sample(m, now)
	}
}

// sample adds what happened since the last one. The first one of a merchant knows sums but not when, so it draws nothing.
func (s *shop) sample(m gateway.MerchantStats, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	second := now.Unix()
	first := s.known == nil
	if m.Decided < s.at.decisions { // it left memory and came back
		s.known, first = nil, true
	}
	if first {
		s.known = map[gateway.Name]gateway.GatewayStats{}
	}
	b := s.bucket(second, second)
	for _, g := range m.Gateways {
		was := s.known[g.Gateway]
		s.known[g.Gateway] = g
		slot := s.place(string(g.Gateway))
		if first {
			continue
		}
		b.options[slot] += float64(g.Decided - was.Decided)
		b.sum += float64(g.Succeeded - was.Succeeded)
		b.rewards += float64(g.Succeeded - was.Succeeded + g.Failed - was.Failed)
	}
	if !first {
		b.rate, b.counted = b.rate+float64(m.Decided-s.at.decisions), true
	}
	s.at.begun, s.at.decisions = true, m.Decided
}

// place gives a gateway its colour, while there is one left. The caller holds mu.
func (s *shop) place(name string) int {
	slot := s.slot(name)
	if slot == slots && len(s.options) < slots {
		slot = len(s.options)
		s.options = append(s.options, name)
	}
	return slot
}

// shopCard is one merchant on a page.
type shopCard struct {
	ID     gateway.MerchantID
	Anchor string
	Name   string
	Link   string
	gateway.MerchantStats
	trends
}

func (c *Console) shopCard(m gateway.MerchantStats, points int) shopCard {
	now := c.now()
	p := c.shops.look(m, now).picture(now, points)
	card := shopCard{ID: m.ID, Name: m.Name, Link: merchantPath + url.PathEscape(string(m.ID)), MerchantStats: m, trends: trendsOf(&p, 1)}
	card.Anchor = url.QueryEscape(string(m.ID))
	card.Shares.Label, card.Shares.None = "share of each payment gateway over time", "no payments while this page was open"
	card.Reward.Label, card.Reward.None = "success rate over time", "no outcomes while this page was open"
	return card
}

// sees reports whether a principal may see merchants: they belong to none of the scopes of the console's keys.
func sees(who ident.Principal) bool { return who.Allows(ident.Need{Role: ident.Admin}) }

// shopCards are the busiest merchants.
func (c *Console) shopCards(who ident.Principal) []shopCard {
	if c.shops.gateways == nil || !sees(who) {
		return nil
	}
	var cards []shopCard
	for _, m := range c.shops.gateways.Busiest(shopCards) {
		cards = append(cards, c.shopCard(m, cardPoints))
	}
	return cards
}

// merchantDetail is the body of a merchant's page.
type merchantDetail struct {
	shopCard
	Windows []windowRow
}

// windowRow is one gateway's window.
type windowRow struct {
	Key string
	gateway.WindowStats
	Slot int
}

// Merchant answers the page of the merchant that the parameter names.
func (c *Console) Merchant(w http.ResponseWriter, r *http.Request, call *ident.Call) {
	who, ok := c.who(r)
	if !ok {
		protect(w.Header())
		http.Redirect(w, r, "/?next="+url.QueryEscape(r.URL.EscapedPath()), http.StatusSeeOther)
		return
	}
	id := gateway.MerchantID(call.Params[0])
	body, err := c.merchant(who, id)
	if err != nil {
		c.fail(w, who, err)
		return
	}
	c.show(w, http.StatusOK, "merchant-page", layout{Title: string(id), Who: c.name(who), Dev: c.dev,
		Stream: "/console/events?" + url.Values{"merchant": {string(id)}}.Encode(), Body: body})
}

// merchant gathers a merchant's page.
func (c *Console) merchant(who ident.Principal, id gateway.MerchantID) (merchantDetail, error) {
	if !sees(who) {
		return merchantDetail{}, fault.New("console.merchant", fault.Forbidden, "the key does not cover merchants")
	}
	if c.shops.gateways == nil {
		return merchantDetail{}, fault.New("console.merchant", fault.NotFound, "there is no gateway service here")
	}
	m, err := c.shops.gateways.Stats(id)
	if err != nil {
		return merchantDetail{}, err
	}
	d := merchantDetail{shopCard: c.shopCard(m, pagePoints)}
	slot := map[string]int{}
	for _, s := range d.Legend {
		slot[s.Name] = s.Slot
	}
	for _, w := range c.shops.gateways.Windows(id, shopWindows) {
		row := windowRow{Key: strings.Join(w.Key, " · "), WindowStats: w, Slot: slots}
		if at, there := slot[string(w.Gateway)]; there {
			row.Slot = at
		}
		d.Windows = append(d.Windows, row)
	}
	return d, nil
}
