package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
	"github.com/ringi-dev/ringi/store/storetest"
)

// K. Lost on restart, resume, cancel.

func TestF126_WhatIsPendingSurvives(t *testing.T) {
	s := newShop(t, turn("delete_file", `{"n":1}`, "delete_file", `{"n":2}`))
	s.cfg.Keyring = shopKeys(t)
	res := s.waits(2)
	list := func() []ringi.ApprovalRequest {
		page, err := s.e.Requests(t.Context(), ringi.RequestQuery{})
		if err != nil {
			t.Fatal(err)
		}
		return page.Requests
	}
	before, _ := json.Marshal(list())
	shown, _ := json.Marshal(res.Pending)
	s.restart()
	after, _ := json.Marshal(list())
	if !bytes.Equal(before, after) || !bytes.Equal(before, shown) {
		t.Errorf("the pending set was\n%s\nand is\n%s\nshown as\n%s", before, after, shown)
	}
	for _, r := range res.Pending { // the old buttons
		s.decide(r.Approve(ringitest.Ana))
	}
	if n := len(list()); n != 0 {
		t.Errorf("%d are listed behind the last answer", n)
	}
	s.restart()
	s.ends(res.RunID)
	s.ran.Want(t, "delete_file", 2)
}

func TestF128_AnAlteredLogRunsNothing(t *testing.T) {
	type thief = storetest.Thief
	thefts := map[string]func(th thief, run, other string) error{
		"a byte of a payload": func(th thief, run, _ string) error {
			return th.UpdateRecord("default", run, 2, func(r *ringi.Record) { r.Payload[len(r.Payload)/2] ^= 1 })
		},
		"a byte of a header": func(th thief, run, _ string) error {
			return th.UpdateRecord("default", run, 2, func(r *ringi.Record) { r.Head[len(r.Head)/2] ^= 1 })
		},
		"a hash": func(th thief, run, _ string) error {
			return th.UpdateRecord("default", run, 1, func(r *ringi.Record) { r.Hash[0] ^= 1 })
		},
		"no payload": func(th thief, run, _ string) error {
			return th.UpdateRecord("default", run, 3, func(r *ringi.Record) { r.Payload = nil })
		},
		"two records swapped": func(th thief, run, _ string) error { return th.SwapRecords("default", run, 2, 3) },
		"the tail cut":        func(th thief, run, _ string) error { return th.DeleteRecord("default", run, 4) },
		"the middle cut":      func(th thief, run, _ string) error { return th.DeleteRecord("default", run, 3) },
		"the row's MAC": func(th thief, run, _ string) error {
			return th.SetRow("default", run, func(r *ringi.RunRow) { r.MAC = "" })
		},
		"the row's sequence number": func(th thief, run, _ string) error {
			return th.SetRow("default", run, func(r *ringi.RunRow) { r.Seq-- })
		},
	}
	for name, steal := range thefts {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, turn("delete_file", `{"n":1}`))
			s.cfg.Keyring = shopKeys(t)
			res, other := s.waits(1), s.waits(1)
			s.decide(res.Pending[0].Approve(ringitest.Ana))
			th, ok := storetest.ThiefOf(s.store)
			if !ok {
				t.Fatal("the memory store brings no thief")
			}
			if err := steal(th, res.RunID, other.RunID); err != nil {
				t.Fatal(err)
			}
			s.restart()
			for range 3 { // and it stays so
				if _, err := s.e.Resume(t.Context(), res.RunID); !errors.Is(err, ringi.ErrCorrupt) {
					t.Errorf("resume: %v", err)
				}
			}
			if _, err := s.e.Request(t.Context(), res.Pending[0].ID); !errors.Is(err, ringi.ErrCorrupt) {
				t.Errorf("show: %v", err)
			}
			if row := s.row(res.RunID); row.Corrupt == "" {
				t.Error("the run is not marked corrupt")
			}
			if rows, err := s.store.Runnable(t.Context(), 10); err != nil || len(rows) != 0 {
				t.Errorf("it is offered to workers: %+v, %v", rows, err)
			}
			s.nothingRan()
			s.decide(other.Pending[0].Approve(ringitest.Ana)) // other runs go on
			s.ends(other.RunID)
		})
	}
}

// Two runs' logs swapped whole are two corrupt runs: a chain begins with its
// store and run.
func TestF128_TwoRunsSwapped(t *testing.T) {
	s := newShop(t, turn("delete_file", `{"n":1}`))
	a, b := s.waits(1), s.waits(1)
	th, _ := storetest.ThiefOf(s.store)
	rows := [2]ringi.RunRow{s.row(a.RunID), s.row(b.RunID)}
	var logs [2][]ringi.Record
	for i, id := range []string{a.RunID, b.RunID} {
		run, err := s.store.Load(t.Context(), "default", id)
		if err != nil {
			t.Fatal(err)
		}
		logs[i] = run.Records
	}
	for i, id := range []string{a.RunID, b.RunID} {
		for _, r := range logs[1-i] {
			if err := th.UpdateRecord("default", id, r.Seq, func(old *ringi.Record) { *old = r }); err != nil {
				t.Fatal(err)
			}
		}
		if err := th.SetRow("default", id, func(r *ringi.RunRow) { r.Head = rows[1-i].Head }); err != nil {
			t.Fatal(err)
		}
	}
	for _, res := range []*ringi.Result{a, b} {
		s.refuses(res.Pending[0].Approve(ringitest.Ana), ringi.ErrCorrupt)
		if _, err := s.e.Resume(t.Context(), res.RunID); !errors.Is(err, ringi.ErrCorrupt) {
			t.Errorf("resume: %v", err)
		}
	}
	s.nothingRan()
}

// The program's next version reads what the last one left: a call that lacks
// what the tool needs now is not run, one whose definition changed is asked
// again, and a denial can always finish.
func TestF130_TheNextVersionOfTheProgram(t *testing.T) {
	v1 := ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite, InputSchema: json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer"}}}`)}
	described, strict := v1, v1
	described.Description = "Pays, in cents."
	strict.InputSchema = json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer"},"currency":{"type":"string"}},"required":["currency"]}`)
	for _, c := range []struct {
		name    string
		next    *ringi.Tool
		approve bool
		status  ringi.RunStatus
		code    ringi.ResultCode
	}{
		{"another description, approved", &described, true, ringi.WaitingForApproval, ""},
		{"another description, denied", &described, false, ringi.Completed, ringi.CodeDeniedByPerson},
		{"a new required key, approved", &strict, true, ringi.Completed, ringi.CodeInvalidInput},
		{"a new required key, denied", &strict, false, ringi.Completed, ringi.CodeDeniedByPerson},
		{"no such tool, approved", nil, true, ringi.Completed, ringi.CodeUnknownTool},
		{"no such tool, denied", nil, false, ringi.Completed, ringi.CodeDeniedByPerson},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShop(t, turn("pay", `{"amount":1}`))
			s.ran.Tool(s.reg, v1, "paid")
			res := s.waits(1)
			r := res.Pending[0]
			next := ringi.NewRegistry()
			if c.next != nil {
				s.ran.Tool(next, *c.next, "paid")
			}
			if c.approve { // the yes was given before the new version came
				s.decide(r.Approve(ringitest.Ana))
				s.restart(func(cfg *engine.Config) { cfg.Registry = next })
			} else {
				s.restart(func(cfg *engine.Config) { cfg.Registry = next })
				s.decide(r.Deny(ringitest.Ana, "no"))
			}
			res = s.resume(res.RunID)
			if res.Status != c.status || len(res.Results) > 0 && res.Results[0].Code != c.code {
				t.Errorf("%s %+v", res.Status, res.Results)
			}
			s.nothingRan()
		})
	}
}

func TestF131_CancelWhileWaiting(t *testing.T) {
	s := newShop(t, turn("delete_file", `{}`, "send_mail", `{}`))
	res := s.waits(2)
	s.decide(res.Pending[0].Approve(ringitest.Ana))
	if err := s.e.Cancel(t.Context(), res.RunID, ringitest.Ben, "changed my mind", false); err != nil {
		t.Fatal(err)
	}
	for _, r := range res.Pending {
		s.refuses(r.Approve(ringitest.Ana), ringi.ErrWithdrawn)
	}
	out := s.resume(res.RunID)
	if out.Status != ringi.Cancelled || len(out.Results) != 2 {
		t.Fatalf("%+v", out)
	}
	for _, r := range out.Results {
		if r.Outcome == ringi.OutcomeDenied || r.Executed() {
			t.Errorf("%+v", r)
		}
	}
	s.nothingRan()
}

// A call in flight is not marked cancelled until it has ended: its result
// counts.
func TestF131_CancelWhileACallRuns(t *testing.T) {
	s := newShop(t, turn("slow", `{}`))
	inside, out := make(chan string), make(chan struct{})
	err := s.reg.Add(ringi.Tool{Name: "slow", RequiresApproval: true}, s.ran.Handler(func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
		tc, _ := ringi.ToolContextFrom(ctx)
		inside <- tc.RunID
		<-out
		return ringi.ToolResult{Output: "done"}, ctx.Err()
	}))
	if err != nil {
		t.Fatal(err)
	}
	res := s.waits(1)
	s.decide(res.Pending[0].Approve(ringitest.Ana))
	ended := make(chan *ringi.Result)
	go func() {
		r, err := s.e.Resume(context.Background(), res.RunID)
		if err != nil {
			t.Error(err)
		}
		ended <- r
	}()
	run := <-inside
	other := ringitest.Beside(t, s.e)
	if err := other.Cancel(t.Context(), run, ringitest.Ben, "stop", false); err != nil {
		t.Fatal(err)
	}
	if row := s.row(run); row.Status != ringi.Running {
		t.Errorf("with a call in flight the run is %s", row.Status)
	}
	close(out)
	if r := <-ended; r == nil || r.Status != ringi.Cancelled || r.Results[0].Output != "done" || r.Results[0].Outcome != ringi.OutcomeOK {
		t.Errorf("%+v", r)
	}
	s.ran.Want(t, "slow", 1)
}

func TestF133_OneSessionPausesNoOther(t *testing.T) {
	s := newShop(t)
	s.cfg.Model = ringitest.ScriptFunc(func(req ringi.ModelRequest) ringi.ModelTurn {
		tool := "list_files"
		switch {
		case req.Step > 1:
			return ringi.ModelTurn{Text: "Done."}
		case req.Messages[0].Text == "wait":
			tool = "delete_file"
		}
		return ringi.ModelTurn{Calls: []ringi.ToolCall{ringitest.Call(tool, `{}`)}}
	})
	e := s.engine()
	var wg sync.WaitGroup
	for i := range 40 {
		text, want := "go", ringi.Completed
		if i%2 == 0 {
			text, want = "wait", ringi.WaitingForApproval
		}
		wg.Go(func() {
			res, err := e.Run(t.Context(), ringi.RunStart{Messages: []ringi.Message{ringi.User(text)}})
			if err != nil || res.Status != want {
				t.Errorf("%s: %+v, %v", text, res, err)
			}
		})
	}
	wg.Wait()
	s.ran.Want(t, "list_files", 20)
	s.ran.Want(t, "delete_file", 0)
}
