package gateway

// defaultErrorRules is the table that is shipped: the usual two-character response codes of card payments, for every
// connector. An operator replaces it by importing another one.
func defaultErrorRules() []ErrorRule {
	const stop, again = "do_default", "retry"
	const customer, issuer, gateway = "customer", "issuer", "gateway"
	details := class("payment_method_details", "Problem with the payment method details", customer, stop)
	stepUp := class("authentication_required", "The issuer asks for authentication", customer, stop)
	stepUp.StepUp = true
	blocked := class("card_blocked", "The card cannot be used", customer, stop)
	funds := class("insufficient_funds", "Not enough funds or over a limit", customer, stop)
	refused := class("not_permitted", "The issuer declined the payment", issuer, stop)
	declined := class("declined", "The issuer declined the payment", issuer, again)
	away := class("issuer_unavailable", "The issuer could not be reached", issuer, again)
	broken := class("system_error", "A system on the way failed", gateway, again)
	return []ErrorRule{
		declined.of("05", "The issuer declined without giving a reason.", "Try another card or ask your bank."),
		details.of("14", "The card number does not exist.", "Check the card number."),
		stepUp.of("1A", "The issuer wants the payer to be authenticated.", "Confirm the payment with your bank."),
		blocked.of("41", "The card was reported lost.", "Use another card."),
		blocked.of("43", "The card was reported stolen.", "Use another card."),
		funds.of("51", "The account does not hold the amount.", "Use another card or a smaller amount."),
		details.of("54", "The card has expired.", "Check the expiry date or use another card."),
		details.of("55", "The PIN is wrong.", "Enter the PIN again."),
		refused.of("57", "The card is not allowed this kind of payment.", "Use another card."),
		funds.of("61", "The amount is above a limit of the card.", "Use another card or a smaller amount."),
		refused.of("62", "The card is restricted.", "Use another card."),
		stepUp.of("65", "Too many payments were made without authentication.", "Confirm the payment with your bank."),
		details.of("82", "The security code is wrong.", "Check the code on the card."),
		away.of("91", "The issuer or its network did not answer.", "Try again in a moment."),
		broken.of("96", "A system between gateway and issuer failed.", "Try again in a moment."),
		details.of("N7", "The security code does not match.", "Check the code on the card."),
	}
}

// class is what the rules of one cause share; they match every connector, flow and message.
func class(code, message, category, decision string) ErrorRule {
	return ErrorRule{Connector: anything, Flow: anything, SubFlow: anything, Message: anything,
		UnifiedCode: code, UnifiedMessage: message, Standardised: code, Category: category, Decision: decision}
}

// of is the rule of one error code.
func (r ErrorRule) of(code, description, guidance string) ErrorRule {
	r.Code, r.Description, r.Guidance = code, description, guidance
	return r
}
