package console

import (
	"context"
	"time"

	"holdfast/decision"
)

// A busy capsule's first look does not reach far back. So that its picture is not empty, the window before is probed at
// even distances: a few decisions and rewards at each place, for as long as the budget lasts.
const (
	probes       = 30
	probeStep    = window / probes // seconds
	probeSize    = 40              // decisions or rewards
	historyTime  = 250 * time.Millisecond
	millisSecond = int64(time.Second / time.Millisecond)
)

// history adds probes of the time before what the first look saw. It is there to be looked at and no more: when it takes
// too long or fails, the picture begins later.
func (s *seen) history(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, historyTime)
	defer cancel()
	if s.partial {
		s.olderDecisions(ctx, now.UnixMilli())
	}
	if n := len(s.rewards); n > 0 && s.rewards[0].Seq > 1 {
		s.olderRewards(ctx, now.UnixMilli())
	}
}

// olderDecisions probes backwards in time.
func (s *seen) olderDecisions(ctx context.Context, now int64) {
	until := s.page[len(s.page)-1].TimeMS
	for oldest := now - window*millisSecond; until > oldest; until -= probeStep * millisSecond {
		q := decision.Query{Newest: true, Limit: probeSize, Span: decision.Span{Since: until - probeStep*millisSecond, Until: until}}
		page, err := s.capsule.Decisions(ctx, q)
		if err != nil {
			return
		}
		s.page = append(s.page, page.Decisions...)
	}
}

// olderRewards probes backwards in sequence numbers, as far apart as the pace of the newest rewards suggests.
func (s *seen) olderRewards(ctx context.Context, now int64) {
	oldest := s.rewards[0]
	elapsed := max(now-oldest.TimeMS, 1)
	step := max(int64(len(s.rewards))*probeStep*millisSecond/elapsed, probeSize)
	for at := oldest.Seq; at > 1 && now-oldest.TimeMS < window*millisSecond; at -= step {
		found, err := s.capsule.RewardsSince(ctx, max(0, at-1-step), int(min(probeSize, at-1)))
		if err != nil || len(found) == 0 {
			return
		}
		s.rewards = append(s.rewards, found...)
		oldest = found[0]
	}
}
