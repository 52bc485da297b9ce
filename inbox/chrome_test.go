//go:build !race

package inbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/ringi-dev/ringi/access"
)

// patience is how long a step in a browser may take where the machine is busy.
const patience = 90 * time.Second

// screen is a size that the browser tests run at.
type screen struct {
	name          string
	width, height int64
	touch         bool
}

var screens = []screen{{"desktop", 1280, 900, false}, {"phone", 360, 740, true}}

// shared is the one browser of all tests in it: each has tabs of its own
// (house.tab), which share no cookie.
var shared struct {
	once  sync.Once
	ctx   context.Context
	close context.CancelFunc
	err   error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.close != nil {
		shared.close()
	}
	os.Exit(code)
}

// chrome returns the browser, or skips a test. The files of tests in a browser
// are not built with the race detector: it finds a race in the browser's driver.
func chrome(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("browser tests are left out by -short")
	}
	path := os.Getenv("RINGI_CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path == "" {
			path, _ = exec.LookPath(name)
		}
	}
	if path == "" {
		t.Skip("there is no chromium here: scripts/chromium installs it, RINGI_CHROMIUM names another")
	}
	shared.once.Do(func() {
		opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-gpu", true), chromedp.Flag("no-proxy-server", true))
		all, closeAll := chromedp.NewExecAllocator(context.Background(), opts...)
		ctx, closeIt := chromedp.NewContext(all)
		shared.ctx, shared.close = ctx, func() { closeIt(); closeAll() }
		shared.err = chromedp.Do(ctx)
	})
	if shared.err != nil {
		t.Fatalf("start %s: %v", path, shared.err)
	}
	return shared.ctx
}

// tab is a tab of a browser of its own: cookies are not shared.
type tab struct {
	t      *testing.T
	h      *house
	ctx    context.Context
	screen screen
	off    bool // scripts are off
}

func (h *house) tab(t *testing.T, browser context.Context, s screen) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	// The first call ties the tab's life to its context: it has no time limit.
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	b := &tab{t: t, h: h, ctx: ctx, screen: s}
	var opts []chromedp.EmulateViewportOption
	if s.touch {
		opts = append(opts, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	b.do(chromedp.EmulateViewport(s.width, s.height, opts...))
	return b
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%v\nat %s:\n%s", err, b.where(), b.text())
	}
}

func ask[T any](b *tab, js string) T {
	b.t.Helper()
	v, err := within(b, chromedp.Evaluate[T](js))
	if err != nil {
		b.t.Fatalf("evaluate %s: %v", js, err)
	}
	return v
}

// within runs an action that must not take long.
func within[T any](b *tab, a chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, a)
}

func (b *tab) where() string {
	s, _ := within(b, chromedp.Location())
	return s
}

func (b *tab) text() string {
	s, _ := within(b, chromedp.Evaluate[string](`document.body ? document.body.innerText : ""`))
	return s
}

func (b *tab) open(path string) *tab {
	b.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = b.h.server.URL + path
	}
	b.do(chromedp.Navigate(path))
	return b
}

// until waits until an expression is true.
func (b *tab) until(js string) {
	b.t.Helper()
	for begun := time.Now(); ; time.Sleep(30 * time.Millisecond) {
		ok, err := within(b, chromedp.Evaluate[bool]("!!("+js+")"))
		if err == nil && ok {
			return
		}
		if time.Since(begun) > patience {
			b.t.Fatalf("not in time: %s\nat %s (%v):\n%s", js, b.where(), err, b.text())
		}
	}
}

// says waits until the page shows a text.
func (b *tab) says(texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		b.until(fmt.Sprintf(`document.body && document.body.innerText.replace(/\s+/g," ").includes(%s)`, quoted(text)))
	}
}

func (b *tab) click(css string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(css)))
}

func (b *tab) write(css, text string) {
	b.t.Helper()
	ask[bool](b, fmt.Sprintf(`(() => { const e = document.querySelector(%s); e.value = ""; e.focus(); return true })()`, quoted(css)))
	b.do(chromedp.SendKeys(chromedp.CSS(css), text))
}

// key presses keys, once the page's script listens: a page shows its text before
// that.
func (b *tab) key(keys string) {
	b.t.Helper()
	b.scripted()
	b.do(chromedp.KeyEvent(keys))
}

// scripted waits until the page's script listens.
func (b *tab) scripted() {
	b.t.Helper()
	if !b.off {
		b.until(`document.documentElement.classList.contains("js")`)
	}
}

// press presses a button that holds for five seconds; the test's hold is
// shorter.
func (b *tab) press(css string) {
	b.t.Helper()
	b.scripted()
	ask[string](b, `document.body.dataset.hold = "0.4"`)
	b.click(css)
}

func (b *tab) login(id string) *tab {
	b.t.Helper()
	b.open(b.h.link(id))
	b.says("logs you in once")
	b.click("main button")
	b.says("Pending")
	return b
}

// noScript switches JavaScript off.
func (b *tab) noScript() *tab {
	b.t.Helper()
	b.off = true
	b.scripts(false)
	return b
}

func (b *tab) scripts(on bool) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
		return err
	}))
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// look keeps a picture of the page where RINGI_SHOTS names a folder, and asks
// axe-core, where it is installed, for violations of WCAG 2.2 A and AA.
func (b *tab) look(name string) {
	b.t.Helper()
	if n := ask[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); n > 0 {
		b.t.Errorf("%s at %s is %d px wider than the screen", name, b.screen.name, n)
	}
	if dir := os.Getenv("RINGI_SHOTS"); dir != "" {
		b.shoot(filepath.Join(dir, name+"-"+b.screen.name+".png"))
	}
	ask[int](b, `(scrollTo(0, 1e9), 0)`) // at its end a sticky bar lies over nothing
	b.small(name)
	if b.off { // axe-core needs timers; the page's own script does not run late
		b.scripts(true)
		defer b.scripts(false)
	}
	axe, err := os.ReadFile(filepath.Join("testdata", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		b.t.Logf("%s: axe-core is not installed (scripts/chromium): violations were not looked for", name)
		return
	}
	if _, err := within(b, chromedp.Evaluate[chromedp.Void](string(axe))); err != nil {
		b.t.Fatal(err)
	}
	found, err := within(b, chromedp.Evaluate[string](`axe.run(document, {runOnly: ["wcag2a","wcag2aa","wcag21a","wcag21aa","wcag22aa","best-practice"]})
		.then((r) => r.violations.map((v) => v.id + ": " + v.help + "\n" + v.nodes.map((n) => "   " + n.html.slice(0, 200) + " " + n.failureSummary).join("\n")).join("\n"))`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	if found != "" {
		b.t.Errorf("axe-core on %s at %s:\n%s", name, b.screen.name, found)
	}
}

// small finds targets below 24 by 24 CSS pixels (WCAG 2.2, 2.5.8) that are no
// links within a sentence.
func (b *tab) small(name string) {
	b.t.Helper()
	found := ask[string](b, `[...document.querySelectorAll("button, input:not([type=hidden]), select, textarea, summary, a.button, nav a")]
		.filter((e) => e.offsetParent !== null && !e.closest(".hide")).filter((e) => { const r = e.getBoundingClientRect(); return r.width < 24 || r.height < 24; })
		.filter((e) => !(e.closest("label") && e.closest("label").getBoundingClientRect().height >= 24))
		.map((e) => e.outerHTML.slice(0, 120)).join("\n")`)
	if found != "" {
		b.t.Errorf("%s at %s has small targets:\n%s", name, b.screen.name, found)
	}
}

func (b *tab) shoot(path string) {
	b.t.Helper()
	png, err := within(b, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// dark switches the tab to dark colours.
func (b *tab) dark() {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
		return err
	}))
}

// onScreens runs a test at every size.
func onScreens(t *testing.T, o houseOptions, test func(t *testing.T, h *house, open func() *tab, ana string)) {
	browser := chrome(t)
	for _, s := range screens {
		t.Run(s.name, func(t *testing.T) {
			h := newHouse(t, o)
			ana := h.add("Ana", access.RoleUser, access.RoleApprover)
			test(t, h, func() *tab { return h.tab(t, browser, s) }, ana)
		})
	}
}
