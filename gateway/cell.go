package gateway

import "sync"

// maxArms bounds the gateways of one cell; outcomes of further ones are not counted.
const maxArms = 1024

// cell holds every gateway's window under one key.
type cell struct {
	mu   sync.Mutex // guards all below
	list []arm
	used int64 // ms of the newest push
}

type arm struct {
	gateway Name
	window  window
}

func newCell() *cell { return &cell{} }

func (c *cell) arm(g Name) *arm {
	for i := range c.list {
		if c.list[i].gateway == g {
			return &c.list[i]
		}
	}
	return nil
}

func (c *cell) push(g Name, value bool, size int, ms int64) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = ms
	a := c.arm(g)
	if a == nil {
		if len(c.list) >= maxArms {
			return 0
		}
		c.list = append(c.list, arm{gateway: g, window: newWindow(size)})
		a = &c.list[len(c.list)-1]
	}
	a.window.push(value, size)
	return a.window.pushes
}

func (c *cell) next(g Name) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.arm(g); a != nil {
		return a.window.pushes + 1
	}
	return 1
}

func (c *cell) amend(g Name, number uint64, value bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.arm(g)
	return a != nil && a.window.amend(number, value)
}

func (c *cell) means(eligible []Name, size int, dst []Scored) []Scored {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range eligible {
		score := 1.0
		if a := c.arm(g); a != nil {
			score = a.window.mean(size)
		}
		dst = append(dst, Scored{g, score})
	}
	return dst
}

func (c *cell) entries(g Name) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.arm(g); a != nil {
		return a.window.length
	}
	return 0
}

func (c *cell) arms() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.list)
}

func (c *cell) usedMS() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}

type exploration struct {
	pick int
	why  string
}

func (c *cell) explore(eligible []Name, _ uint64, _ int64) exploration {
	best, score := 0, -1.0
	for i, s := range c.means(eligible, 125, nil) {
		if s.Score > score {
			best, score = i, s.Score
		}
	}
	return exploration{pick: best}
}

func (c *cell) appendTo(b []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	b = appendNumber(b, c.used)
	b = appendNumber(b, int64(len(c.list)))
	for i := range c.list {
		b = appendBlock(b, []byte(c.list[i].gateway))
		b = c.list[i].window.appendTo(b)
	}
	return b
}

func (c *cell) readFrom(b []byte) (err error) {
	in := blocks{left: b}
	c.used = in.number()
	for range in.count() {
		a := arm{gateway: Name(in.next())}
		if in.left, err = a.window.readFrom(in.left); err != nil {
			return err
		}
		c.list = append(c.list, a)
	}
	if in.bad || len(in.left) != 0 {
		return errScores
	}
	return nil
}
