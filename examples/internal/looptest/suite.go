package looptest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// Inputs of the tools.
const (
	A1017 = `{"id":"A-1017"}`
	A1018 = `{"id":"A-1018"}`
)

// Run holds the example to all of the suite.
func (e Example) Run(t *testing.T) {
	t.Run("WaitRestartApproveOnce", e.waitRestartApproveOnce)
	t.Run("ConcurrentResumesRunOnce", e.concurrentResumesRunOnce)
	t.Run("ApproveOneOfTwo", e.approveOneOfTwo)
	t.Run("SameCallTwiceAsksTwice", e.sameCallTwiceAsksTwice)
	t.Run("DenyIsReadByTheModel", e.denyIsReadByTheModel)
	t.Run("EditRunsTheEditedBytes", e.editRunsTheEditedBytes)
	t.Run("ExpiredIsReadByTheModel", e.expiredIsReadByTheModel)
	t.Run("F30_KilledBetweenStartAndFinish", e.killedBetweenStartAndFinish)
	t.Run("KeepsEveryByte", e.keepsEveryByte)
}

// Refund is the answer of a model that calls refund once, as call_1.
func (e Example) Refund() string { return e.API.Calls(Call{"call_1", "refund", A1017}) }

// Answered compares the results that the model last read, by its calls' ids.
func (s *Scene) Answered(want map[string]string) {
	s.Helper()
	if got := s.Vendor.Last().Results; fmt.Sprint(got) != fmt.Sprint(want) {
		s.Errorf("the model read %q, want %q", got, want)
	}
}

// Read wants the model to have read a text, as the result of a call.
func (s *Scene) Read(call, text string) {
	s.Helper()
	if got := s.Vendor.Last().Results[call]; !strings.Contains(got, text) {
		s.Errorf("the model read %q, want %q", got, text)
	}
}

func (e Example) waitRestartApproveOnce(t *testing.T) {
	s := e.New(t, e.API.Calls(Call{"call_1", "find_order", A1017}, Call{"call_2", "refund", A1017}), e.API.Says("Done."))
	p := s.Start()
	r := p.Turn(1)[0]
	if r.Call.ModelID != "call_2" || r.Call.Input != A1017 {
		t.Errorf("asks about %+v", r.Call)
	}
	s.WantRan("find_order " + A1017)
	p.Exit()

	p = s.Start()
	p.Turn(1) // still undecided
	p.Exit()
	s.Must(s.spawn("approve " + r.ID).Wait())

	p = s.Start()
	p.Turn(0)
	s.WantRan("find_order "+A1017, "refund "+A1017)
	s.Answered(map[string]string{"call_1": "12.50, paid by card", "call_2": "refunded A-1017"})
	if n := s.Vendor.questions(); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
	if _, err := p.Engine.Verify(context.Background(), r.RunID); err != nil {
		t.Error(err)
	}
	s.Must(p.Gate.Close(context.Background()))
	p.Exit()
}

func (e Example) concurrentResumesRunOnce(t *testing.T) {
	for name, processes := range map[string]int{"in one process": 1, "in eight processes": 8} {
		t.Run(name, func(t *testing.T) {
			s := e.New(t, e.Refund(), e.API.Says("Done."))
			p := s.Start()
			s.Decide(p.Turn(1)[0].Approve(Ana))
			p.Exit()
			var all []*Process
			for range processes {
				all = append(all, s.Start())
			}
			var turns [8]Turn // each has read the conversation before the first one saves
			for i := range turns {
				var err error
				turns[i], err = all[i%len(all)].loop()
				s.Must(err)
			}
			var wg sync.WaitGroup
			for _, turn := range turns {
				wg.Go(func() {
					if waiting, err := turn(context.Background()); err != nil || len(waiting) > 0 {
						t.Error(waiting, err)
					}
				})
			}
			wg.Wait()
			for _, p := range all {
				p.Exit()
			}
			s.WantRan("refund " + A1017)
			s.Answered(map[string]string{"call_1": "refunded A-1017"})
		})
	}
}

func (e Example) approveOneOfTwo(t *testing.T) {
	s := e.New(t, e.API.Calls(Call{"call_1", "refund", A1017}, Call{"call_2", "refund", A1018}), e.API.Says("Done."))
	p := s.Start()
	two := p.Turn(2)
	s.Decide(two[1].Approve(Ana))
	left := p.Turn(1)
	if left[0].ID != two[0].ID {
		t.Errorf("%s waits, want %s", left[0].ID, two[0].ID)
	}
	s.WantRan("refund " + A1018)
	p.Exit()

	s.Decide(two[0].Approve(Ana))
	p = s.Start()
	p.Turn(0)
	s.WantRan("refund "+A1018, "refund "+A1017)
	s.Answered(map[string]string{"call_1": "refunded A-1017", "call_2": "refunded A-1018"})
	p.Exit()
}

func (e Example) sameCallTwiceAsksTwice(t *testing.T) {
	s := e.New(t, e.API.Calls(Call{"call_1", "refund", A1017}, Call{"call_2", "refund", A1017}), e.API.Says("Done."))
	p := s.Start()
	two := p.Turn(2)
	s.Decide(two[0].Approve(Ana))
	p.Turn(1)
	s.WantRan("refund " + A1017)
	s.Decide(two[1].Deny(Ana, "once is enough"))
	p.Turn(0)
	s.WantRan("refund " + A1017)
	p.Exit()
}

func (e Example) denyIsReadByTheModel(t *testing.T) {
	s := e.New(t, e.Refund(), e.API.Says("I see."))
	p := s.Start()
	s.Decide(p.Turn(1)[0].Deny(Ana, "not this customer"))
	p.Turn(0)
	s.WantRan()
	s.Read("call_1", "not this customer")
	p.Exit()
}

func (e Example) editRunsTheEditedBytes(t *testing.T) {
	s := e.New(t, e.Refund(), e.API.Says("Done."))
	p := s.Start()
	first := p.Turn(1)[0]
	s.Decide(first.Edit(Ana, json.RawMessage(A1018)))
	second := p.Turn(1)[0] // the process with the tools has checked it, and asks anew
	if second.Replaces != first.ID || second.Call.Input != A1018 || second.Proposed != A1017 {
		t.Errorf("asks %+v", second)
	}
	s.WantRan()
	p.Exit()

	s.Decide(second.Approve(Ana))
	p = s.Start()
	p.Turn(0)
	s.WantRan("refund " + A1018)
	s.Read("call_1", "refunded A-1018")
	if got := s.Vendor.Last().Inputs["call_1"]; got != A1017 {
		t.Errorf("the model's own call became %s", got)
	}
	p.Exit()
}

func (e Example) expiredIsReadByTheModel(t *testing.T) {
	s := e.New(t, e.Refund(), e.API.Says("I see."))
	s.Config = func(c *engine.Config) { c.Expiry = 50 * time.Millisecond }
	p := s.Start()
	r := p.Turn(1)[0]
	time.Sleep(time.Until(r.ExpiresAt) + 10*time.Millisecond)
	p.Exit()

	p = s.Start()
	p.Turn(0)
	s.WantRan()
	s.Read("call_1", "nobody decided in time")
	p.Exit()
}

func (e Example) killedBetweenStartAndFinish(t *testing.T) {
	s := e.New(t, e.Refund(), e.API.Says("Done."))
	s.Config = shortCalls
	p := s.Start()
	s.Decide(p.Turn(1)[0].Approve(Ana))
	p.Exit()

	child := s.spawn("hang")
	for deadline := time.Now().Add(90 * time.Second); s.ran() == ""; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the second process did not start the tool")
		}
	}
	s.Must(child.Process.Kill())
	_ = child.Wait()

	p = s.Start()
	asked := p.Turn(1)[0] // it may have run: a person is asked, and nothing runs again
	if asked.Kind != ringi.KindOutcome {
		t.Fatalf("asks %s", asked.Kind)
	}
	s.WantRan("refund " + A1017)
	p.Exit()

	s.Decide(asked.Ran(Ana, "refunded A-1017, says the bank"))
	p = s.Start()
	p.Turn(0)
	s.WantRan("refund " + A1017)
	s.Answered(map[string]string{"call_1": "The call was interrupted; a person says that it ran, with this result.\nrefunded A-1017, says the bank"})
	p.Exit()
}

// The model's own bytes are shown, run and, where the SDK lets it, sent back.
func (e Example) keepsEveryByte(t *testing.T) {
	const odd = `{ "id" : "A-1017\u00e9<&>" }`
	s := e.New(t, e.API.Calls(Call{"call_1", "refund", odd}), e.API.Says("Done."))
	p := s.Start()
	r := p.Turn(1)[0]
	if r.Call.Input != odd {
		t.Errorf("asks about %s", r.Call.Input)
	}
	s.Decide(r.Approve(Ana))
	p.Exit()

	p = s.Start()
	p.Turn(0)
	s.WantRan("refund " + odd)
	if got := s.Vendor.Last().Inputs["call_1"]; got != odd && !e.Reencodes {
		t.Errorf("the model's own call became %s", got)
	}
	p.Exit()
}

// GlueIsShort counts the lines of glue.go, imports, comments and blank ones left out.
func GlueIsShort(t *testing.T, most int) {
	t.Helper()
	b, err := os.ReadFile("glue.go")
	if err != nil {
		t.Fatal(err)
	}
	n, imports := 0, false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "import (":
			imports = true
		case imports:
			imports = line != ")"
		case line != "" && !strings.HasPrefix(line, "//"):
			n++
		}
	}
	if n > most {
		t.Errorf("glue.go has %d lines, at most %d are promised", n, most)
	}
}
