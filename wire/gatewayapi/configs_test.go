package gatewayapi

import (
	"encoding/json/v2"
	"testing"

	"holdfast/fault"
	"holdfast/gateway"
	"holdfast/internal/strictjson"
)

// Whatever is taken reads back as it was written, in the one form that is kept; whatever is not is a refusal.
func FuzzConfigData(f *testing.F) {
	for _, seed := range []string{`{}`, `{"threshold":0.3,"txnLatency":null}`, `{"merchant_category_code":"5411","acquirerCountry":"US"}`,
		`{"defaultBucketSize":60,"subLevelInputConfig":[{"paymentMethodType":"CARD","bucketSize":1}]}`,
		`{"subLevelInputConfig":{"paymentMethodType":{"CARD":{"hedgingPercent":4,"gatewayExtraScore":[]}},"cardIsIn":{"453210":{}}}}`,
		`{"subLevelInputConfig":{"currency":{"EUR":{}}}}`, `{"subLevelInputConfig":null}`, `{"subLevelInputConfig":{"paymentMethod":[]}}`} {
		for kind := range uint8(4) {
			f.Add(kind, []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, n uint8, body []byte) {
		kind := [...]gateway.ConfigKind{gateway.ConfigSuccess, gateway.ConfigElimination, gateway.ConfigDebit, "other"}[n%4]
		if strictjson.Validate(body, maxDepth) != nil || strictjson.KindOf(body) != strictjson.Object {
			return
		}
		data, err := configData(kind, body)
		if err != nil {
			if k := fault.KindOf(err); k != fault.Invalid && k != fault.Unfit {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		kept, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		again, err := configData(kind, kept)
		if err != nil {
			t.Fatalf("%s does not read back: %v", kept, err)
		}
		if twice, err := json.Marshal(again); err != nil || string(twice) != string(kept) {
			t.Fatalf("%s reads back as %s, %v", kept, twice, err)
		}
	})
}

// No row of an object may be lost, and none may match what was not meant.
func TestSubLevelsKeepTheirOrder(t *testing.T) {
	data, err := configData(gateway.ConfigSuccess, []byte(`{"subLevelInputConfig":{"cardIsIn":{"453210":{"bucketSize":1}},"paymentMethodType":{"UPI":{"bucketSize":2},"CARD":{"bucketSize":3}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	rows := data.(*gateway.SuccessData).Rows
	if len(rows) != 3 || *rows[0].BIN != "453210" || *rows[0].MethodType != "CARD" || *rows[1].MethodType != "UPI" || rows[1].BIN != nil || *rows[2].Bucket != 3 {
		t.Errorf("%+v", rows)
	}
}
