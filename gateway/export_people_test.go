package gateway

// HashOf is what is kept of a ticket.
func HashOf(ticket string) string { return hashOf(ticket) }
