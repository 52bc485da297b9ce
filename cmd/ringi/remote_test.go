package main

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/httpapi"
)

// remote is a server over a store's file, and the token of a person there.
type remote struct {
	url, token string
	dir        *directory
}

// serveStore serves a store: as an engine without tools does, or the one that
// is given.
func serveStore(t *testing.T, path string, service ringi.Service, roles ...access.Role) remote {
	t.Helper()
	store, err := openStore("sqlite:" + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	eng, err := engine.New(engine.Config{Store: store, Space: "default"})
	if err != nil {
		t.Fatal(err)
	}
	if service == nil {
		service = eng
	}
	d, err := openDirectory(t.Context(), filepath.Join(t.TempDir(), accessFile), access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.close() })
	u := access.User{ID: access.LocalID("ann"), Name: "Ann", Roles: roles}
	bo := access.User{ID: access.LocalID("bo"), Name: "Bo", Roles: []access.Role{access.RoleApprover}}
	if err := errors.Join(d.AddUser(t.Context(), operator(), u), d.AddUser(t.Context(), operator(), bo)); err != nil {
		t.Fatal(err)
	}
	_, secret, err := d.MakeToken(t.Context(), operator(), access.NewToken{Kind: access.PersonToken, Name: "cli", Owner: u.ID, Scopes: access.Scopes()})
	if err != nil {
		t.Fatal(err)
	}
	auth, err := access.NewAuthenticator(d.Directory, access.AuthOptions{})
	if err != nil {
		t.Fatal(err)
	}
	api, err := httpapi.New(httpapi.Options{Service: service, Directory: d.Directory, Authenticator: auth,
		Verify: func(ctx context.Context, run string) (httpapi.Verification, error) {
			v, err := eng.Verify(ctx, run)
			return httpapi.Verification(v), err
		}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	return remote{server.URL, secret, d}
}

// line is one command as it ended.
type line struct {
	code     int
	out, err string
}

// typed runs a command, with nobody at a terminal.
func typed(t *testing.T, vars map[string]string, stdin string, args ...string) line {
	t.Helper()
	var out, errs bytes.Buffer
	e := &env{in: strings.NewReader(stdin), out: &out, err: &errs, now: time.Now, getenv: func(name string) string { return vars[name] }}
	code := execute(t.Context(), e, args)
	return line{code, out.String(), errs.String()}
}

var (
	cursorForm = regexp.MustCompile(`(--after |"next": ")\S+`)
	secondsAgo = regexp.MustCompile(`\b(in )?\d+[smhd]\w*( ago)?`)
	timeForm   = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z`)
	digestForm = regexp.MustCompile(`[0-9a-f]{64}`)
	spacesForm = regexp.MustCompile(` {2,}`)
)

// alike takes out of a text what differs between a store and a server by right:
// who typed, where, when, and what continues a list.
func alike(text string, r remote, path string) string {
	by, _ := person()
	store := storeIDOf(path)
	for _, name := range []string{by.ID, access.LocalID("ann"), by.Name, "Ann"} {
		if name != "" {
			text = strings.ReplaceAll(text, name, "PERSON")
		}
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, r.url, "STORE"), store, "STORE")
	text = cursorForm.ReplaceAllString(text, "${1}CURSOR")
	text = timeForm.ReplaceAllString(text, "TIME")
	text = digestForm.ReplaceAllString(text, "DIGEST")
	text = secondsAgo.ReplaceAllString(text, "MOMENT")
	return spacesForm.ReplaceAllString(text, "  ")
}

func storeIDOf(path string) string {
	s, err := openStore("sqlite:" + path)
	if err != nil {
		return path
	}
	defer s.Close()
	id, err := s.ID(context.Background())
	if err != nil {
		return path
	}
	return id
}

// twins are a store that waits for a person, and its copy behind a server.
func twins(t *testing.T, scenes ...string) (path string, r remote, digest func(string) string) {
	t.Helper()
	path, _ = staged(t, nil, scenes...)
	store, err := openStore("sqlite:" + path)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.SetFlag(t.Context(), flagScripted, "on"); err != nil {
		t.Fatal(err)
	}
	digests := map[string]string{}
	rows, err := store.Requests(t.Context(), ringi.RequestQuery{Space: "default", State: requestStates})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		digests[row.ID] = row.Digest
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	twin := filepath.Join(t.TempDir(), "ringi.db")
	if err := os.WriteFile(twin, b, 0o600); err != nil {
		t.Fatal(err)
	}
	r = serveStore(t, twin, nil, access.RoleUser, access.RoleApprover, access.RoleAuditor)
	return path, r, func(id string) string { return digests[id] }
}

// Every command at a server says and ends as it does over a store's file.
func TestCommandsAtAServerAreThoseOverAStore(t *testing.T) {
	for _, c := range []struct {
		name, scene string
		lines       []string // in turn; DIGEST stands for the request's
		loose       bool     // the error is told in other words
	}{
		{name: "pending", scene: "refund two typed", lines: []string{"pending", "pending --json", "pending --tool refund --search a-1017",
			"pending --limit 2", "pending --limit 2 --json", "pending --run run_1", "pending --state approved,denied", "pending --for x,team:y", "pending --agent nobody"}},
		{name: "pending, wrong", scene: "refund", lines: []string{"pending --state nonsense", "pending --limit 0", "pending extra"}},
		{name: "show", scene: "refund hostile numbers", lines: []string{"show req_1_1_0", "show req_1_1_0 --json", "show req_2_1_0", "show req_3_1_0 --json",
			"show req_1_1_0 --reveal", "show req_1_1_9", "show nothing"}},
		{name: "show, typed input", scene: "typed asking external outcome", lines: []string{"show req_1_1_0", "show req_2_1_0 --json", "show req_3_1_0", "show req_4_1_1 --json"}},
		{name: "deny", scene: "refund", lines: []string{"deny req_1_1_0 --reason no --note between-us", "show req_1_1_0", "deny req_1_1_0 --reason other", "approve req_1_1_0 --yes --digest DIGEST", "runs"}},
		{name: "deny, as JSON", scene: "two", lines: []string{"deny req_1_1_0 --this-tool --json", "pending"}},
		{name: "deny, mistyped", scene: "refund", lines: []string{"deny req_1_1_00", "deny req_1_1_0 --digest x", "pending"}},
		{name: "approve", scene: "refund", lines: []string{"approve req_1_1_0 --yes --digest DIGEST", "show req_1_1_0", "approve req_1_1_0 --yes --digest DIGEST", "take-back req_1_1_0 --reason wrong", "take-back req_1_1_0", "runs --json"}},
		{name: "approve, nobody there", scene: "refund", lines: []string{"approve req_1_1_0", "approve req_1_1_0 --yes", "approve req_1_1_0 --yes --digest beef", "pending"}},
		{name: "edit", scene: "refund", lines: []string{`edit req_1_1_0 --input {"order":"A-1017","cents":1}`, "show req_1_1_0", "pending", "edit req_1_1_0 --input {"}, loose: true},
		{name: "edit, wrong", scene: "refund", lines: []string{`edit req_1_1_0`, `edit req_1_1_0 --input {"order":1}`, "pending"}, loose: true},
		{name: "fill", scene: "asking", lines: []string{`fill req_1_1_0 --values {"user":"bo","level":"low"}`, "show req_1_1_0", `fill req_1_1_0`}},
		{name: "respond", scene: "refund", lines: []string{`respond req_1_1_0 --result {"ran":1} --yes --digest DIGEST`, "show req_1_1_0", "verify"}},
		{name: "respond, where it may not be", scene: "hostile", lines: []string{`respond req_1_1_0 --result x --yes --digest DIGEST`}},
		{name: "outcome", scene: "outcome", lines: []string{"pending", "outcome req_1_1_1 ran --result done --yes --digest DIGEST", "show req_1_1_1"}},
		{name: "outcome, wrong", scene: "outcome", lines: []string{"outcome req_1_1_1 nonsense", "outcome req_1_1_1 did-not-run --result x"}},
		{name: "cancel", scene: "refund", lines: []string{"cancel run_1 --reason enough", "cancel run_1", "runs", "pending --state withdrawn"}},
		{name: "cancel, as JSON", scene: "two", lines: []string{"cancel run_1 --json"}},
		{name: "withdraw, somebody else's", scene: "refund", lines: []string{"withdraw req_1_1_0", "pending"}, loose: true},
		{name: "reassign and extend without the tool", scene: "refund", lines: []string{"reassign req_1_1_0", "reassign req_1_1_0 --to local:bo", "extend req_1_1_0",
			"extend req_1_1_0 --for 1h", "extend req_1_1_0 --until soon", "pending"}, loose: true},
		{name: "runs", scene: "refund two read", lines: []string{"runs", "runs --status completed", "runs --limit 1", "runs --json --thread thr_2", "runs --status nonsense"}},
		{name: "verify", scene: "refund read", lines: []string{"verify", "verify --json", "verify run_1", "verify --without-key=false"}},
		{name: "verify, nothing there", scene: "refund", lines: []string{"verify run_none"}, loose: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, r, digest := twins(t, strings.Fields(c.scene)...)
			local := map[string]string{"RINGI_STORE": "sqlite:" + path}
			there := map[string]string{serverEnv: r.url, tokenEnv: r.token}
			for _, text := range c.lines {
				args := strings.Fields(text)
				for i := range args {
					if args[i] == "DIGEST" {
						args[i] = digest(args[1])
					}
				}
				want, got := typed(t, local, "", args...), typed(t, there, "", args...)
				if got.code != want.code {
					t.Errorf("ringi %s exits with %d at a server, with %d over a store\n%s%s", text, got.code, want.code, got.err, want.err)
				}
				if a, b := alike(got.out, r, path), alike(want.out, r, path); a != b {
					t.Errorf("ringi %s: at a server:\n%s\nover a store:\n%s", text, a, b)
				}
				if a, b := alike(got.err, r, path), alike(want.err, r, path); a != b && !c.loose {
					t.Errorf("ringi %s: at a server:\n%s\nover a store:\n%s", text, a, b)
				}
			}
		})
	}
}

// Which of both is meant is never a guess, and no token goes where it may be
// read.
func TestServerAndTokenAreSaid(t *testing.T) {
	path, r, _ := twins(t, "refund")
	tokenFile := filepath.Join(t.TempDir(), "token")
	open := filepath.Join(t.TempDir(), "open")
	for name, mode := range map[string]os.FileMode{tokenFile: 0o600, open: 0o644} {
		if err := os.WriteFile(name, []byte(r.token+"\n"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	store := "sqlite:" + path
	both := map[string]string{serverEnv: r.url, tokenEnv: r.token, "RINGI_STORE": store}
	for _, c := range []struct {
		name string
		vars map[string]string
		args []string
		code int
		want string
	}{
		{"flag and variable", map[string]string{tokenEnv: r.token}, []string{"pending", "--server", r.url}, exitDone, "req_1_1_0"},
		{"a file", nil, []string{"pending", "--server", r.url, "--token-file", tokenFile}, exitDone, "req_1_1_0"},
		{"a file that others read", nil, []string{"pending", "--server", r.url, "--token-file", open}, exitFailed, "open"},
		{"no token", nil, []string{"pending", "--server", r.url}, exitUsage, "no token"},
		{"a wrong token", map[string]string{tokenEnv: "ringi_x"}, []string{"pending", "--server", r.url}, exitFailed, "ringi token create"},
		{"both typed", both, []string{"pending", "--server", r.url, "--store", store}, exitUsage, "say one"},
		{"both set", both, []string{"pending"}, exitUsage, "both set"},
		{"a store typed", both, []string{"pending", "--store", store}, exitDone, "req_1_1_0"},
		{"a server typed", both, []string{"pending", "--server", r.url}, exitDone, "req_1_1_0"},
		{"a space", both, []string{"pending", "--server", r.url, "--space", "other"}, exitUsage, "--space"},
		{"in clear, elsewhere", both, []string{"pending", "--server", "http://ringi.example"}, exitUsage, "https"},
		{"no address", both, []string{"pending", "--server", "ringi.example"}, exitUsage, "address"},
		{"for a store alone", both, []string{"keys", "list", "--server", r.url}, exitUsage, "--server"},
		{"verify without the key", both, []string{"verify", "--without-key", "--server", r.url}, exitUsage, "--without-key"},
		{"tools without an agent", both, []string{"tools", "--agent", "x"}, exitUsage, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := typed(t, c.vars, "", c.args...)
			if got.code != c.code || !strings.Contains(got.out+got.err, c.want) {
				t.Errorf("exit %d, want %d: %s%s", got.code, c.code, got.out, got.err)
			}
			if strings.Contains(got.out+got.err, r.token) {
				t.Error("the token is shown")
			}
		})
	}
}

// At a server with the tools: an edit is asked anew at once, and a request is
// handed over, given more time and withdrawn.
func TestMovesAtAServer(t *testing.T) {
	path, _ := staged(t, nil, "refund", "two")
	s, err := newStage(path, nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	r := serveStore(t, path, s.engine, access.RoleUser, access.RoleApprover, access.RoleAdmin)
	there := map[string]string{serverEnv: r.url, tokenEnv: r.token}
	newest := "" // the request that took the last one's place
	named := regexp.MustCompile(`(?:other input for|; ) ?(req_\w+)`)
	for _, c := range []struct{ line, want string }{
		{`edit req_1_1_0 --input {"order":"A-1017","cents":1}`, "Recorded other input for"},
		{"extend NEWEST --for 1h --reason later", "takes its place."},
		{"reassign NEWEST --to local:ann --to local:bo", "takes its place."},
		{"reassign NEWEST --to local:ann --to local:nobody", `there is nobody with the id "local:nobody"`},
		{"show NEWEST", "local:ann, local:bo"},
		{"withdraw NEWEST --reason enough", "Run run_1 can go on"},
		{"withdraw req_2_1_0", "1 request of run run_2 still waits for a person."},
		{"tools --agent stage", "Offered ("},
		{"tools", "refund"},
		{"runs --json", `"run_id": "run_2"`},
	} {
		got := typed(t, there, "", strings.Fields(strings.ReplaceAll(c.line, "NEWEST", newest))...)
		if (got.code == exitDone) == strings.Contains(c.line, "nobody") || !strings.Contains(got.out+got.err, c.want) {
			t.Errorf("ringi %s exits with %d: %s%s", c.line, got.code, got.out, got.err)
		}
		if m := named.FindStringSubmatch(got.out); m != nil {
			newest = m[1]
		}
	}
	if got := typed(t, there, "", "runs", "--server", r.url, "--token-file", "/nowhere"); got.code != exitFailed {
		t.Errorf("%+v", got)
	}
}
