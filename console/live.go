package console

import (
	"bytes"
	"context"
	"hash/maphash"
	"net/http"
	"strings"
	"time"

	"holdfast/decision"
	"holdfast/fault"
	"holdfast/gateway"
	"holdfast/ident"
)

// The bounds of streams.
const (
	maxStreams = 64
	streamLife = 10 * time.Minute // then the browser opens the next one
)

// The parts of each page that are replaced while it is open. Each is a template whose outermost element has its name as id.
var (
	overviewParts = []string{"totals", "cards", "shops", "newest"}
	merchantParts = []string{"shop-figures", "shop-trends", "windows"}
	capsuleParts  = []string{"figures", "trends", "newest", "settings", "audits"}
)

// stream is one open page.
type stream struct {
	console *Console
	out     http.ResponseWriter
	request *http.Request
	id      decision.CapsuleID // zero for other pages
	shop    gateway.MerchantID // empty for other pages
	page    int
	seed    maphash.Seed
	sent    map[string]uint64 // hash of each part as it was sent last
	audits  []audit
	turns   int
}

// Events streams the parts of the page that the query names, once a second, as far as they changed. It ends with the
// session, with the server, when the reader is gone, and after ten minutes.
func (c *Console) Events(w http.ResponseWriter, r *http.Request, _ *ident.Call) {
	protect(w.Header())
	if _, ok := c.who(r); !ok {
		http.Error(w, "sign in first", http.StatusUnauthorized)
		return
	}
	select {
	case c.streams <- struct{}{}:
		defer func() { <-c.streams }()
	default:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	q := r.URL.Query()
	s := &stream{console: c, out: w, request: r, page: pageNumber(q), seed: maphash.MakeSeed(), sent: map[string]uint64{},
		shop: gateway.MerchantID(q.Get("merchant")),
		id:   decision.CapsuleID{Tenant: q.Get("tenant"), Job: q.Get("job"), Capsule: q.Get("capsule")}}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy that collects the stream would stop the pictures
	w.WriteHeader(http.StatusOK)
	s.run()
}

// run sends until something ends it.
func (s *stream) run() {
	ctx, cancel := context.WithTimeout(s.request.Context(), streamLife)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for s.turn(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		case <-s.console.stopping:
			return
		}
	}
}

// turn sends one update; false ends the stream.
func (s *stream) turn(ctx context.Context) bool {
	who, ok := s.console.who(s.request)
	if !ok {
		_ = s.send("bye", []byte("signed out"))
		return false
	}
	body, parts, err := s.body(ctx, who)
	if err == nil {
		err = s.update(body, parts)
	} else if kind := fault.KindOf(err); kind == fault.NotFound || kind == fault.Forbidden {
		_ = s.send("bye", []byte("gone"))
	}
	return err == nil
}

// body gathers what the parts show.
func (s *stream) body(ctx context.Context, who ident.Principal) (any, []string, error) {
	if s.shop != "" {
		body, err := s.console.merchant(who, s.shop)
		return body, merchantParts, err
	}
	if s.id == (decision.CapsuleID{}) {
		body, err := s.console.overview(ctx, who, s.page)
		return body, overviewParts, err
	}
	body, err := s.console.detail(ctx, who, s.id)
	if err == nil && s.turns%auditEvery == 0 {
		s.audits, err = s.console.audits(ctx, s.id)
	}
	s.turns++
	body.Audits = s.audits
	return body, capsuleParts, err
}

// update sends the parts that changed, then a sign of life.
func (s *stream) update(body any, parts []string) error {
	var out bytes.Buffer
	for _, part := range parts {
		out.Reset()
		if err := s.console.pages.ExecuteTemplate(&out, part, body); err != nil {
			s.console.log.Error("a part of a page could not be rendered", keyError, err)
			return err
		}
		sum := maphash.Bytes(s.seed, out.Bytes())
		if old, some := s.sent[part]; some && old == sum {
			continue
		}
		s.sent[part] = sum
		if err := s.send("part", out.Bytes()); err != nil {
			return err
		}
	}
	if err := s.send("beat", nil); err != nil {
		return err
	}
	return http.NewResponseController(s.out).Flush()
}

// send writes one event. Its data is a line per line of the text, as the format asks for; a carriage return ends a line there
// too, so that one in somebody's text must not begin a field of its own.
func (s *stream) send(event string, text []byte) error {
	var out strings.Builder
	out.WriteString("event: " + event + "\n")
	for line := range bytes.SplitSeq(bytes.ReplaceAll(text, []byte("\r"), []byte("\n")), []byte("\n")) {
		out.WriteString("data: ")
		out.Write(line)
		out.WriteByte('\n')
	}
	out.WriteByte('\n')
	_, err := s.out.Write([]byte(out.String()))
	return err
}
