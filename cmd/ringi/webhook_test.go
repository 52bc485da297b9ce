package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	official "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/webhook"
)

// hookReceiver takes webhooks on loopback, as somebody who uses the official
// library does.
type hookReceiver struct {
	*httptest.Server
	secret string
	answer func(n int) int // status

	mu   sync.Mutex
	ids  map[string]string // id to body
	list []string
	bad  []string
}

func newHookReceiver(t *testing.T, answer func(n int) int) *hookReceiver {
	t.Helper()
	r := &hookReceiver{secret: webhook.NewSecret(), ids: map[string]string{}, answer: answer}
	wh, err := official.NewWebhook(r.secret)
	if err != nil {
		t.Fatal(err)
	}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		id := q.Header.Get("webhook-id")
		err := wh.Verify(body, q.Header)
		r.mu.Lock()
		if before, known := r.ids[id]; err != nil || known && before != string(body) {
			r.bad = append(r.bad, fmt.Sprint(id, " ", err))
		}
		r.ids[id] = string(body)
		r.list = append(r.list, id)
		n := len(r.list)
		r.mu.Unlock()
		w.WriteHeader(r.answer(n))
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *hookReceiver) came() (list []string, bodies string, bad []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.ids {
		bodies += b + "\n"
	}
	return slices.Clone(r.list), bodies, r.bad
}

// hookMachine is a machine with a payer, whose texts are marked, and a receiver.
func hookMachine(t *testing.T, url string) *machine {
	t.Helper()
	p := newMachine(t)
	p.vars["HOOK_SECRET"] = ""
	var talks strings.Builder
	for i := range 500 {
		fmt.Fprintf(&talks, `{"id":"t-%d","messages":[{"role":"user","content":"pay"},{"role":"assistant","tool_calls":[{"id":"MARK-CALL","name":"pay","arguments":"{\"card\":\"MARK-INPUT\"}"}]},`+
			`{"role":"tool","tool_call_id":"MARK-CALL","content":"MARK-RESULT"},{"role":"assistant","content":"MARK-TEXT"}]}`+"\n", i)
	}
	p.write("config/ringi/talks.jsonl", talks.String())
	p.write("config/ringi/tools.json", `[{"name":"pay","description":"MARK-DESCRIPTION","effect":"non_idempotent_write","data_class":"public_content",
		"input_schema":{"type":"object","properties":{"card":{"type":"string"}},"additionalProperties":false}}]`)
	p.write("config/ringi/ringi.yaml", "log: {level: debug}\noutbound: {allow: [127.0.0.1]}\n"+
		"webhooks:\n  - {name: audit, url: \""+url+"/MARK-ADDRESS?key=MARK-KEY\", secret_env: HOOK_SECRET}\n"+
		"agents:\n  - name: payer\n    system: MARK-SYSTEM\n    zone: local\n    model: {kind: scripted, script: talks.jsonl}\n    tools: {file: tools.json}\n")
	return p
}

// The server is killed while a message is on its way, after it arrived and before
// that is recorded, again and again; runs go on in another process meanwhile.
// Every message of every run arrives, each under one id with one body; and no
// argument, text, address or secret is in a body or in the log.
func TestWebhooksOfAKilledServer(t *testing.T) {
	kills := 3
	if testing.Short() {
		kills = 1
	}
	var server *serving
	var mu sync.Mutex
	killed := make(chan struct{}, 100)
	r := newHookReceiver(t, func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		if kills > 0 && n%7 == 0 {
			kills--
			server.cmd.Process.Kill()
			killed <- struct{}{}
		}
		return http.StatusOK
	})
	p := hookMachine(t, r.URL)
	p.vars["HOOK_SECRET"] = r.secret
	log := ""
	start := func() {
		mu.Lock()
		defer mu.Unlock()
		server = p.serve()
	}
	start()
	c, err := p.read()
	if err != nil {
		t.Fatal(err)
	}
	c.Webhooks = nil
	other, err := p.env().openServer(t.Context(), c) // has the agent, and no worker and no webhooks
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	want := map[string]bool{}
	pay := func() {
		run := decideMarked(t, other.agents[0], fmt.Sprintf("t-%d", len(want)/5))
		for _, what := range []string{"requested", "waiting", "decided", "resumed", "finished"} {
			want[strings.TrimPrefix(run, "run_")+"_"+what] = true
		}
	}
	for mayDie := kills; mayDie > 0; mayDie-- {
	alive:
		for range 100 {
			pay()
			select {
			case <-killed:
				break alive
			case <-time.After(50 * time.Millisecond):
			}
		}
		server.cmd.Wait()
		log += server.err.String()
		pay() // while no server runs
		start()
	}
	pay()
	missing := func() []string {
		list, _, _ := r.came()
		left := map[string]bool{}
		for id := range want {
			left[id] = true
		}
		for _, id := range list { // msg_RUN_SEQ_WHAT
			parts := strings.Split(id, "_")
			delete(left, parts[1]+"_"+parts[len(parts)-1])
		}
		var out []string
		for id := range left {
			out = append(out, id)
		}
		return out
	}
	// A kill that falls into a call leaves an unknown outcome, rarely: somebody
	// says what became of it, and its run has more to tell than others.
	longer := map[string]bool{}
	for begun := time.Now(); len(missing()) > 0 && time.Since(begun) < 90*time.Second; {
		time.Sleep(50 * time.Millisecond)
		page, err := other.agents[0].engine.Requests(t.Context(), ringi.RequestQuery{Kind: ringi.KindOutcome})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range page.Requests {
			longer[strings.TrimPrefix(q.RunID, "run_")] = true
			if _, err := other.agents[0].engine.Decide(t.Context(), ringi.Decision{RequestID: q.ID, Digest: q.Digest, Answer: ringi.DidNotRun, By: ringi.Principal{ID: "MARK-ANA", Kind: ringi.Person, Auth: "test"}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	server.stop(syscall.SIGTERM)
	log += server.err.String()
	list, bodies, bad := r.came()
	if left := missing(); len(left) > 0 || len(bad) > 0 {
		t.Errorf("never came: %q; wrong: %q", left, bad)
	}
	different := slices.Compact(slices.Sorted(slices.Values(list)))
	once := slices.DeleteFunc(slices.Clone(different), func(id string) bool { return longer[strings.Split(id, "_")[1]] })
	if len(once) != len(want)-5*len(longer) {
		t.Errorf("%d different messages came of runs without an unknown outcome, want %d", len(once), len(want)-5*len(longer))
	}
	t.Logf("%d runs, %d messages, %d of them again after a kill", len(want)/5, len(different), len(list)-len(different))
	key := strings.TrimPrefix(r.secret, "whsec_")
	for _, sink := range []struct{ name, text string }{{"bodies", bodies}, {"log", log}} {
		if strings.Contains(sink.text, "MARK-") || strings.Contains(sink.text, key[:20]) || sink.text == "" {
			t.Errorf("S-34: the %s hold what must not leave:\n%.2000s", sink.name, sink.text)
		}
	}
	if !strings.Contains(log, "webhook delivered") || !strings.Contains(log, "endpoint=audit") {
		t.Errorf("the log says nothing of webhooks: %.2000s", log)
	}
}

// decideMarked starts a run and approves its payment, both with marked texts.
func decideMarked(t *testing.T, a *agent, thread string) string {
	t.Helper()
	res, err := a.engine.Run(t.Context(), ringi.RunStart{Thread: thread, Messages: []ringi.Message{ringi.User("pay")}, Runtime: "MARK-RUNTIME"})
	if err != nil || len(res.Pending) != 1 {
		t.Fatalf("run: %v, %+v", err, res)
	}
	d := res.Pending[0].Approve(ringi.Principal{ID: "MARK-ANA", Name: "MARK-NAME", Kind: ringi.Person, Auth: "test"})
	d.Reason, d.Note = "MARK-REASON", "MARK-NOTE"
	if _, err := a.engine.Decide(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return res.RunID
}

// A receiver that does not answer changes nothing for the server: it is ready,
// decides, and stops at once.
func TestDeadReceiverDoesNotConcernTheServer(t *testing.T) {
	p := hookMachine(t, "http://127.0.0.1:1")
	p.vars["HOOK_SECRET"] = webhook.NewSecret()
	s := p.serve()
	c, err := p.read()
	if err != nil {
		t.Fatal(err)
	}
	c.Webhooks = nil
	other, err := p.env().openServer(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	run := decideMarked(t, other.agents[0], "t-0")
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		row, err := other.store.Row(t.Context(), "default", run)
		if err != nil {
			t.Fatal(err)
		}
		if row.Status == ringi.Completed {
			break
		}
		if time.Since(begun) > 90*time.Second {
			t.Fatalf("the run is %s", row.Status)
		}
	}
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		all := p.webhooks(t, exitDone, "list", "--json")
		var list struct{ Webhooks []webhook.Status }
		if err := json.Unmarshal([]byte(all), &list); err != nil {
			t.Fatalf("%s: %v", all, err)
		}
		if w := list.Webhooks[0]; w.Waiting == 5 && strings.Contains(w.Error, "refused") {
			break
		}
		if time.Since(begun) > 90*time.Second {
			t.Fatalf("%s", all)
		}
	}
	if code, body := get(t, s.url+"/readyz"); code != 200 {
		t.Errorf("readyz: %d %s", code, body)
	}
	begun := time.Now()
	s.stop(syscall.SIGTERM)
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it stopped after %v", took)
	}
	info, err := os.Stat(filepath.Join(p.dir, "state/ringi", webhookFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("S-44: %v, %v", info.Mode(), err)
	}
}

// webhooks runs ringi webhooks on the machine.
func (p *machine) webhooks(t *testing.T, want int, args ...string) string {
	t.Helper()
	e := p.env()
	var out, errs bytes.Buffer
	e.out, e.err = &out, &errs
	if got := execute(t.Context(), e, append([]string{"webhooks"}, args...)); got != want {
		t.Fatalf("ringi webhooks %q exits with %d, want %d: %s%s", args, got, want, out.String(), errs.String())
	}
	return out.String() + errs.String()
}

func TestWebhooksCommand(t *testing.T) {
	var status atomic.Int64
	status.Store(410)
	r := newHookReceiver(t, func(int) int { return int(status.Load()) })
	p := hookMachine(t, r.URL)
	if out := p.webhooks(t, exitFailed, "list"); !strings.Contains(out, "no server has been started") {
		t.Errorf("without a server: %s", out)
	}
	c, err := p.read()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.env().openServer(t.Context(), c); err == nil || !strings.Contains(err.Error(), "HOOK_SECRET is not set") {
		t.Errorf("without a secret: %v", err)
	}
	p.vars["HOOK_SECRET"] = r.secret
	s, err := p.env().openServer(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	p.vars["HOOK_SECRET"] = ""
	if out := p.webhooks(t, exitDone, "list"); !strings.Contains(out, "begins with the server") {
		t.Errorf("list, without the secret: %s", out)
	}
	p.webhooks(t, exitFailed, "test", "audit")
	p.vars["HOOK_SECRET"] = r.secret
	work := s.runHooks(t)
	decideMarked(t, s.agents[0], "t-0")
	work(func() bool { return strings.Contains(p.webhooks(t, exitDone, "list"), "disabled: it answered 410") })
	out := p.webhooks(t, exitDone, "dead", "audit")
	if !strings.Contains(out, "approval.requested") || strings.Contains(out, "MARK-") {
		t.Errorf("dead: %s", out)
	}
	var dead struct{ Dead []webhook.Letter }
	if err := json.Unmarshal([]byte(p.webhooks(t, exitDone, "dead", "--json")), &dead); err != nil || len(dead.Dead) < 2 {
		t.Errorf("dead as JSON: %+v, %v", dead, err)
	}
	p.webhooks(t, exitFailed, "test", "audit")
	status.Store(200)
	if out := p.webhooks(t, exitDone, "test", "audit"); !strings.Contains(out, "status 200") {
		t.Errorf("test: %s", out)
	}
	if out := p.webhooks(t, exitDone, "retry", "audit"); !strings.Contains(out, fmt.Sprint("send ", len(dead.Dead), " again")) {
		t.Errorf("retry: %s", out)
	}
	work(func() bool { return !strings.Contains(p.webhooks(t, exitDone, "dead"), "msg_") })
	work(func() bool {
		_, bodies, _ := r.came()
		return strings.Count(bodies, "approval.requested") == 1 && strings.Contains(p.webhooks(t, exitDone, "list"), "good")
	})
	notFound, _ := exitCode(ringi.ErrNotFound)
	for _, wrong := range [][]string{{"retry", "nobody"}, {"retry", "audit", "msg_none"}, {"test", "nobody"}} {
		p.webhooks(t, notFound, wrong...)
	}
	if _, _, bad := r.came(); len(bad) > 0 {
		t.Errorf("%q", bad)
	}
}

// runHooks runs a server's webhooks until the test ends, and returns what waits.
func (s *server) runHooks(t *testing.T) func(done func() bool) {
	t.Helper()
	var wg sync.WaitGroup
	ctx := t.Context()
	wg.Go(func() { s.hooks.run(ctx, s) })
	t.Cleanup(wg.Wait)
	time.Sleep(200 * time.Millisecond) // a new receiver begins with what happens from now on
	return func(done func() bool) {
		t.Helper()
		for begun := time.Now(); !done(); time.Sleep(50 * time.Millisecond) {
			if time.Since(begun) > 90*time.Second {
				t.Fatal("it does not come to that")
			}
		}
	}
}

func TestWebhooksThatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		"webhooks: [{url: https://a.example/, secret_env: A}]":                                                             "name",
		"webhooks: [{name: a, secret_env: A}]":                                                                             "url",
		"webhooks: [{name: a, url: \"ftp://a.example\", secret_env: A}]":                                                   "url",
		"webhooks: [{name: a, url: https://a.example/}]":                                                                   "say one of them",
		"webhooks: [{name: a, url: https://a.example/, secret_env: A, secret_file: b}]":                                    "say one of them",
		"webhooks: [{name: a, url: https://a.example/, secret_env: whsec_MfKQ}]":                                           "name of a variable",
		"webhooks: [{name: a, url: https://a.example/, secret_env: A, types: []}]":                                         "empty list",
		"webhooks: [{name: a, url: https://a.example/, secret_env: A, types: [run.done]}]":                                 "unknown type",
		"webhooks: [{name: a, url: https://a.example/, secret_env: A}, {name: a, url: https://b.example/, secret_env: A}]": "another receiver",
		"webhooks: [{name: a, url: https://a.example/, secret: A}]":                                                        "unknown key",
		"webhooks: [" + strings.Repeat("{name: a, url: https://a.example/, secret_env: A}, ", 21) + "]":                    "at most 20",
		"outbound: {allow: [0.0.0.0/0]}":                                                                                   "everything",
		"outbound: {allow: [\"https://x\"]}":                                                                               "no network, address or host name",
		"outbound: {proxy: \"socks5://p:1\"}":                                                                              "proxy",
	} {
		p := newMachine(t)
		p.write("config/ringi/ringi.yaml", text+"\n"+oneAgent)
		if _, err := p.read(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.90s: %v", text, err)
		}
	}
	p := newMachine(t)
	p.write("config/ringi/ringi.yaml", "webhooks: [{name: a, url: https://a.example/, secret_file: hook.secret}]\n"+oneAgent)
	c, err := p.read()
	if err != nil {
		t.Fatal(err)
	}
	path := p.write("config/ringi/hook.secret", webhook.NewSecret()+"\n"+webhook.NewSecret()+"\n")
	if list, err := p.env().endpoints(c); err != nil || len(list) != 1 || len(list[0].Secrets) != 2 {
		t.Errorf("from a file: %+v, %v", list, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := p.env().endpoints(c); err == nil || !strings.Contains(err.Error(), "chmod") {
		t.Errorf("a secret that others may read: %v", err)
	}
}
