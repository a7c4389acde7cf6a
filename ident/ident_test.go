package ident

import (
	"encoding/json/v2"
	"errors"
	"strings"
	"testing"
)

func TestWhoMayDoWhat(t *testing.T) {
	admin := Scope{Role: Admin}
	tenant := Scope{Role: TenantAdmin, Tenant: "north"}
	reader := Scope{Role: Reader, Tenant: "north", Job: "web", Capsule: "hero"}
	here := func(r Role) Need { return Need{Role: r, Tenant: "north", Job: "web", Capsule: "hero"} }
	for _, c := range []struct {
		name string
		who  Scope
		need Need
		want bool
	}{
		{"admin anywhere", admin, here(Reader), true},
		{"admin as admin", admin, Need{Role: Admin}, true},
		{"tenant reads", tenant, here(Reader), true},
		{"tenant administers", tenant, here(TenantAdmin), true},
		{"tenant is no admin", tenant, Need{Role: Admin}, false},
		{"tenant is no admin of itself", tenant, Need{Role: Admin, Tenant: "north"}, false},
		{"tenant elsewhere", tenant, Need{Role: TenantAdmin, Tenant: "south"}, false},
		{"tenant nowhere", tenant, Need{Role: TenantAdmin}, false},
		{"reader reads", reader, here(Reader), true},
		{"reader does not administer", reader, here(TenantAdmin), false},
		{"reader of another capsule", reader, Need{Role: Reader, Tenant: "north", Job: "web", Capsule: "footer"}, false},
		{"reader of another job", reader, Need{Role: Reader, Tenant: "north", Job: "app", Capsule: "hero"}, false},
		{"reader of another tenant", reader, Need{Role: Reader, Tenant: "south", Job: "web", Capsule: "hero"}, false},
		{"an unset need", tenant, Need{}, false},
		{"an unset scope", Scope{}, Need{}, false},
		{"an unset tenant", Scope{Role: TenantAdmin}, Need{Role: TenantAdmin}, false},
		{"an unset capsule", Scope{Role: Reader}, Need{Role: Reader}, false},
	} {
		if got := (Principal{Kind: Token, Scope: c.who}).Allows(c.need); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if (Principal{Scope: admin}).Allows(here(Reader)) {
		t.Error("the anonymous principal was let in on the strength of a scope")
	}
	for _, k := range []Kind{Operator, DevMode} {
		if !(Principal{Kind: k}).Allows(Need{Role: Admin}) {
			t.Errorf("kind %d was kept out", k)
		}
	}
}

func TestScopesHaveOneForm(t *testing.T) {
	for _, text := range []string{
		`{"kind":"admin"}`,
		`{"kind":"tenant_admin","tenant":"north"}`,
		`{"kind":"read","tenant":"north","job":"web","capsule":"hero"}`,
	} {
		var s Scope
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		back, err := json.Marshal(s)
		if err != nil || string(back) != text {
			t.Errorf("%s came back as %s, %v", text, back, err)
		}
	}
	for _, text := range []string{
		`null`, `{}`, `""`, `[]`, `{"kind":""}`, `{"kind":"Admin"}`, `{"kind":"root"}`, `{"kind":null}`,
		`{"kind":"admin","tenant":"north"}`, `{"kind":"admin","tenant":""}`, `{"kind":"admin","extra":1}`,
		`{"kind":"tenant_admin"}`, `{"kind":"tenant_admin","tenant":""}`, `{"kind":"tenant_admin","tenant":".x"}`,
		`{"kind":"tenant_admin","tenant":"a","job":"b"}`, `{"kind":"tenant_admin","tenant":"a/b"}`, `{"kind":"tenant_admin","tenant":7}`,
		`{"kind":"read","tenant":"north","job":"web"}`, `{"kind":"read","tenant":"north","job":"web","capsule":"` + strings.Repeat("x", 129) + `"}`,
		`{"kind":"admin","kind":"admin"}`, `{"Kind":"admin"}`, `{"kind":"admin"} x`,
	} {
		s := Scope{Role: Reader, Tenant: "untouched"}
		err := s.UnmarshalJSON([]byte(text))
		if !errors.Is(err, ErrScope) {
			t.Errorf("%s: %v, want ErrScope", text, err)
		}
		if s.Tenant != "untouched" {
			t.Errorf("%s: the scope was changed by a refused text", text)
		}
	}
	if _, err := json.Marshal(Scope{}); err == nil {
		t.Error("a scope without a role was written")
	}
}

func TestNames(t *testing.T) {
	for _, good := range []string{"a", "_", "-", "0", "a.b", "A-Z_09", strings.Repeat("x", 128)} {
		if !ValidName(good) {
			t.Errorf("%q was refused", good)
		}
	}
	for _, bad := range []string{"", ".", ".a", "a b", "a/b", "ä", "a:b", "a\x00", strings.Repeat("x", 129)} {
		if ValidName(bad) {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func FuzzScope(f *testing.F) {
	f.Add(`{"kind":"admin"}`)
	f.Add(`{"kind":"read","tenant":"north","job":"web","capsule":"hero"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var s, again Scope
		if s.UnmarshalJSON([]byte(text)) != nil {
			return
		}
		back, err := s.MarshalJSON()
		if err != nil {
			t.Fatalf("%q was read but cannot be written: %v", text, err)
		}
		if err := again.UnmarshalJSON(back); err != nil || again != s {
			t.Fatalf("%q became %s and then %+v, %v", text, back, again, err)
		}
	})
}
