package decision

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
)

// waited counts what callers who wait ask of a storage.
type waited struct {
	*Memory
	writes, reads atomic.Int64
}

func (w *waited) Write(ctx context.Context, change Write) error {
	w.writes.Add(1)
	return w.Memory.Write(ctx, change)
}

func (w *waited) Read(ctx context.Context, look func(View) error) error {
	w.reads.Add(1)
	return w.Memory.Read(ctx, look)
}

// TestDecideTouchesNoStorage holds the hot path to its rule: no decide reads the log or waits for a write. A client-made id
// may cost a look-up now and then: TestFreshEventIDsCostNoLookUp bounds how often.
func TestDecideTouchesNoStorage(t *testing.T) {
	storage := &waited{Memory: NewMemory()}
	b := newBench(t, Options{Storage: storage})
	c := b.install(northHero, threeModels)
	b.decide(c, request("{}", ""))
	writes, reads := storage.writes.Load(), storage.reads.Load()
	for i := range 1000 {
		b.decide(c, request(fmt.Sprintf(`{"n":%d}`, i), ""))
	}
	if w, r := storage.writes.Load()-writes, storage.reads.Load()-reads; w != 0 || r != 0 {
		t.Errorf("1000 decides waited for %d writes and %d reads", w, r)
	}
}
