//go:build race

package gatewayapi

// raced says that the race detector is on: it lets pools forget at random, so that allocations cannot be counted.
const raced = true
