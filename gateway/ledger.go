package gateway

// ScoreView reads scores, outcomes and decision snapshots.
type ScoreView interface{}

// ScoreTx changes them.
type ScoreTx interface{}
