//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ringi-dev/ringi/access"
)

// twoServers work on one data folder; a loop of its own asks both.
type twoServers struct {
	*machine
	servers [2]*serving
	tokens  map[string]string
}

func newTwoServers(t *testing.T, yaml string) *twoServers {
	p := newMachine(t)
	p.write("config/ringi/external.json", externalTools)
	p.write("config/ringi/ringi.yaml", yaml)
	two := &twoServers{machine: p, tokens: map[string]string{}}
	two.servers[0] = p.serve()
	two.servers[1] = p.serve()
	c, err := p.read()
	if err != nil {
		t.Fatal(err)
	}
	data, err := p.env().dataFolder(c)
	if err != nil {
		t.Fatal(err)
	}
	d, err := openDirectory(t.Context(), data+"/"+accessFile, access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	for _, id := range []string{"ben", "bea"} {
		if err := d.AddUser(t.Context(), operator(), access.User{ID: access.LocalID(id), Name: id, Roles: []access.Role{access.RoleApprover, access.RoleUser}}); err != nil {
			t.Fatal(err)
		}
		two.token(d, id, access.NewToken{Kind: access.PersonToken, Name: "t", Owner: access.LocalID(id), Scopes: []access.Scope{access.ScopeRead, access.ScopeDecide}})
	}
	two.token(d, "loop", access.NewToken{Kind: access.AgentToken, Name: "loop", Owner: access.LocalID("ben"), Agents: []string{"shop"},
		Scopes: []access.Scope{access.ScopeRead, access.ScopeRun, access.ScopeCall}})
	return two
}

func (p *twoServers) token(d *directory, who string, n access.NewToken) {
	p.t.Helper()
	_, secret, err := d.MakeToken(p.t.Context(), operator(), n)
	if err != nil {
		p.t.Fatal(err)
	}
	p.tokens[who] = secret
}

func (p *twoServers) ask(server int, who, method, path, body string, header ...string) (int, string) {
	req, err := http.NewRequest(method, p.servers[server].url+path, strings.NewReader(body))
	if err != nil {
		p.t.Error(err)
		return 0, ""
	}
	req.Header.Set("Authorization", "Bearer "+p.tokens[who])
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := (&http.Client{Timeout: 20 * time.Second}).Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(text)
}

type loopCall struct {
	ID, State string
	RunID     string `json:"run_id"`
	Approval  struct{ ID string }
	Result    struct{ Text string }
}

func (p *twoServers) must(want int, server int, who, method, path, body string, header ...string) loopCall {
	p.t.Helper()
	code, text := p.ask(server, who, method, path, body, header...)
	var c loopCall
	if err := json.Unmarshal([]byte(text), &c); code != want || err != nil {
		p.t.Fatalf("%s %s %s: %d %s, want %d", who, method, path, code, text, want)
	}
	return c
}

const shopOfLoops = `
agents:
  - name: shop
    zone: local
    model: {kind: none}
    tools: {external: external.json, foreign: true}
`

// S-11: two servers on one data folder, two deciders who disagree, many loops
// that all claim, and a server that is killed with a claim given out: a call is
// one call, has one decision, and is started once at the most.
func TestS11_TwoServersGiveOneStart(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: no servers are killed")
	}
	p := newTwoServers(t, shopOfLoops)
	for round := range 6 {
		tool := []string{"wire", "rm"}[round%2] // one that is registered, one of the client's own
		body := fmt.Sprintf(`{"agent":"shop","conversation":"c%d","tool":%q,"input":"{\"n\":%d}"}`, round, tool, round)
		key := fmt.Sprint("k", round)
		var ids sync.Map
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				code, text := p.ask(i%2, "loop", "POST", "/v1/calls", body, "Idempotency-Key", key)
				var c loopCall
				if json.Unmarshal([]byte(text), &c); code == 200 || code == 201 {
					ids.Store(c.ID, true)
				} else if code != 409 {
					t.Errorf("judge: %d %s", code, text)
				}
			})
		}
		wg.Wait()
		n := 0
		ids.Range(func(any, any) bool { n++; return true })
		if n != 1 {
			t.Fatalf("one wish is %d calls", n)
		}
		c := p.must(200, 0, "loop", "POST", "/v1/calls", body, "Idempotency-Key", key)
		approved := c.State == "run"
		if !approved {
			approved = p.decideTwice(c)
		}
		var started atomic.Int32
		for i := range 16 {
			wg.Go(func() {
				switch code, text := p.ask(i%2, "loop", "POST", "/v1/calls/"+c.ID+"/start", `{}`); {
				case code == 200:
					started.Add(1)
				case code != 409:
					t.Errorf("start: %d %s", code, text)
				}
			})
		}
		wg.Wait()
		if got := started.Load(); got > 1 || approved != (got == 1) {
			t.Fatalf("round %d: approved %v, and %d starts", round, approved, got)
		}
		dead := round % 2
		p.servers[dead].cmd.Process.Kill()
		p.servers[dead].cmd.Wait()
		if code, text := p.ask(1-dead, "loop", "POST", "/v1/calls/"+c.ID+"/start", `{}`); code != 409 {
			t.Fatalf("after the kill: %d %s", code, text)
		}
		p.servers[dead] = p.serve()
		if code, text := p.ask(dead, "loop", "POST", "/v1/calls/"+c.ID+"/start", `{}`); code != 409 {
			t.Fatalf("of its successor: %d %s", code, text)
		}
		if approved {
			done := p.must(200, dead, "loop", "POST", "/v1/calls/"+c.ID+"/result", `{"attempt":1,"output":"done"}`)
			if done.State != "done" || done.Result.Text != "done" {
				t.Errorf("%+v", done)
			}
		}
	}
	for _, s := range p.servers {
		s.stop(syscall.SIGTERM)
	}
}

// decideTwice has two people say the opposite at two servers at once. It reports
// what counts.
func (p *twoServers) decideTwice(c loopCall) (approved bool) {
	p.t.Helper()
	var won [2]atomic.Bool
	var wg sync.WaitGroup
	for i, who := range []string{"ben", "bea"} {
		code, text := p.ask(i, who, "GET", "/v1/approvals/"+c.Approval.ID, "")
		var q struct{ Digest string }
		if err := json.Unmarshal([]byte(text), &q); code != 200 || err != nil {
			p.t.Fatalf("%d %s", code, text)
		}
		tag := p.tag(i, who, c.Approval.ID)
		wg.Go(func() {
			code, text := p.ask(i, who, "POST", "/v1/approvals/"+c.Approval.ID+"/decisions",
				fmt.Sprintf(`{"digest":%q,"answer":%q}`, q.Digest, []string{"approve", "deny"}[i]), "If-Match", tag)
			won[i].Store(code == 201)
			if code != 201 && code != 409 && code != 412 {
				p.t.Errorf("decide: %d %s", code, text)
			}
		})
	}
	wg.Wait()
	if won[0].Load() == won[1].Load() {
		p.t.Fatalf("two deciders: %v and %v", won[0].Load(), won[1].Load())
	}
	return won[0].Load()
}

func (p *twoServers) tag(server int, who, id string) string {
	req, err := http.NewRequest("GET", p.servers[server].url+"/v1/approvals/"+id, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.tokens[who])
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	res.Body.Close()
	return res.Header.Get("ETag")
}
