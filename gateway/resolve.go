package gateway

import "time"

// The built-in values of the success-rate configuration.
const (
	defaultBucket  = 125
	defaultHedging = 5.0
	defaultReset   = 3.0
	defaultLatency = 300 * time.Second
)

// resolved are the values that hold for one payment.
type resolved struct {
	bucket        int
	hedging       float64 // percent
	hedgingStored bool    // at any level
	latency       time.Duration
	lower, upper  float64
	margin        float64 // 0 when not set
}

// resolve looks every value up on its own: the best matching row that carries it, the merchant's default, the deployment's,
// the built-in one. A row matches when its method type is the payment's and every other constraint is empty or equal; most
// constraints win, the earlier row on ties.
func (set *settings) resolve(d *deployment, f *Facts) resolved {
	r := resolved{}
	var latency float64
	r.lower, r.upper, r.hedging = -1, -1, -1
	for _, c := range [...]*SuccessConfig{set.success, d.success} {
		if c == nil {
			continue
		}
		best := [5]int{-1, -1, -1, -1, -1} // constraints of the row that gave each value
		for i := range c.Rows {
			row := &c.Rows[i]
			weight, matches := row.matches(f)
			if !matches || c != set.success {
				continue
			}
			if row.Bucket > 0 && weight > best[0] {
				r.bucket, best[0] = row.Bucket, weight
			}
			if row.Hedging >= 0 && weight > best[1] {
				r.hedging, best[1] = row.Hedging, weight
			}
			if row.LatencyThreshold > 0 && weight > best[2] {
				latency, best[2] = row.LatencyThreshold, weight
			}
			if row.LowerReset >= 0 && weight > best[3] {
				r.lower, best[3] = row.LowerReset, weight
			}
			if row.UpperReset >= 0 && weight > best[4] {
				r.upper, best[4] = row.UpperReset, weight
			}
		}
		if r.bucket == 0 && c.Bucket > 0 {
			r.bucket = c.Bucket
		}
		if r.hedging < 0 && c.Hedging >= 0 {
			r.hedging = c.Hedging
		}
		if latency == 0 && c.LatencyThreshold > 0 {
			latency = c.LatencyThreshold
		}
		if r.lower < 0 && c.LowerReset >= 0 {
			r.lower = c.LowerReset
		}
		if r.upper < 0 && c.UpperReset >= 0 {
			r.upper = c.UpperReset
		}
		if r.margin == 0 && c.Margin > 0 {
			r.margin = c.Margin
		}
	}
	r.hedgingStored = r.hedging >= 0
	r.latency = time.Duration(latency * float64(time.Second))
	r.builtin()
	return r
}

// builtin fills what is not configured.
func (r *resolved) builtin() {
	if r.bucket == 0 {
		r.bucket = defaultBucket
	}
	r.bucket = min(r.bucket, maxBucket)
	if r.hedging < 0 {
		r.hedging = defaultHedging
	}
	if r.latency <= 0 {
		r.latency = defaultLatency
	}
	if r.lower < 0 {
		r.lower = defaultReset
	}
	if r.upper < 0 {
		r.upper = defaultReset
	}
}

// matches reports whether a payment fits the row, and by how many constraints.
func (row *SuccessRow) matches(f *Facts) (weight int, all bool) {
	if row.MethodType != f.MethodType {
		return 0, false
	}
	for _, c := range [...][2]string{{row.Method, f.Method}, {row.Network, f.Network}, {row.BIN, f.BIN}, {row.Currency, f.Currency},
		{row.Country, f.Country}, {row.AuthType, f.AuthType}} {
		if c[0] == "" {
			continue
		}
		if c[0] != c[1] {
			return 0, false
		}
		weight++
	}
	return weight, true
}
