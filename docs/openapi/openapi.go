// Package openapi holds the machine-readable descriptions of what Holdfast serves, as they are served. A test in
// cmd/holdfast holds each to its route table. It has no other code and refuses to have any.
package openapi

import _ "embed"

//go:embed decision.json
var decision []byte

//go:embed gateway.json
var gateway []byte

// Decision is the OpenAPI 3.1 description of the decision API. It must not be changed.
func Decision() []byte { return decision }

// Gateway is the OpenAPI 3.1 description of the gateway API. It must not be changed.
func Gateway() []byte { return gateway }
