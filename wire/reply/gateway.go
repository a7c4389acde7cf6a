package reply

import (
	"errors"
	"log/slog"
	"net/http"

	"holdfast/fault"
	"holdfast/gateway"
)

// Code is the error code of a group of the gateway API's routes; clients see it whenever the request itself is at fault.
type Code string

// The codes. A route group names the one that its refusals carry; failures of ours have codes of their own.
const (
	CodeNotFound  Code = "TE_02" // what no route answers
	CodeAnalytics Code = "TE_03" // analytics, the tenant header
	CodeAccounts  Code = "TE_04" // merchants, keys, users, rules, configs
	CodeDebit     Code = "TE_05" // debit routing

	codeInternal Code = "TE_00"
	codeStorage  Code = "TE_01"
)

// Gateway returns the general refusal of the gateway API, {"code","message","data":null} under the real status, for a group
// of routes whose code is code. A wrong method is always TE_02, a failure of the store TE_01 and every other failure of ours,
// a refusal to work just now included, TE_00.
func Gateway(log *slog.Logger, code Code) Refusal {
	d := dialect{status: statusOf, body: func(dst []byte, _ int, p problem) []byte { return general(dst, code.of(p), p.text) }}
	return d.refusal(log)
}

// of is the code of a problem in a group of routes.
func (c Code) of(p problem) Code {
	switch {
	case p.kind == fault.NotAllowed:
		return CodeNotFound
	case p.stored:
		return codeStorage
	case p.kind == fault.Internal, p.kind == fault.Unavailable:
		return codeInternal
	}
	return c
}

func general(dst []byte, code Code, text string) []byte {
	dst = append(append(dst, `{"code":"`...), code...)
	dst = quote(append(dst, `","message":`...), text)
	return append(dst, `,"data":null}`...)
}

// GatewayDecision returns the refusal of /decide-gateway and /update-gateway-score: what the request is at fault for is a 400
// with a body of its own, in the words of gateway.DecisionError; who may not, what is too much and what fails here is as in
// Gateway. A body that is Invalid, Unfit or Unsupported and says no more is answered like gateway.BadInput, a NotFound like
// gateway.UnknownMerchant.
func GatewayDecision(log *slog.Logger) Refusal {
	other := Gateway(log, CodeAccounts)
	return func(w http.ResponseWriter, r *http.Request, err error) {
		d, ok := errors.AsType[*gateway.DecisionError](err)
		if !ok {
			e, _ := errors.AsType[*fault.Error](err)
			switch fault.KindOf(err) {
			case fault.Invalid, fault.Unfit, fault.Unsupported:
				d = gateway.BadInput(e.Message())
			case fault.NotFound:
				d = gateway.UnknownMerchant("")
				d.Fault = e
			default:
				other(w, r, err)
				return
			}
		}
		var room [512]byte
		JSON(w, http.StatusBadRequest, declined(room[:0], d))
	}
}

// declined writes every member: clients of this dialect read some that are always null here.
func declined(dst []byte, d *gateway.DecisionError) []byte {
	message, detail := d.Fault.Message(), d.Detail
	if detail == "" {
		detail = message
	}
	dst = quote(append(dst, `{"status":`...), d.Status)
	dst = quote(append(dst, `,"error_code":`...), d.ErrorCode)
	dst = quote(append(dst, `,"error_message":`...), message)
	dst = append(dst, `,"priority_logic_tag":null,"routing_approach":null,"filter_wise_gateways":null,"error_info":{"code":`...)
	dst = quote(dst, d.InfoCode)
	dst = quote(append(dst, `,"user_message":`...), message)
	dst = quote(append(dst, `,"developer_message":`...), detail)
	return append(dst, `},"priority_logic_output":null,"is_dynamic_mga_enabled":false}`...)
}
