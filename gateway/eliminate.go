package gateway

import (
	"encoding/binary"
	"math"
)

// softReset says when a penalised score is raised again; the zero value never.
type softReset struct {
	after int64   // ms since the last reset
	to    float64 // the score it is raised to
}

// standing is one elimination score: 1 at first, lowered by failures and raised by successes.
type standing struct {
	value   float64
	timeMS  int64 // of the newest move
	resetMS int64 // of the newest soft reset, or of the first move
	moves   int64
}

func newStanding() *standing { return &standing{value: 1} }

// move applies an outcome; a score older than life starts anew.
//
//	penalty: s = max(0, s - s*p/100)    reward: s = min(1, s + s*r/100)
func (st *standing) move(o *Outcome, life int64) {
	if st.moves > 0 && o.TimeMS-st.timeMS > life {
		*st = standing{value: 1}
	}
	if st.moves == 0 {
		st.resetMS = o.TimeMS
	}
	if o.Raise > 0 {
		st.value, st.resetMS = max(st.value, o.Raise), o.TimeMS
	}
	switch o.Move {
	case Penalise:
		st.value = max(0, st.value-st.value*o.Factor/100)
	case Reward:
		st.value = min(1, st.value+st.value*o.Factor/100)
	}
	st.timeMS, st.moves = o.TimeMS, st.moves+1
}

// score is the value at a time, and whether a soft reset has raised it.
func (st *standing) score(nowMS, life int64, p softReset) (score float64, raised bool) {
	switch {
	case st.moves == 0 || nowMS-st.timeMS > life:
		return 1, false
	case p.after > 0 && nowMS-st.resetMS >= p.after && st.value < p.to:
		return p.to, true
	}
	return st.value, false
}

func (st *standing) appendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(st.value))
	b = appendNumber(appendNumber(b, st.timeMS), st.resetMS)
	return appendNumber(b, st.moves)
}

func (st *standing) readFrom(b []byte) error {
	if len(b) < 8 {
		return errScores
	}
	st.value = math.Float64frombits(binary.LittleEndian.Uint64(b))
	in := blocks{left: b[8:]}
	st.timeMS, st.resetMS, st.moves = in.number(), in.number(), in.number()
	if in.bad || len(in.left) != 0 || !(st.value >= 0 && st.value <= 1) {
		return errScores
	}
	return nil
}
