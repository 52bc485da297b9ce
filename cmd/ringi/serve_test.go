//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// serving is a process of ringi serve.
type serving struct {
	t    testing.TB
	cmd  *exec.Cmd
	url  string
	err  bytes.Buffer
	took time.Duration // until it said where it listens
}

// serve starts the server of the machine's configuration, as a process.
func (p *machine) serve(args ...string) *serving {
	p.t.Helper()
	s := &serving{t: p.t, cmd: asProcess(append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)}
	for k, v := range p.vars {
		s.cmd.Env = append(s.cmd.Env, k+"="+v)
	}
	s.cmd.Stderr = &s.err
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	begun := time.Now()
	if err := s.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { s.cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	s.took = time.Since(begun)
	var ok bool
	if s.url, ok = strings.CutPrefix(strings.TrimSpace(line), "Ringi serves at "); !ok {
		s.cmd.Wait()
		p.t.Fatalf("it says %q, %v: %s", line, err, s.err.String())
	}
	return s
}

// stop asks the process to stop, and waits until it has.
func (s *serving) stop(sig os.Signal) {
	s.t.Helper()
	s.cmd.Process.Signal(sig)
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("it ended with %v: %s", err, s.err.String())
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(body))
}

// The server says where it is, is ready, and stops when it is told to, leaving
// one file of its store.
func TestServeStartsAndStops(t *testing.T) {
	p := newMachine(t)
	p.write("config/ringi/ringi.yaml", oneAgent)
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		s := p.serve()
		for path, want := range map[string]string{"/healthz": "200 ok", "/readyz": "200 ready", "/nothing": "404"} {
			if code, body := get(t, s.url+path); !strings.HasPrefix(fmt.Sprint(code, " ", body), want) {
				t.Errorf("%s: %d %s, want %s", path, code, body, want)
			}
		}
		s.stop(sig)
		t.Logf("up after %s", s.took)
		entries, err := os.ReadDir(filepath.Join(p.dir, "state/ringi"))
		if err != nil || len(entries) != 3 || entries[0].Name() != accessFile || entries[1].Name() != notifyFile || entries[2].Name() != storeFile {
			t.Errorf("after %v it leaves %v, %v", sig, entries, err)
		}
	}
}

// A service manager is told when the server is up and when it stops.
func TestServeTellsTheServiceManager(t *testing.T) {
	p := newMachine(t)
	p.write("config/ringi/ringi.yaml", oneAgent)
	dir, err := os.MkdirTemp("", "ringi") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p.vars["NOTIFY_SOCKET"] = filepath.Join(dir, "notify")
	conn, err := net.ListenPacket("unixgram", p.vars["NOTIFY_SOCKET"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	told := func() string {
		buf := make([]byte, 100)
		conn.SetReadDeadline(time.Now().Add(90 * time.Second))
		n, _, err := conn.ReadFrom(buf)
		if err != nil {
			t.Error(err)
		}
		return string(buf[:n])
	}
	s := p.serve()
	if got := told(); got != "READY=1" {
		t.Errorf("told %q", got)
	}
	s.stop(syscall.SIGTERM)
	if got := told(); got != "STOPPING=1" {
		t.Errorf("told %q", got)
	}
}

// With a certificate the server speaks TLS, and its key is nobody else's.
func TestServeTLS(t *testing.T) {
	p := newMachine(t)
	cert, key := selfSigned(t)
	certPath, keyPath := p.write("cert.pem", cert), p.write("key.pem", key)
	p.write("config/ringi/ringi.yaml", oneAgent)
	s := p.serve("--tls-cert-file", certPath, "--tls-key-file", keyPath)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(cert))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	res, err := client.Get(s.url + "/readyz")
	if err != nil || res.StatusCode != 200 || !strings.HasPrefix(s.url, "https://") {
		t.Errorf("%s: %v", s.url, err)
	} else {
		res.Body.Close()
	}
	s.stop(syscall.SIGTERM)
	os.Chmod(keyPath, 0o644)
	c, err := p.read("--tls-cert-file", certPath, "--tls-key-file", keyPath, "--listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.env().serve(t.Context(), c); err == nil || !strings.Contains(err.Error(), "chmod go=") {
		t.Errorf("with a key that others read: %v", err)
	}
}

// selfSigned makes a certificate of 127.0.0.1 and its key, both as PEM.
func selfSigned(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(cryptorand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs}))
}

// A port that is taken is an error, and leaves the store as it was.
func TestServePortTaken(t *testing.T) {
	p := newMachine(t)
	p.write("config/ringi/ringi.yaml", oneAgent)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := p.read("--listen", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.env().serve(t.Context(), c); err == nil || !strings.Contains(err.Error(), "listen") {
		t.Errorf("serve gives %v", err)
	}
}

// A server that cannot write its store is alive, and not ready.
func TestReadyNeedsStoreAndWorker(t *testing.T) {
	p := newMachine(t)
	p.write("config/ringi/ringi.yaml", oneAgent)
	s := p.openedServer()
	defer s.close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	broken := &brokenStore{Store: s.store}
	s.store = broken
	ctx, stop := context.WithCancel(t.Context())
	url, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- s.work(ctx, l, func(u string) { url <- u }) }()
	at := <-url
	ready := func(want string) {
		t.Helper()
		for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			code, body := get(t, at+"/readyz")
			if fmt.Sprint(code, " ", body) == want {
				return
			}
			if time.Since(begun) > 90*time.Second {
				t.Fatalf("readyz: %d %s, want %s", code, body, want)
			}
		}
	}
	ready("200 ready")
	broken.write.Store(true)
	ready("503 not ready: store")
	if code, body := get(t, at+"/healthz"); code != 200 {
		t.Errorf("healthz: %d %s", code, body)
	}
	broken.write.Store(false)
	ready("200 ready")
	broken.read.Store(true)
	ready("503 not ready: worker")
	broken.read.Store(false)
	ready("200 ready")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// An agent of the configuration works as it says: who may use what, and what
// asks.
func TestAgentOfTheConfiguration(t *testing.T) {
	p := newMachine(t)
	p.write("config/ringi/prompt.md", "Be kind.")
	p.write("config/ringi/ringi.yaml", `
agents:
  - name: shop
    system_file: prompt.md
    zone: local
    model: {kind: demo}
    tools: {set: shop}
    require_approval: [look_up_order]
    deciders: {people: [ben]}
    expiry: never
    limits: {tool_calls: 7}
`)
	s := p.openedServer()
	defer s.close()
	a := s.agents[0]
	start := ringi.RunStart{Messages: []ringi.Message{ringi.User(customerText)}}
	res, err := a.engine.Run(t.Context(), start)
	if err != nil || len(res.Pending) != 1 || res.Pending[0].Call.Tool != "look_up_order" {
		t.Fatalf("a tool that is to ask does not: %+v, %v", res, err)
	}
	events, err := a.engine.Events(t.Context(), res.RunID, 0)
	if err != nil {
		t.Fatal(err)
	}
	if begun := events[0].Body.(*ringi.RunStarted); begun.Agent != "shop" || begun.System != "Be kind." {
		t.Errorf("begins with %+v", begun)
	}
	r := res.Pending[0]
	if !r.ExpiresAt.IsZero() || r.Signature == "" || len(r.Deciders.People) != 1 {
		t.Errorf("request %+v", r)
	}
	if _, err := a.engine.Decide(t.Context(), r.Approve(ringi.Principal{ID: "ana", Kind: ringi.Person, Auth: "test"})); !errors.Is(err, ringi.ErrNotPermitted) {
		t.Errorf("ana decides: %v", err)
	}
}

// What an agent is said to have and cannot have is an error at start.
func TestAgentsThatCannotBe(t *testing.T) {
	p := newMachine(t)
	p.write("config/ringi/tools.json", `[{"name":"peek","effect":"read_only","data_class":"secret_adjacent"}]`)
	p.write("config/ringi/undeclared.json", `[{"name":"peek"}]`)
	p.write("config/ringi/talk.jsonl", `{"id":"t","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]}`+"\n")
	scripted := "agents:\n  - name: a\n    zone: local\n    model: {kind: scripted, script: talk.jsonl}\n    tools: {file: tools.json}\n"
	for _, c := range []struct{ text, want string }{
		{"agents: []\n", "no agents"},
		{strings.Replace(oneAgent, "set: shop", "set: shed", 1), `tools.set: unknown value "shed"`},
		{strings.Replace(oneAgent, "set: shop", "set: shop, names: [refnd]", 1), `there is no tool "refnd"`},
		{oneAgent + "    require_approval: [refnd]\n", `unknown tool "refnd"`},
		{oneAgent + "    floor: {refnd: denied}\n", `unknown tool "refnd"`},
		{oneAgent + "    groups: [staff]\n", ""},
		{scripted, ""},
		{strings.Replace(scripted, "zone: local", "zone: external_eu", 1), "trust_zone"}, // B: listed and never offered
		{strings.Replace(scripted, "tools.json", "undeclared.json", 1), "effect"},        // S-01
		{strings.Replace(scripted, "talk.jsonl", "none.jsonl", 1), "none.jsonl"},
		{strings.Replace(oneAgent, "set: shop", "file: tools.json", 1), "model: the demo is that of tools.set"},
	} {
		err := p.open(c.text)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
	for _, name := range []string{"tools.json", "talk.jsonl"} {
		path := filepath.Join(p.dir, "config/ringi", name)
		os.Chmod(path, 0o666)
		if err := p.open(scripted); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
			t.Errorf("S-42: %s may be written by others: %v", name, err)
		}
		os.Chmod(path, 0o600)
	}
}

// A scripted agent says and does what was recorded, in the thread of that name.
func TestScriptedAgent(t *testing.T) {
	p := newMachine(t)
	files := shed()
	for _, f := range []*string{&files.transcripts, &files.tools} {
		text, err := os.ReadFile(*f)
		if err != nil {
			t.Fatal(err)
		}
		*f = p.write(filepath.Base(*f), string(text))
	}
	c := &config{Agents: []agentConfig{{Name: "shed", Zone: "local"}}}
	c.Agents[0].Model.Kind, c.Agents[0].Model.Script, c.Agents[0].Tools.File = modelScripted, files.transcripts, files.tools
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	s, err := p.env().openServer(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	scripts, _, err := readTranscripts(files.transcripts)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, sc := range scripts {
		for _, run := range sc.runs {
			start := ringi.RunStart{Thread: sc.thread, By: scriptStarter}
			for _, u := range run.users {
				start.Messages = append(start.Messages, ringi.User(u))
			}
			res, err := s.agents[0].engine.Run(t.Context(), start)
			for err == nil && len(res.Pending) > 0 {
				if _, err = s.agents[0].engine.Decide(t.Context(), res.Pending[0].Approve(scriptStarter)); err == nil {
					res, err = s.agents[0].engine.Resume(t.Context(), res.RunID)
				}
			}
			if err != nil {
				t.Fatalf("%s: %v", sc.thread, err)
			}
			for _, r := range res.Results {
				calls++
				if r.Outcome != ringi.OutcomeOK {
					t.Errorf("%s: %s gives %s: %s", sc.thread, r.Tool, r.Outcome, r.Error)
				}
			}
		}
	}
	if calls == 0 {
		t.Error("no call was made")
	}
}

// Promise 3, of the whole server: it is killed again and again while another
// process starts runs and decides; no decision is lost, no run stranded.
// RINGI_KILLS says how often.
func TestServeKilled(t *testing.T) {
	rounds := kills(10, 3)
	p := newMachine(t)
	var talks strings.Builder
	for i := range 400 * rounds { // more than can be begun
		fmt.Fprintf(&talks, `{"id":"t-%d","messages":[{"role":"user","content":"pay"},{"role":"assistant","tool_calls":[{"id":"c","name":"pay","arguments":"{}"}]},`+
			`{"role":"tool","tool_call_id":"c","content":"paid"},{"role":"assistant","content":"done"}]}`+"\n", i)
	}
	p.write("config/ringi/talks.jsonl", talks.String())
	p.write("config/ringi/tools.json", `[{"name":"pay","effect":"non_idempotent_write","data_class":"public_content"}]`)
	p.write("config/ringi/ringi.yaml", "agents:\n  - name: payer\n    zone: local\n    model: {kind: scripted, script: talks.jsonl}\n    tools: {file: tools.json}\n")
	p.serve().stop(syscall.SIGTERM) // makes key and store
	other := p.openedServer()       // has the agent, and no worker
	defer other.close()
	var decided []string
	for range rounds {
		s := p.serve()
		until := time.Now().Add(time.Duration(50+rand.IntN(150)) * time.Millisecond)
		for time.Now().Before(until) {
			decided = append(decided, decideOne(t, other.agents[0], fmt.Sprintf("t-%d", len(decided))))
		}
		s.cmd.Process.Kill()
		s.cmd.Wait()
	}
	s := p.serve()
	unknown := 0
	for _, run := range decided {
		for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			row, err := other.store.Row(t.Context(), "default", run)
			if err != nil {
				t.Fatal(err)
			}
			if row.Status == ringi.Completed {
				break
			}
			if row.Status == ringi.WaitingForOutcome {
				unknown++
				break
			}
			if time.Since(begun) > 90*time.Second {
				t.Fatalf("run %s is %s: stranded", run, row.Status)
			}
		}
		once(t, other.store, run)
	}
	s.stop(syscall.SIGTERM)
	t.Logf("%d kills, %d runs decided, %d unknown outcomes", rounds, len(decided), unknown)
}

// decideOne starts a run of a conversation, and approves its payment.
func decideOne(t *testing.T, a *agent, thread string) string {
	t.Helper()
	res, err := a.engine.Run(t.Context(), ringi.RunStart{Thread: thread, Messages: []ringi.Message{ringi.User("pay")}})
	if err != nil || len(res.Pending) != 1 {
		t.Fatalf("run: %v, %+v", err, res)
	}
	if _, err := a.engine.Decide(t.Context(), res.Pending[0].Approve(ringi.Principal{ID: "ana", Kind: ringi.Person, Auth: "test"})); err != nil {
		t.Fatal(err)
	}
	return res.RunID
}

// once checks that no write of a run began twice.
func once(t *testing.T, store ringi.Store, run string) {
	t.Helper()
	r, err := store.Load(t.Context(), "default", run)
	if err != nil {
		t.Fatal(err)
	}
	begun := 0
	for _, rec := range r.Records {
		if rec.Kind == ringi.EventToolStarted {
			begun++
		}
	}
	if begun != 1 {
		t.Errorf("run %s: its payment began %d times", run, begun)
	}
}

// brokenStore fails to read or to write where it is told to.
type brokenStore struct {
	ringi.Store
	read, write atomic.Bool
}

var errBroken = errors.New("the disk is broken")

func (b *brokenStore) Runnable(ctx context.Context, limit int) ([]ringi.RunRow, error) {
	if b.read.Load() {
		return nil, errBroken
	}
	return b.Store.Runnable(ctx, limit)
}

func (b *brokenStore) Beat(ctx context.Context, owner string, lease time.Duration) error {
	if b.write.Load() {
		return errBroken
	}
	return b.Store.Beat(ctx, owner, lease)
}
