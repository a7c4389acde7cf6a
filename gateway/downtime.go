package gateway

import (
	"math"
	"slices"
)

// fall says that a gateway is below its elimination threshold.
type fall struct {
	gateway Name
	global  bool // for the top merchants together, not for this one
}

// eliminate lowers the scores of the gateways that are down and says so in the approach.
func (c *choice) eliminate() {
	if !c.elimination {
		return
	}
	a, nowMS := c.answer, c.now.UnixMilli()
	threshold := c.threshold()
	reset := c.deployment.reset(threshold)
	for i := range a.Ranked {
		g := a.Ranked[i].Gateway
		var room [192]byte
		key := standingKey(room[:0], &c.facts, g)
		score, raised := c.merchant.scores.standing(key, nowMS, reset)
		if raised {
			a.Reset = EliminationReset
		}
		switch {
		case score < threshold:
			a.down = append(a.down, fall{gateway: g})
		case c.service.global.down(key, nowMS):
			a.down = append(a.down, fall{gateway: g, global: true})
		default:
			continue
		}
		a.Ranked[i].Score /= downDivisor
	}
	if len(a.down) > 0 {
		a.Approach = downtime(a.Approach, a.down, len(a.Ranked))
	}
}

// fallen reports whether elimination has lowered the gateway.
func (c *choice) fallen(g Name) bool {
	return slices.ContainsFunc(c.answer.down, func(f fall) bool { return f.gateway == g })
}

// threshold is the elimination score below which a gateway counts as down.
func (c *choice) threshold() float64 {
	return c.set.threshold(c.deployment)
}

func (set *settings) threshold(d *deployment) float64 {
	if set.elimination != nil && set.elimination.Threshold > 0 {
		return set.elimination.Threshold
	}
	return d.threshold
}

// downtime is the approach when some gateways are down, for one that knew of none.
func downtime(a Approach, down []fall, of int) Approach {
	global := slices.ContainsFunc(down, func(f fall) bool { return f.global })
	all := len(down) == of && of > 1
	pick := func(some, everyone, globally Approach) Approach {
		switch {
		case all:
			return everyone
		case global:
			return globally
		}
		return some
	}
	switch a {
	case ApproachPriority:
		return pick(ApproachPriorityDown, ApproachPriorityAll, ApproachPriorityGlobal)
	case ApproachHedging:
		return pick(ApproachDownHedge, ApproachAllDownHedge, ApproachGlobalHedge)
	}
	return pick(ApproachDown, ApproachAllDown, ApproachGlobalDown)
}

// softResetAfter is how long after its last reset a penalised score is raised, in ms, where the deployment switches that on.
const softResetAfter = 900_000

// reset is the soft reset under a threshold: high enough for nine penalties before the gateway is down again.
func (d *deployment) reset(threshold float64) softReset {
	if !d.softReset {
		return softReset{}
	}
	return softReset{after: softResetAfter, to: min(1, threshold/math.Pow(1-d.penalty/100, 9))}
}
