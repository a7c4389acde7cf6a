package decision

import "context"

// maxTrend bounds what one look at the newest outcomes reads.
const maxTrend = 1000

// RewardsSince returns the rewards with a sequence number above after, ascending, at most limit of them (1..1000). What is
// read is on disk already, so it never waits for the queue.
func (c *Capsule) RewardsSince(ctx context.Context, after int64, limit int) ([]Reward, error) {
	if c.isGone() {
		return nil, c.missing()
	}
	limit = min(max(limit, 1), maxTrend)
	var found []Reward
	err := c.service.storage.Read(ctx, func(v View) error {
		return v.Rewards(c.key, after, func(r Reward) (bool, error) {
			found = append(found, r)
			return len(found) < limit, nil
		})
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// RewardsOf returns the rewards of several decisions as one moment has them: entry i holds those of ids[i] by ascending
// sequence, nil when there is none. Only the first 1,000 ids are looked up.
func (c *Capsule) RewardsOf(ctx context.Context, ids []string) ([][]Reward, error) {
	if c.isGone() {
		return nil, c.missing()
	}
	found := make([][]Reward, len(ids))
	err := c.service.storage.Read(ctx, func(v View) (err error) {
		for i := range ids[:min(len(ids), maxTrend)] {
			if found[i], err = v.RewardsOf(c.key, ids[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}
