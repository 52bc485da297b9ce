package httpapi_test

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/httpapi"
	"github.com/ringi-dev/ringi/store/sqlite"
	"github.com/ringi-dev/ringi/worker"
)

// caller is a model that does what the user's message says: "refund 5" asks for
// that call, "refund 5 6" for two, anything else ends the run.
type caller struct{}

func (caller) Generate(_ context.Context, req ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	return func(yield func(ringi.ModelEvent, error) bool) {
		last := req.Messages[len(req.Messages)-1]
		turn := &ringi.ModelTurn{Text: "done"}
		if len(last.Results) == 0 {
			words := strings.Fields(last.Text)
			if len(words) > 1 && words[0] != "say" {
				turn = &ringi.ModelTurn{Text: "I shall " + last.Text, Finish: ringi.FinishCalls}
				for i, amount := range words[1:] {
					turn.Calls = append(turn.Calls, ringi.ToolCall{ModelID: fmt.Sprint("m", i), Tool: words[0],
						Input: ringi.Input(`{"amount":` + amount + `,"pin":"PIN-` + amount + `-secret"}`)})
				}
			}
		}
		yield(ringi.ModelEvent{Turn: turn}, nil)
	}
}

// world is a server over a SQLite store and a directory, with people in it.
type world struct {
	t      testing.TB
	url    string
	dir    *access.Directory
	db     *sql.DB
	router *engine.Router
	file   string // the runs' database
	log    *syncBuffer
	done   chan struct{}
	token  map[string]string // by name
	mu     sync.Mutex
	ran    map[string]int // calls by id
	hang   bool           // the next call does not come back
	limit  time.Duration  // of refund
	server *httptest.Server
	o      httpapi.Options
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// setting is what a test changes of a world.
type setting struct {
	options func(*httpapi.Options)
	engine  func(*engine.Config)
	service func(ringi.Service) ringi.Service
	store   func(*sqlite.Store) ringi.Store
	people  access.Options
	now     func() time.Time // the store's clock
	idle    bool             // no worker
	timeout time.Duration    // of refund; 0 is a minute
}

var operator = access.Operator("os:1000@test", "default")

func newWorld(t testing.TB, set setting) *world {
	t.Helper()
	w := &world{t: t, log: &syncBuffer{}, done: make(chan struct{}), token: map[string]string{}, ran: map[string]int{}, limit: cmp.Or(set.timeout, time.Minute)}
	folder := t.TempDir()
	w.file = filepath.Join(folder, "runs.db")
	work := worker.New(worker.Options{AtOnce: 2})
	file, err := sqlite.Open(w.file, sqlite.Options{Woken: work.Wake, Now: set.now})
	w.must(err)
	t.Cleanup(func() { file.Close() })
	store := ringi.Store(file)
	if set.store != nil {
		store = set.store(file)
	}
	w.db, err = sql.Open("sqlite", "file:"+filepath.Join(folder, "access.db")+"?"+access.SQLiteParams)
	w.must(err)
	t.Cleanup(func() { w.db.Close() })
	w.dir, err = access.Open(t.Context(), w.db, set.people)
	w.must(err)
	var engines []*engine.Engine
	for _, agent := range []string{"shop", "other"} {
		cfg := engine.Config{Agent: agent, Store: store, Registry: w.registry(), Model: caller{}}
		if set.engine != nil {
			set.engine(&cfg)
		}
		e, err := engine.New(cfg)
		w.must(err)
		engines = append(engines, e)
	}
	w.router, err = engine.Route(engines...)
	w.must(err)
	w.people()
	auth, err := access.NewAuthenticator(w.dir, access.AuthOptions{})
	w.must(err)
	o := httpapi.Options{Service: w.router, Directory: w.dir, Authenticator: auth, Look: 10 * time.Millisecond, Heartbeat: 300 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(w.log, nil)), Done: w.done, Changed: file.Changed, Verify: func(ctx context.Context, id string) (httpapi.Verification, error) {
			v, err := w.router.Verify(ctx, id)
			return httpapi.Verification(v), err
		}}
	if set.service != nil {
		o.Service = set.service(w.router)
	}
	if set.options != nil {
		set.options(&o)
	}
	w.o = o
	h, err := httpapi.New(o)
	w.must(err)
	w.server = httptest.NewServer(h)
	w.url = w.server.URL
	t.Cleanup(w.server.Close)
	t.Cleanup(func() { close(w.done) })
	if !set.idle {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- work.Run(ctx, store, w.router) }()
		t.Cleanup(func() { cancel(); <-ended })
	}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

var refundSchema = json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer","maximum":1000},"pin":{"type":"string","writeOnly":true}},"required":["amount"],"additionalProperties":false}`)

func (w *world) registry() *ringi.Registry {
	reg := ringi.NewRegistry()
	run := func(_ context.Context, c ringi.ToolCall) (ringi.ToolResult, error) {
		w.mu.Lock()
		w.ran[c.ID]++
		hang := w.hang
		w.hang = false
		w.mu.Unlock()
		if hang {
			<-w.t.Context().Done() // not ctx: that would be an answer in the last moment
			return ringi.ToolResult{}, errors.New("the test is over")
		}
		return ringi.ToolResult{Output: "did " + string(c.Input)}, nil
	}
	preview := ringi.ToolHooks{Preview: func(_ context.Context, c ringi.ToolCall) (ringi.Preview, error) {
		return ringi.Preview{Text: "would do " + string(c.Input)}, nil
	}}
	for _, tool := range []ringi.Tool{
		{Name: "refund", Effect: ringi.NonIdempotentWrite, InputSchema: refundSchema, AllowEdit: true, AllowRespond: true, Timeout: w.limit},
		{Name: "teamwork", Effect: ringi.NonIdempotentWrite, InputSchema: refundSchema, Deciders: ringi.Deciders{Teams: []string{"money"}}},
		{Name: "look", Effect: ringi.ReadOnly, InputSchema: refundSchema},
		{Name: "identify", Effect: ringi.ReadOnly, InputSchema: json.RawMessage(`{"type":"object","properties":{"amount":{},"pin":{},"word":{"type":"string","format":"password"}}}`),
			InputRequired: json.RawMessage(`{"type":"object","properties":{"word":{"type":"string","format":"password"}},"required":["word"],"additionalProperties":false}`)},
	} {
		hooks := []ringi.ToolHooks{}
		if tool.Name == "refund" {
			hooks = append(hooks, preview)
		}
		w.must(reg.Add(tool, run, hooks...))
	}
	return reg
}

// people fills the directory: one or two of each role, and a token for each.
func (w *world) people() {
	ctx := context.Background()
	w.must(w.dir.AddTeam(ctx, operator, "money", "Money"))
	for _, u := range []access.User{
		{ID: access.LocalID("uma"), Name: "uma", Roles: []access.Role{access.RoleUser}},
		{ID: access.LocalID("udo"), Name: "udo", Roles: []access.Role{access.RoleUser}},
		{ID: access.LocalID("ben"), Name: "ben", Roles: []access.Role{access.RoleApprover}, Teams: []string{"money"}},
		{ID: access.LocalID("bea"), Name: "bea", Roles: []access.Role{access.RoleApprover}},
		{ID: access.LocalID("ada"), Name: "ada", Roles: []access.Role{access.RoleAdmin}},
		{ID: access.LocalID("aud"), Name: "aud", Roles: []access.Role{access.RoleAuditor}},
		{ID: access.LocalID("pay"), Name: "pay", Roles: []access.Role{access.RoleAuditor}, Payloads: true},
		{ID: access.LocalID("nil"), Name: "nil"},
	} {
		w.must(w.dir.AddUser(ctx, operator, u))
		w.tokenFor(access.NewToken{Kind: access.PersonToken, Name: u.Name, Owner: u.ID, Scopes: access.Scopes()})
	}
	agent := []access.Scope{access.ScopeRead, access.ScopeRun, access.ScopeCall}
	w.tokenFor(access.NewToken{Kind: access.AgentToken, Name: "bot", Unowned: true, Agents: []string{"shop"}, Scopes: agent})
	w.tokenFor(access.NewToken{Kind: access.AgentToken, Name: "hers", Owner: access.LocalID("uma"), Agents: []string{"shop"}, Scopes: agent})
	w.tokenFor(access.NewToken{Kind: access.AgentToken, Name: "bot2", Unowned: true, Agents: []string{"other"}, Scopes: agent})
}

func (w *world) tokenFor(n access.NewToken) string {
	w.t.Helper()
	_, secret, err := w.dir.MakeToken(context.Background(), operator, n)
	w.must(err)
	w.token[n.Name] = secret
	return secret
}

// reply is an answer that came.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), v); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
}

func (r reply) problem(t testing.TB) httpapi.Problem {
	t.Helper()
	var p httpapi.Problem
	r.into(t, &p)
	if kind := r.header.Get("Content-Type"); kind != "application/problem+json" {
		t.Errorf("a problem's content type is %s: %s", kind, r.body)
	}
	if p.Status != r.status {
		t.Errorf("status %d, and the problem says %d", r.status, p.Status)
	}
	return p
}

// do sends a request. header holds names and values in turn.
func (w *world) do(who, method, path, body string, header ...string) reply {
	w.t.Helper()
	req, err := http.NewRequest(method, w.url+path, strings.NewReader(body))
	w.must(err)
	if who != "" {
		req.Header.Set("Authorization", "Bearer "+w.token[who])
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	w.must(err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	w.must(err)
	w.declares(method, path, res.StatusCode)
	return reply{res.StatusCode, res.Header, string(b)}
}

// declares holds the status of an answer against the OpenAPI document.
func (w *world) declares(method, path string, status int) {
	w.t.Helper()
	declared.once.Do(func() {
		res, err := http.Get(w.url + "/v1/openapi.json")
		w.must(err)
		defer res.Body.Close()
		w.must(json.NewDecoder(res.Body).Decode(&declared.doc))
	})
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	for pattern, methods := range declared.doc.Paths {
		want := strings.Split(pattern, "/")
		fits := len(want) == len(parts)
		for i := 0; fits && i < len(want); i++ {
			fits = want[i] == parts[i] || strings.HasPrefix(want[i], "{")
		}
		if op, known := methods[strings.ToLower(method)]; fits && known && op.Responses[strconv.Itoa(status)] == nil {
			w.t.Errorf("%s %s answers with %d, which the document does not have", method, pattern, status)
		}
	}
}

// declared is the OpenAPI document, read once.
var declared struct {
	once sync.Once
	doc  struct {
		Paths map[string]map[string]struct{ Responses map[string]any }
	}
}

// request is a request as these tests read it.
type request struct {
	ID, State, Digest, Thread, Agent, Reason string
	RunID                                    string `json:"run_id"`
	Call                                     struct{ ID, Tool, Input string }
	Masked                                   []string
}

func (r request) tag() string { return `"` + r.Digest + "." + r.State + `"` }

type run struct {
	RunID, Thread, Status, Text string
	Pending                     []request
}

func (r *run) UnmarshalJSON(b []byte) error {
	type plain struct {
		RunID                string `json:"run_id"`
		Thread, Status, Text string
		Pending              []request
	}
	var p plain
	err := json.Unmarshal(b, &p)
	*r = run(p)
	return err
}

// start starts a run and waits until it waits or has ended.
func (w *world) start(who, agent, text string) run {
	w.t.Helper()
	r := w.do(who, "POST", "/v1/runs?wait=20s", fmt.Sprintf(`{"agent":%q,"text":%q}`, agent, text))
	if r.status != 201 {
		w.t.Fatalf("start: %d %s", r.status, r.body)
	}
	var out run
	r.into(w.t, &out)
	return out
}

// asked returns a run's pending request as ben sees it.
func (w *world) asked(who string, r run) request {
	w.t.Helper()
	got := w.do(who, "GET", "/v1/approvals/"+r.Pending[0].ID, "")
	if got.status != 200 {
		w.t.Fatalf("read request: %d %s", got.status, got.body)
	}
	var out request
	got.into(w.t, &out)
	if got.header.Get("ETag") != out.tag() {
		w.t.Fatalf("ETag %s, want %s", got.header.Get("ETag"), out.tag())
	}
	return out
}

func (w *world) decide(who string, q request, body string, header ...string) reply {
	w.t.Helper()
	body = strings.Replace(body, "{", `{"digest":"`+q.Digest+`",`, 1)
	return w.do(who, "POST", "/v1/approvals/"+q.ID+"/decisions", body, append([]string{"If-Match", q.tag()}, header...)...)
}
