// Package chat_test drives the example's page in a browser, against ringi serve.
package chat_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/ringi-dev/ringi/access"
)

// built are the page and the server, built once for all tests.
var built = sync.OnceValues(func() (b struct{ page, axe, ringi string }, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir, fresh, err := install(filepath.Join(cache, "ringi-test-npm"))
	if err != nil {
		return b, err
	}
	b.page, b.axe = filepath.Join(dir, "dist"), filepath.Join(dir, "node_modules", "axe-core", "axe.min.js")
	if fresh {
		if err := run(dir, "npm", "run", "build"); err != nil {
			return b, err
		}
	}
	b.ringi = filepath.Join(dir, "bin", "ringi") // beside ringi.ts it would be what that names
	return b, run(".", "go", "build", "-o", b.ringi, "github.com/ringi-dev/ringi/cmd/ringi")
})

// install puts the example and its packages in a folder of the user's cache:
// node_modules in the working copy would not be looked for by a test alone. fresh
// says that the page has to be built.
func install(cache string) (dir string, fresh bool, err error) {
	lock, err := os.ReadFile("package-lock.json")
	if err != nil {
		return "", false, err
	}
	sum := sha256.Sum256(lock)
	dir = filepath.Join(cache, "chat-"+hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", false, err
	}
	if fresh, err = copySources(dir); err != nil {
		return "", false, err
	}
	done := filepath.Join(dir, "installed")
	if _, err := os.Stat(done); err == nil {
		return dir, fresh, nil
	}
	if err := run(dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		if noNetwork.MatchString(err.Error()) {
			return "", false, errNoPackages{err}
		}
		return "", false, err // a lockfile that does not fit is a fault
	}
	return dir, true, os.WriteFile(done, nil, 0o644)
}

// copySources copies the page's files. changed says that one of them is new, or
// that the page was never built.
func copySources(dir string) (changed bool, err error) {
	_, err = os.Stat(filepath.Join(dir, "dist", "index.html"))
	changed = err != nil
	entries, err := os.ReadDir(".")
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if e.IsDir() || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		b, err := os.ReadFile(e.Name())
		if err != nil {
			return false, err
		}
		to := filepath.Join(dir, e.Name())
		if was, err := os.ReadFile(to); err == nil && bytes.Equal(was, b) {
			continue
		}
		changed = true
		if err := os.RemoveAll(filepath.Join(dir, "dist")); err != nil { // built anew, even after a build that broke
			return false, err
		}
		if err := os.WriteFile(to, b, 0o644); err != nil {
			return false, err
		}
	}
	return changed, nil
}

// errNoPackages says that npm could not reach a registry.
type errNoPackages struct{ error }

var noNetwork = regexp.MustCompile(`npm error (code|network).*(ENOTFOUND|ECONN|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|E401|E403|E5\d\d)`)

func run(dir, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// world is a server of its own, and the page on another port.
type world struct {
	t           *testing.T
	dir, ringi  string
	page        *httptest.Server
	listen, api string
	cmd         *exec.Cmd
	log         bytes.Buffer
	axe         string
}

// newWorld starts both. agent holds further lines of the agent's configuration.
func newWorld(t *testing.T, agent string) *world {
	t.Helper()
	b, err := built()
	if _, missing := err.(errNoPackages); missing {
		t.Skipf("the npm packages cannot be had here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: t.TempDir(), ringi: b.ringi, listen: freePort(t), axe: b.axe}
	w.api = "http://" + w.listen
	target, err := url.Parse(w.api)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(b.page)))
	mux.Handle("/v1/", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }})
	w.page = httptest.NewServer(mux)
	t.Cleanup(w.page.Close)
	w.configure(agent)
	w.start()
	return w
}

// configure is the example's own file, with this test's addresses.
func (w *world) configure(agent string) {
	w.t.Helper()
	b, err := os.ReadFile("ringi.yaml")
	if err != nil {
		w.t.Fatal(err)
	}
	text := strings.NewReplacer("127.0.0.1:7464", w.listen, "http://localhost:7464", w.api, "http://localhost:5173", w.page.URL).Replace(string(b))
	for line := range strings.Lines(agent) { // it takes the place of the same key
		key, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		lines := strings.Split(text, "\n")
		for i, l := range lines {
			if strings.HasPrefix(strings.TrimSpace(l), key+":") {
				lines[i] = ""
			}
		}
		text = strings.Join(lines, "\n") + "    " + strings.TrimSpace(line) + "\n"
	}
	if err := os.WriteFile(w.config(), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) config() string { return filepath.Join(w.dir, "ringi.yaml") }

func (w *world) start() {
	w.t.Helper()
	w.cmd = w.command("serve")
	w.cmd.Stderr = &w.log
	out, err := w.cmd.StdoutPipe()
	if err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(w.kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); !strings.HasPrefix(line, "Ringi serves at ") {
		w.t.Fatalf("it says %q, %v: %s", line, err, w.log.String())
	}
}

// kill ends the server as a crash does.
func (w *world) kill() {
	w.cmd.Process.Kill()
	w.cmd.Wait()
}

func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(w.ringi, append(args, "--config", w.config())...)
	cmd.Env = []string{"HOME=" + w.dir, "PATH=" + os.Getenv("PATH")}
	return cmd
}

// token is a token of a person.
func (w *world) token(user string) string {
	w.t.Helper()
	out, err := w.command("token", "create", "test", "--kind", "person", "--owner", user, "--scope", "read", "--scope", "decide", "--json").Output()
	var made struct{ Token string }
	if err == nil {
		err = json.Unmarshal(out, &made)
	}
	if err != nil {
		w.t.Fatalf("make token: %v %s", err, out)
	}
	return made.Token
}

// link is a login link, as a terminal shows it; add makes who is not there.
func (w *world) link(user string, add bool) string {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.dir, "data", "access.db")+"?"+access.SQLiteParams)
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	d, err := access.Open(w.t.Context(), db, access.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	by := access.Operator("os:test", "default")
	if add {
		if err := d.AddUser(w.t.Context(), by, access.User{ID: user, Name: user, Roles: []access.Role{access.RoleApprover, access.RoleUser}}); err != nil {
			w.t.Fatal(err)
		}
	}
	secret, _, err := d.MakeLink(w.t.Context(), by, user)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.api + "/login?link=" + url.QueryEscape(secret)
}

// waiting is a request as the API gives it.
type waiting struct {
	ID     string `json:"id"`
	Digest string `json:"digest"`
	Tool   struct {
		Name string `json:"name"`
	} `json:"tool"`
	Input json.RawMessage `json:"input"`
}

// elsewhere answers a request by the API, as the inbox does. It takes the first
// that waits whose JSON holds a text.
func (w *world) elsewhere(token, holds string, answer map[string]any) {
	w.t.Helper()
	var page struct {
		Requests []json.RawMessage `json:"requests"`
	}
	w.call(token, "GET", "/v1/approvals?state=pending", "", nil, &page)
	for _, raw := range page.Requests {
		if !strings.Contains(string(raw), holds) {
			continue
		}
		var r waiting
		if err := json.Unmarshal(raw, &r); err != nil {
			w.t.Fatal(err)
		}
		tag := w.call(token, "GET", "/v1/approvals/"+r.ID, "", nil, &r)
		answer["digest"] = r.Digest
		w.call(token, "POST", "/v1/approvals/"+r.ID+"/decisions", tag, answer, nil)
		return
	}
	w.t.Fatalf("nothing waits that holds %q: %s", holds, page.Requests)
}

func (w *world) call(token, method, path, tag string, body, out any) string {
	w.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.api+path, bytes.NewReader(b))
	if err != nil {
		w.t.Fatal(err)
	}
	if method == "GET" {
		req.Body, req.ContentLength = nil, 0
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", fmt.Sprint(time.Now().UnixNano()))
	if tag != "" {
		req.Header.Set("If-Match", tag)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode/100 != 2 {
		w.t.Fatalf("%s %s: %s %v\n%s", method, path, res.Status, err, text)
	}
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			w.t.Fatalf("%s %s: %v: %s", method, path, err, text)
		}
	}
	return res.Header.Get("ETag")
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
