package reply

// Problem returns what the decision dialect says of err when it stands inside an answer, as the outcome of one of several
// items: the status and the text. An internal error's own text is not told.
func Problem(err error) (status int, text string) {
	p := decision.problem(err)
	return decision.status(p.kind), p.text
}
