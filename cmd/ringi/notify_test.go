//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"

	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/outbound"
	"github.com/ringi-dev/ringi/notify"
)

// ntfyServer is an ntfy that keeps what it is sent, by where it leads.
type ntfyServer struct {
	*httptest.Server
	mu   sync.Mutex
	got  map[string]int
	last string
}

func newNtfyServer(t *testing.T) *ntfyServer {
	n := &ntfyServer{got: map[string]int{}}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m struct{ Topic, Click string }
		n.mu.Lock()
		defer n.mu.Unlock()
		if json.Unmarshal(body, &m) != nil || m.Topic != "topic-of-the-owner" || r.Header.Get("Authorization") != "Bearer tk_test" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		n.got[m.Click[strings.LastIndex(m.Click, "/")+1:]]++
		n.last = string(body)
	}))
	t.Cleanup(n.Close)
	return n
}

func (n *ntfyServer) counts() (whole, most int, last string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.got {
		most = max(most, c)
	}
	return len(n.got), most, n.last
}

// A server that is killed while it tells people loses no notice, and sends none
// more than twice; its command tries the way alone.
func TestServeTellsPeople(t *testing.T) {
	p, ntfy := newMachine(t), newNtfyServer(t)
	p.write("config/ringi/ntfy-token", "tk_test\n")
	p.write("config/ringi/ringi.yaml", "notify: {ntfy: {url: \""+ntfy.URL+"\", token_file: ntfy-token}}\n"+oneAgent)
	s := p.serve()
	token := p.agentToken()
	p.setTopic()
	started := 0
	begin := func(n int) {
		t.Helper()
		for range n {
			req, err := http.NewRequest("POST", s.url+"/v1/runs", strings.NewReader(`{"agent":"shop","text":"refund"}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+token)
			req.Header.Set("Content-Type", "application/json")
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != http.StatusCreated {
				t.Fatalf("%d %s", res.StatusCode, body)
			}
			started++
		}
	}
	for i := range 3 {
		begin(4)
		time.Sleep(time.Duration(i*2100) * time.Millisecond) // into looking, gathering, sending
		s.cmd.Process.Signal(syscall.SIGKILL)
		s.cmd.Wait()
		s = p.serve()
	}
	deadline := time.Now().Add(90 * time.Second)
	for n, _, _ := ntfy.counts(); n < started && time.Now().Before(deadline); n, _, _ = ntfy.counts() {
		time.Sleep(50 * time.Millisecond)
	}
	n, most, last := ntfy.counts()
	if n != started || most > 2 || strings.Contains(last, "refund") || !strings.Contains(last, "A request needs your decision") {
		t.Errorf("of %d runs %d were told of, one of them %d times; the last: %s\n%s", started, n, most, last, s.err.String())
	}
	s.stop(syscall.SIGTERM)

	if out := p.line(exitDone, "notify", "test", "--to", "owner"); !strings.Contains(out, "ntfy") || !strings.Contains(out, "sent") {
		t.Errorf("the test says %s", out)
	}
	ntfy.Close()
	if out := p.line(exitFailed, "notify", "test", "--to", "owner"); !strings.Contains(out, "1 of 1 addresses of local:owner failed") || strings.Contains(out, "topic-of-the-owner") {
		t.Errorf("the test says %s", out)
	}
	p.line(exitUsage, "notify", "test")
	p.line(exitFailed, "notify", "test", "--to", "nobody")
	info, err := os.Stat(filepath.Join(p.dir, "config/ringi", pushKeyName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the push key: %v %v", info, err)
	}
	if info, err = os.Stat(filepath.Join(p.dir, "state/ringi", notifyFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the book: %v %v", info, err)
	}
}

// line runs one command of the machine.
func (p *machine) line(want int, args ...string) string {
	p.t.Helper()
	e := p.env()
	var out, errs bytes.Buffer
	e.out, e.err = &out, &errs
	if got := execute(p.t.Context(), e, args); got != want {
		p.t.Fatalf("ringi %s exits with %d, want %d: %s%s", strings.Join(args, " "), got, want, out.String(), errs.String())
	}
	return out.String() + errs.String()
}

func (p *machine) agentToken() string {
	p.t.Helper()
	var made struct{ Token string }
	text := p.line(exitDone, "token", "create", "loop", "--agent", "shop", "--scope", "run", "--scope", "read", "--json")
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		p.t.Fatal(text, err)
	}
	return made.Token
}

// setTopic does what the owner does on his page.
func (p *machine) setTopic() {
	p.t.Helper()
	c, err := p.read()
	if err != nil {
		p.t.Fatal(err)
	}
	n, err := p.env().openNotices(p.t.Context(), c, filepath.Join(p.dir, "state/ringi"), func(what string, err error) { p.t.Error(what, err) })
	if err != nil {
		p.t.Fatal(err)
	}
	defer n.close()
	if err := n.book.SetSettings(p.t.Context(), access.LocalID(owner), notify.Settings{Topic: "topic-of-the-owner"}); err != nil {
		p.t.Fatal(err)
	}
}

func TestNotifyConfig(t *testing.T) {
	p := newMachine(t)
	for text, want := range map[string]string{
		"notify: {smtp: {tls: tls}}":                                                      "of which server",
		"notify: {smtp: {addr: \"m.example.org:587\"}}":                                   "a mail has a sender",
		"notify: {smtp: {addr: \"m.example.org:587\", from: \"r@example.org\", user: u}}": "belong together",
		"notify: {ntfy: {token_file: x}}":                                                 "of which server",
		"notify: {push: {use: maybe}}":                                                    "say on or off",
		"notify: {push: {contact: \"ops@example.org\"}}":                                  "neither a mailto: nor an https:",
		"notify: {push: {contact: \"mailto:a@b.c?subject=x\"}}":                           "neither a mailto: nor an https:",
		"notify: {smtp: {password: x}}":                                                   "unknown key",
	} {
		if err := p.open(text + "\n" + oneAgent); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"    remind: 0%\n":                                  "no share",
		"    remind: 100%\n":                                "not a share",
		"    remind: 50%\n    expiry: never\n":              "The expiry is never",
		"    remind: 5h\n    expiry: 4h\n":                  "not before the expiry",
		"    then: leads\n":                                 "Set remind",
		"    remind: soon\n":                                "not a time span",
		"    remind: 50%\n    then: leads\n":                "",
		"    remind: 90m\n    expiry: never\n    then: x\n": "",
	} {
		err := p.open(oneAgent + text)
		if want == "no share" {
			want = "not a share"
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	// A password that others may read is refused.
	path := p.write("config/ringi/smtp", "secret\n")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	text := "notify: {smtp: {addr: \"127.0.0.1:25\", from: \"r@example.org\", user: u, password_file: smtp}}\n" + oneAgent
	if err := p.open(text); err == nil || !strings.Contains(err.Error(), "chmod go=") || strings.Contains(err.Error(), "secret") {
		t.Errorf("a password that others read: %v", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.open(text); err != nil {
		t.Error(err)
	}
}

// Where a push service is, a browser says: nothing within is reached (S-35).
func TestS35_PushReachesPublicAddressesAlone(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	defer server.Close()
	t.Setenv("HTTPS_PROXY", server.URL)
	client, err := outbound.New((&config{}).outboundOptions())
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{server.URL, "https://127.0.0.1/", "https://[::1]/", "https://localhost:443/"} {
		if res, err := client.Get(at); err == nil {
			res.Body.Close()
			t.Errorf("%s was reached", at)
		} else if !errors.Is(err, outbound.ErrRefused) {
			t.Errorf("%s: %v", at, err)
		}
	}
}
