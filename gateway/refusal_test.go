package gateway

import (
	"errors"
	"strings"
	"testing"

	"holdfast/fault"
)

func TestDecisionErrors(t *testing.T) {
	for _, c := range []struct {
		err                *DecisionError
		status, code, info string
		kind               fault.Kind
		message, logged    string
	}{
		{BadInput("amount: not a number"), "400", "400", "INVALID_INPUT", fault.Invalid, "the request is not valid", "amount: not a number"},
		{UnknownMerchant("shop"), "Invalid Request", "invalid_request_error", "MERCHANT_NOT_FOUND", fault.NotFound, "merchant shop not found", "gateway.merchant"},
		{UnknownMerchant(MerchantID(strings.Repeat("m", 300))), "Invalid Request", "invalid_request_error", "MERCHANT_NOT_FOUND", fault.NotFound, "merchant " + strings.Repeat("m", 64) + "... not found", "gateway.merchant"},
		{noGateway("the list is empty"), "Invalid Request", "invalid_request_error", "GATEWAY_NOT_FOUND", fault.Invalid, "no gateway found for this payment", "the list is empty"},
		{debitOff("shop"), "Forbidden", "debit_routing_not_enabled", "TE_05", fault.Invalid, "debit routing is not enabled for merchant shop", "gateway.Decide"},
		{noNetworks("no metadata"), "Invalid Request", "invalid_request_error", "CO_BADGED_NETWORK_NOT_FOUND", fault.Invalid, "no debit network could be worked out for this card", "no metadata"},
	} {
		wrapped := errors.Join(c.err)
		if e, ok := errors.AsType[*DecisionError](wrapped); !ok || e.Status != c.status || e.ErrorCode != c.code || e.InfoCode != c.info {
			t.Errorf("%v: %+v", c.err, e)
		}
		if fault.KindOf(wrapped) != c.kind || fault.MessageOf(wrapped) != c.message || !strings.Contains(c.err.Error(), c.logged) {
			t.Errorf("%v: kind %v, message %q", c.err, fault.KindOf(wrapped), fault.MessageOf(wrapped))
		}
	}
}
