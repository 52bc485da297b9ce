package chat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// screen is a size that the tests run at.
type screen struct {
	name          string
	width, height int64
	touch, dark   bool
}

var screens = []screen{{"desktop", 1280, 900, false, false}, {"phone", 360, 740, true, true}}

// onScreens runs a test at every size, each in a world of its own.
func onScreens(t *testing.T, agent string, test func(w *world, b *tab)) {
	if testing.Short() {
		t.Skip("-short: the page is not built, and no browser drives it")
	}
	if underRace {
		t.Skip("the race detector finds a race in the browser's driver: scripts/test runs these tests without it")
	}
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s here: the page cannot be built", tool)
		}
	}
	browser := chrome(t)
	for _, s := range screens {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t, agent)
			b := newTab(t, browser, s)
			b.axe = w.axe
			b.open(w.link("local:owner", false))
			b.says("logs you in once")
			b.click("main button")
			b.says("Pending")
			b.open(w.page.URL)
			b.says("Ask the back office")
			test(w, b)
		})
	}
}

func chrome(t *testing.T) context.Context {
	t.Helper()
	path := os.Getenv("RINGI_CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path == "" {
			path, _ = exec.LookPath(name)
		}
	}
	if path == "" {
		t.Skip("there is no chromium here: scripts/chromium installs it, RINGI_CHROMIUM names another")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-gpu", true), chromedp.Flag("no-proxy-server", true))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return ctx
}

// tab is a tab with cookies of its own.
type tab struct {
	t      *testing.T
	ctx    context.Context
	screen screen
	axe    string
}

func newTab(t *testing.T, browser context.Context, s screen) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // the first call ties the tab's life to its context
		t.Fatal(err)
	}
	b := &tab{t: t, ctx: ctx, screen: s}
	var opts []chromedp.EmulateViewportOption
	if s.touch {
		opts = append(opts, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	b.do(chromedp.EmulateViewport(s.width, s.height, opts...))
	if s.dark {
		b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
			return err
		}))
	}
	return b
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%v\nthe page says:\n%s", err, b.text())
	}
}

// within runs an action that must not take long.
func within[T any](b *tab, a chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	return chromedp.Run(ctx, a)
}

func ask[T any](b *tab, js string) T {
	b.t.Helper()
	v, err := within(b, chromedp.Evaluate[T](js))
	if err != nil {
		b.t.Fatalf("evaluate %s: %v", js, err)
	}
	return v
}

func (b *tab) text() string {
	s, _ := within(b, chromedp.Evaluate[string](`document.body ? document.body.innerText : ""`))
	return s
}

func (b *tab) open(address string) { b.t.Helper(); b.do(chromedp.Navigate(address)) }

// until waits until an expression is true.
func (b *tab) until(js string) {
	b.t.Helper()
	for begun := time.Now(); ; time.Sleep(30 * time.Millisecond) {
		ok, err := within(b, chromedp.Evaluate[bool]("!!("+js+")"))
		if err == nil && ok {
			return
		}
		if time.Since(begun) > 25*time.Second {
			b.t.Fatalf("not within 25 s: %s (%v)\nthe page says:\n%s", js, err, b.text())
		}
	}
}

const shown = `document.body && document.body.innerText.replace(/\s+/g, " ")`

// says waits until the page shows texts.
func (b *tab) says(texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		b.until(fmt.Sprintf(`(%s).includes(%s)`, shown, quoted(text)))
	}
}

// never reports a text that is there.
func (b *tab) never(text string) {
	b.t.Helper()
	if ask[bool](b, fmt.Sprintf(`(%s).includes(%s)`, shown, quoted(text))) {
		b.t.Errorf("the page says %q:\n%s", text, b.text())
	}
}

func (b *tab) click(css string) { b.t.Helper(); b.do(chromedp.Click(chromedp.CSS(css))) }

// press clicks a button of the card, counted from 1, that waits for an answer
// here.
func (b *tab) press(card int, button string) {
	b.t.Helper()
	find := fmt.Sprintf(`[...([...document.querySelectorAll(".card.asks")][%d]?.querySelectorAll("button") ?? [])].find((x) => x.innerText.trim() === %s && x.offsetParent)`, card-1, quoted(button))
	b.until(find)
	ask[bool](b, fmt.Sprintf(`(() => { document.querySelectorAll("[data-test]").forEach((x) => x.removeAttribute("data-test")); (%s).dataset.test = "here"; return true })()`, find))
	b.click(`[data-test=here]`)
}

func (b *tab) write(css, text string) { b.t.Helper(); b.do(chromedp.SendKeys(chromedp.CSS(css), text)) }

func (b *tab) key(keys string) { b.t.Helper(); b.do(chromedp.KeyEvent(keys)) }

// send writes a message and sends it.
func (b *tab) send(text string) {
	b.t.Helper()
	b.until(`document.querySelector(".composer .primary")`)
	b.write("#message", text)
	b.click(".composer .primary")
}

// cards waits until so many wait for an answer here.
func (b *tab) cards(n int) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelectorAll(".card.asks").length === %d`, n))
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// look keeps a picture of the page where RINGI_SHOTS names a folder, asks
// axe-core for violations of WCAG 2.2 A and AA, and measures.
func (b *tab) look(name string) {
	b.t.Helper()
	if n := ask[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); n > 0 {
		b.t.Errorf("%s at %s is %d px wider than the screen", name, b.screen.name, n)
	}
	if small := ask[string](b, `[...document.querySelectorAll("button, input, select, textarea, summary, header a, .elsewhere a")].filter((e) => e.offsetParent)
		.filter((e) => { const r = e.getBoundingClientRect(); return (r.width < 24 || r.height < 24) && e.type !== "checkbox"; }).map((e) => e.outerHTML.slice(0, 120)).join("\n")`); small != "" {
		b.t.Errorf("%s at %s has small targets (WCAG 2.2, 2.5.8):\n%s", name, b.screen.name, small)
	}
	if dir := os.Getenv("RINGI_SHOTS"); dir != "" {
		png, err := within(b, chromedp.FullScreenshot(100))
		if err == nil {
			err = os.MkdirAll(dir, 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+"-"+b.screen.name+".png"), png, 0o644)
		}
		if err != nil {
			b.t.Error(err)
		}
	}
	axe, err := os.ReadFile(b.axe)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := within(b, chromedp.Evaluate[chromedp.Void](string(axe))); err != nil {
		b.t.Fatal(err)
	}
	found, err := within(b, chromedp.Evaluate[string](`axe.run(document, {runOnly: ["wcag2a","wcag2aa","wcag21a","wcag21aa","wcag22aa","best-practice"]})
		.then((r) => r.violations.map((v) => v.id + ": " + v.help + "\n" + v.nodes.map((n) => "   " + n.html.slice(0, 200) + " " + n.failureSummary).join("\n")).join("\n"))`, chromedp.EvalAwaitPromise))
	if err != nil || found != "" {
		b.t.Errorf("axe-core on %s at %s: %v\n%s", name, b.screen.name, err, found)
	}
}

var reload = chromedp.Reload()
