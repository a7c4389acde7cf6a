package console_test

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"holdfast/console"
	"holdfast/decision"
	"holdfast/ident"
)

// window is a real browser on a desk. It notes what the pages complain about and whom they talk to.
type window struct {
	testing.TB
	context context.Context

	mu         sync.Mutex // guards what follows
	complaints []string
	hosts      map[string]bool
}

func newWindow(d *desk) *window {
	d.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		d.Skip("chromium is not installed: the pages are not looked at")
	}
	flags := []chromedp.ExecAllocatorOption{chromedp.ExecPath(program), chromedp.UserDataDir(d.TempDir()), chromedp.WindowSize(1320, 1500)}
	for _, name := range []string{"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
		"disable-component-update", "disable-sync"} {
		flags = append(flags, chromedp.Flag(name, true))
	}
	w := &window{TB: d.TB, hosts: map[string]bool{}}
	allocated, stop := chromedp.NewExecAllocator(context.Background(), flags...)
	d.Cleanup(stop)
	first, cancel := chromedp.NewContext(allocated, chromedp.WithListener(w.note))
	d.Cleanup(cancel)
	if err := chromedp.Do(first); err != nil { // the browser lives as long as this context, which must not end by itself
		d.Fatal(err)
	}
	limited, late := context.WithTimeout(first, 60*time.Second)
	d.Cleanup(late)
	w.context = limited
	return w
}

// note collects what the browser tells.
func (w *window) note(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Source == log.EntrySourceSecurity || strings.Contains(e.Entry.Text, "Content Security") {
			w.complaints = append(w.complaints, e.Entry.Text)
		}
	case *runtime.EventExceptionThrown:
		w.complaints = append(w.complaints, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		w.complaints = append(w.complaints, "console."+string(e.Type))
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil && u.Scheme != "data" {
			w.hosts[u.Host] = true
		}
	}
}

func (w *window) do(steps ...chromedp.Action[chromedp.Void]) {
	w.Helper()
	if err := chromedp.Do(w.context, steps...); err != nil {
		w.Fatal(err)
	}
}

func (w *window) text(selector string) string {
	w.Helper()
	text, err := chromedp.Run(w.context, chromedp.Text(chromedp.CSS(selector)))
	if err != nil {
		w.Fatalf("%s: %v", selector, err)
	}
	return text
}

// until waits for an expression of the page to hold.
func (w *window) until(expression string) {
	w.Helper()
	if _, err := chromedp.Run(w.context, chromedp.Poll[bool](expression)); err != nil {
		w.Fatalf("%s: %v", expression, err)
	}
}

// picture keeps what the window shows in the folder that HOLDFAST_PICTURES names, if any.
func (w *window) picture(name string) {
	w.Helper()
	folder := os.Getenv("HOLDFAST_PICTURES")
	if folder == "" {
		return
	}
	image, err := chromedp.Run(w.context, chromedp.FullScreenshot(100))
	if err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), image, 0o600); err != nil {
		w.Fatal(err)
	}
}

// scheme switches the colour scheme that the browser asks for.
func (w *window) scheme(name string) {
	w.Helper()
	_, err := chromedp.Call(w.context, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
	if err != nil {
		w.Fatal(err)
	}
}

// clean expects that nothing was complained about and that no other host was asked for anything.
func (w *window) clean(d *desk) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range w.complaints {
		w.Errorf("the browser complains: %s", text)
	}
	own, err := url.Parse(d.address)
	if err != nil {
		w.Fatal(err)
	}
	if delete(w.hosts, own.Host); len(w.hosts) > 0 {
		w.Errorf("the pages asked other hosts: %v", w.hosts)
	}
}

const (
	keyField = chromedp.CSS("#key")
	enter    = chromedp.CSS("button[type=submit].go")
	path     = `document.querySelector(".stack path")`
)

func TestInABrowser(t *testing.T) {
	d := newDesk(t)
	c := d.capsule(hero, threeOptions)
	idle := decision.CapsuleID{Tenant: "north", Job: "web", Capsule: "idle"}
	d.capsule(idle, twoOptions)
	d.decide(c, 150, byPlan)
	w := newWindow(d)
	w.do(chromedp.Navigate(d.address+"/"), chromedp.SendKeys(keyField, "a-wrong-key"))
	w.picture("door")
	w.do(chromedp.Click(enter), chromedp.WaitVisible(chromedp.CSS(".refused")))
	contains(t, w.text(".refused"), "not known here")
	w.do(chromedp.SendKeys(keyField, operatorKey), chromedp.Click(enter), chromedp.WaitVisible(chromedp.CSS("#cards")))
	w.until(`document.querySelector("#live.on") !== null`)
	contains(t, w.text("#cards"), "hero", "small", "large", "idle")

	// The picture and the list follow what happens.
	w.until(path + ` !== null && (window.before = ` + path + `.getAttribute("d")).length > 0`)
	w.do(chromedp.Click(chromedp.CSS("#newest summary")))
	w.until(`document.querySelector("#newest details").open`)
	d.decide(c, 150, byPlan)
	w.until(path + `.getAttribute("d") !== window.before`)
	w.until(`document.querySelector("#totals").textContent.includes("300")`)
	w.picture("overview")
	if _, err := d.service.DeleteCapsule(context.Background(), idle); err != nil {
		t.Fatal(err)
	}
	w.until(`document.querySelectorAll("#cards article").length === 1`)
	w.picture("overview-one")

	w.do(chromedp.Navigate(d.address+"/console/capsule/north/web/hero"), chromedp.WaitVisible(chromedp.CSS("#trends")))
	for range 6 {
		d.decide(c, 100, byPlan)
		before := w.text("#figures")
		w.until(`document.querySelector("#figures").innerText !== ` + strconv.Quote(before))
	}
	w.do(chromedp.Click(chromedp.CSS("#newest summary")))
	w.until(`document.querySelectorAll("#newest details[open]").length === 1`)
	contains(t, w.text("#newest details[open]"), "What it was drawn from", "Seed", "plan")
	w.picture("capsule")
	w.scheme("dark")
	w.picture("capsule-dark")
	w.do(chromedp.EmulateViewport(390, 800))
	w.until(`document.documentElement.scrollWidth <= 390`)
	w.picture("capsule-phone")

	// Pausing stops the updates; a revoked session leaves the page.
	w.do(chromedp.Click(chromedp.CSS("#live")))
	contains(t, w.text("#live"), "paused")
	w.do(chromedp.Click(chromedp.CSS("#live")))
	w.until(`document.querySelector("#live.on") !== null`)
	w.do(chromedp.EmulateViewport(1320, 1500), chromedp.Click(chromedp.CSS("form[action='/console/sign-out'] button")), chromedp.WaitVisible(keyField))
	w.clean(d)
}

func TestBrowserLeavesWhenTheTokenIsRevoked(t *testing.T) {
	d := newDesk(t)
	d.capsule(hero, twoOptions)
	token := d.token(ident.Scope{Role: ident.Reader, Tenant: "north", Job: "web", Capsule: "hero"})
	w := newWindow(d)
	w.do(chromedp.Navigate(d.address+"/"), chromedp.SendKeys(keyField, token.Secret), chromedp.Click(enter),
		chromedp.WaitVisible(chromedp.CSS("#trends")))
	w.until(`document.querySelector("#live.on") !== null`)
	if _, err := d.keys.Revoke(context.Background(), token.Hash); err != nil {
		t.Fatal(err)
	}
	w.do(chromedp.WaitVisible(keyField))
	w.clean(d)
}

func TestHostileTextInABrowser(t *testing.T) {
	d := newDesk(t, func(o *console.Options) { o.Dev = true })
	d.hostile()
	w := newWindow(d)
	for _, path := range []string{"/", "/console/capsule/north/web/hero"} {
		w.do(chromedp.Navigate(d.address+path), chromedp.WaitVisible(chromedp.CSS("#newest")))
		w.until(`document.querySelector("#live.on") !== null`)
		contains(t, w.text("#newest"), "<script>")
		w.until(`document.querySelectorAll("main script, main img").length === 0`)
	}
	w.clean(d)
}
