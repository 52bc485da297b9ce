package inbox_test

import (
	"context"
	"database/sql"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/inbox"
	"github.com/ringi-dev/ringi/internal/backoffice"
	"github.com/ringi-dev/ringi/store/sqlite"
	"github.com/ringi-dev/ringi/worker"
)

var operator = access.Operator("os:1000@test", "default")

// house is a whole server: an engine over a real store with a worker, a
// directory with people in it, and the inbox over both.
type house struct {
	t      testing.TB
	engine *engine.Engine
	router *engine.Router
	people *access.Directory
	office *backoffice.Office
	server *httptest.Server
	logged *lines
}

type houseOptions struct {
	model  ringi.Model     // nil: the back office's
	reg    *ringi.Registry // nil: the back office's
	engine func(*engine.Config)
	inbox  func(*inbox.Options)
	people access.Options
	idle   bool // without a worker
}

func newHouse(t testing.TB, o houseOptions) *house {
	t.Helper()
	dir := t.TempDir()
	h := &house{t: t, logged: &lines{}}
	var w *worker.Worker
	store, err := sqlite.Open(filepath.Join(dir, "ringi.db"), sqlite.Options{Woken: func(space, run string) {
		if w != nil {
			w.Wake(space, run)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if o.reg == nil {
		if h.office, err = backoffice.Open(filepath.Join(dir, "office.db")); err != nil {
			t.Fatal(err)
		}
		h.office.Timeout = time.Second
		o.reg = ringi.NewRegistry()
		if err := h.office.Register(o.reg); err != nil {
			t.Fatal(err)
		}
	}
	if o.model == nil {
		o.model = backoffice.Scripted{}
	}
	cfg := engine.Config{Agent: "office", Store: store, Registry: o.reg, Model: o.model}
	if o.engine != nil {
		o.engine(&cfg)
	}
	if h.engine, err = engine.New(cfg); err != nil {
		t.Fatal(err)
	}
	if h.router, err = engine.Route(h.engine); err != nil {
		t.Fatal(err)
	}
	if !o.idle {
		h.work(store, &w)
	}
	h.openInbox(dir, o)
	if h.office != nil {
		t.Cleanup(func() { h.office.Close() })
	}
	return h
}

func (h *house) work(store ringi.Store, w **worker.Worker) {
	*w = worker.New(worker.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { _ = (*w).Run(ctx, store, h.router) })
	h.t.Cleanup(func() { cancel(); ended.Wait() })
}

func (h *house) openInbox(dir string, o houseOptions) {
	t := h.t
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "access.db")+"?"+access.SQLiteParams)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if h.people, err = access.Open(t.Context(), db, o.people); err != nil {
		t.Fatal(err)
	}
	auth, err := access.NewAuthenticator(h.people, access.AuthOptions{})
	if err != nil {
		t.Fatal(err)
	}
	opt := inbox.Options{Service: h.router, Directory: h.people, Authenticator: auth, Start: true, Poll: 50 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(h.logged, nil))}
	if h.office != nil {
		for _, s := range backoffice.Scenarios() {
			opt.Scenarios = append(opt.Scenarios, inbox.Scenario{Title: s.Title, Text: s.Text, Try: s.Try})
		}
	}
	if o.inbox != nil {
		o.inbox(&opt)
	}
	handler, err := inbox.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	h.server = httptest.NewServer(handler)
	t.Cleanup(h.server.Close)
}

// add adds a person.
func (h *house) add(name string, roles ...access.Role) string {
	h.t.Helper()
	id := access.LocalID(strings.ToLower(name))
	if err := h.people.AddUser(h.t.Context(), operator, access.User{ID: id, Name: name, Roles: roles}); err != nil {
		h.t.Fatal(err)
	}
	return id
}

// link makes a login link's address.
func (h *house) link(id string) string {
	h.t.Helper()
	secret, _, err := h.people.MakeLink(h.t.Context(), operator, id)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.server.URL + "/login?link=" + url.QueryEscape(secret)
}

// begin begins a run and waits until it asks, or ends.
func (h *house) begin(by, text string) *ringi.Result {
	h.t.Helper()
	m := ringi.User(text)
	m.Author = by
	res, err := h.router.Run(h.t.Context(), ringi.RunStart{Agent: "office", By: ringi.Principal{ID: by, Name: by, Kind: ringi.Person, Auth: "test"}, Messages: []ringi.Message{m}})
	if err != nil {
		h.t.Fatal(err)
	}
	return res
}

// asks begins a run and returns the one request that it leads to.
func (h *house) asks(by, text string) ringi.ApprovalRequest {
	h.t.Helper()
	res := h.begin(by, text)
	if len(res.Pending) == 0 {
		h.t.Fatalf("run asks nothing: %+v", res)
	}
	return res.Pending[0]
}

func (h *house) get(id string) ringi.ApprovalRequest {
	h.t.Helper()
	r, err := h.router.Request(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// until waits for something that a worker does.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for begun := time.Now(); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > 90*time.Second {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// browser is a browser without JavaScript: it keeps cookies, follows redirects
// and sends the forms of the page that it shows.
type browser struct {
	t      testing.TB
	h      *house
	client *http.Client
	status int
	page   string
	at     *url.URL
	head   http.Header
}

func (h *house) browser(id string) *browser {
	h.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	b := &browser{t: h.t, h: h, client: &http.Client{Jar: jar}}
	if id == "" {
		return b
	}
	b.open(strings.TrimPrefix(h.link(id), h.server.URL))
	b.send("/login", nil)
	if b.status != 200 || !strings.Contains(b.page, "Log out") {
		h.t.Fatalf("login: %d %s", b.status, b.page)
	}
	return b
}

func (b *browser) open(path string) *browser {
	b.t.Helper()
	res, err := b.client.Get(b.h.server.URL + path)
	b.take(res, err)
	return b
}

func (b *browser) take(res *http.Response, err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	b.status, b.page, b.at, b.head = res.StatusCode, string(body), res.Request.URL, res.Header
}

var (
	formTag  = regexp.MustCompile(`(?s)<form[^>]*method="post"[^>]*action="([^"]*)"[^>]*>(.*?)</form>`)
	inputTag = regexp.MustCompile(`(?s)<input\b([^>]*)>`)
	areaTag  = regexp.MustCompile(`(?s)<textarea\b([^>]*)>(.*?)</textarea>`)
	pickTag  = regexp.MustCompile(`(?s)<select\b([^>]*)>(.*?)</select>`)
	attrTag  = regexp.MustCompile(`([a-z-]+)(?:="([^"]*)")?`)
)

func attrs(s string) map[string]string {
	out := map[string]string{}
	for _, m := range attrTag.FindAllStringSubmatch(s, -1) {
		out[m[1]] = html.UnescapeString(m[2])
	}
	return out
}

// form returns the values of the page's form whose action ends so, and which
// holds all of with's hidden values.
func (b *browser) form(action string, with map[string]string) (string, url.Values) {
	b.t.Helper()
	for _, m := range formTag.FindAllStringSubmatch(b.page, -1) {
		if !strings.HasSuffix(html.UnescapeString(m[1]), action) {
			continue
		}
		v := url.Values{}
		for _, in := range inputTag.FindAllStringSubmatch(m[2], -1) {
			a := attrs(in[1])
			_, checked := a["checked"]
			if kind := a["type"]; (kind == "checkbox" || kind == "radio") && !checked {
				continue
			}
			if a["name"] != "" {
				v.Add(a["name"], a["value"])
			}
		}
		for _, area := range areaTag.FindAllStringSubmatch(m[2], -1) {
			text := strings.TrimPrefix(html.UnescapeString(area[2]), "\n")
			v.Add(attrs(area[1])["name"], strings.ReplaceAll(text, "\n", "\r\n"))
		}
		for _, pick := range pickTag.FindAllStringSubmatch(m[2], -1) {
			options := regexp.MustCompile(`<option value="([^"]*)"( selected)?`).FindAllStringSubmatch(pick[2], -1)
			value := ""
			for i, o := range options {
				if i == 0 || o[2] != "" {
					value = html.UnescapeString(o[1])
				}
			}
			v.Add(attrs(pick[1])["name"], value)
		}
		fits := true
		for name, value := range with {
			fits = fits && v.Get(name) == value
		}
		if fits {
			return html.UnescapeString(m[1]), v
		}
	}
	b.t.Fatalf("the page %s has no form %s with %v:\n%s", b.at, action, with, b.page)
	return "", nil
}

// send sends a form of the page as a browser does, with values typed into it.
// Among type's values those of hidden fields pick the form.
func (b *browser) send(action string, hidden map[string]string, typed ...string) *browser {
	b.t.Helper()
	to, v := b.form(action, hidden)
	for i := 0; i < len(typed); i += 2 {
		v.Set(typed[i], typed[i+1])
	}
	b.post(to, v)
	return b
}

func (b *browser) post(path string, v url.Values) *browser {
	b.t.Helper()
	req, err := http.NewRequest("POST", b.h.server.URL+path, strings.NewReader(v.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", b.h.server.URL)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	res, err := b.client.Do(req)
	b.take(res, err)
	return b
}

func (b *browser) want(status int, texts ...string) *browser {
	b.t.Helper()
	if b.status != status {
		b.t.Fatalf("%s: status %d, want %d:\n%s", b.at, b.status, status, b.page)
	}
	seen := words(b.page)
	for _, text := range texts {
		if !strings.Contains(seen, text) {
			b.t.Errorf("%s does not say %q:\n%s", b.at, text, seen)
		}
	}
	return b
}

var anyTag = regexp.MustCompile(`<[^>]*>`)

// words is the text of a page.
func words(page string) string {
	return strings.Join(strings.Fields(html.UnescapeString(anyTag.ReplaceAllString(page, ""))), " ")
}

type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
