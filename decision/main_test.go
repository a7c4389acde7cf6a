package decision

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// faulty is a Memory whose writer can be held up, or made to fail as a disk does. Reads go on.
type faulty struct {
	*Memory
	mu     sync.Mutex // guards what follows
	held   bool
	parked []Write
	fail   error // what every write is answered with
	writes int   // handed over by Queue
}

func newFaulty() *faulty { return &faulty{Memory: NewMemory()} }

// hold parks writes until release.
func (f *faulty) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = true
}

func (f *faulty) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = false
	for _, w := range f.parked {
		_ = f.Memory.Queue(w)
	}
	f.parked = nil
}

// breakWith makes every write fail from now on; nil mends it.
func (f *faulty) breakWith(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

func (f *faulty) queued() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

// Queue hands over, parks or refuses.
func (f *faulty) Queue(w Write) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	switch {
	case f.fail != nil:
		if w.Applied != nil {
			fail := f.fail
			go w.Applied(fail) // as after a commit that failed
		}
		return nil
	case f.held:
		f.parked = append(f.parked, w)
		return nil
	}
	return f.Memory.Queue(w)
}

// Write goes through Queue's rules and waits.
func (f *faulty) Write(ctx context.Context, w Write) error {
	done := make(chan error, 1)
	applied := w.Applied
	w.Applied = func(err error) {
		if applied != nil {
			applied(err)
		}
		done <- err
	}
	if err := f.Queue(w); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// counting is a Memory that counts reads.
type counting struct {
	*Memory
	reads atomic.Int64
}

// Read counts.
func (c *counting) Read(ctx context.Context, look func(View) error) error {
	c.reads.Add(1)
	return c.Memory.Read(ctx, look)
}
