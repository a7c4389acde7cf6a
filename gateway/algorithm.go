package gateway

// Algorithm is a stored routing algorithm, compiled. It is immutable.
type Algorithm struct{}
