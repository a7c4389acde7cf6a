package gateway

import "context"

// effect is what an outcome was counted as. The zero effect is none.
type effect uint8

const (
	noEffect effect = iota
	effectSuccess
	effectFailure
	effectPenalty // the elimination score alone
)

// Move is the change of an elimination score.
type Move int8

// The moves.
const (
	Penalise Move = -1
	Stay     Move = 0
	Reward   Move = 1
)

// Outcome is one change of the scores as stored. It holds everything that applying it needs, so that a replay of the rows in
// the order of their numbers gives the same scores.
type Outcome struct {
	Seq      int64 // one order for all merchants
	TimeMS   int64
	Merchant int64 // MerchantRow.Key
	Kind     OutcomeKind
	Payment  string
	Gateway  Name
	Window   string // key of the cell; empty when no window moves
	Value    bool   // what enters the window
	Size     int    // entries of the window
	Number   uint64 // of the push in the gateway's window: its own, or the one that an amendment changes; never given twice
	Standing string // key of the elimination score; empty when it stays
	Move     Move
	Factor   float64 // percent of the move
	Floor    float64 // threshold of the merchant, for the global score
	Raise    float64 // a soft reset is due: the score is this at least before it moves; 0 when none is
}

// OutcomeKind says how an outcome changes the scores.
type OutcomeKind uint8

// The kinds; their numbers are on disk.
const (
	KindPush    OutcomeKind = 1 // a new entry in the window
	KindAmend   OutcomeKind = 2 // another value for an entry that is there
	KindPenalty OutcomeKind = 3 // no window, only the elimination score
	KindReset   OutcomeKind = 4 // forgets every window of the merchant
)

// effect is what a payment's attempt has been counted as once o is applied.
func (o *Outcome) effect() effect {
	switch {
	case o.Kind == KindPenalty:
		return effectPenalty
	case o.Value:
		return effectSuccess
	}
	return effectFailure
}

// ScoreView reads scores, outcomes and decision snapshots.
type ScoreView interface {
	OutcomeView
	// Chunk returns one row of decision snapshots.
	Chunk(id int64) (Chunk, error)
	// Chunks visits the rows that end at or after sinceMS, by ascending id.
	Chunks(sinceMS int64, visit func(Chunk) error) error
}

// OutcomeView reads outcomes and saved scores.
type OutcomeView interface {
	// Progress returns the number up to which all scores are saved, and the greatest number given.
	Progress() (saved, last int64, err error)
	// Outcomes visits those with a number above after, ascending. The strings are valid after the visit.
	Outcomes(after int64, visit func(*Outcome) error) error
	// Scores returns a merchant's saved scores and the number of the last outcome in them; nil when none are saved.
	Scores(merchant int64) (blob []byte, seq int64, err error)
}

// ScoreTx changes them.
type ScoreTx interface {
	AppendOutcome(*Outcome) error
	AppendChunk(Chunk) error
	SaveScores(merchant, seq int64, blob []byte) error
	// SaveProgress notes that every outcome up to saved is in saved scores, and the greatest number given so far.
	SaveProgress(saved, last int64) error
	// DropScores removes at most limit outcomes that are older than beforeMS and in saved scores, and as many chunks that
	// ended before it, and reports how many rows went.
	DropScores(beforeMS int64, limit int) (rows int64, err error)
}

// outcomes owns the order of all changes of scores. Change and Applied run on the writer's goroutine: what they alone use
// needs no lock.
type outcomes struct {
	last   int64            // number given last; the writer's alone
	staged map[stage]uint64 // pushes of the batch that are not applied yet; the writer's alone
}

// stage names one gateway's window.
type stage struct {
	window  *held
	gateway Name
}

// record stores one outcome, applies it and returns how it went. Its number and its push's number are made in the writer, and
// so is the choice between a push and an amendment: it alone knows what is before it in the same batch. shift reports whether
// applying changed any score.
func (s *Service) record(ctx context.Context, m *merchant, o *Outcome) (shift bool, err error) {
	var pushed *held
	var here *merchant // m, or the one that took its place
	// A caller that gives up does not end the waiting: what became of the outcome must be known here.
	err = s.storage.Write(context.WithoutCancel(ctx), Write{Rows: 1, Change: func(tx Tx) (err error) {
		if here, err = s.resident(tx, m); err != nil {
			return err
		}
		here.staged++
		s.outcomes.last++
		o.Seq = s.outcomes.last
		if o.Kind == KindPush {
			pushed = s.number(here, o)
		}
		return tx.AppendOutcome(o)
	}, Applied: func(err error) {
		if here != nil {
			here.staged--
		}
		if pushed != nil {
			at := stage{pushed, o.Gateway}
			if s.outcomes.staged[at]--; s.outcomes.staged[at] == 0 {
				delete(s.outcomes.staged, at)
			}
		}
		if err == nil {
			s.metrics.committed.Add(1)
			shift = s.apply(here, o)
		}
	}})
	return shift, err
}

// number makes o a push with a number, or an amendment of the push that its attempt has made already; then it returns nil.
func (s *Service) number(m *merchant, o *Outcome) (pushed *held) {
	s.ledger.claim(o.Merchant, o.Payment, o.Gateway, func(was mark) mark {
		if was.number != 0 {
			o.Kind, o.Number = KindAmend, was.number
			return was
		}
		pushed = m.scores.hold(o.Window, o.Seq)
		at := stage{pushed, o.Gateway}
		o.Number = pushed.upcoming(o.Gateway) + s.outcomes.staged[at]
		s.outcomes.staged[at]++
		was.number = o.Number
		return was
	})
	return pushed
}

// apply changes the scores in memory by one stored outcome. It runs on the writer's goroutine, in the order of the numbers.
func (s *Service) apply(m *merchant, o *Outcome) (shift bool) {
	shift = m.scores.apply(o)
	if o.Standing != "" {
		s.global.apply(o)
	}
	s.checkpoint.touch(m, o.Seq)
	return shift
}
