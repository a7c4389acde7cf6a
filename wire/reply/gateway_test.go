package reply

import (
	"encoding/json/v2"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"holdfast/fault"
	"holdfast/gateway"
)

func TestGatewayDialect(t *testing.T) {
	later := &fault.Error{Op: "x", Kind: fault.Exhausted, Msg: "come later", RetryAfter: 1500 * time.Millisecond}
	for _, c := range []struct {
		err    error
		code   Code
		status int
		body   string
		retry  string
	}{
		{fault.New("x", fault.Invalid, `bad "thing"`), CodeAccounts, 400, `{"code":"TE_04","message":"bad \"thing\"","data":null}`, ""},
		{fault.New("x", fault.Invalid, "no tenant"), CodeAnalytics, 400, `{"code":"TE_03","message":"no tenant","data":null}`, ""},
		{fault.New("x", fault.Unauthenticated, "who"), CodeAnalytics, 401, `{"code":"TE_03","message":"who","data":null}`, ""},
		{fault.New("x", fault.Unauthenticated, "who"), CodeAccounts, 401, `{"code":"TE_04","message":"who","data":null}`, ""},
		{fault.New("x", fault.Forbidden, "not yours"), CodeAccounts, 403, `{"code":"TE_04","message":"not yours","data":null}`, ""},
		{fault.New("x", fault.NotFound, "no such resource"), CodeNotFound, 404, `{"code":"TE_02","message":"no such resource","data":null}`, ""},
		{fault.New("x", fault.NotFound, "merchant"), CodeDebit, 404, `{"code":"TE_05","message":"merchant","data":null}`, ""},
		{fault.New("x", fault.NotAllowed, "no"), CodeAccounts, 405, `{"code":"TE_02","message":"no","data":null}`, ""},
		{fault.New("x", fault.Unsupported, "type"), CodeAccounts, 415, `{"code":"TE_04","message":"type","data":null}`, ""},
		{fault.New("x", fault.Unfit, "form"), CodeAccounts, 422, `{"code":"TE_04","message":"form","data":null}`, ""},
		{fault.New("x", fault.Conflict, "taken"), CodeAccounts, 409, `{"code":"TE_04","message":"taken","data":null}`, ""},
		{fault.New("x", fault.TooLarge, "big"), CodeAccounts, 413, `{"code":"TE_04","message":"big","data":null}`, ""},
		{later, CodeAccounts, 429, `{"code":"TE_04","message":"come later","data":null}`, "2"},
		{fault.New("x", fault.Unavailable, "full"), CodeAccounts, 503, `{"code":"TE_00","message":"full","data":null}`, "1"},
		{fault.Wrap("store", fault.Internal, errors.New("the secret path"), ""), CodeAccounts, 500, `{"code":"TE_01","message":"internal error","data":null}`, ""},
		{fault.New("server.handler", fault.Internal, "the secret path"), CodeAccounts, 500, `{"code":"TE_00","message":"internal error","data":null}`, ""},
		{errors.New("the secret path"), CodeAccounts, 500, `{"code":"TE_00","message":"internal error","data":null}`, ""},
	} {
		w, log := of(func(l *slog.Logger) Refusal { return Gateway(l, c.code) }, c.err)
		if w.Code != c.status || w.Body.String() != c.body || w.Header().Get("Retry-After") != c.retry {
			t.Errorf("%v: %d %s %v, want %d %s", c.err, w.Code, w.Body, w.Header(), c.status, c.body)
		}
		if (c.status == 500) != strings.Contains(log, "the secret path") {
			t.Errorf("%v: logged %q", c.err, log)
		}
	}
}

func TestGatewayDecisionDialect(t *testing.T) {
	const rest = `,"priority_logic_tag":null,"routing_approach":null,"filter_wise_gateways":null,"error_info":`
	const tail = `,"priority_logic_output":null,"is_dynamic_mga_enabled":false}`
	for _, c := range []struct {
		err    error
		status int
		body   string
	}{
		{gateway.BadInput(`at "amount"`), 400, `{"status":"400","error_code":"400","error_message":"the request is not valid"` + rest +
			`{"code":"INVALID_INPUT","user_message":"the request is not valid","developer_message":"at \"amount\""}` + tail},
		{fault.New("x", fault.Invalid, "no id"), 400, `{"status":"400","error_code":"400","error_message":"the request is not valid"` + rest +
			`{"code":"INVALID_INPUT","user_message":"the request is not valid","developer_message":"no id"}` + tail},
		{fault.New("x", fault.Unfit, "no id"), 400, `{"status":"400","error_code":"400","error_message":"the request is not valid"` + rest +
			`{"code":"INVALID_INPUT","user_message":"the request is not valid","developer_message":"no id"}` + tail},
		{errors.Join(gateway.UnknownMerchant("m1")), 400, `{"status":"Invalid Request","error_code":"invalid_request_error","error_message":"merchant m1 not found"` + rest +
			`{"code":"MERCHANT_NOT_FOUND","user_message":"merchant m1 not found","developer_message":"merchant m1 not found"}` + tail},
		{fault.New("x", fault.NotFound, "merchant m2 not found"), 400, `{"status":"Invalid Request","error_code":"invalid_request_error","error_message":"merchant m2 not found"` + rest +
			`{"code":"MERCHANT_NOT_FOUND","user_message":"merchant m2 not found","developer_message":"merchant m2 not found"}` + tail},
		{fault.New("x", fault.Unauthenticated, "who"), 401, `{"code":"TE_04","message":"who","data":null}`},
		{fault.New("x", fault.Forbidden, "no"), 403, `{"code":"TE_04","message":"no","data":null}`},
		{fault.New("x", fault.TooLarge, "big"), 413, `{"code":"TE_04","message":"big","data":null}`},
		{fault.New("x", fault.Exhausted, "wait"), 429, `{"code":"TE_04","message":"wait","data":null}`},
		{fault.New("x", fault.Unavailable, "wait"), 503, `{"code":"TE_00","message":"wait","data":null}`},
		{fault.Wrap("x", fault.Internal, errors.New("disk"), "secret"), 500, `{"code":"TE_01","message":"internal error","data":null}`},
		{errors.New("secret"), 500, `{"code":"TE_00","message":"internal error","data":null}`},
	} {
		w, _ := of(GatewayDecision, c.err)
		if w.Code != c.status || w.Body.String() != c.body {
			t.Errorf("%v: %d %s\nwant %d %s", c.err, w.Code, w.Body, c.status, c.body)
		}
		var any map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &any); err != nil {
			t.Errorf("%v: %v", c.err, err)
		}
	}
}
