//go:build !race

package decisions_test

// crashCycles is how often a child is killed.
const crashCycles = 20
