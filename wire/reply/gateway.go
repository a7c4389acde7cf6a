package reply

import (
	"log/slog"
	"net/http"

	"holdfast/fault"
)

// Gateway returns the refusal of the gateway API: {"code","message","data":null} with the real status.
func Gateway(log *slog.Logger) Refusal { return gatewayGeneral.refusal(log) }

// GatewayDecision returns the refusal of the gateway API's decide and feedback routes.
func GatewayDecision(log *slog.Logger) Refusal { return gatewayDecision.refusal(log) }

var gatewayGeneral = dialect{
	status: statusOf,
	body: func(dst []byte, _ int, p problem) []byte {
		dst = append(dst, `{"code":"`...)
		dst = append(dst, gatewayCode(p.kind)...)
		dst = append(dst, `","message":`...)
		return append(quote(dst, p.text), `,"data":null}`...)
	},
}

// gatewayCode is the code that clients of the general shape look at.
func gatewayCode(k fault.Kind) string {
	switch k {
	case fault.Internal:
		return "TE_00"
	case fault.Exhausted, fault.Unavailable:
		return "TE_01"
	case fault.NotAllowed:
		return "TE_02"
	case fault.TooLarge, fault.Timeout:
		return "TE_03"
	}
	return "TE_04"
}

var gatewayDecision = dialect{
	status: func(k fault.Kind) int {
		if k == fault.Invalid || k == fault.NotFound || k == fault.Conflict {
			return http.StatusBadRequest
		}
		return statusOf(k)
	},
	body: func(dst []byte, _ int, p problem) []byte {
		dst = append(dst, `{"status":"Invalid Request","error_code":"invalid_request_error","error_message":`...)
		dst = quote(dst, p.text)
		dst = append(dst, `,"priority_logic_tag":null,"routing_approach":null,"filter_wise_gateways":null,"error_info":{"code":"INVALID_INPUT","user_message":`...)
		dst = quote(dst, p.text)
		dst = append(dst, `,"developer_message":`...)
		dst = quote(dst, p.text)
		return append(dst, `},"priority_logic_output":null,"is_dynamic_mga_enabled":false}`...)
	},
}
