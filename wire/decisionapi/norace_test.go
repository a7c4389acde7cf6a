//go:build !race

package decisionapi

const raced = false
