package gateway

import (
	"cmp"
	"context"
	"slices"
	"time"

	"holdfast/fault"
)

// What an answer's reset_approach may say.
const (
	NoReset          = "NO_RESET"
	EliminationReset = "ELIMINATION_RESET"
)

// The divisors of a score: a scheduled outage, and a gateway below its elimination threshold.
const (
	outageDivisor = 10
	downDivisor   = 5
)

// Answer is a decision. What it points to is its own and is used again by the next decision that is given it.
type Answer struct {
	Gateway   Name     // decided
	Fallbacks []Name   // all others, best first
	Ranked    []Scored // by final score, best first; empty when gateways were not scored
	Approach  Approach
	Before    Name           // the leader before elimination; empty when gateways were not scored
	Logic     *PriorityLogic // nil when a single preferred gateway was taken
	Reset     string         // NoReset or EliminationReset
	Dimension string         // what the scores are of, parts joined by ", "; empty when unused
	Level     string         // PM_LEVEL, CARD_LEVEL, AUTH_LEVEL; empty when unused
	Outage    bool           // a gateway of the answer is in a scheduled outage
	Cost      *CostInfo      // nil when cost took no part
	Debit     *DebitOutput   // nil without debit ranking
	Seed      uint64         // all randomness of the decision came from it
	Why       string         // of a pick by exploration; empty otherwise

	eligible []Name // without duplicates, in the caller's order
	logic    PriorityLogic
	cost     CostInfo
	debit    DebitOutput
	means    []Scored // before any adjustment
	alive    []Name   // room for the explorer's candidates
	down     []fall
	details  []byte
}

// Decide chooses a gateway for one payment. Refusals are *DecisionError, or a *fault.Error when the merchant could not be
// looked up. It does no I/O once the merchant is in memory.
func (s *Service) Decide(ctx context.Context, r *Request, a *Answer) error {
	m, err := s.merchant(ctx, r.Merchant)
	now := s.options.Now()
	if err == nil {
		m.use(now)
		c := choice{service: s, merchant: m, set: m.settings.Load(), deployment: s.deployment.Load(), request: r, answer: a, now: now}
		if err = c.run(); err == nil && a.Gateway != "" {
			m.shares.decided(a.Gateway)
		}
	} else if fault.KindOf(err) == fault.NotFound {
		err = UnknownMerchant(r.Merchant)
	}
	s.decided(r, a, now, err)
	return err
}

// choice is one decision on its way.
type choice struct {
	service    *Service
	merchant   *merchant
	set        *settings
	deployment *deployment
	request    *Request
	answer     *Answer
	now        time.Time
	draws      splitmix

	facts       Facts
	resolved    resolved
	cell        *held // nil when no outcome was seen under the key
	keyRoom     [192]byte
	key         []byte // of the window
	dimension   int    // where the configured dimensions begin in it
	elimination bool
	exploring   bool // the explorer or hedging is on
	explored    bool // the pick is not the leader's doing
	hedge       bool
}

// run goes through the steps in the order of the contract.
func (c *choice) run() error {
	r, a := c.request, c.answer
	c.begin()
	switch {
	case r.Ranking == RankNetwork: // networks are ranked, with or without a gateway to send them to
		return c.network()
	case len(a.eligible) == 0:
		return noGateway("eligibleGatewayList is empty")
	case r.Payment.Preferred != "" && len(a.eligible) == 1:
		return c.prefer()
	}
	if err := c.prioritise(); err != nil {
		return err
	}
	c.score()
	c.explore()
	c.outages()
	c.leader()
	c.eliminate()
	c.rank()
	c.weigh()
	if len(a.Ranked) == 1 {
		a.Approach = ApproachDefault
	}
	c.place()
	if r.Ranking == RankHybrid {
		c.hybrid()
	}
	c.remember()
	return nil
}

// begin clears the answer and works out what the steps share.
func (c *choice) begin() {
	r, a, p := c.request, c.answer, &c.request.Payment
	a.Gateway, a.Before, a.Approach, a.Reset, a.Dimension, a.Level, a.Why = "", "", ApproachNone, NoReset, "", "", ""
	a.Outage, a.Logic, a.Cost, a.Debit = false, nil, nil, nil
	a.Fallbacks, a.Ranked, a.eligible, a.means, a.down = a.Fallbacks[:0], a.Ranked[:0], a.eligible[:0], a.means[:0], a.down[:0]
	for _, g := range r.Eligible {
		if g != "" && !slices.Contains(a.eligible, g) {
			a.eligible = append(a.eligible, g)
		}
	}
	c.facts = Facts{OrderType: p.OrderType, MethodType: p.MethodType, Method: p.Method, CardType: p.CardType,
		Network: p.Network, BIN: p.BIN, Currency: p.Currency, Country: p.Country, AuthType: p.AuthType}
	a.Seed = c.service.options.Entropy()
	c.draws = splitmix(a.Seed)
	c.resolved = c.set.resolve(c.deployment, &c.facts)
	c.elimination = r.Elimination == Yes || c.set.has(FeatureElimination, c.draws.next())
	c.key, c.dimension = windowKey(c.keyRoom[:0], c.set, &c.facts, p.UDFs)
}

// prefer takes the only gateway because the caller would rather have it.
func (c *choice) prefer() error {
	a := c.answer
	if c.request.Payment.Preferred != a.eligible[0] {
		return noGateway("preferredGateway is not the only eligible gateway")
	}
	a.Gateway, a.Before, a.Approach = a.eligible[0], a.eligible[0], ApproachPreference
	a.Ranked = append(a.Ranked, Scored{a.eligible[0], 1})
	c.remember()
	return nil
}

// prioritise finds the order that the merchant asks for. Under success-rate ranking that is the eligible list as sent.
func (c *choice) prioritise() error {
	r, a := c.request, c.answer
	a.logic.reset()
	a.Logic = &a.logic
	if r.Ranking == RankSuccess || r.Ranking == RankHybrid {
		a.logic.Gateways = append(a.logic.Gateways, r.Eligible...)
		return nil
	}
	c.set.prioritise(r, c.draws.next(), &a.logic)
	if p := r.Payment.Preferred; p != "" {
		if i := slices.Index(a.logic.Gateways, p); i > 0 {
			copy(a.logic.Gateways[1:i+1], a.logic.Gateways[:i])
			a.logic.Gateways[0] = p
		} else if i < 0 && slices.Contains(a.eligible, p) {
			a.logic.Gateways = slices.Insert(a.logic.Gateways, 0, p)
		}
	}
	if a.logic.Enforcement {
		c.enforce()
	}
	return nil
}

// enforce keeps the listed gateways alone, unless none of them is eligible: then the eligible order stands in.
func (c *choice) enforce() {
	a := c.answer
	listed := slices.ContainsFunc(a.eligible, func(g Name) bool { return slices.Contains(a.logic.Gateways, g) })
	if listed {
		a.eligible = slices.DeleteFunc(a.eligible, func(g Name) bool { return !slices.Contains(a.logic.Gateways, g) })
		return
	}
	failed := LogicRun{Status: "FAILURE", Reason: "NULL_AFTER_ENFORCE"}
	if a.logic.Primary != nil {
		failed.Name = a.logic.Primary.Name
	}
	a.logic.Primary, a.logic.Enforcement = &failed, false
	a.logic.Gateways = append(a.logic.Gateways[:0], a.eligible...)
}

// score gives every eligible gateway its base score: the mean of its window, or its position in the priority list.
func (c *choice) score() {
	a := c.answer
	c.cell = c.merchant.scores.find(c.key)
	switch {
	case !c.bySuccess():
		a.Approach = ApproachPriority
		a.Ranked = positions(a.Ranked, a.eligible, a.logic.Gateways)
	case len(a.eligible) == 1:
		a.Approach = ApproachSuccess
		a.Ranked = append(a.Ranked, Scored{a.eligible[0], 1})
	default:
		a.Approach = ApproachSuccess
		if c.cell != nil {
			a.Ranked = c.cell.means(a.eligible, c.resolved.bucket, a.Ranked)
		} else {
			for _, g := range a.eligible {
				a.Ranked = append(a.Ranked, Scored{g, 1})
			}
		}
	}
	a.means = append(a.means, a.Ranked...)
	a.Dimension, a.Level = c.describe()
}

func (c *choice) bySuccess() bool {
	return c.request.Ranking == RankSuccess || c.request.Ranking == RankHybrid
}

// positions scores by place in a list: 1.0, 0.9, 0.8 and so on for the eligible gateways that are listed, and the next value
// for all that are not. It never falls below 0.
func positions(dst []Scored, eligible, listed []Name) []Scored {
	rank := 0
	place := func(i int) float64 { return max(0, float64(10-i)/10) }
	for _, g := range listed {
		if slices.Contains(eligible, g) && !slices.ContainsFunc(dst, func(s Scored) bool { return s.Gateway == g }) {
			dst = append(dst, Scored{g, place(rank)})
			rank++
		}
	}
	for _, g := range eligible {
		if !slices.ContainsFunc(dst, func(s Scored) bool { return s.Gateway == g }) {
			dst = append(dst, Scored{g, place(rank)})
		}
	}
	return dst
}

// explore decides whether this decision tries something. A stored percentage hedges: every gateway counts the same. Without
// one the explorer picks, later, among those that are up.
func (c *choice) explore() {
	a := c.answer
	if !c.bySuccess() || len(a.Ranked) < 2 || !c.set.has(FeatureExplore, c.draws.next()) {
		return
	}
	c.exploring = true
	if !c.resolved.hedgingStored || c.draws.float()*100 >= c.resolved.hedging {
		return
	}
	c.hedge, c.explored = true, true
	a.Approach, a.Why = ApproachHedging, "hedging"
	for i := range a.Ranked {
		a.Ranked[i].Score = 1
	}
	for i := len(a.Ranked) - 1; i > 0; i-- { // ties are then broken by this order
		j := int(c.draws.next() % uint64(i+1))
		a.Ranked[i], a.Ranked[j] = a.Ranked[j], a.Ranked[i]
	}
}

// outages lowers the scores of gateways in a scheduled outage.
func (c *choice) outages() {
	shared, own := c.service.outages.Load(), c.set.outages
	if shared.empty() && own.empty() {
		return
	}
	a := c.answer
	for i := range a.Ranked {
		if g, p := a.Ranked[i].Gateway, &c.request.Payment; shared.applies(g, p, c.now) || own.applies(g, p, c.now) {
			a.Ranked[i].Score /= outageDivisor
			a.Outage = true
		}
	}
}

// leader notes who would win before elimination.
func (c *choice) leader() {
	a := c.answer
	best := 0
	for i := range a.Ranked {
		if a.Ranked[i].Score > a.Ranked[best].Score {
			best = i
		}
	}
	a.Before = a.Ranked[best].Gateway
}

// rank sorts by score, best first; equal scores keep their order, which is the caller's.
func (c *choice) rank() {
	slices.SortStableFunc(c.answer.Ranked, func(x, y Scored) int { return cmp.Compare(y.Score, x.Score) })
}

// weigh lets cost change the leader. A hedge stays what it is, and so does what the explorer will pick: it has its own reason.
func (c *choice) weigh() {
	a, r := c.answer, c.request
	if c.hedge || r.Cost == No || r.Cost == Unsaid && !c.set.has(FeatureCost, c.draws.next()) {
		return
	}
	in := costInput{Payment: &r.Payment, Margin: c.resolved.margin, Scores: a.Ranked, Costs: c.set.costs}
	if costStep(in, &a.cost) {
		a.Cost = &a.cost
	}
}

// place names the decided gateway and the others, best first. The explorer has its say here, unless cost had: it picks among
// the gateways that no outage and no elimination has lowered, or among all when none is left.
func (c *choice) place() {
	a := c.answer
	if a.Cost != nil && a.Cost.Outcome == CostWon {
		a.Approach = ApproachCost
		for i := range a.Cost.Ranked {
			a.Fallbacks = append(a.Fallbacks, a.Cost.Ranked[i].Gateway)
		}
		a.Gateway = a.Fallbacks[0]
		a.Fallbacks = slices.Delete(a.Fallbacks, 0, 1)
		return
	}
	head := 0
	if c.exploring && !c.resolved.hedgingStored {
		head = c.pick()
	}
	a.Gateway = a.Ranked[head].Gateway
	for i := range a.Ranked {
		if i != head {
			a.Fallbacks = append(a.Fallbacks, a.Ranked[i].Gateway)
		}
	}
}

// pick asks the explorer and returns the place of its gateway in the ranking.
func (c *choice) pick() int {
	a := c.answer
	if c.cell == nil {
		return 0
	}
	a.alive = a.alive[:0]
	for _, g := range a.eligible {
		if c.unharmed(g) {
			a.alive = append(a.alive, g)
		}
	}
	if len(a.alive) == 0 {
		a.alive = append(a.alive, a.eligible...)
	}
	e := c.cell.explore(a.alive, c.draws.next(), c.now.UnixMilli())
	g := a.alive[e.pick]
	a.Why = e.why
	head := slices.IndexFunc(a.Ranked, func(s Scored) bool { return s.Gateway == g })
	if head != 0 {
		c.explored = true
		a.Approach = hedged(a.Approach)
	}
	return head
}

// unharmed reports whether a gateway's score is still its window's.
func (c *choice) unharmed(g Name) bool {
	for i := range c.answer.means {
		if m := &c.answer.means[i]; m.Gateway == g {
			at := slices.IndexFunc(c.answer.Ranked, func(s Scored) bool { return s.Gateway == g })
			return c.answer.Ranked[at].Score == m.Score && !c.fallen(g)
		}
	}
	return false
}

// hedged is the approach of a pick that is not the leader, for one that would have been.
func hedged(a Approach) Approach {
	switch a {
	case ApproachDown:
		return ApproachDownHedge
	case ApproachAllDown:
		return ApproachAllDownHedge
	case ApproachGlobalDown:
		return ApproachGlobalHedge
	}
	return ApproachHedging
}

// describe says what the scores are of: the parts of the window's key, with the card's type for a card.
func (c *choice) describe() (dimension, level string) {
	f := &c.facts
	room := make([]byte, 0, 128)
	room = append(append(room, f.OrderType...), ", "...)
	room = append(append(room, f.MethodType...), ", "...)
	room = append(room, f.Method...)
	level = "PM_LEVEL"
	if f.MethodType == card {
		level = "CARD_LEVEL"
		room = append(room, ", "...)
		room = append(room, cmp.Or(f.CardType, "UNKNOWN")...)
	}
	for _, b := range c.key[c.dimension:] {
		if b == separator {
			room = append(room, ", "...)
		} else {
			room = append(room, b)
		}
	}
	if fields := c.set.dimensions.Fields; len(fields) > 0 && len(c.set.dimensions.UDFs) == 0 &&
		fields[len(fields)-1] == "auth_type" && f.AuthType != "" {
		level = "AUTH_LEVEL"
	}
	return string(room), level
}

// remember keeps the decision for its feedback.
func (c *choice) remember() {
	rec := record{merchant: c.merchant.key, timeMS: c.now.UnixMilli(), payment: c.request.Payment.ID, facts: c.facts,
		dimension: string(c.key[c.dimension:])}
	if c.elimination {
		rec.flags |= flagElimination
	}
	if c.exploring {
		rec.flags |= flagExploring
	}
	if c.explored || c.answer.Approach == ApproachCost {
		rec.flags |= flagExplored
	}
	c.service.ledger.remember(&rec)
}

// splitmix draws from one seed.
type splitmix uint64

func (s *splitmix) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	x := uint64(*s)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// float draws from [0, 1).
func (s *splitmix) float() float64 { return float64(s.next()>>11) / (1 << 53) }
