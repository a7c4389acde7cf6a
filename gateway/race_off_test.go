//go:build !race

package gateway_test

// raceDetector says that this build watches memory, which allocates.
const raceDetector = false
