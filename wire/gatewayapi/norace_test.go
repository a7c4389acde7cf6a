//go:build !race

package gatewayapi

const raced = false
