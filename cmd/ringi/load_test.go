//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
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

// Many runs are suspended at once, and fifty approvers decide them over HTTP
// while the server goes on with what they approved: each is decided once, runs
// once, and none is lost. RINGI_LOAD=10000 makes it as many; what it logs are
// the server's resident sizes and the times of the list.
func TestServeUnderLoad(t *testing.T) {
	runs, approvers := 100, 50
	if n, err := strconv.Atoi(os.Getenv("RINGI_LOAD")); err == nil {
		runs = n
	}
	if testing.Short() {
		runs, approvers = 30, 5
	}
	p := newPayer(t, runs)
	s := p.serve()
	idle := s.resident()
	s.stop(syscall.SIGTERM)
	other := p.other()
	p.suspend(other, runs)
	people := p.approvers(other, approvers)

	s = p.serve()
	defer s.stop(syscall.SIGTERM)
	page := s.list(people[0], "")
	t.Logf("resident with 0 requests %d MB, with %d pending %d MB; ready after %s", idle, runs, s.resident(), s.took.Round(time.Millisecond))
	if len(page.Requests) == 0 {
		t.Fatal("nothing is pending")
	}
	times := make([]time.Duration, 50)
	for i := range times {
		begun := time.Now()
		s.list(people[i%len(people)], "")
		times[i] = time.Since(begun)
	}
	slices.Sort(times)
	t.Logf("the first page of the list: median %s, 49th of 50 %s", times[25].Round(time.Microsecond), times[48].Round(time.Microsecond))
	if os.Getenv("RINGI_LOAD_DECIDE") == "no" { // only the sizes
		return
	}

	begun := time.Now()
	told := s.decideAll(people)
	decided := time.Since(begun)
	approved := p.settled(other, runs, told)
	t.Logf("%d runs, %d approvers: decided after %s, settled after %s, %d approved, resident %d MB",
		runs, approvers, decided.Round(time.Millisecond), time.Since(begun).Round(time.Millisecond), approved, s.resident())
}

// payer is a machine whose only agent pays, once a conversation.
type payer struct{ *machine }

func newPayer(t *testing.T, talks int) *payer {
	p := newMachine(t)
	var text strings.Builder
	for i := range talks {
		fmt.Fprintf(&text, `{"id":"t-%d","messages":[{"role":"user","content":"pay"},{"role":"assistant","tool_calls":[{"id":"c","name":"pay","arguments":"{}"}]},`+
			`{"role":"tool","tool_call_id":"c","content":"paid"},{"role":"assistant","content":"done"}]}`+"\n", i)
	}
	p.write("config/ringi/talks.jsonl", text.String())
	p.write("config/ringi/tools.json", `[{"name":"pay","effect":"non_idempotent_write","data_class":"public_content"}]`)
	// The approvers sit behind a proxy, so that each has an address of his own.
	p.write("config/ringi/ringi.yaml", "trusted_proxies: [127.0.0.1]\nagents:\n  - name: payer\n    zone: local\n    model: {kind: scripted, script: talks.jsonl}\n    tools: {file: tools.json}\n")
	return &payer{p}
}

// other opens the server's data without its worker, as another process would.
func (p *payer) other() *server {
	p.t.Helper()
	c, err := p.read()
	if err != nil {
		p.t.Fatal(err)
	}
	other, err := p.env().openServer(p.t.Context(), c)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { other.close() })
	return other
}

// suspend starts so many runs, which all wait for their approval.
func (p *payer) suspend(other *server, runs int) {
	p.t.Helper()
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			for i := w; i < runs; i += 64 {
				res, err := other.agents[0].engine.Run(p.t.Context(), ringi.RunStart{Thread: fmt.Sprint("t-", i), Messages: []ringi.Message{ringi.User("pay")}})
				if err != nil || len(res.Pending) != 1 {
					p.t.Errorf("run: %v, %+v", err, res)
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

// approver is a person with a token, at an address.
type approver struct{ id, token, address string }

func (p *payer) approvers(other *server, n int) []approver {
	p.t.Helper()
	all := make([]approver, n)
	for i := range all {
		u := access.User{ID: access.LocalID(fmt.Sprint("person", i)), Name: fmt.Sprint("Person ", i), Roles: []access.Role{access.RoleApprover}}
		if err := other.people.AddUser(p.t.Context(), operator(), u); err != nil {
			p.t.Fatal(err)
		}
		_, secret, err := other.people.MakeToken(p.t.Context(), operator(), access.NewToken{Kind: access.PersonToken, Name: "load", Owner: u.ID,
			Scopes: []access.Scope{access.ScopeRead, access.ScopeDecide}})
		if err != nil {
			p.t.Fatal(err)
		}
		all[i] = approver{u.ID, secret, fmt.Sprintf("10.1.%d.%d", i/250, i%250+1)}
	}
	return all
}

type approvalPage struct {
	Requests []struct{ ID, Digest, State string }
	Next     string
}

func (s *serving) list(a approver, cursor string) approvalPage {
	s.t.Helper()
	status, body := s.do(a, "GET", "/v1/approvals?state=pending&limit=100&cursor="+cursor, "", "")
	var page approvalPage
	if err := json.Unmarshal(body, &page); status != 200 || err != nil {
		s.t.Fatalf("list: %d %v %s", status, err, body)
	}
	return page
}

// do sends a request of a person until the server has time for it.
func (s *serving) do(a approver, method, path, body, tag string) (int, []byte) {
	for {
		req, err := http.NewRequestWithContext(context.Background(), method, s.url+path, strings.NewReader(body))
		if err != nil {
			s.t.Error(err)
			return 0, nil
		}
		req.Header.Set("Authorization", "Bearer "+a.token)
		req.Header.Set("X-Forwarded-For", a.address)
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("If-Match", tag)
			req.Header.Set("Idempotency-Key", fmt.Sprintf("%s-%d", a.id, time.Now().UnixNano()))
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			s.t.Error(err)
			return 0, nil
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusTooManyRequests {
			return res.StatusCode, text
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// decideAll has each pending request answered by two persons at once. It
// returns who was told that his answer is the one, and which it is.
func (s *serving) decideAll(people []approver) map[string]string {
	var mu sync.Mutex
	told, statuses := map[string]string{}, map[int]int{}
	for {
		var all approvalPage
		for cursor := ""; len(all.Requests) < 2000; {
			page := s.list(people[0], cursor)
			all.Requests = append(all.Requests, page.Requests...)
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if len(all.Requests) == 0 {
			break
		}
		var wg sync.WaitGroup
		for i, a := range people {
			wg.Go(func() {
				for j, q := range all.Requests {
					if j%len(people) != i && (j+1)%len(people) != i {
						continue
					}
					answer := []string{"approve", "deny"}[i%2]
					status, body := s.do(a, "POST", "/v1/approvals/"+q.ID+"/decisions",
						fmt.Sprintf(`{"answer":%q,"digest":%q}`, answer, q.Digest), fmt.Sprintf(`"%s.%s"`, q.Digest, q.State))
					mu.Lock()
					statuses[status]++
					if status == http.StatusCreated {
						if first := told[q.ID]; first != "" {
							s.t.Errorf("%s was decided twice: %s, and %s %s", q.ID, first, a.id, answer)
						}
						told[q.ID] = a.id + " " + answer
					} else if status != http.StatusConflict && status != http.StatusPreconditionFailed {
						s.t.Errorf("%s: %d %s", q.ID, status, body)
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	}
	s.t.Logf("answers by status: %v", statuses)
	return told
}

// settled waits until each run has ended, and holds its log against what the
// approvers were told. It returns how many were approved.
func (p *payer) settled(other *server, runs int, told map[string]string) int {
	p.t.Helper()
	if len(told) != runs {
		p.t.Errorf("%d of %d requests are decided", len(told), runs)
	}
	approved := 0
	for i := range runs {
		rows, err := other.engine.Runs(p.t.Context(), ringi.RunQuery{Thread: fmt.Sprint("t-", i)})
		if err != nil || len(rows) != 1 {
			p.t.Fatalf("runs of t-%d: %v, %d", i, err, len(rows))
		}
		run := rows[0].ID
		for begun := time.Now(); rows[0].Status != ringi.Completed; time.Sleep(10 * time.Millisecond) {
			if rows[0], err = other.engine.Row(p.t.Context(), run); err != nil || time.Since(begun) > time.Minute {
				p.t.Fatalf("run %s is %s: %v", run, rows[0].Status, err)
			}
		}
		events, err := other.engine.Events(p.t.Context(), run, 0)
		if err != nil {
			p.t.Fatal(err)
		}
		starts, decisions := 0, ""
		for _, ev := range events {
			switch b := ev.Body.(type) {
			case *ringi.ToolStarted:
				starts++
			case *ringi.ApprovalDecided:
				decisions += b.By.ID + " " + string(b.Answer)
				if told[b.Request] != b.By.ID+" "+string(b.Answer) {
					p.t.Errorf("the log has %s of %s, told was %q", decisions, b.Request, told[b.Request])
				}
			}
		}
		want := 0
		if strings.HasSuffix(decisions, " approve") {
			want = 1
		}
		approved += want
		if starts != want {
			p.t.Errorf("run %s: decided %s, started %d times", run, decisions, starts)
		}
	}
	return approved
}

// resident is how much of the machine's memory the server holds, in megabytes,
// once it has had a moment of rest.
func (s *serving) resident() int {
	s.t.Helper()
	time.Sleep(500 * time.Millisecond)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if f := strings.Fields(string(line)); len(f) == 3 && f[0] == "VmRSS:" {
			kb, _ := strconv.Atoi(f[1])
			return kb / 1024
		}
	}
	return 0
}
