package gateway

import (
	"strconv"
	"testing"
)

func TestTheTableOfActiveAlgorithmsIsBounded(t *testing.T) {
	var a actives
	a.open()
	for i := range activeParts * activeMost * 5 / 4 {
		a.put(activeKey{owner: MerchantID(strconv.Itoa(i))}, nil)
	}
	last := &Algorithm{size: 4 * activeBytes}
	for i := range a.parts {
		if n := len(a.parts[i].table); n > activeMost {
			t.Fatalf("a part keeps %d entries", n)
		}
	}
	k := activeKey{owner: "big"}
	a.put(k, last)
	if p := a.part(k); len(p.table) != 1 || p.bytes != last.size+len(k.owner) {
		t.Errorf("beside one that is too large are %d others, %d bytes", len(p.table)-1, p.bytes)
	}
	if alg, known := a.find(k); alg != last || !known {
		t.Error("the newest entry was forgotten")
	}
	a.put(k, nil)
	if alg, known := a.find(k); alg != nil || !known {
		t.Error("that nothing is active is not remembered")
	}
	if p := a.part(k); p.bytes != len(k.owner) {
		t.Errorf("%d bytes are counted for nothing", p.bytes)
	}
	if _, known := a.find(activeKey{owner: "big", purpose: ForPayout}); known {
		t.Error("another purpose is known")
	}
}
