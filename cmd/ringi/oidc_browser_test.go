//go:build unix && !race

package main

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// The same in a browser: its rules on cookies and on where forms may lead hold
// as well.
func TestLoginAtARealProviderInABrowser(t *testing.T) {
	path := os.Getenv("RINGI_CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path == "" {
			path, _ = exec.LookPath(name)
		}
	}
	if path == "" {
		t.Skip("there is no chromium here: scripts/chromium installs it, RINGI_CHROMIUM names another")
	}
	o := newOffice(t)
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-gpu", true), chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")) // the provider's page asks for a font of somebody's
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 4*time.Minute)
	t.Cleanup(cancel)
	step := func(what string, actions ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(ctx, actions...); err != nil {
			text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
			t.Fatalf("%s: %v\n%s", what, err, text)
		}
	}
	step("begin", chromedp.Navigate(o.url+"/day"), chromedp.WaitVisible(`a[href^="/login/oidc"]`), chromedp.Click(`a[href^="/login/oidc"]`))
	step("log in", chromedp.WaitVisible(`input[name=login]`), chromedp.SendKeys(`input[name=login]`, "ana"), chromedp.SendKeys(`input[name=password]`, "x"), chromedp.Click(`button[type=submit]`))
	step("consent", chromedp.WaitReady(`input[value=consent]`), chromedp.Click(`form button[type=submit]`)) // the page before has such a button too
	step("back", chromedp.WaitVisible(`form.out button`))
	at, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.pathname + " " + document.querySelector(".me").innerText`))
	if err != nil || at != "/day Ana Example" {
		t.Errorf("after the login at %q, %v", at, err)
	}
	step("log out", chromedp.Click(`form.out button`), chromedp.WaitVisible(`a[href="/login/oidc/logout"]`), chromedp.Click(`a[href="/login/oidc/logout"]`))
	step("there", chromedp.WaitVisible(`button[name=logout]`), chromedp.Click(`button[name=logout]`))
	step("and back", chromedp.WaitVisible(`a[href^="/login/oidc"]`))
}
