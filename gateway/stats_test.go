package gateway_test

import (
	"fmt"
	"testing"

	"holdfast/gateway"
)

func TestStatsCountWhatBecameOfTheTraffic(t *testing.T) {
	r := newRig(t, gateway.Options{})
	r.merchant("quiet")
	r.merchant("busy")
	r.merchant("never")
	r.decide(request("quiet", "p"))
	for i := range 5 {
		id := fmt.Sprint("p", i)
		r.decide(request("busy", id))
		r.update("busy", id, "alphapay", "CHARGED")
		r.update("busy", id, "alphapay", "CHARGED") // does not count
	}
	r.update("busy", "p0", "mercato", "FAILURE")
	all := r.service.Busiest(10)
	if len(all) != 2 || all[0].ID != "busy" || all[0].Decided != 5 || all[1].ID != "quiet" {
		t.Fatalf("%+v", all)
	}
	want := []gateway.GatewayStats{{Gateway: "alphapay", Decided: 5, Succeeded: 5}, {Gateway: "mercato", Failed: 1}}
	if got := all[0].Gateways; len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v", got)
	}
	windows := r.service.Windows("busy", 10)
	if len(windows) != 2 || windows[0].Gateway != "alphapay" || windows[0].Mean != 1 || windows[1].Mean != 124.0/125 || windows[0].Entries != 125 ||
		fmt.Sprint(windows[0].Key) != "[ORDER_PAYMENT CARD CREDIT]" {
		t.Errorf("%+v", windows)
	}
	if _, err := r.service.Stats("never"); err == nil {
		t.Error("a merchant that nobody asked for has stats")
	}
	if got := r.service.Windows("busy", 1); len(got) != 1 {
		t.Errorf("limit 1 gives %d", len(got))
	}
}
