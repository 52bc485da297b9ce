package aisdk_test

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
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/aisdk"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/internal/chat/chattest"
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

	*chattest.World
	handler http.Handler
}

type opened struct {
	options func(*aisdk.Options)
	config  func(*engine.Config)
	sqlite  bool
	broken  bool // New fails
}

func newShop(t testing.TB, o opened) *shop {
	s := &shop{t: t, World: chattest.New(), change: o.options, config: o.config}
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
		s.Mu.Lock()
		h := s.handler
		s.Mu.Unlock()
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
	cfg := engine.Config{Agent: "shop", Registry: s.Registry(s.t), Model: s, Store: s.store, Live: feed.Publish, Lease: time.Second, RuleFloor: true,
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
		s.Open()
		h.Close(ctx)
	})
	s.Mu.Lock()
	s.engine, s.chat, s.feed, s.handler = e, h, feed, h
	s.Mu.Unlock()
}

// who takes the principal from a header: these tests' login.
func who(r *http.Request) (ringi.Principal, error) {
	name := r.Header.Get("X-User")
	if name == "" {
		return ringi.Principal{}, errors.New("nobody")
	}
	return ringi.Principal{ID: name, Name: name, Kind: ringi.Person, Auth: "test"}, nil
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
