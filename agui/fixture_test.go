package agui_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/agui"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/internal/chat/chattest"
	"github.com/ringi-dev/ringi/live"
	"github.com/ringi-dev/ringi/ringitest"
	"github.com/ringi-dev/ringi/store/memory"
	"github.com/ringi-dev/ringi/store/sqlite"
)

// shop is a server over a world.
type shop struct {
	t testing.TB
	*chattest.World
	store   ringi.Store
	engine  *engine.Engine
	server  *httptest.Server
	opened  opened
	handler http.Handler
}

type opened struct {
	options func(*agui.Options)
	config  func(*engine.Config)
	sqlite  bool
}

func newShop(t testing.TB, o opened) *shop {
	s := &shop{t: t, World: chattest.New(), opened: o, store: memory.New(memory.Options{})}
	if o.sqlite {
		st, err := sqlite.Open(filepath.Join(t.TempDir(), "ringi.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		s.store = st
	}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Mu.Lock()
		h := s.handler
		s.Mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.server.Close)
	s.start(nil)
	return s
}

// restart is the process killed and started anew.
func (s *shop) restart() {
	s.start(s.engine)
	http.DefaultClient.CloseIdleConnections() // a request is not sent twice
	s.server.CloseClientConnections()
}

func (s *shop) start(before *engine.Engine) {
	feed := &live.Feed{}
	cfg := engine.Config{Agent: "shop", Registry: s.Registry(s.t), Model: s, Store: s.store, Live: feed.Publish, Lease: time.Second, RuleFloor: true,
		NewID: ringi.NewID, Now: time.Now}
	if s.opened.config != nil {
		s.opened.config(&cfg)
	}
	var e *engine.Engine
	if before == nil {
		e = ringitest.Engine(s.t, cfg)
	} else {
		e = ringitest.Restart(s.t, before, func(c *engine.Config) { c.Live, c.Registry = cfg.Live, cfg.Registry })
	}
	o := agui.Options{Service: e, Agent: "shop", Who: who, Feed: feed, Resume: e.Resume, Open: true, Look: 20 * time.Millisecond}
	if s.opened.options != nil {
		s.opened.options(&o)
	}
	h, err := agui.New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s.Open()
		h.Close(ctx)
	})
	s.Mu.Lock()
	s.engine, s.handler = e, h
	s.Mu.Unlock()
}

// who takes the principal from a header: these tests' login.
func who(r *http.Request) (ringi.Principal, error) {
	name := r.Header.Get("X-User")
	if name == "" {
		return ringi.Principal{}, errors.New("nobody")
	}
	return principal(name), nil
}

func principal(name string) ringi.Principal {
	return ringi.Principal{ID: name, Name: name, Kind: ringi.Person, Auth: "test"}
}

func (s *shop) pending() []ringi.ApprovalRequest {
	s.t.Helper()
	page, err := s.engine.Requests(s.t.Context(), ringi.RequestQuery{})
	if err != nil {
		s.t.Fatal(err)
	}
	return page.Requests
}

func (s *shop) status() ringi.RunStatus {
	s.t.Helper()
	rows, err := s.engine.Runs(s.t.Context(), ringi.RunQuery{Limit: 1})
	if err != nil || len(rows) == 0 {
		s.t.Fatalf("runs %v, %v", rows, err)
	}
	return rows[0].Status
}

type m = map[string]any

// user is a client: what it holds is what it sends.
type user struct {
	*shop
	name, thread string
	messages     []m
	interrupts   []m
	runs         int
}

func (s *shop) user(name, thread string) *user { return &user{shop: s, name: name, thread: thread} }

// reply is what came.
type reply struct {
	status int
	code   string
	text   string
	events []m
}

func (u *user) do(path string, body any) *reply {
	u.t.Helper()
	b, ok := body.([]byte)
	if !ok {
		var err error
		if b, err = json.Marshal(body); err != nil {
			u.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", u.server.URL+path, bytes.NewReader(b))
	if err != nil {
		u.t.Fatal(err)
	}
	req.Header.Set("X-User", u.name)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		u.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		u.t.Fatal(err)
	}
	r := &reply{status: res.StatusCode, code: res.Header.Get("Ringi-Code"), text: string(text)}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		r.events = parse(u.t, r.text)
	}
	return r
}

func parse(t testing.TB, text string) (out []m) {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e m
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("event %q: %v", data, err)
		}
		out = append(out, e)
	}
	return out
}

// input is a RunAgentInput of what the client holds.
func (u *user) input(resume ...m) m {
	u.runs++
	in := m{"threadId": u.thread, "runId": fmt.Sprintf("client-run-%d", u.runs), "messages": u.messages, "tools": []m{}, "context": []m{}, "state": m{}, "forwardedProps": m{}}
	if u.messages == nil {
		in["messages"] = []m{}
	}
	if len(resume) > 0 {
		in["resume"] = resume
	}
	return in
}

// say sends a new message.
func (u *user) say(text string) *reply {
	u.t.Helper()
	u.messages = append(u.messages, m{"id": fmt.Sprintf("cli-%d", len(u.messages)), "role": "user", "content": text})
	return u.apply(u.do("/", u.input()))
}

// resume answers.
func (u *user) resume(entries ...m) *reply {
	u.t.Helper()
	return u.apply(u.do("/", u.input(entries...)))
}

func (u *user) connect() *reply {
	u.t.Helper()
	return u.apply(u.do("/connect", u.input()))
}

// apply does what the client of npm does with events.
func (u *user) apply(r *reply) *reply {
	for _, e := range r.events {
		switch e["type"] {
		case "TEXT_MESSAGE_START":
			u.message(e["messageId"].(string))
		case "TEXT_MESSAGE_CONTENT":
			one := u.message(e["messageId"].(string))
			text, _ := one["content"].(string)
			one["content"] = text + e["delta"].(string)
		case "TOOL_CALL_START":
			one := u.message(e["parentMessageId"].(string))
			calls, _ := one["toolCalls"].([]any)
			one["toolCalls"] = append(calls, any(m{"id": e["toolCallId"], "type": "function", "function": m{"name": e["toolCallName"], "arguments": ""}}))
		case "TOOL_CALL_ARGS":
			f := u.call(e["toolCallId"].(string))["function"].(m)
			f["arguments"] = f["arguments"].(string) + e["delta"].(string)
		case "TOOL_CALL_RESULT":
			u.messages = append(u.messages, m{"id": e["messageId"], "role": "tool", "toolCallId": e["toolCallId"], "content": e["content"]})
		case "MESSAGES_SNAPSHOT":
			u.messages = nil
			for _, one := range e["messages"].([]any) {
				u.messages = append(u.messages, one.(m))
			}
		case "RUN_FINISHED":
			u.interrupts = nil
			list, _ := e["outcome"].(m)["interrupts"].([]any)
			for _, one := range list {
				u.interrupts = append(u.interrupts, one.(m))
			}
		}
	}
	return r
}

func (u *user) message(id string) m {
	for _, one := range u.messages {
		if one["id"] == id {
			return one
		}
	}
	one := m{"id": id, "role": "assistant"}
	u.messages = append(u.messages, one)
	return one
}

// call finds a call in the client's messages; the last for "".
func (u *user) call(id string) m {
	for _, one := range slices.Backward(u.messages) {
		calls, _ := one["toolCalls"].([]any)
		for _, c := range slices.Backward(calls) {
			if id == "" || c.(m)["id"] == id {
				return c.(m)
			}
		}
	}
	u.t.Fatalf("no call %q in %v", id, u.messages)
	return nil
}

// resolved and cancelled answer the client's nth interrupt.
func (u *user) resolved(n int, payload m) m {
	return m{"interruptId": u.interrupts[n]["id"], "status": "resolved", "payload": payload}
}

func (u *user) cancelled(n int) m {
	return m{"interruptId": u.interrupts[n]["id"], "status": "cancelled"}
}

func (r *reply) find(kind string) m {
	for _, e := range r.events {
		if e["type"] == kind {
			return e
		}
	}
	return nil
}

// outcome is the type of the outcome, or the error's code.
func (r *reply) outcome() string {
	if e := r.find("RUN_ERROR"); e != nil {
		return "error " + e["code"].(string)
	}
	if e := r.find("RUN_FINISHED"); e != nil {
		return e["outcome"].(m)["type"].(string)
	}
	return fmt.Sprintf("%d %s", r.status, r.text)
}
