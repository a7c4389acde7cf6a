//go:build !race

package decision

// raced says that the test runs under the race detector.
const raced = false
