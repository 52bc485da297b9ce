//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

// BenchmarkPages asks a server for pages of its inbox and its API, as its
// people do, while many requests wait: of runs that exist, whose logs and
// signatures are checked. RINGI_PAGES=1000000 makes it as many, in a quarter of
// an hour; RINGI_PAGES_DIR keeps them for the next time.
func BenchmarkPages(b *testing.B) {
	runs, err := strconv.Atoi(cmp.Or(os.Getenv("RINGI_PAGES"), "1000"))
	if err != nil {
		b.Fatal(err)
	}
	p := newTill(b)
	other := p.other()
	p.ask(other, runs)
	ana := p.reader(other)
	s := p.serve()
	defer s.stop(syscall.SIGTERM)
	before := s.resident()

	middle := ""
	for range min(20, runs/100) {
		middle = s.list(ana.approver, middle).Next
	}
	word := fmt.Sprint("order-", runs/2)
	for _, c := range []struct{ name, path, wants string }{
		{"inbox", "/", "order-"},
		{"inbox all", "/?show=all", "order-"},
		{"inbox newest", "/?show=all&order=newest", "order-"},
		{"inbox riskiest", "/?show=all&order=riskiest", "order-"},
		{"inbox of a team", "/?show=teams", "order-"},
		{"inbox of a tool", "/?show=all&tool=refund", "order-"},
		{"inbox search", "/?show=all&q=" + word, word},
		{"inbox search common", "/?show=all&q=customer", "order-"},
		{"inbox search nothing", "/?show=all&q=xylophone", "Clear"},
		{"inbox decided", "/?show=all&state=decided", "Decided"},
		{"api list", "/v1/approvals?state=pending", "order-"},
		{"api middle", "/v1/approvals?state=pending&cursor=" + url.QueryEscape(middle), "order-"},
		{"api filter", "/v1/approvals?state=pending&tool=refund", "order-"},
		{"api riskiest", "/v1/approvals?state=pending&order=riskiest&tool=refund", "order-"},
		{"api risk", "/v1/approvals?state=pending&risk=high", ""},
		{"api search", "/v1/approvals?state=pending&q=" + word, word},
		{"api of 100", "/v1/approvals?state=pending&limit=100", "order-"},
	} {
		b.Run(strings.ReplaceAll(c.name, " ", "_"), func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				t, code, body := s.page(b, ana, c.path)
				took = append(took, t)
				if code != http.StatusOK || !strings.Contains(body, c.wants) {
					b.Fatalf("%s: %d without %q: %.2000s", c.path, code, c.wants, body)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
	b.Logf("%d pending; ready after %s; resident %d MB, then %d MB", runs, s.took.Round(time.Millisecond), before, s.resident())
}

// newTill is a machine for calls of a loop elsewhere: its server has no script.
func newTill(t testing.TB) *payer {
	p := newMachine(t)
	if dir := os.Getenv("RINGI_PAGES_DIR"); dir != "" {
		p.dir = dir
		p.vars["HOME"], p.vars["XDG_CONFIG_HOME"], p.vars["XDG_STATE_HOME"] = dir, filepath.Join(dir, "config"), filepath.Join(dir, "state")
	}
	p.write("config/ringi/tools.json", `[{"name":"refund","effect":"non_idempotent_write","data_class":"public_content"},{"name":"cancel","effect":"non_idempotent_write","data_class":"public_content"}]`)
	p.write("config/ringi/ringi.yaml", "trusted_proxies: [127.0.0.1]\nagents:\n  - name: till\n    zone: local\n    model: {kind: none}\n    tools: {external: tools.json}\n    deciders: {teams: [shop]}\n")
	return &payer{p}
}

// ask has so many conversations wait, where they do not yet.
func (p *payer) ask(other *server, n int) {
	p.t.Helper()
	e := other.agents[0].engine
	have, err := e.Runs(p.t.Context(), ringi.RunQuery{Limit: 1})
	if err != nil {
		p.t.Fatal(err)
	}
	if len(have) > 0 {
		return // kept
	}
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			for i := w; i < n; i += 64 {
				g, err := e.Gate(p.t.Context(), ringi.RunInfo{Thread: fmt.Sprint("order-", i)})
				if err == nil {
					_, err = g.Judge(p.t.Context(), ringi.ToolCall{ModelID: "call_1", Tool: []string{"refund", "cancel"}[i%2],
						Input: ringi.Input(fmt.Sprintf(`{"customer":"customer %d","order":"order-%d","cents":%d}`, i%977, i, i%5000))})
				}
				if err != nil {
					p.t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if p.t.Failed() {
		p.t.FailNow()
	}
}

// reader is a person of the team that decides, with a token and a session.
type reader struct {
	approver
	session string
}

func (p *payer) reader(other *server) reader {
	p.t.Helper()
	ctx := p.t.Context()
	must := func(err error) {
		p.t.Helper()
		if err != nil {
			p.t.Fatal(err)
		}
	}
	id := access.LocalID(fmt.Sprint("reader", time.Now().UnixNano()))
	if err := other.people.AddTeam(ctx, operator(), "shop", "Shop"); err != nil && !errors.Is(err, access.ErrExists) {
		p.t.Fatal(err)
	}
	must(other.people.AddUser(ctx, operator(), access.User{ID: id, Name: "Ana", Roles: []access.Role{access.RoleApprover, access.RoleAuditor}, Teams: []string{"shop"}}))
	_, secret, err := other.people.MakeToken(ctx, operator(), access.NewToken{Kind: access.PersonToken, Name: "pages", Owner: id, Scopes: []access.Scope{access.ScopeRead}})
	must(err)
	session, err := other.people.StartSession(ctx, id, "link", "")
	must(err)
	return reader{approver{id, secret, "10.1.1.1"}, session}
}

// page gets a page: of the API with the token, of the inbox with the session.
// Where its reader is too fast for the server's limit it waits; that does not
// count.
func (s *serving) page(b *testing.B, r reader, path string) (took time.Duration, code int, body string) {
	b.Helper()
	for {
		req, err := http.NewRequest("GET", s.url+path, nil)
		if err != nil {
			b.Fatal(err)
		}
		if strings.HasPrefix(path, "/v1/") {
			req.Header.Set("Authorization", "Bearer "+r.token)
		} else {
			req.AddCookie(&http.Cookie{Name: access.CookieName, Value: r.session})
		}
		req.Header.Set("X-Forwarded-For", r.address)
		begun := time.Now()
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if took = time.Since(begun); err != nil {
			b.Fatal(err)
		}
		if res.StatusCode != http.StatusTooManyRequests {
			return took, res.StatusCode, string(text)
		}
		time.Sleep(200 * time.Millisecond)
	}
}
