package aisdk_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/aisdk"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/live"
	"github.com/ringi-dev/ringi/ringitest"
	"github.com/ringi-dev/ringi/store/memory"
	"github.com/ringi-dev/ringi/store/sqlite"
)

// shop is a model, its tools and a chat server over them: the world of these
// tests. What the model does is what the newest user message says.
type shop struct {
	t      testing.TB
	store  ringi.Store
	engine *engine.Engine
	chat   *aisdk.Handler
	server *httptest.Server
	feed   *live.Feed
	change func(*aisdk.Options)
	config func(*engine.Config)
	broken bool
	err    error // of New

	mu      sync.Mutex
	paid    []string // inputs of payments that ran
	prompts []ringi.ModelRequest
	gate    chan struct{} // a slow model waits here
	handler http.Handler
}

type opened struct {
	options func(*aisdk.Options)
	config  func(*engine.Config)
	sqlite  bool
	broken  bool // New fails
}

func newShop(t testing.TB, o opened) *shop {
	s := &shop{t: t, gate: make(chan struct{}, 100), change: o.options, config: o.config}
	if o.sqlite {
		st, err := sqlite.Open(filepath.Join(t.TempDir(), "ringi.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		s.store = st
	} else {
		s.store = memory.New(memory.Options{})
	}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		h := s.handler
		s.mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.server.Close)
	s.broken = o.broken
	s.start(nil)
	return s
}

// restart is the process killed and started anew: its connections are cut, its
// leases are free, nothing of its memory stays, and what it still does is refused.
func (s *shop) restart() {
	s.start(s.engine)
	s.server.CloseClientConnections()
}

// start is a process, in the place of another: engine and handler over the store.
func (s *shop) start(before *engine.Engine) {
	feed := &live.Feed{}
	cfg := engine.Config{Agent: "shop", Registry: s.registry(), Model: s, Store: s.store, Live: feed.Publish, Lease: time.Second, RuleFloor: true,
		NewID: ringi.NewID, Now: time.Now}
	if s.config != nil {
		s.config(&cfg)
	}
	var e *engine.Engine
	if before == nil {
		e = ringitest.Engine(s.t, cfg)
	} else {
		e = ringitest.Restart(s.t, before, func(c *engine.Config) { c.Live, c.Registry = cfg.Live, cfg.Registry })
	}
	o := aisdk.Options{Service: e, Agent: "shop", Who: who, Feed: feed, Resume: e.Resume, Open: true, Look: 20 * time.Millisecond}
	if s.change != nil {
		s.change(&o)
	}
	h, err := aisdk.New(o)
	if err != nil {
		if s.err = err; !s.broken {
			s.t.Fatal(err)
		}
		return
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		close_(s.gate)
		h.Close(ctx)
	})
	s.mu.Lock()
	s.engine, s.chat, s.feed, s.handler = e, h, feed, h
	s.mu.Unlock()
}

// close_ opens a gate for good, once.
func close_(c chan struct{}) {
	defer func() { _ = recover() }()
	close(c)
}

// who takes the principal from a header: these tests' login.
func who(r *http.Request) (ringi.Principal, error) {
	name := r.Header.Get("X-User")
	if name == "" {
		return ringi.Principal{}, errors.New("nobody")
	}
	return ringi.Principal{ID: name, Name: name, Kind: ringi.Person, Auth: "test"}, nil
}

func (s *shop) registry() *ringi.Registry {
	reg := ringi.NewRegistry()
	object := func(props string) json.RawMessage {
		return json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` + props + `}}`)
	}
	add := func(t ringi.Tool, f ringi.ToolHandler) {
		if err := reg.Add(t, f); err != nil {
			s.t.Fatal(err)
		}
	}
	add(ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite, AllowEdit: true, AllowRespond: true, InputSchema: object(`"to":{"type":"string"},"amount":{"type":"number"}`)},
		func(_ context.Context, c ringi.ToolCall) (ringi.ToolResult, error) {
			if strings.Contains(string(c.Input), "fail") {
				return ringi.ToolResult{}, errors.New("the bank is closed")
			}
			s.mu.Lock()
			s.paid = append(s.paid, string(c.Input))
			s.mu.Unlock()
			return ringi.ToolResult{Output: `{"ok":true}`}, nil
		})
	add(ringi.Tool{Name: "look", Effect: ringi.ReadOnly, InputSchema: object("")},
		func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
			return ringi.ToolResult{Output: "seen"}, nil
		})
	add(ringi.Tool{Name: "book", Effect: ringi.NonIdempotentWrite, InputSchema: object(`"room":{"type":"string"},"code":{"type":"string"}`),
		InputRequired: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["code"],"properties":{"code":{"type":"string"}}}`)},
		func(_ context.Context, c ringi.ToolCall) (ringi.ToolResult, error) {
			s.mu.Lock()
			s.paid = append(s.paid, string(c.Input))
			s.mu.Unlock()
			return ringi.ToolResult{Output: `"booked"`}, nil
		})
	add(ringi.Tool{Name: "login", Effect: ringi.NonIdempotentWrite, InputSchema: object(`"password":{"type":"string","x-sensitive":true}`)},
		func(_ context.Context, c ringi.ToolCall) (ringi.ToolResult, error) {
			return ringi.ToolResult{Output: "logged in with correct-horse-battery"}, nil
		})
	if err := reg.AddExternal(ringi.Tool{Name: "where", Effect: ringi.ReadOnly, InputSchema: object(`"why":{"type":"string"}`)}); err != nil {
		s.t.Fatal(err)
	}
	return reg
}

// Generate makes the shop a ringi.Model.
func (s *shop) Generate(ctx context.Context, req ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	return func(yield func(ringi.ModelEvent, error) bool) {
		s.mu.Lock()
		s.prompts = append(s.prompts, req)
		s.mu.Unlock()
		last := req.Messages[len(req.Messages)-1]
		if last.Role == ringi.RoleTool {
			var said []string
			for _, r := range last.Results {
				said = append(said, r.Tool+" "+string(r.Outcome))
			}
			s.speak(ctx, yield, "", "Done: ", strings.Join(said, ", "), ".")
			return
		}
		s.answer(ctx, yield, last.Text)
	}
}

func (s *shop) answer(ctx context.Context, yield func(ringi.ModelEvent, error) bool, text string) {
	calls := map[string][]ringi.ToolCall{
		"pay":          {{ModelID: "m1", Tool: "pay", Input: `{"to":"bob","amount":10}`}},
		"pay twice":    {{ModelID: "m1", Tool: "pay", Input: `{"to":"bob","amount":10}`}, {ModelID: "m2", Tool: "pay", Input: `{"to":"eve","amount":20}`}},
		"pay and look": {{ModelID: "m1", Tool: "pay", Input: `{"to":"bob","amount":10}`}, {ModelID: "m2", Tool: "look", Input: `{}`}},
		"pay fail":     {{ModelID: "m1", Tool: "pay", Input: `{"to":"fail","amount":10}`}},
		"pay big":      {{ModelID: "m1", Tool: "pay", Input: `{"to":"bob","amount":9007199254740993}`}},
		"pay proto":    {{ModelID: "m1", Tool: "pay", Input: `{"to":"bob","amount":10,"__proto__":{}}`}},
		"look":         {{ModelID: "m1", Tool: "look", Input: `{}`}},
		"nothing":      {{ModelID: "m1", Tool: "nothing", Input: `{}`}},
		"book":         {{ModelID: "m1", Tool: "book", Input: `{"room":"12"}`}},
		"login":        {{ModelID: "m1", Tool: "login", Input: `{"password":"correct-horse-battery"}`}},
		"where":        {{ModelID: "m1", Tool: "where", Input: `{"why":"lunch"}`}},
	}[text]
	switch {
	case calls != nil:
		for _, d := range []string{"I ", "will."} {
			if !yield(ringi.ModelEvent{TextDelta: d}, nil) {
				return
			}
		}
		for i, c := range calls {
			if !yield(ringi.ModelEvent{InputDelta: string(c.Input), CallIndex: i, CallTool: c.Tool}, nil) {
				return
			}
		}
		yield(ringi.ModelEvent{Turn: &ringi.ModelTurn{Text: "I will.", Calls: calls, Finish: ringi.FinishCalls}}, nil)
	case text == "slow":
		var all string
		for i := range 4 {
			select {
			case <-s.gate:
			case <-ctx.Done():
				yield(ringi.ModelEvent{}, ctx.Err())
				return
			}
			d := fmt.Sprintf("part%d ", i)
			all += d
			if !yield(ringi.ModelEvent{TextDelta: d}, nil) {
				return
			}
		}
		yield(ringi.ModelEvent{Turn: &ringi.ModelTurn{Text: all}}, nil)
	case text == "break":
		yield(ringi.ModelEvent{}, errors.New("vendor key sk-123 is wrong"))
	case text == "stumble":
		if s.prompted(text) == 1 {
			yield(ringi.ModelEvent{TextDelta: "wrong "}, nil)
			<-s.gate
			yield(ringi.ModelEvent{}, errors.New("connection reset"))
			return
		}
		s.speak(ctx, yield, "", "right")
	default:
		s.speak(ctx, yield, "Let me think.", "You said ", text, ".")
	}
}

func (s *shop) speak(_ context.Context, yield func(ringi.ModelEvent, error) bool, thought string, deltas ...string) {
	if thought != "" && !yield(ringi.ModelEvent{ReasoningDelta: thought}, nil) {
		return
	}
	for _, d := range deltas {
		if !yield(ringi.ModelEvent{TextDelta: d}, nil) {
			return
		}
	}
	yield(ringi.ModelEvent{Turn: &ringi.ModelTurn{Text: strings.Join(deltas, "")}}, nil)
}

// prompted counts how often the model was asked about a text.
func (s *shop) prompted(text string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.prompts {
		if p.Messages[len(p.Messages)-1].Text == text {
			n++
		}
	}
	return n
}

func (s *shop) payments() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.paid...)
}

// user is a client of a chat: what it holds is what it sends.
type user struct {
	*shop
	name, id string
	sdk      string
	messages []map[string]any
}

func (s *shop) user(name, id string) *user { return &user{shop: s, name: name, id: id} }

// answer of a request: status and body, and the chunks of a stream.
type reply struct {
	status int
	code   string
	text   string
	chunks []map[string]any
}

func (u *user) do(method, path string, body any) *reply {
	u.t.Helper()
	var in io.Reader
	if body != nil {
		b, ok := body.([]byte)
		if !ok {
			var err error
			if b, err = json.Marshal(body); err != nil {
				u.t.Fatal(err)
			}
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, u.server.URL+path, in)
	if err != nil {
		u.t.Fatal(err)
	}
	req.Header.Set("X-User", u.name)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if u.sdk != "" {
		req.Header.Set("Ringi-AI-SDK", u.sdk)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	res, err := http.DefaultClient.Do(req.WithContext(ctx))
	if err != nil {
		u.t.Fatal(err)
	}
	defer res.Body.Close()
	out := &reply{status: res.StatusCode, code: res.Header.Get("Ringi-Code")}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		u.t.Fatal(err)
	}
	out.text = string(b)
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		out.chunks = parse(u.t, out.text)
	}
	return out
}

func parse(t testing.TB, text string) (out []map[string]any) {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var c map[string]any
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("chunk %q: %v", data, err)
		}
		out = append(out, c)
	}
	return out
}

// say posts a user message behind what the client holds.
func (u *user) say(text string) *reply {
	u.t.Helper()
	u.messages = append(u.messages, map[string]any{"id": fmt.Sprintf("cli-%d", len(u.messages)), "role": "user", "parts": []any{map[string]any{"type": "text", "text": text}}})
	r := u.post("submit-message")
	u.reload()
	return r
}

func (u *user) post(trigger string) *reply {
	u.t.Helper()
	return u.do("POST", "/", map[string]any{"id": u.id, "messages": u.messages, "trigger": trigger})
}

// reload takes the server's messages.
func (u *user) reload() []map[string]any {
	u.t.Helper()
	r := u.do("GET", "/"+u.id+"/messages", nil)
	if r.status != 200 {
		u.t.Fatalf("messages: %d %s", r.status, r.text)
	}
	u.messages = nil
	if err := json.Unmarshal([]byte(r.text), &u.messages); err != nil {
		u.t.Fatalf("messages %s: %v", r.text, err)
	}
	return u.messages
}

// toolParts are those of the newest message.
func (u *user) toolParts() (out []map[string]any) {
	last := u.messages[len(u.messages)-1]
	for _, p := range last["parts"].([]any) {
		if one := p.(map[string]any); strings.HasPrefix(one["type"].(string), "tool-") {
			out = append(out, one)
		}
	}
	return out
}

// answerPart does what addToolApprovalResponse does to a part.
func answerPart(p map[string]any, yes bool, reason string) {
	a := p["approval"].(map[string]any)
	p["state"], a["approved"] = "approval-responded", yes
	if reason != "" {
		a["reason"] = reason
	}
}

// types lists the chunks' types, as if the model had been slow or fast: what it
// says is one delta, and a call is there at once.
func (r *reply) types() string {
	var out []string
	for _, c := range r.chunks {
		kind := c["type"].(string)
		if kind == "tool-input-start" || len(out) > 0 && kind == out[len(out)-1] && strings.HasSuffix(kind, "-delta") {
			continue
		}
		out = append(out, kind)
	}
	return strings.Join(out, " ")
}

func (r *reply) find(kind string) map[string]any {
	for _, c := range r.chunks {
		if c["type"] == kind {
			return c
		}
	}
	return nil
}

func principal(name string) ringi.Principal {
	return ringi.Principal{ID: name, Name: name, Kind: ringi.Person, Auth: "test"}
}

func contains(s, sub string) bool { return strings.Contains(s, sub) }
