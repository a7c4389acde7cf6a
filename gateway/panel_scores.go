package gateway

import (
	"cmp"
	"context"
	"slices"
)

// ScoreKey says whose score it is.
type ScoreKey struct {
	MethodType, Method string
	Gateway            Name
}

func (k ScoreKey) compare(o ScoreKey) int {
	return cmp.Or(compareText(k.MethodType, o.MethodType), compareText(k.Method, o.Method), compareText(string(k.Gateway), string(o.Gateway)))
}

// ScoreSnapshot is a gateway's newest score for one payment method.
type ScoreSnapshot struct {
	ScoreKey
	Score, Sigma, Latency, TP99 float64
	Transactions                int64
	UpdatedMS                   int64
}

// ScorePoint is a gateway's score at the end of a bucket.
type ScorePoint struct {
	BucketMS int64
	ScoreSnapshot
}

// scoreBoard keeps the newest score of each key. What feedback made of a score goes before what a decision saw of it: that
// one may have been lowered by an outage or raised by hedging.
type scoreBoard map[ScoreKey]boardScore

type boardScore struct {
	at   scoreAt
	firm bool
}

func (b scoreBoard) note(c *counted) {
	if c.cell.score == (scoreAt{}) || c.key.texts[byGateway] == "" || c.key.texts[byGateway] == overflow {
		return
	}
	key := ScoreKey{c.key.texts[byMethodType], c.key.texts[byMethod], Name(c.key.texts[byGateway])}
	firm := c.flow() == FlowScoreSnapshot
	there, known := b[key]
	if known && (there.firm && !firm || there.firm == firm && there.at.ms > c.cell.score.ms) {
		return
	}
	b[key] = boardScore{c.cell.score, firm}
}

func (k ScoreKey) snapshot(at scoreAt) ScoreSnapshot {
	return ScoreSnapshot{k, at.score, at.sigma, at.latency, at.tp99, at.transactions, at.ms}
}

// list returns the scores in the order of their keys.
func (b scoreBoard) list() []ScoreSnapshot {
	all := make([]ScoreSnapshot, 0, len(b))
	for k, one := range b {
		all = append(all, k.snapshot(one.at))
	}
	slices.SortFunc(all, func(x, y ScoreSnapshot) int { return x.ScoreKey.compare(y.ScoreKey) })
	return all
}

func (b scoreBoard) best(most int) []ScoreSnapshot {
	all := b.list()
	slices.SortStableFunc(all, func(x, y ScoreSnapshot) int { return cmp.Compare(y.Score, x.Score) })
	return all[:min(len(all), most)]
}

// seriesMost bounds the points of one answer.
const seriesMost = 20_000

// GatewayScores answers /analytics/gateway-scores: the newest scores, and those at the end of every bucket that has some.
func (s *Service) GatewayScores(ctx context.Context, q *Question) ([]ScoreSnapshot, []ScorePoint, error) {
	newest, inBucket := scoreBoard{}, map[int64]scoreBoard{}
	err := s.countedBy(ctx, q, func(c *counted) {
		if !c.passes {
			return
		}
		newest.note(c)
		if inBucket[c.bucket] == nil {
			inBucket[c.bucket] = scoreBoard{}
		}
		inBucket[c.bucket].note(c)
	})
	if err != nil {
		return nil, nil, err
	}
	var series []ScorePoint
	for _, bucket := range ascending(inBucket) {
		for _, one := range inBucket[bucket].list() {
			if len(series) < seriesMost {
				series = append(series, ScorePoint{bucket, one})
			}
		}
	}
	return newest.list(), series, nil
}

func ascending[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// LeaderChange is a moment at which another gateway began to have the best score for a payment method.
type LeaderChange struct {
	AtMS               int64
	MethodType, Method string
	From, To           Name
	FromScore, ToScore float64
}

// RoutingEvents answers /analytics/routing-events: the changes of leaders, newest first, as finely as roll-ups tell them.
func (s *Service) RoutingEvents(ctx context.Context, q *Question) ([]LeaderChange, error) {
	pages := map[int64]scoreBoard{}
	err := s.countedBy(ctx, q, func(c *counted) {
		if !c.passes || c.flow() != FlowScoreSnapshot {
			return
		}
		if pages[c.startMS] == nil {
			pages[c.startMS] = scoreBoard{}
		}
		pages[c.startMS].note(c)
	})
	if err != nil {
		return nil, err
	}
	var changes []LeaderChange
	known := map[[2]string]map[Name]float64{}
	leader := map[[2]string]Name{}
	for _, start := range ascending(pages) {
		for _, one := range pages[start].list() {
			method := [2]string{one.MethodType, one.Method}
			if known[method] == nil {
				known[method] = map[Name]float64{}
			}
			known[method][one.Gateway] = one.Score
		}
		for _, method := range methodsOf(pages[start]) {
			before, after := leader[method], leaderOf(known[method], leader[method])
			if before != "" && before != after {
				changes = append(changes, LeaderChange{AtMS: start, MethodType: method[0], Method: method[1], From: before, To: after,
					FromScore: known[method][before], ToScore: known[method][after]})
			}
			leader[method] = after
		}
	}
	slices.Reverse(changes)
	return changes[:min(len(changes), seriesMost)], nil
}

// methodsOf lists the payment methods of a board, each once, in order.
func methodsOf(b scoreBoard) [][2]string {
	var methods [][2]string
	for _, one := range b.list() {
		if m := [2]string{one.MethodType, one.Method}; len(methods) == 0 || methods[len(methods)-1] != m {
			methods = append(methods, m)
		}
	}
	return methods
}

// leaderOf returns the gateway with the best score; the one that leads keeps the lead among equals.
func leaderOf(scores map[Name]float64, leads Name) Name {
	best := leads
	if _, known := scores[best]; !known {
		best = ""
	}
	for _, g := range ascending(scores) {
		if best == "" || scores[g] > scores[best] {
			best = g
		}
	}
	return best
}
