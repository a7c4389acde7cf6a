package admission

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// line is where the requests of one principal wait for its bucket, first come first served. Only the first in line looks
// at the bucket and keeps a timer; it draws when it goes, so that one who leaves has drawn nothing.
type line struct {
	mu sync.Mutex   // guards in; nothing else is locked under it
	in list.List    // of *place
	n  atomic.Int64 // in.Len(), for those who only want to know whether there is a line
}

// place is one request in a line.
type place struct {
	first chan struct{} // closed when everyone ahead has gone
}

// errForgotten says that the bucket was thrown away meanwhile. It never leaves the package.
var errForgotten = errors.New("admission: the bucket was forgotten")

// stand waits in a's line for its turn and draws. It refuses at once when the line is full or its prediction does not fit
// the caller's patience.
func (g *Gate) stand(v *visit, a *account) (verdict, error) {
	now := v.request.Now
	l := &a.line
	l.mu.Lock()
	predicted := duration(a.bucket.wait(g.ticks(now), l.in.Len(), g.pace))
	if l.in.Len() >= g.line || predicted > v.patience(now) {
		l.mu.Unlock()
		return refused, overRate(max(1, predicted))
	}
	p := &place{first: make(chan struct{})}
	if l.in.Len() == 0 {
		close(p.first)
	}
	at := l.in.PushBack(p)
	l.n.Store(int64(l.in.Len()))
	l.mu.Unlock()
	v.waited = true
	defer l.leave(at)
	select {
	case <-p.first:
	case <-v.ctx.Done():
		return gaveUp, left(v.ctx)
	}
	return g.await(v.ctx, &a.bucket)
}

// await is the wait of the first in line.
func (g *Gate) await(ctx context.Context, b *bucket) (verdict, error) {
	var timer *time.Timer
	for ctx.Err() == nil {
		wait := b.take(g.ticks(time.Now()), g.pace)
		switch wait {
		case 0:
			return admitted, nil
		case dead:
			return refused, errForgotten
		}
		if timer == nil {
			timer = time.NewTimer(duration(wait))
			defer timer.Stop()
		} else {
			timer.Reset(duration(wait))
		}
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return gaveUp, left(ctx)
}

// leave steps out of the line, wherever in it, and lets the next one be first.
func (l *line) leave(at *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wasFirst := l.in.Front() == at
	l.in.Remove(at)
	l.n.Store(int64(l.in.Len()))
	if next := l.in.Front(); wasFirst && next != nil {
		close(next.Value.(*place).first)
	}
}
