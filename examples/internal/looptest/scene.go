// Package looptest holds a loop over a vendor's SDK to what the gate promises:
// what was approved runs once, with the bytes that were shown, whatever process
// goes on. The example modules run it over the real SDKs.
package looptest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/store/sqlite"
)

// Example is what a loop tells the suite of itself.
type Example struct {
	// API is what its SDK speaks.
	API API
	// Registry are its tools: find_order, a read, and refund, a write that may be edited.
	Registry func() *ringi.Registry
	// Begin writes the conversation that its processes go on with. It may be nil.
	Begin func(*Scene) error
	// Loop makes the loop of a new process, with the scene's vendor. Each of
	// its tools calls Process.Ran before it answers.
	Loop func(*Process) (Loop, error)
	// Reencodes says that the SDK does not send the model's calls back byte for byte.
	Reencodes bool
}

// A Loop reads the conversation as it is kept now.
type Loop func() (Turn, error)

// A Turn goes on with what was read, until the model is done or people are
// asked. It returns those requests in the order of their calls.
type Turn func(context.Context) ([]ringi.ApprovalRequest, error)

// Ana decides.
var Ana = ringi.Principal{ID: "os:1000@desk", Name: "Ana", Kind: ringi.Person}

// Scene is what outlives a process: the store, the kept conversation, what the
// tools did, and the vendor.
type Scene struct {
	testing.TB
	Vendor *Vendor // nil in a second process
	URL    string  // the vendor's
	// Config changes the configuration of the processes from now on.
	Config func(*engine.Config)

	example Example
	dir     string
}

// New begins a scene, in which the model gives those answers.
func (e Example) New(t *testing.T, answers ...string) *Scene {
	v := newVendor(t, e.API, answers)
	s := &Scene{TB: t, Vendor: v, URL: v.URL, Config: func(*engine.Config) {}, example: e, dir: t.TempDir()}
	if e.Begin != nil {
		s.Must(e.Begin(s))
	}
	return s
}

// File is a file of the scene's.
func (s *Scene) File(name string) string { return filepath.Join(s.dir, name) }

// Must ends the test where there is an error.
func (s *Scene) Must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// Process is one process: a store handle, an engine and a gate of its own.
type Process struct {
	*Scene
	Store  *sqlite.Store
	Engine *engine.Engine
	Gate   *engine.Gate

	after func() // what a tool does once it is noted
	loop  Loop
}

// Start begins a process with a loop.
func (s *Scene) Start() *Process {
	s.Helper()
	return s.start(func() {})
}

func (s *Scene) start(after func()) *Process {
	s.Helper()
	p := s.Bare(s.example.Registry())
	var err error
	p.Gate, err = p.Engine.Gate(context.Background(), ringi.RunInfo{Thread: "conversation-1"})
	s.Must(err)
	p.after = after
	p.loop, err = s.example.Loop(p)
	s.Must(err)
	return p
}

// Bare begins a process without a loop. With a nil registry it has no tools
// either.
func (s *Scene) Bare(reg *ringi.Registry) *Process {
	s.Helper()
	store, err := sqlite.Open(s.File("agent.db"), sqlite.Options{})
	s.Must(err)
	cfg := engine.Config{Registry: reg, Store: store}
	s.Config(&cfg)
	e, err := engine.New(cfg)
	s.Must(err)
	return &Process{Scene: s, Store: store, Engine: e}
}

// Exit ends the process.
func (p *Process) Exit() { p.Must(p.Store.Close()) }

// Ran notes a tool's run in a file, where all processes see it.
func (p *Process) Ran(tool string, input []byte) error {
	f, err := os.OpenFile(p.File("ran"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return ringi.NotDone(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%s %s\n", tool, input); err != nil {
		return err
	}
	p.after()
	return nil
}

func (s *Scene) ran() string {
	b, err := os.ReadFile(s.File("ran"))
	if err != nil && !os.IsNotExist(err) {
		s.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// WantRan compares the runs of tools, in all processes, with "tool input" each.
func (s *Scene) WantRan(want ...string) {
	s.Helper()
	if got := s.ran(); got != strings.Join(want, "\n") {
		s.Errorf("ran %q, want %q", got, want)
	}
}

// Turn goes on with the kept conversation, and wants n requests to be open.
func (p *Process) Turn(n int) []ringi.ApprovalRequest {
	p.Helper()
	turn, err := p.loop()
	p.Must(err)
	waiting, err := turn(context.Background())
	p.Must(err)
	if len(waiting) != n {
		p.Fatalf("%d requests wait, want %d: %v", len(waiting), n, waiting)
	}
	return waiting
}

// Decide answers from a process of its own, which has no tools.
func (s *Scene) Decide(d ringi.Decision) {
	s.Helper()
	p := s.Bare(nil)
	defer p.Exit()
	_, err := p.Engine.Decide(context.Background(), d)
	s.Must(err)
}

// spawn starts this test binary as a real process in the scene.
func (s *Scene) spawn(does string) *exec.Cmd {
	s.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LOOP_CHILD="+does, "LOOP_DIR="+s.dir, "LOOP_VENDOR="+s.URL)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	s.Must(cmd.Start())
	return cmd
}

// Main is for TestMain. It is also the second process of the tests that have a
// real one.
func (e Example) Main(m *testing.M) {
	does, _ := os.LookupEnv("LOOP_CHILD")
	if does == "" {
		os.Exit(m.Run())
	}
	s := &Scene{TB: fatal{}, URL: os.Getenv("LOOP_VENDOR"), Config: shortCalls, example: e, dir: os.Getenv("LOOP_DIR")}
	switch verb, id, _ := strings.Cut(does, " "); verb {
	case "approve":
		p := s.Bare(nil)
		r, err := p.Engine.Request(context.Background(), id)
		s.Must(err)
		_, err = p.Engine.Decide(context.Background(), r.Approve(Ana))
		s.Must(err)
		p.Exit()
	case "hang":
		s.start(func() { time.Sleep(time.Hour) }).Turn(0) // it is killed here, or given up
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
