package httploop_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var ringi string // the command, built once

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "http-loop")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	ringi = filepath.Join(dir, "ringi")
	cmd := exec.Command("go", "build", "-o", ringi, "../../cmd/ringi")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released: one build for all tests, whatever builds them
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build ringi:", err)
		return 1
	}
	return m.Run()
}

// scene is what outlives every process: the server's folders, the conversation,
// and what the tool did.
type scene struct {
	t        *testing.T
	dir, url string
	bot, ben string // tokens
	loop     []string
	vendor   *vendor
	server   *exec.Cmd
}

// each plays a scene in both languages. more are lines for the agent's
// configuration.
func each(t *testing.T, more string, answers []string, play func(*scene)) {
	for name, loop := range map[string][]string{"Python": {"python3", "loop.py"}, "Node": {"node", "loop.mjs"}} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(loop[0]); err != nil {
				t.Skipf("%s is not here", loop[0])
			}
			play(newScene(t, more, loop, answers))
		})
	}
}

func newScene(t *testing.T, more string, loop, answers []string) *scene {
	s := &scene{t: t, dir: t.TempDir(), loop: loop, vendor: newVendor(t, answers...)}
	for _, name := range []string{"ringi.yaml", "tools.json"} {
		b, err := os.ReadFile(name)
		s.must(err)
		if name == "ringi.yaml" {
			b = append(b, more...)
		}
		s.must(os.WriteFile(s.file(name), b, 0o600))
	}
	s.must(os.WriteFile(s.file("talk"), []byte(`[{"role":"user","content":"Refund A-1017."}]`), 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	s.url = "http://" + l.Addr().String()
	s.must(l.Close())
	t.Cleanup(s.kill)
	s.serve()
	s.ringi("user", "add", "ben", "--role", "approver")
	s.bot = s.token("bot", "--agent", "shop", "--scope", "read", "--scope", "run", "--scope", "call")
	s.ben = s.token("ben-laptop", "--kind", "person", "--owner", "local:ben", "--scope", "read", "--scope", "decide")
	return s
}

func (s *scene) file(name string) string { return filepath.Join(s.dir, name) }

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) env(more ...string) []string {
	mine := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "TOOL_APPROVAL_SECRET=") || strings.HasPrefix(v, "RINGI_")
	})
	return append(append(mine, "HOME="+s.dir, "XDG_CONFIG_HOME="+s.file("config"), "XDG_STATE_HOME="+s.file("state")), more...)
}

// ringi runs a command over the server's data.
func (s *scene) ringi(args ...string) string {
	s.t.Helper()
	cmd := exec.Command(ringi, append(args, "--json", "--config", s.file("ringi.yaml"), "--data", s.file("data"))...)
	cmd.Env = s.env()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("ringi %v: %v %s", args, err, stderr.String())
	}
	return string(out)
}

func (s *scene) token(args ...string) string {
	s.t.Helper()
	var t struct{ Token string }
	s.must(json.Unmarshal([]byte(s.ringi(append([]string{"token", "create"}, args...)...)), &t))
	return t.Token
}

// serve starts the server, and waits until it is ready.
func (s *scene) serve() {
	s.t.Helper()
	s.server = exec.Command(ringi, "serve", "--config", s.file("ringi.yaml"), "--data", s.file("data"), "--listen", strings.TrimPrefix(s.url, "http://"))
	s.server.Env = s.env()
	log, err := os.OpenFile(s.file("server.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	s.must(err)
	defer log.Close()
	s.server.Stdout, s.server.Stderr = log, log
	s.must(s.server.Start())
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		res, err := http.Get(s.url + "/readyz")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == 200 {
				return
			}
		}
		if time.Since(begun) > 90*time.Second {
			b, _ := os.ReadFile(s.file("server.log"))
			s.t.Fatalf("the server does not start: %s", b)
		}
	}
}

// kill ends the server as a power cut does.
func (s *scene) kill() {
	if s.server != nil {
		_ = s.server.Process.Kill()
		_ = s.server.Wait()
		s.server = nil
	}
}

func (s *scene) restart() {
	s.t.Helper()
	s.kill()
	s.serve()
}

// spawn starts a process of the loop.
func (s *scene) spawn(out io.Writer, more ...string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.Command(s.loop[0], s.loop[1], s.file("talk"))
	cmd.Env = s.env(append([]string{"RINGI_URL=" + s.url, "RINGI_TOKEN=" + s.bot, "VENDOR=" + s.vendor.URL, "RAN=" + s.file("ran"), "PYTHONDONTWRITEBYTECODE=1"}, more...)...)
	cmd.Stdout, cmd.Stderr = out, out
	s.must(cmd.Start())
	return cmd
}

// turn lets a new process of the loop go on until it waits or is done, and
// returns the requests that it waits for.
func (s *scene) turn(n int) []string {
	s.t.Helper()
	var out bytes.Buffer
	err := s.spawn(&out).Wait()
	words := strings.Fields(out.String())
	if err != nil || len(words) != n+1 && n > 0 || n == 0 && (len(words) == 0 || words[0] != "done") {
		log, _ := os.ReadFile(s.file("server.log"))
		s.t.Fatalf("%v %s, want %d waiting\n%s", err, out.String(), n, log)
	}
	return words[1:]
}

// api sends a request as a person.
func (s *scene) api(method, path, body, match string) (string, http.Header) {
	s.t.Helper()
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	s.must(err)
	req.Header.Set("Authorization", "Bearer "+s.ben)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("If-Match", match)
	}
	res, err := http.DefaultClient.Do(req)
	s.must(err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	s.must(err)
	if res.StatusCode/100 != 2 {
		s.t.Fatalf("%s %s: %s %s", method, path, res.Status, b)
	}
	return string(b), res.Header
}

// decide answers a request over the API, from this process.
func (s *scene) decide(id, answer string) {
	s.t.Helper()
	text, head := s.api("GET", "/v1/approvals/"+id, "", "")
	var r struct{ Digest, Kind string }
	s.must(json.Unmarshal([]byte(text), &r))
	s.api("POST", "/v1/approvals/"+id+"/decisions", strings.Replace(answer, "{", `{"digest":"`+r.Digest+`",`, 1), head.Get("ETag"))
}

func (s *scene) ran() string {
	b, err := os.ReadFile(s.file("ran"))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func (s *scene) wantRan(want ...string) {
	s.t.Helper()
	if got := s.ran(); got != strings.Join(want, "\n") {
		s.t.Errorf("ran %q, want %q", got, want)
	}
}

func (s *scene) wantTold(want ...string) {
	s.t.Helper()
	told := s.vendor.told()
	if len(told) != len(want) {
		s.t.Fatalf("the model read %q, want %q", told, want)
	}
	for i := range want {
		if !strings.Contains(told[i], want[i]) {
			s.t.Errorf("the model read %q, want %q", told[i], want[i])
		}
	}
}
