package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// browser is a browser without JavaScript: it keeps cookies, and posts the forms
// that a page has.
type browser struct {
	t    *testing.T
	base string
	http.Client
}

func newBrowser(t *testing.T, base string) *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t: t, base: base, Client: http.Client{Jar: jar, Timeout: 90 * time.Second}}
}

// see returns a page.
func (b *browser) see(path string) string {
	b.t.Helper()
	res, err := b.Get(b.base + path)
	return b.page(res, err)
}

func (b *browser) page(res *http.Response, err error) string {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		b.t.Fatalf("%s: %s %v\n%s", res.Request.URL, res.Status, err, text)
	}
	return string(text)
}

var (
	formTag  = regexp.MustCompile(`(?s)<form[^>]*action="([^"]*)"[^>]*>(.*?)</form>`)
	inputTag = regexp.MustCompile(`<input[^>]*name="([^"]*)"[^>]*value="([^"]*)"`)
)

// post sends the form of a page that has all of the marks, with more fields.
func (b *browser) post(page string, more url.Values, marks ...string) string {
	b.t.Helper()
	for _, f := range formTag.FindAllStringSubmatch(page, -1) {
		fits := true
		for _, m := range marks {
			fits = fits && strings.Contains(f[0], m)
		}
		if !fits {
			continue
		}
		values := url.Values{}
		for _, in := range inputTag.FindAllStringSubmatch(f[2], -1) {
			values.Set(in[1], strings.NewReplacer("&#43;", "+", "&amp;", "&", "&#39;", "'").Replace(in[2]))
		}
		for k, v := range more {
			values[k] = v
		}
		req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.base+f[1], strings.NewReader(values.Encode()))
		if err != nil {
			b.t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", b.base)
		return b.page(b.Do(req))
	}
	b.t.Fatalf("no form with %q in\n%s", marks, page)
	return ""
}

// until looks at a page until it says something.
func (b *browser) until(path string, says *regexp.Regexp) []string {
	b.t.Helper()
	var page string
	for begun := time.Now(); time.Since(begun) < 90*time.Second; time.Sleep(50 * time.Millisecond) {
		page = b.see(path)
		if m := says.FindStringSubmatch(page); m != nil {
			return m
		}
	}
	b.t.Fatalf("%s never says %s:\n%s", path, says, page)
	return nil
}

// A newcomer starts the demo, logs in with the link that the terminal shows,
// starts a conversation, approves the refund in a browser without JavaScript,
// and the agent goes on and asks for the mail.
func TestDemoIsApprovedInABrowser(t *testing.T) {
	term := atTerminal(t, 100, nil, "demo", "--listen", "127.0.0.1:0")
	term.expect("Its agent is a script")
	link := regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/login\?link=(\S+)`).FindStringSubmatch(term.screen())
	if link == nil {
		t.Fatalf("no login link:\n%s", term.screen())
	}
	b := newBrowser(t, link[1])
	b.post(b.see("/login?link="+link[2]), nil, "/login")
	if again, err := http.PostForm(link[1]+"/login", url.Values{"link": {link[2]}}); err != nil || again.StatusCode == http.StatusOK {
		t.Errorf("the login link works twice: %v, %v", again, err)
	}
	b.post(b.see("/start"), nil, "broken kettle")
	first := b.until("/", regexp.MustCompile(`href="(/a/req_[^"]+)"`))[1]
	sure := b.post(b.see(first), nil, `data-key="a"`)
	b.post(sure, nil, "/decide", `value="approve"`)
	second := b.until("/", regexp.MustCompile(`href="(/a/req_[^"]+)"`))[1]
	if second == first {
		t.Fatal("the request that was approved still waits")
	}
	mail := b.see(second)
	if !strings.Contains(mail, "send_mail") {
		t.Fatalf("after the refund the agent asks for something else:\n%s", mail)
	}
	b.post(mail, url.Values{"reason": {"I call her myself."}}, `data-key="d"`)
	if _, err := term.tty.Write([]byte{3}); err != nil { // Ctrl+C
		t.Fatal(err)
	}
	select {
	case <-term.done:
	case <-time.After(90 * time.Second):
		t.Fatal("Ctrl+C does not end the demo")
	}
}
