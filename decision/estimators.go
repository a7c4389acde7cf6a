package decision

import "math"

// z95 is the 0.975 quantile of the standard normal distribution.
const z95 = 1.959963984540054

// outcome is one row as the estimators see it: the clipped weight w of the logged action, its reward r in raw units, the
// model's value of the target policy (direct) and of the logged action (predicted).
type outcome struct {
	w, r, direct, predicted float64
}

// robust is the doubly robust term of the row.
func (o outcome) robust() float64 { return o.direct + o.w*(o.r-o.predicted) }

// sums are what every estimator is made of. They add up in row order, so that equal rows give equal bits.
type sums struct {
	n                              int
	w, wr, r, direct, robust, wSqr float64
}

func (s *sums) add(o outcome) {
	s.n++
	s.w += o.w
	s.wr += o.w * o.r
	s.r += o.r
	s.direct += o.direct
	s.robust += o.robust()
	s.wSqr += o.w * o.w
}

// points are the estimates of one sample: the mean logged reward and each estimator. An undefined SNIPS is NaN.
type points struct{ logged, dm, ips, snips, dr float64 }

func (s *sums) points() points {
	n := float64(s.n)
	return points{logged: s.r / n, dm: s.direct / n, ips: s.wr / n, snips: s.wr / s.w, dr: s.robust / n}
}

// standardError is that of the mean of a term: sqrt(sum (term - mean)^2 / (n-1) / n).
func standardError(rows []outcome, term func(outcome) float64) float64 {
	n := float64(len(rows))
	var sum, square float64
	for _, o := range rows {
		sum += term(o)
	}
	mean := sum / n
	for _, o := range rows {
		d := term(o) - mean
		square += d * d
	}
	return math.Sqrt(square / (n - 1) / n)
}

// snipsSpread is the standard error of SNIPS and of its lift, by the delta method.
func snipsSpread(rows []outcome, s *sums, p points) (value, lift float64) {
	mean := s.w / float64(s.n)
	value = standardError(rows, func(o outcome) float64 { return o.w * (o.r - p.snips) }) / mean
	lift = standardError(rows, func(o outcome) float64 { return o.w*(o.r-p.snips)/mean - (o.r - p.logged) })
	return value, lift
}

// Interval is an estimate with its 95 % interval; undefined members are nil.
type Interval struct {
	Estimate *float64 `json:"estimate"`
	SE       *float64 `json:"se"`
	Lower    *float64 `json:"lower"`
	Upper    *float64 `json:"upper"`
}

// Lift is the difference to the mean logged reward, row by row on the same rows.
type Lift struct {
	Mean  *float64 `json:"mean"`
	SE    *float64 `json:"se"`
	Lower *float64 `json:"lower"`
	Upper *float64 `json:"upper"`
}

// Point is an estimate without an interval.
type Point struct {
	Estimate *float64 `json:"estimate"`
}

// PointLift is a lift without an interval.
type PointLift struct {
	Mean *float64 `json:"mean"`
}

// defined turns a number into a member of the report: nil when it is not finite.
func defined(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// bounds is an interval, NaN when undefined.
type bounds struct{ lower, upper float64 }

func normal(mean, se float64) bounds { return bounds{mean - z95*se, mean + z95*se} }

// Estimators holds every estimate of a policy's value.
type Estimators struct {
	DM    Point    `json:"dm"`
	IPS   Interval `json:"ips"`
	SNIPS Interval `json:"snips"`
	DR    Interval `json:"dr"`
}

// Lifts holds every estimated gain over what was logged.
type Lifts struct {
	DM    PointLift `json:"dm"`
	IPS   Lift      `json:"ips"`
	SNIPS Lift      `json:"snips"`
	DR    Lift      `json:"dr"`
}

// Logged describes the rewards that were really earned.
type Logged struct {
	Mean        *float64 `json:"mean"`
	SE          *float64 `json:"se"`
	Lower       *float64 `json:"lower"`
	Upper       *float64 `json:"upper"`
	NormalLower *float64 `json:"normalLower"`
	NormalUpper *float64 `json:"normalUpper"`
}

// estimated is what the rows say of a policy.
type estimated struct {
	Logged     Logged
	Estimators Estimators
	Lift       Lifts
}

// estimate computes every estimator with the normal interval, or with the bootstrap's when one is given.
func estimate(rows []outcome, boot *bootstrapped) estimated {
	var s sums
	for _, o := range rows {
		s.add(o)
	}
	p := s.points()
	loggedSE := standardError(rows, func(o outcome) float64 { return o.r })
	ipsSE := standardError(rows, func(o outcome) float64 { return o.w * o.r })
	drSE := standardError(rows, outcome.robust)
	snipsSE, snipsLiftSE := snipsSpread(rows, &s, p)
	ipsLiftSE := standardError(rows, func(o outcome) float64 { return o.w*o.r - o.r })
	drLiftSE := standardError(rows, func(o outcome) float64 { return o.robust() - o.r })

	b := bootstrapped{
		logged: normal(p.logged, loggedSE),
		ips:    normal(p.ips, ipsSE), snips: normal(p.snips, snipsSE), dr: normal(p.dr, drSE),
		liftIPS:   normal(p.ips-p.logged, ipsLiftSE),
		liftSNIPS: normal(p.snips-p.logged, snipsLiftSE),
		liftDR:    normal(p.dr-p.logged, drLiftSE),
	}
	plain := b.logged
	if boot != nil {
		b = *boot
	}
	value := func(v, se float64, b bounds) Interval {
		return Interval{defined(v), defined(se), defined(b.lower), defined(b.upper)}
	}
	lift := func(v, se float64, b bounds) Lift {
		return Lift{defined(v - p.logged), defined(se), defined(b.lower), defined(b.upper)}
	}
	return estimated{
		Logged: Logged{defined(p.logged), defined(loggedSE), defined(b.logged.lower), defined(b.logged.upper),
			defined(plain.lower), defined(plain.upper)},
		Estimators: Estimators{Point{defined(p.dm)}, value(p.ips, ipsSE, b.ips), value(p.snips, snipsSE, b.snips), value(p.dr, drSE, b.dr)},
		Lift: Lifts{PointLift{defined(p.dm - p.logged)}, lift(p.ips, ipsLiftSE, b.liftIPS), lift(p.snips, snipsLiftSE, b.liftSNIPS),
			lift(p.dr, drLiftSE, b.liftDR)},
	}
}
