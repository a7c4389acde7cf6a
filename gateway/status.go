package gateway

// classOf says what a reported status means; ok is false for one that is not in the published list. DECLINED counts as a
// failure: the gateway has answered, and the answer was no.
func classOf(s Status) (c Class, ok bool) {
	switch s {
	case "CHARGED", "AUTHORIZED", "COD_INITIATED", "VOIDED", "VOID_INITIATED", "CAPTURE_INITIATED", "CAPTURE_FAILED", "VOID_FAILED",
		"AUTO_REFUNDED", "PARTIAL_CHARGED", "TO_BE_CHARGED":
		return Success, true
	case "AUTHENTICATION_FAILED", "AUTHORIZATION_FAILED", "JUSPAY_DECLINED", "FAILURE", "DECLINED":
		return Failure, true
	case "STARTED", "PENDING", "PENDING_VBV", "VBV_SUCCESSFUL", "AUTHORIZING", "NOP":
		return Pending, true
	}
	return Pending, false
}

// penalises reports whether a pending status costs the gateway a part of its elimination score: the customer was sent to it
// and has not come back.
func (s Status) penalises() bool { return s == "STARTED" || s == "PENDING_VBV" }
