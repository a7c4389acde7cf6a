package decision

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/fault"
)

const goodRow = `{"decisionId":"dec_1","tsMs":5,"context":{"x":1},"derived":null,"actions":[{"id":"a","features":{"f":1}},"b"],` +
	`"eligible":[0,"b"],"pmf":[0.25,0.75],"chosenIndex":1,"action":"b","probability":0.75,"rewards":[0.5,{"seq":1,"reward":0.25}],` +
	`"targetPmf":[1,0],"mode":"learner","seed":"7","modelVersion":3,"reason":null,"requestSha256":"x","programSha256":null}`

func TestReadRows(t *testing.T) {
	rows, err := ReadRows(strings.NewReader(goodRow+"\n\n"+`{"decisionId":"d2","actions":["a"],"pmf":null,"chosen":"a","reward":2}`+"\n"), First)
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	r := rows[0]
	if r.ID != "dec_1" || r.TimeMS != 5 || string(r.Context) != `{"x":1}` || r.Derived != nil || r.Chosen != 1 || r.Reward != 0.5 || r.Rewards != 1 {
		t.Errorf("got %+v", r)
	}
	if string(r.Actions[0].Features) != `{"f":1}` || r.Actions[1].ID != "b" || fmt.Sprint(r.Eligible, r.Target) != "[0 1] [1 0]" {
		t.Errorf("got %+v", r)
	}
	if rows[1].PMF != nil || rows[1].Reward != 2 {
		t.Errorf("got %+v", rows[1])
	}
	rows, err = ReadRows(strings.NewReader(goodRow), Sum)
	if err != nil || rows[0].Reward != 0.75 || rows[0].Rewards != 2 {
		t.Errorf("summed: %+v, %v", rows, err)
	}
}

func TestReadRowsNamesTheLine(t *testing.T) {
	for name, change := range map[string][2]string{
		"unknown field":      {`"tsMs":5`, `"when":5`},
		"wrong type":         {`"tsMs":5`, `"tsMs":"5"`},
		"bad id":             {`dec_1`, `dec/1`},
		"no actions":         {`[{"id":"a","features":{"f":1}},"b"]`, `[]`},
		"repeated action":    {`"b"],"eligible"`, `"a"],"eligible"`},
		"features":           {`{"f":1}`, `[1]`},
		"context":            {`{"x":1}`, `[1]`},
		"eligible order":     {`[0,"b"]`, `["b",0]`},
		"eligible unknown":   {`[0,"b"]`, `[0,"c"]`},
		"eligible range":     {`[0,"b"]`, `[0,2]`},
		"pmf length":         {`[0.25,0.75]`, `[1]`},
		"pmf sum":            {`[0.25,0.75]`, `[0.25,0.7]`},
		"pmf negative":       {`[0.25,0.75]`, `[-0.25,1.25]`},
		"chosen contradicts": {`"action":"b"`, `"action":"a"`},
		"chosen range":       {`"chosenIndex":1`, `"chosenIndex":-1`},
		"nothing chosen":     {`"chosenIndex":1,"action":"b",`, ``},
		"not eligible":       {`"eligible":[0,"b"],"pmf":[0.25,0.75]`, `"eligible":[0],"pmf":[1]`},
		"probability":        {`"probability":0.75`, `"probability":0.74`},
		"probability zero":   {`"pmf":[0.25,0.75],"chosenIndex":1,"action":"b","probability":0.75`, `"pmf":[1,0],"chosenIndex":1,"action":"b","probability":0`},
		"target":             {`[1,0]`, `[1,1]`},
		"both rewards":       {`"rewards":`, `"reward":1,"rewards":`},
		"empty reward":       {`{"seq":1,"reward":0.25}`, `{"seq":1}`},
		"broken":             {`{"decisionId"`, `{"decisionId`},
	} {
		text := strings.Replace(goodRow, change[0], change[1], 1)
		if text == goodRow {
			t.Errorf("%s: the change changes nothing", name)
		}
		_, err := ReadRows(strings.NewReader("\n"+text), First)
		if fault.KindOf(err) != fault.Invalid || err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: got %v, want an Invalid fault of line 2", name, err)
		}
	}
}

func FuzzReadRows(f *testing.F) {
	f.Add([]byte(goodRow))
	f.Add([]byte(`{"decisionId":"d","actions":["a"],"chosen":0,"probability":1,"pmf":[1],"reward":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, err := ReadRows(strings.NewReader(string(text)), Sum)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Fatal(err)
			}
			return
		}
		for _, r := range rows {
			if r.Chosen < 0 || r.Chosen >= len(r.Actions) || r.PMF != nil && (len(r.PMF) != len(r.Eligible) || r.at() < 0) {
				t.Fatalf("taken: %+v", r)
			}
		}
	})
}
