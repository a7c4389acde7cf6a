package admission

import "container/list"

// queue is where requests wait for the guard. Each class has a ring of principals and each principal a line of its own
// requests: the ring turns by one request, so a principal with a thousand in line gets no more turns than one with two.
// The guard's lock is held around every method.
type queue struct {
	most, size int
	classes    [classes]ring
}

// ring is the principals of one class that have something waiting.
type ring struct {
	order list.List        // of *flow, next to be served first
	flows map[string]*flow // by principal
	size  int              // requests
}

// flow is the line of one principal in one class.
type flow struct {
	principal string
	waiters   list.List     // of *waiter, oldest first
	at        *list.Element // in ring.order
}

// waiter is one request in the queue. What is below called is guarded by the guard's lock.
type waiter struct {
	called  chan struct{} // closed when settled
	class   Class
	flow    *flow
	at      *list.Element // in flow.waiters; nil once it is out
	settled bool
	err     error // why it is refused after all; nil when it has a place
}

// settle tells the waiter how it ended.
func (w *waiter) settle(err error) {
	w.settled, w.err = true, err
	close(w.called)
}

// settledWaiter stands for someone who found a place without waiting.
func settledWaiter() *waiter {
	w := &waiter{called: make(chan struct{})}
	w.settle(nil)
	return w
}

func (q *queue) init(most int) {
	q.most = most
	for i := range q.classes {
		q.classes[i].flows = make(map[string]*flow)
	}
}

func (q *queue) full() bool { return q.size >= q.most }

// push puts w behind the other requests of its principal.
func (q *queue) push(w *waiter, principal string) {
	r := &q.classes[w.class]
	f := r.flows[principal]
	if f == nil {
		f = &flow{principal: principal}
		f.at = r.order.PushBack(f)
		r.flows[principal] = f
	}
	w.flow, w.at = f, f.waiters.PushBack(w)
	r.size++
	q.size++
}

// next returns whose turn it is, nil when nobody waits.
func (q *queue) next() *waiter {
	for i := range q.classes {
		if f := q.classes[i].order.Front(); f != nil {
			return f.Value.(*flow).waiters.Front().Value.(*waiter)
		}
	}
	return nil
}

// turn takes out w, whose turn it is, and puts its principal at the end of the ring.
func (q *queue) turn(w *waiter) {
	f := w.flow
	q.remove(w)
	if f.waiters.Len() > 0 {
		q.classes[w.class].order.MoveToBack(f.at)
	}
}

// remove takes out w, wherever it is.
func (q *queue) remove(w *waiter) {
	r, f := &q.classes[w.class], w.flow
	f.waiters.Remove(w.at)
	w.at = nil
	r.size--
	q.size--
	if f.waiters.Len() == 0 {
		r.order.Remove(f.at)
		delete(r.flows, f.principal)
	}
}

// ahead counts the requests that would be served before a newcomer: all of higher classes, and of its own as many of each
// principal as it has itself in line, the newcomer included.
func (q *queue) ahead(newcomer Request) int {
	n := 0
	for c := range newcomer.Class {
		n += q.classes[c].size
	}
	r := &q.classes[newcomer.Class]
	own := 0
	if f := r.flows[newcomer.Principal]; f != nil {
		own = f.waiters.Len()
	}
	others := len(r.flows)
	if own > 0 {
		others--
	}
	return n + min(r.size, own+others*(own+1))
}

// victim returns who must leave a full queue so that the newcomer can enter, nil when nobody should: the newest request of
// the principal with most in line, in the lowest class, unless the newcomer's own line would be as long.
func (q *queue) victim(newcomer Request) *waiter {
	for c := classes; c > newcomer.Class; {
		c--
		r := &q.classes[c]
		if r.size == 0 {
			continue
		}
		longest := r.longest()
		if c == newcomer.Class {
			own := 0
			if f := r.flows[newcomer.Principal]; f != nil {
				own = f.waiters.Len()
			}
			if longest.waiters.Len() <= own+1 {
				return nil
			}
		}
		return longest.waiters.Back().Value.(*waiter)
	}
	return nil
}

// longest returns the principal with most in line. It looks at all of them, which only a full queue pays for.
func (r *ring) longest() *flow {
	var most *flow
	for at := r.order.Front(); at != nil; at = at.Next() {
		if f := at.Value.(*flow); most == nil || f.waiters.Len() > most.waiters.Len() {
			most = f
		}
	}
	return most
}
