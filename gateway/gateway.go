// Package gateway answers, for every payment attempt, which payment gateway should take it, and learns from the outcomes
// that are reported back: success-rate windows, elimination, scheduled outages, the rule language, cost and debit ranking.
//
// Invariants: a decision reads immutable settings behind one atomic pointer and the merchant's own scores under the
// merchant's own lock; it does no I/O and takes no lock that all merchants share. An outcome is one row, synced before it is
// applied and applied before it is answered; the scores after a restart are those that a recount of the rows gives. One
// payment and gateway count once. Configuration is visible to the next request.
//
// It refuses to know HTTP, SQL and files, to run scripts, and to route to a gateway that the caller did not list.
//
// Goroutines, all owned by Service and ended by Close: see service.go.
package gateway
