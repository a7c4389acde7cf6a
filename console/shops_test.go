package console_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"holdfast/console"
	"holdfast/gateway"
	"holdfast/ident"
	"holdfast/store"
	"holdfast/store/gateways"
)

// till is a gateway service on a real store.
type till struct {
	testing.TB
	service *gateway.Service
	n       int
}

func newTill(t testing.TB) *till {
	t.Helper()
	ctx := context.Background()
	db, err := store.Open(ctx, store.Options{Path: filepath.Join(t.TempDir(), "gateways.db"), Migrations: gateways.Migrations(), MinFree: -1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := gateway.Open(ctx, gateway.Options{Storage: gateways.New(db)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := db.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return &till{TB: t, service: s}
}

// pay makes payments of a merchant, which is created when it is new; every third fails.
func (t *till) pay(m gateway.MerchantID, n int) {
	t.Helper()
	ctx := context.Background()
	if _, err := t.service.Stats(m); err != nil {
		if _, err := t.service.CreateMerchant(ctx, gateway.NewMerchant{ID: m}); err != nil {
			t.Fatal(err)
		}
	}
	for range n {
		t.n++
		id := fmt.Sprint("p", t.n)
		a := &gateway.Answer{}
		err := t.service.Decide(ctx, &gateway.Request{Merchant: m, Eligible: []gateway.Name{"alphapay", "mercato"}, Ranking: gateway.RankSuccess,
			Payment: gateway.Payment{ID: id, Amount: 5, Currency: "EUR", OrderType: "ORDER_PAYMENT", MethodType: "CARD", Method: "CREDIT"}}, a)
		if err != nil {
			t.Fatal(err)
		}
		status := gateway.Status("CHARGED")
		if t.n%3 == 0 {
			status = "FAILURE"
		}
		if _, err := t.service.Update(ctx, &gateway.Feedback{Merchant: m, PaymentID: id, Gateway: a.Gateway, Status: status, Latency: -1}); err != nil {
			t.Fatal(err)
		}
	}
}

func withTill(s *till) func(*console.Options) {
	return func(o *console.Options) { o.Gateways = s.service }
}

func TestFirstPageShowsTheBusiestMerchants(t *testing.T) {
	s := newTill(t)
	d := newDesk(t, withTill(s))
	s.pay("quiet", 1)
	s.pay("busy <b>", 30)
	d.signIn(operatorKey)
	page := d.get("/")
	contains(t, page.body, "busy &lt;b&gt;", "quiet", "Gateway shares", "/console/merchant/busy%20%3Cb%3E")
	page = d.get("/console/merchant/busy%20%3Cb%3E")
	contains(t, page.body, "busy &lt;b&gt;", "alphapay", "mercato", "ORDER_PAYMENT · CARD · CREDIT", "125 outcomes")
	if got := d.get("/console/merchant/nobody"); got.status != http.StatusNotFound {
		t.Errorf("an unknown merchant: %d", got.status)
	}
}

func TestMerchantsAreForAdministrators(t *testing.T) {
	s := newTill(t)
	d := newDesk(t, withTill(s))
	s.pay("shop_lisbon", 3)
	if got := d.get("/console/merchant/shop_lisbon"); got.status != http.StatusSeeOther {
		t.Errorf("without a session: %d", got.status)
	}
	d.signIn(d.token(ident.Scope{Role: ident.TenantAdmin, Tenant: "north"}).Secret)
	if page := d.get("/"); strings.Contains(page.body, "shop_lisbon") {
		t.Error("the key of a tenant sees merchants")
	}
	if got := d.get("/console/merchant/shop_lisbon"); got.status != http.StatusForbidden {
		t.Errorf("the key of a tenant: %d", got.status)
	}
}

func TestMerchantsInABrowser(t *testing.T) {
	s := newTill(t)
	d := newDesk(t, withTill(s))
	s.pay("shop_lisbon", 20)
	w := newWindow(d)
	w.do(chromedp.Navigate(d.address+"/"), chromedp.SendKeys(keyField, operatorKey), chromedp.Click(enter), chromedp.WaitVisible(chromedp.CSS("#shops article")))
	w.until(`document.querySelector("#live.on") !== null`)
	for range 3 { // a picture needs moments that differ
		before := w.text("#shops .figures")
		s.pay("shop_lisbon", 40)
		w.until(fmt.Sprintf(`document.querySelector("#shops .figures").innerText !== %q`, before))
	}
	w.until(`document.querySelector("#shops .stack path") !== null`)
	contains(t, w.text("#shops"), "shop_lisbon", "alphapay", "mercato", "Success rate")
	w.picture("merchants")
	w.do(chromedp.Click(chromedp.CSS("#shops h2 a")), chromedp.WaitVisible(chromedp.CSS("#windows")))
	w.until(`document.querySelector("#live.on") !== null`)
	before := w.text("#shop-figures")
	s.pay("shop_lisbon", 60)
	w.until(fmt.Sprintf(`document.querySelector("#shop-figures").innerText !== %q`, before))
	contains(t, w.text("#windows"), "alphapay", "outcomes")
	w.picture("merchant")
	w.clean(d)
}
