package gatewayapi

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/gateway"
	"holdfast/ident"
	"holdfast/store"
	"holdfast/store/gateways"
)

// The callers of the tests.
var (
	operator = ident.Principal{Kind: ident.Operator, ID: "operator"}
	lisbon   = ident.Principal{Kind: ident.Token, Scope: ident.Scope{Role: ident.TenantAdmin, Tenant: "shop_lisbon"}}
	porto    = ident.Principal{Kind: ident.Token, Scope: ident.Scope{Role: ident.TenantAdmin, Tenant: "shop_porto"}}
	looking  = ident.Principal{Kind: ident.Token, Scope: ident.Scope{Role: ident.Reader, Tenant: "shop_lisbon"}}
)

// costAPI is an API over a real store with the merchants shop_lisbon and shop_porto.
func costAPI(t testing.TB) *API {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "gateway.db"), Migrations: gateways.Migrations()})
	if err != nil {
		t.Fatal(err)
	}
	storage := gateways.New(db)
	for _, id := range []gateway.MerchantID{"shop_lisbon", "shop_porto"} {
		err := storage.Write(t.Context(), gateway.Write{Change: func(tx gateway.Tx) error {
			_, err := tx.CreateMerchant(gateway.MerchantRow{ID: id, Enabled: true})
			return err
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	service, err := gateway.Open(t.Context(), gateway.Options{Storage: storage, AdminSecret: "s"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := service.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := db.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return New(Options{Service: service, Log: slog.New(slog.DiscardHandler)})
}

// ask calls a handler as the server does.
func ask(t testing.TB, h Handler, who ident.Principal, body string, params ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h(w, r, &ident.Call{Principal: who, Params: params, Body: []byte(body)})
	return w
}

// answers fails the test unless the answer has the status and is, or for a trailing ... begins with, the body.
func answers(t *testing.T, w *httptest.ResponseRecorder, status int, body string) {
	t.Helper()
	got := w.Body.String()
	start, begins := strings.CutSuffix(body, "...")
	if w.Code != status || !begins && got != body || begins && !strings.HasPrefix(got, start) {
		t.Errorf("%d %s\nwant %d %s", w.Code, got, status, body)
	}
	if !jsontext.Value(got).IsValid() {
		t.Errorf("not JSON: %s", got)
	}
}

const (
	noCosts  = `{"merchant_id":"shop_lisbon","rows":[]}`
	sentRows = `{"rows":[{"psp":"mercato","interchange_bps":20,"scheme_bps":5,"markup_bps":12.5,"fixed":0.1,"is_default":true},
		{"psp":"alphapay","interchange_bps":30,"scheme_bps":null,"card_network":"VISA","transaction_currency":"EUR","effective_pct_bps":9999,"more":[1]}]}`
	storedRows = `{"merchant_id":"shop_lisbon","rows":[` +
		`{"psp":"alphapay","interchange_bps":30,"scheme_bps":0,"markup_bps":0,"fixed":0,"effective_pct_bps":30,"is_default":false,` +
		`"card_network":"VISA","payment_method_type":null,"card_type":null,"transaction_currency":"EUR","card_issuing_country":null},` +
		`{"psp":"mercato","interchange_bps":20,"scheme_bps":5,"markup_bps":12.5,"fixed":0.1,"effective_pct_bps":37.5,"is_default":true,` +
		`"card_network":null,"payment_method_type":null,"card_type":null,"transaction_currency":null,"card_issuing_country":null}]}`
)

func TestSeedCosts(t *testing.T) {
	a := costAPI(t)
	answers(t, ask(t, a.SeedCosts, lisbon, "", "shop_lisbon"), 200, noCosts)
	answers(t, ask(t, a.PutSeedCosts, lisbon, sentRows, "shop_lisbon"), 200, storedRows)
	answers(t, ask(t, a.SeedCosts, lisbon, "", "shop_lisbon"), 200, storedRows)
	answers(t, ask(t, a.SeedCosts, operator, "", "shop_porto"), 200, `{"merchant_id":"shop_porto","rows":[]}`)
	// 100*37.5/10000 + 0.1 = 0.475; 100*30/10000 = 0.3, for VISA only
	answers(t, ask(t, a.SimulateCosts, looking, `{"amount":100,"transaction_currency":"EUR","card_network":"visa"}`, "shop_lisbon"), 200,
		`[{"psp":"alphapay","cost_amount":0.3,"cost_bps":30,"effective_pct_bps":30,"fixed":0,"transaction_currency":"EUR","cost_source":"SEED"},`+
			`{"psp":"mercato","cost_amount":0.475,"cost_bps":47.5,"effective_pct_bps":37.5,"fixed":0.1,"transaction_currency":"EUR","cost_source":"SEED"}]`)
	answers(t, ask(t, a.SimulateCosts, lisbon, `{"amount":100}`, "shop_porto"), 403, `{"code":"TE_04",...`)
	answers(t, ask(t, a.SimulateCosts, porto, `{"amount":100}`, "shop_porto"), 200, `[]`)
	const deleted = `{"message":"Seed costs deleted successfully","merchant_id":"shop_lisbon"}`
	for range 2 {
		answers(t, ask(t, a.DeleteSeedCosts, lisbon, "", "shop_lisbon"), 200, deleted)
		answers(t, ask(t, a.SeedCosts, lisbon, "", "shop_lisbon"), 200, noCosts)
	}
}

func TestSeedCostsRefusals(t *testing.T) {
	a := costAPI(t)
	for name, h := range map[string]Handler{"read": a.SeedCosts, "put": a.PutSeedCosts, "delete": a.DeleteSeedCosts, "simulate": a.SimulateCosts,
		"connectors": a.NoEntries, "coverage": a.CostCoverage, "report": a.IngestNothing} {
		if w := ask(t, h, porto, `{"rows":[],"amount":1}`, "shop_lisbon"); w.Code != http.StatusForbidden {
			t.Errorf("%s of another merchant: %d %s", name, w.Code, w.Body)
		}
	}
	for name, h := range map[string]Handler{"read": a.SeedCosts, "put": a.PutSeedCosts, "delete": a.DeleteSeedCosts, "simulate": a.SimulateCosts} {
		if w := ask(t, h, operator, `{"rows":[],"amount":1}`, "nobody"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "TE_04") {
			t.Errorf("%s of nobody: %d %s", name, w.Code, w.Body)
		}
	}
	for _, c := range []struct {
		handler Handler
		body    string
		status  int
		says    string
	}{
		{a.PutSeedCosts, `{"rows":[{"psp":""}]}`, 400, "psp is empty"},
		{a.PutSeedCosts, `{"rows":[{"psp":null}]}`, 400, "psp is empty"},
		{a.PutSeedCosts, `{"rows":[{"psp":"a","scheme_bps":-1}]}`, 400, "scheme_bps is negative"},
		{a.PutSeedCosts, `{"rows":[{"psp":"a","fixed":-0.01}]}`, 400, "fixed is negative"},
		{a.PutSeedCosts, `{"rows":[{"psp":"a","fixed":1e400}]}`, 400, "number out of range"},
		{a.PutSeedCosts, `{"rows":[{"psp":"a","fixed":"1"}]}`, 422, "fixed"},
		{a.PutSeedCosts, `{"rows":{}}`, 422, "rows"},
		{a.PutSeedCosts, `{}`, 422, "missing field `rows`"},
		{a.PutSeedCosts, `{"rows":null}`, 422, "missing field `rows`"},
		{a.PutSeedCosts, `[]`, 422, ""},
		{a.PutSeedCosts, `{"rows":[`, 400, "invalid JSON"},
		{a.PutSeedCosts, ``, 400, "invalid JSON"},
		{a.SimulateCosts, `{"amount":0}`, 400, "amount must be above 0"},
		{a.SimulateCosts, `{"amount":-3}`, 400, "amount must be above 0"},
		{a.SimulateCosts, `{}`, 400, "amount must be above 0"},
		{a.SimulateCosts, `{"amount":"1"}`, 422, "amount"},
		{a.SimulateCosts, `nonsense`, 400, "invalid JSON"},
	} {
		w := ask(t, c.handler, lisbon, c.body, "shop_lisbon")
		var shape struct {
			Code    string         `json:"code"`
			Message string         `json:"message"`
			Data    jsontext.Value `json:"data"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &shape); err != nil || w.Code != c.status || shape.Code != "TE_04" || string(shape.Data) != "null" ||
			!strings.Contains(shape.Message, c.says) {
			t.Errorf("%s: %d %s, want %d %s", c.body, w.Code, w.Body, c.status, c.says)
		}
	}
	answers(t, ask(t, a.SeedCosts, lisbon, "", "shop_lisbon"), 200, noCosts)
}

func TestErrorRules(t *testing.T) {
	a := costAPI(t)
	shipped := ask(t, a.ErrorRules, lisbon, "")
	answers(t, shipped, 200, `{"rules":[{"connector":"*","flow":"*","subFlow":"*","errorCode":"05","errorMessage":"*","errorCategory":"issuer",...`)
	const rule = `"errorCode":"E1","errorMessage":"boom","decision":"retry","stepUpPossible":true`
	const want = `{"rules":[{"connector":"mercato","flow":"Authorize","subFlow":"*","errorCode":"E1","errorMessage":"boom","unifiedMessage":"m",` +
		`"decision":"retry","stepUpPossible":true,"clearPanPossible":false,"alternateNetworkPossible":false}]}`
	put := ask(t, a.ImportErrorRules, operator, `{"rules":[{"connector":"mercato","flow":"Authorize","unifiedMessage":"m",`+rule+`}]}`)
	answers(t, put, 200, want)
	answers(t, ask(t, a.ImportErrorRules, operator, want), 200, want) // what is read can be sent
	answers(t, ask(t, a.ImportErrorRules, operator, `{"rules":[{"connector":"mercato"}]}`), 400, `{"code":"TE_04","message":"rules[0]: errorCode is empty","data":null}`)
	answers(t, ask(t, a.ImportErrorRules, operator, `{}`), 422, `{"code":"TE_04","message":"missing field `+"`rules`"+`","data":null}`)
	answers(t, ask(t, a.ErrorRules, lisbon, ""), 200, want)
	answers(t, ask(t, a.ResetErrorRules, operator, ""), 200, shipped.Body.String())
}

func TestDebitTables(t *testing.T) {
	a := costAPI(t)
	shipped := ask(t, a.DebitTables, lisbon, "")
	var tables debitTablesJSON
	if err := json.Unmarshal(shipped.Body.Bytes(), &tables); err != nil || tables.Currency != "USD" || tables.Networks["VISA"] != (gateway.Rate{Percent: 0.1375, Fixed: 0.02}) {
		t.Fatalf("%v %s", err, shipped.Body)
	}
	bins := ask(t, a.ImportDebitTables, operator, `{"bins":[{"from":"453210","to":"453211","networks":["VISA","PULSE"],"issuer_country":"US","card_type":"debit"}]}`)
	if bins.Code != 200 || !strings.Contains(bins.Body.String(), `"from":"4532100000000000000","to":"4532119999999999999","networks":["VISA","PULSE"]`) {
		t.Errorf("%d %s", bins.Code, bins.Body)
	}
	answers(t, ask(t, a.ImportDebitTables, operator, bins.Body.String()), 200, bins.Body.String()) // what is read can be sent
	for body, says := range map[string]string{
		`{"currency":"euro"}`:                         "currency",
		`{"networks":{"SHOPCARD":{"percent":1}}}`:     "unknown network",
		`{"fraud_check_fee":-1}`:                      "fraud_check_fee",
		`{"categories":{"5411":{}}}`:                  "default_category",
		`{"bins":[{"from":"1","to":"453211"}]}`:       "bins[0]",
		`{"bins":[{"from":"453210","to":"45321x"}]}`:  "bins[0]",
		`{"bins":[{"from":"453211","to":"453210"}]}`:  "bins",
		`{"bins":[{"from":"453211","to":"453211"}]}`:  "no network",
		`{"bins":[{"from":"4532111111111111111111"}]`: "invalid JSON",
	} {
		if w := ask(t, a.ImportDebitTables, operator, body); w.Code != 400 || !strings.Contains(w.Body.String(), says) || !strings.Contains(w.Body.String(), "TE_05") {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	answers(t, ask(t, a.ResetDebitTables, operator, ""), 200, shipped.Body.String())
}

func TestOperates(t *testing.T) {
	a := costAPI(t)
	for name, h := range map[string]Handler{"rules": a.ImportErrorRules, "reset rules": a.ResetErrorRules, "tables": a.ImportDebitTables, "reset tables": a.ResetDebitTables} {
		for _, who := range []ident.Principal{lisbon, looking, {}, {Kind: ident.Token, Wide: true, Scope: ident.Scope{Role: ident.TenantAdmin}}} {
			if w := ask(t, a.Operates(h), who, `{"rules":[]}`); w.Code != http.StatusForbidden {
				t.Errorf("%s by %+v: %d", name, who, w.Code)
			}
		}
		if w := ask(t, a.Operates(h), operator, `{"rules":[]}`); w.Code != http.StatusOK {
			t.Errorf("%s by the operator: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestLaterIsEmpty(t *testing.T) {
	a := costAPI(t)
	const arm = `{"transactions":0,"successes":0,"failures":0,"auth_rate":0,"first_attempt_auth_rate":0,"saved_cost":0,"average_latency":0}`
	const unread = `{"message":"reports of connectors are not read here; costs are set with PUT seed-costs","accepted":false,"rows_ingested":0}`
	answers(t, ask(t, a.NoEntries, looking, "", "shop_lisbon", "mercato/reports"), 200, `[]`)
	answers(t, ask(t, a.CostCoverage, looking, "", "shop_lisbon"), 200,
		`{"merchant_id":"shop_lisbon","total_transactions":0,"covered_transactions":0,"coverage_pct":0,"connectors":[]}`)
	answers(t, ask(t, a.IngestNothing, lisbon, "anything", "shop_lisbon", "mercato"), 200, unread)
	answers(t, ask(t, a.SettlementWebhook, ident.Principal{}, "anything", "mercato"), 200, unread)
	answers(t, ask(t, a.ExperimentResults, lisbon, "", `exp"1`), 200, `{"experiment_id":"exp\"1","verdict":"collecting_data","total_transactions":0,"control":`+arm+
		`,"variant":`+arm+`,"p_value":null,"confidence_low":null,"confidence_high":null}`)
	answers(t, ask(t, a.ExperimentTransactions, lisbon, "", "exp"), 200, `{"experiment_id":"exp","transactions":[],"total":0}`)
	answers(t, ask(t, a.Moved("/decide-gateway"), ident.Principal{}, "{}"), 404,
		`{"code":"TE_02","message":"this older route is not served here: use /decide-gateway","data":null}`)
}

func FuzzPutSeedCosts(f *testing.F) {
	f.Add(sentRows)
	f.Add(`{"rows":[{"psp":"a","fixed":1e308,"card_network":"\ud800"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var body struct {
			Rows []costRowJSON `json:"rows"`
		}
		r := httptest.NewRequest(http.MethodPut, "/", nil)
		if decode(r, []byte(text), &body) != nil {
			return
		}
		for i := range body.Rows {
			row := body.Rows[i].row()
			back := costRow(&row)
			if again := back.row(); again != row {
				t.Fatalf("%+v became %+v", row, again)
			}
		}
	})
}

func FuzzDebitTables(f *testing.F) {
	f.Add(`{"bins":[{"from":"453210","to":"453211","networks":["VISA","PULSE"],"card_type":"debit"}],"categories":{"1":{"VISA":{"percent":1}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var body debitTablesJSON
		r := httptest.NewRequest(http.MethodPut, "/", nil)
		if decode(r, []byte(text), &body) != nil {
			return
		}
		if tables, err := body.tables(); err == nil && len(tables.BINs) != len(body.BINs) {
			t.Fatalf("%d of %d bins", len(tables.BINs), len(body.BINs))
		}
	})
}

func FuzzErrorRules(f *testing.F) {
	f.Add(`{"rules":[{"connector":"mercato","errorCode":"E1","decision":"retry","stepUpPossible":true,"unifiedMessage":null}]}`)
	f.Add(`{"rules":[null,{}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var body errorTableJSON
		r := httptest.NewRequest(http.MethodPut, "/", nil)
		if decode(r, []byte(text), &body) != nil || body.Rules == nil {
			return
		}
		for i := range *body.Rules {
			rule := (*body.Rules)[i].rule()
			back := errorRule(&rule)
			if back != (*body.Rules)[i] {
				t.Fatalf("%+v became %+v", (*body.Rules)[i], back)
			}
		}
	})
}
