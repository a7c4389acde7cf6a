package gateway

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"sync"
)

// topMerchants is how many merchants' scores of a gateway are compared to say that it is down for everybody.
const topMerchants = 8

// global knows which gateways are down for all the merchants that use them most. Only the writer's goroutine changes it.
type global struct {
	mu    sync.RWMutex // guards all below
	tops  map[string][]top
	seq   int64
	dirty bool
}

// top is one merchant's elimination score of a gateway.
type top struct {
	merchant int64
	moves    int64 // outcomes that moved it, which is how merchants are ranked
	timeMS   int64
	floor    float64 // the merchant's threshold
	standing standing
}

// apply follows one outcome.
func (g *global) apply(o *Outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seq, g.dirty = o.Seq, true
	list := g.tops[o.Standing]
	at := slices.IndexFunc(list, func(t top) bool { return t.merchant == o.Merchant })
	if at < 0 {
		if len(list) >= topMerchants {
			at = quietest(list, o.TimeMS)
			list[at] = top{merchant: o.Merchant, standing: *newStanding()}
		} else {
			at = len(list)
			list = append(list, top{merchant: o.Merchant, standing: *newStanding()})
		}
	}
	t := &list[at]
	t.moves, t.timeMS, t.floor = t.moves+1, o.TimeMS, o.Floor
	t.standing.move(o, globalLifeMS)
	g.tops[o.Standing] = list
}

// quietest is the merchant that makes room: one whose score has aged out, else the one with the fewest outcomes.
func quietest(list []top, nowMS int64) int {
	best := 0
	for i := range list {
		if nowMS-list[i].timeMS > globalLifeMS {
			return i
		}
		if list[i].moves < list[best].moves {
			best = i
		}
	}
	return best
}

// down reports whether every merchant of the top, two at least, has the gateway below its threshold.
func (g *global) down(key []byte, nowMS int64) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	alive := 0
	for i := range g.tops[string(key)] {
		t := &g.tops[string(key)][i]
		if nowMS-t.timeMS > globalLifeMS {
			continue
		}
		if score, _ := t.standing.score(nowMS, globalLifeMS, softReset{}); score >= t.floor {
			return false
		}
		alive++
	}
	return alive >= 2
}

// appendTo encodes the scores; readFrom decodes them.
func (g *global) appendTo(b []byte) []byte {
	g.mu.RLock()
	defer g.mu.RUnlock()
	b = append(b, scoresVersion)
	b = binary.AppendUvarint(b, uint64(len(g.tops)))
	for _, key := range sortedKeys(g.tops) {
		b = appendBlock(b, []byte(key))
		b = binary.AppendUvarint(b, uint64(len(g.tops[key])))
		for _, t := range g.tops[key] {
			one := binary.AppendUvarint(nil, uint64(t.merchant))
			one = binary.AppendUvarint(one, uint64(t.moves))
			one = binary.AppendUvarint(one, uint64(t.timeMS))
			one = binary.LittleEndian.AppendUint64(one, math.Float64bits(t.floor))
			b = appendBlock(b, t.standing.appendTo(one))
		}
	}
	return b
}

func (g *global) readFrom(b []byte) error {
	if len(b) == 0 || b[0] != scoresVersion {
		return errScores
	}
	in := blocks{left: b[1:]}
	for range in.count() {
		key := strings.Clone(string(in.next()))
		for range in.count() {
			one := blocks{left: in.next()}
			t := top{merchant: one.number(), moves: one.number(), timeMS: one.number(), standing: *newStanding()}
			if one.bad || len(one.left) < 8 {
				return errScores
			}
			t.floor = math.Float64frombits(binary.LittleEndian.Uint64(one.left))
			if err := t.standing.readFrom(one.left[8:]); err != nil {
				return err
			}
			g.tops[key] = append(g.tops[key], t)
		}
	}
	if in.bad || len(in.left) != 0 {
		return errScores
	}
	return nil
}

// number reads one unsigned number.
func (in *blocks) number() int64 {
	v, n := binary.Uvarint(in.left)
	if n <= 0 {
		in.bad, in.left = true, nil
		return 0
	}
	in.left = in.left[n:]
	return int64(v)
}
