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
// constraints win, the earlier row on ties. The deployment's rows do not count.
func (set *settings) resolve(d *deployment, f *Facts) resolved {
	r := resolved{lower: -1, upper: -1, hedging: -1}
	seconds := 0.0
	if c := set.success; c != nil {
		seconds = r.fromRows(c.Rows, f)
		seconds = r.fromDefaults(c, seconds)
	}
	if c := d.success; c != nil {
		seconds = r.fromDefaults(c, seconds)
	}
	r.hedgingStored = r.hedging >= 0
	r.latency = time.Duration(seconds * float64(time.Second))
	r.builtin()
	return r
}

// fromRows takes what the rows carry for the payment and returns the latency threshold in seconds, 0 when none does.
func (r *resolved) fromRows(rows []SuccessRow, f *Facts) (seconds float64) {
	bucket, hedging, latency, lower, upper := -1, -1, -1, -1, -1 // constraints of the row that gave each value
	for i := range rows {
		row := &rows[i]
		weight := row.weight(f)
		if row.Bucket > 0 && weight > bucket {
			r.bucket, bucket = row.Bucket, weight
		}
		if row.Hedging >= 0 && weight > hedging {
			r.hedging, hedging = row.Hedging, weight
		}
		if row.LatencyThreshold > 0 && weight > latency {
			seconds, latency = row.LatencyThreshold, weight
		}
		if row.LowerReset >= 0 && weight > lower {
			r.lower, lower = row.LowerReset, weight
		}
		if row.UpperReset >= 0 && weight > upper {
			r.upper, upper = row.UpperReset, weight
		}
	}
	return seconds
}

// fromDefaults takes what is not there yet, the latency threshold in seconds among it.
func (r *resolved) fromDefaults(c *SuccessConfig, seconds float64) float64 {
	if r.bucket == 0 && c.Bucket > 0 {
		r.bucket = c.Bucket
	}
	if r.hedging < 0 && c.Hedging >= 0 {
		r.hedging = c.Hedging
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
	if seconds == 0 && c.LatencyThreshold > 0 {
		seconds = c.LatencyThreshold
	}
	return seconds
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

// weight is by how many constraints a payment fits the row, -1 when it does not.
func (row *SuccessRow) weight(f *Facts) (n int) {
	if row.MethodType != f.MethodType || differ(row.Method, f.Method, &n) || differ(row.Network, f.Network, &n) || differ(row.BIN, f.BIN, &n) ||
		differ(row.Currency, f.Currency, &n) || differ(row.Country, f.Country, &n) || differ(row.AuthType, f.AuthType, &n) {
		return -1
	}
	return n
}

// differ reports whether a constraint is not met, and counts it when it is.
func differ(constraint, fact string, n *int) bool {
	if constraint == "" {
		return false
	}
	*n++
	return constraint != fact
}
