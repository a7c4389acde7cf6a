package gateway

import "holdfast/fault"

// DecisionError is a refusal of a decision or of feedback in the words by which clients of that dialect tell the cases
// apart. It unwraps to a *fault.Error, whose kind says what sort of failure it was and whose message the caller sees. A
// refusal that is not one of the cases below is a plain *fault.Error.
type DecisionError struct {
	Status    string // the answer's status, such as "Invalid Request"
	ErrorCode string // its error_code
	InfoCode  string // its error_info.code
	Detail    string // its developer_message; empty repeats the fault's message
	Fault     *fault.Error
}

// Error describes the refusal for the log.
func (e *DecisionError) Error() string {
	text := e.Fault.Error()
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap returns the fault.
func (e *DecisionError) Unwrap() error { return e.Fault }

// The words that several cases share.
const (
	statusInvalid   = "Invalid Request"
	codeInvalid     = "invalid_request_error"
	statusForbidden = "Forbidden"
	decideOp        = "gateway.Decide"
)

// BadInput refuses a body that is not a request: not JSON, a value outside its list, a missing member. what is for the
// caller's developer: what was wrong and where.
func BadInput(what string) *DecisionError {
	return &DecisionError{Status: "400", ErrorCode: "400", InfoCode: "INVALID_INPUT", Detail: what,
		Fault: fault.New(decideOp, fault.Invalid, "the request is not valid")}
}

// UnknownMerchant refuses a decision or feedback for a merchant that does not exist. Its kind is NotFound.
func UnknownMerchant(id MerchantID) *DecisionError {
	return &DecisionError{Status: statusInvalid, ErrorCode: codeInvalid, InfoCode: "MERCHANT_NOT_FOUND", Fault: noMerchant(id)}
}

// noGateway refuses a decision that has no gateway left to choose.
func noGateway(why string) *DecisionError {
	return &DecisionError{Status: statusInvalid, ErrorCode: codeInvalid, InfoCode: "GATEWAY_NOT_FOUND", Detail: why,
		Fault: fault.New(decideOp, fault.Invalid, "no gateway found for this payment")}
}

// debitOff refuses debit ranking for a merchant that has not switched it on.
func debitOff(id MerchantID) *DecisionError {
	return &DecisionError{Status: statusForbidden, ErrorCode: "debit_routing_not_enabled", InfoCode: "TE_05",
		Fault: fault.New(decideOp, fault.Invalid, "debit routing is not enabled for merchant %s", clip(string(id)))}
}

// noNetworks refuses debit ranking that finds no network to rank.
func noNetworks(why string) *DecisionError {
	return &DecisionError{Status: statusInvalid, ErrorCode: codeInvalid, InfoCode: "CO_BADGED_NETWORK_NOT_FOUND", Detail: why,
		Fault: fault.New(decideOp, fault.Invalid, "no debit network could be worked out for this card")}
}
