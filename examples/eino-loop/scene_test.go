package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/store/sqlite"
)

var ana = ringi.Principal{ID: "os:1000@desk", Name: "Ana", Kind: ringi.Person}

// scene is what outlives a process: the store, the checkpoints, what the tools
// did, and the vendor.
type scene struct {
	t      testing.TB
	dir    string
	vendor string
	config func(*engine.Config)
}

func newScene(t *testing.T, v *vendor) *scene {
	return &scene{t: t, dir: t.TempDir(), vendor: v.URL, config: func(*engine.Config) {}}
}

func (s *scene) file(name string) string { return filepath.Join(s.dir, name) }

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// process is one process: a store handle, an engine and a gate of its own.
type process struct {
	*scene
	store *sqlite.Store
	e     *engine.Engine
	gate  *engine.Gate
	agent *Agent
}

func (s *scene) start() *process { return s.startWith(func() {}) }

// startWith is a process in whose tools something happens after they are noted.
func (s *scene) startWith(after func()) *process {
	s.t.Helper()
	ctx := context.Background()
	p := s.bare(registry())
	var err error
	p.gate, err = p.e.Gate(ctx, ringi.RunInfo{Thread: "conversation-1"})
	s.must(err)
	m, err := openai.NewChatModel(ctx, &openai.ChatModelConfig{Model: "m", APIKey: "none", BaseURL: s.vendor})
	s.must(err)
	var tools []tool.BaseTool
	for _, t := range shop() {
		tools = append(tools, noted{t.(tool.InvokableTool), s, after})
	}
	p.agent, err = newAgent(ctx, m, tools, func(context.Context) (*engine.Gate, error) { return p.gate, nil }, folder(s.dir))
	s.must(err)
	return p
}

// bare is a process without a loop; with a nil registry it has no tools either.
func (s *scene) bare(reg *ringi.Registry) *process {
	s.t.Helper()
	store, err := sqlite.Open(s.file("agent.db"), sqlite.Options{})
	s.must(err)
	cfg := engine.Config{Registry: reg, Store: store}
	s.config(&cfg)
	e, err := engine.New(cfg)
	s.must(err)
	return &process{scene: s, store: store, e: e}
}

func (p *process) exit() { p.must(p.store.Close()) }

// noted is a tool whose every run is noted in a file, where all processes see it.
type noted struct {
	tool.InvokableTool
	s     *scene
	after func()
}

func (n noted) InvokableRun(ctx context.Context, input string, opts ...tool.Option) (string, error) {
	info, err := n.Info(ctx)
	if err != nil {
		return "", ringi.NotDone(err)
	}
	f, err := os.OpenFile(n.s.file("ran"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return "", ringi.NotDone(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%s %s\n", info.Name, input); err != nil {
		return "", err
	}
	n.after()
	return n.InvokableTool.InvokableRun(ctx, input, opts...)
}

// ran are the runs of tools, in all processes, one a line.
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

// turn goes on with the conversation, and wants n requests to be open. They are
// in the order of the calls.
func (p *process) turn(n int) []ringi.ApprovalRequest {
	p.t.Helper()
	ctx := context.Background()
	_, ids, err := p.agent.Run(ctx, "conversation-1", said)
	p.must(err)
	var waiting []ringi.ApprovalRequest
	for _, id := range ids {
		r, err := p.e.Request(ctx, id)
		p.must(err)
		waiting = append(waiting, r)
	}
	if len(waiting) != n {
		p.t.Fatalf("%d requests wait, want %d: %v", len(waiting), n, waiting)
	}
	slices.SortFunc(waiting, func(a, b ringi.ApprovalRequest) int { return strings.Compare(a.Call.ModelID, b.Call.ModelID) })
	return waiting
}

// said is what the conversation begins with. A resumed graph ignores it.
var said = []*schema.Message{schema.UserMessage("Refund A-1017.")}

// decide answers from a process of its own, which has no tools.
func (s *scene) decide(d ringi.Decision) {
	s.t.Helper()
	p := s.bare(nil)
	defer p.exit()
	_, err := p.e.Decide(context.Background(), d)
	s.must(err)
}

// spawn starts this test binary as a real process in the scene.
func (s *scene) spawn(does string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LOOP_CHILD="+does, "LOOP_DIR="+s.dir, "LOOP_VENDOR="+s.vendor)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	s.must(cmd.Start())
	return cmd
}

// TestMain is also the second process of the tests that have a real one.
func TestMain(m *testing.M) {
	does, _ := os.LookupEnv("LOOP_CHILD")
	if does == "" {
		os.Exit(m.Run())
	}
	s := &scene{t: fatal{}, dir: os.Getenv("LOOP_DIR"), vendor: os.Getenv("LOOP_VENDOR"), config: shortCalls}
	switch verb, id, _ := strings.Cut(does, " "); verb {
	case "approve":
		p := s.bare(nil)
		r, err := p.e.Request(context.Background(), id)
		s.must(err)
		_, err = p.e.Decide(context.Background(), r.Approve(ana))
		s.must(err)
		p.exit()
	case "hang":
		p := s.startWith(func() { time.Sleep(time.Hour) }) // it is killed here, or given up
		p.turn(0)
	}
}

// fatal is the testing.TB of a process that is no test.
type fatal struct{ testing.TB }

func (fatal) Helper() {}
func (fatal) Fatal(args ...any) {
	fmt.Fprintln(os.Stderr, args...)
	os.Exit(1)
}
func (fatal) Fatalf(format string, args ...any) { fatal{}.Fatal(fmt.Sprintf(format, args...)) }

// shortCalls makes a call that nobody finishes unknown after a second.
func shortCalls(c *engine.Config) { c.Limits.ToolTimeout = time.Second }
