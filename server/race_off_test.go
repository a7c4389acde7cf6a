//go:build !race

package server

// raced says that the race detector is on.
const raced = false
