//go:build race

package decisions_test

// crashCycles is how often a child is killed: the detector makes the database many times slower, and the kills are the
// same without it.
const crashCycles = 4
