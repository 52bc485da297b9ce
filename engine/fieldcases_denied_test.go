package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// B. Denied still runs; a missing or odd decision still runs.

func TestF15_DeclineWithoutThePolicyRunsNothing(t *testing.T) {
	s := newShop(t, turn("delete_user", `{"id":5}`))
	s.ran.Tool(s.reg, ringi.Tool{Name: "delete_user"}, "gone") // undeclared: without the policy it would run
	asks := ringi.ToolApproval{Func: func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
		return ringi.Verdict{Status: ringi.UserApproval}, nil
	}}
	s.cfg.Approval = ringi.Approval{Tools: map[string]ringi.ToolApproval{"delete_user": asks}}
	for name, decide := range map[string]func(ringi.ApprovalRequest) ringi.Decision{
		"decline": func(r ringi.ApprovalRequest) ringi.Decision { return r.Deny(ringitest.Ana, "no") },
		"approve": func(r ringi.ApprovalRequest) ringi.Decision { return r.Approve(ringitest.Ana) },
	} {
		res := s.waits(1)
		s.restart(func(c *engine.Config) { c.Approval = ringi.Approval{} })
		s.decide(decide(res.Pending[0]))
		if _, err := s.e.Resume(t.Context(), res.RunID); !errors.Is(err, ringi.ErrPolicyMissing) {
			t.Errorf("%s: a process without the policy goes on: %v", name, err)
		}
		s.nothingRan()
		s.restart(func(c *engine.Config) { c.Approval = s.cfg.Approval })
		if name == "decline" {
			if out := s.ends(res.RunID); out.Results[0].Code != ringi.CodeDeniedByPerson {
				t.Errorf("%+v", out.Results[0])
			}
			s.nothingRan()
		}
	}
}

func TestF16_EveryKindOfToolIsGated(t *testing.T) {
	kinds := map[string]func(s *shop) error{
		"raw": func(s *shop) error {
			s.ran.Tool(s.reg, ringi.Tool{Name: "pay", RequiresApproval: true}, "paid")
			return nil
		},
		"typed": func(s *shop) error {
			return ringi.AddTool(s.reg, ringi.Tool{Name: "pay", RequiresApproval: true},
				ringitest.Counted(&s.ran, "pay", func(context.Context, struct {
					Amount int `json:"amount"`
				}) (string, error) {
					return "paid", nil
				}))
		},
		"remote": func(s *shop) error {
			s.ran.Tool(s.reg, ringi.Tool{Name: "pay", Effect: ringi.ReadOnly, Remote: &ringi.Remote{Server: "bank"}}, "paid")
			return nil
		},
		"external": func(s *shop) error {
			return s.reg.AddExternal(ringi.Tool{Name: "pay"})
		},
		"an agent as a tool": func(s *shop) error {
			h := func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
				res, err := s.e.Run(ctx, ringi.RunStart{Messages: []ringi.Message{ringi.User("pay")}})
				return ringi.ToolResult{Output: res.Text}, err
			}
			return s.reg.Add(ringi.Tool{Name: "pay", RequiresApproval: true}, s.ran.Handler(h))
		},
	}
	for name, add := range kinds {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, turn("pay", `{"amount":1}`))
			if err := add(s); err != nil {
				t.Fatal(err)
			}
			res := s.waits(1)
			s.nothingRan()
			s.decide(res.Pending[0].Deny(ringitest.Ana, "no"))
			if out := s.ends(res.RunID).Results[0]; out.Outcome != ringi.OutcomeDenied || out.Executed() {
				t.Errorf("%+v", out)
			}
			s.nothingRan()
		})
	}
}

func TestF18_ADanglingCallIsNotApproved(t *testing.T) {
	s := newShop(t)
	res := s.start(ringi.RunStart{Messages: []ringi.Message{
		ringi.User("clean up"),
		{Role: ringi.RoleAssistant, Calls: []ringi.ToolCall{ringitest.Call("delete_file", `{"path":"a"}`), ringitest.Call("list_files", `{}`)}},
		ringi.User("and?"),
	}})
	if res.Status != ringi.Completed {
		t.Errorf("run is %s", res.Status)
	}
	s.nothingRan()
	results := s.model.Requests()[0].Messages[2].Results
	if len(results) != 2 {
		t.Fatalf("the model reads %+v", results)
	}
	for _, r := range results {
		if r.Text() != "not executed" || r.Code != ringi.CodeDangling {
			t.Errorf("the model reads %+v", r)
		}
	}
}

func TestF20_AMisspeltSettingIsAnError(t *testing.T) {
	reg := newShop(t).reg
	deny := map[string]ringi.ToolApproval{"delete_fil": {Status: ringi.Denied}}
	for name, cfg := range map[string]engine.Config{
		"approval":         {Approval: ringi.Approval{Tools: deny}},
		"floor":            {Floor: ringi.Approval{Tools: deny}},
		"require_approval": {RequireApproval: []string{"delete_fil"}},
		"Disabled":         {Disabled: []string{"delete_fil"}},
	} {
		cfg.Registry = reg
		_, err := engine.New(cfg)
		if p, ok := errors.AsType[*ringi.PolicyError](err); !ok || p.Name != "delete_fil" || p.Nearest != "delete_file" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, cfg := range map[string]engine.Config{
		"an unknown status":   {Approval: ringi.Approval{Tools: map[string]ringi.ToolApproval{"delete_file": {Status: "reject"}}}},
		"an entry of nothing": {Approval: ringi.Approval{Tools: map[string]ringi.ToolApproval{"delete_file": {}}}},
		"another letter case": {Approval: ringi.Approval{Tools: map[string]ringi.ToolApproval{"Delete_file": {Status: ringi.Denied}}}},
		"a zone":              {Zone: "extern"},
		"four eyes":           {FourEyes: "yes"},
		"an answer":           {ForbidAnswers: []ringi.Answer{"edits"}},
		"a turn mode":         {TurnMode: "later"},
	} {
		cfg.Registry = reg
		if _, err := engine.New(cfg); err == nil {
			t.Errorf("%s: an engine is made", name)
		}
	}
}

// A denied call reaches no handler, whatever hooks and answers follow.
func TestF21_ADeniedCallRunsByNoOtherPath(t *testing.T) {
	s := newShop(t, turn("rm", `{"path":"/x"}`), turn("list_files", `{}`))
	found := ringi.ToolHooks{
		Preview: func(context.Context, ringi.ToolCall) (ringi.Preview, error) {
			return ringi.Preview{Text: "removes /x", Precondition: "v1"}, nil
		},
		Lookup:        func(context.Context, string) (ringi.ToolResult, bool, error) { return ringi.ToolResult{}, true, nil },
		Check:         func(context.Context, ringi.ToolCall, string) error { return nil },
		NeedsApproval: func(context.Context, ringi.ToolCall) (bool, error) { return true, nil },
	}
	s.ran.Tool(s.reg, ringi.Tool{Name: "rm", Effect: ringi.IdempotentWrite, AllowEdit: true, AllowRespond: true}, "removed", found)
	s.cfg.PrepareStep = func(context.Context, engine.StepInfo) (engine.StepPlan, error) {
		return engine.StepPlan{Tools: []string{"rm", "list_files"}}, nil
	}
	s.cfg.Observers = []engine.Observer{{StepEnd: func(context.Context, ringi.RunInfo, int, ringi.Usage) { panic("jump") }}}
	res := s.waits(1)
	r := res.Pending[0]
	s.decide(r.Deny(ringitest.Ana, "no"))
	for _, d := range []ringi.Decision{
		r.Approve(ringitest.Ben), r.Edit(ringitest.Ben, json.RawMessage(`{"path":"/x"}`)), r.Respond(ringitest.Ben, json.RawMessage(`"x"`)),
		r.RunAgain(ringitest.Ben), r.Ran(ringitest.Ben, "x"),
	} {
		if first := s.decided(d); first.State != ringi.Refused || first.Decision.Answer != ringi.Deny {
			t.Errorf("%s: %v", d.Answer, first)
		}
	}
	s.restart()
	s.ends(res.RunID)
	s.resume(res.RunID)
	s.ran.Want(t, "rm", 0)
	s.ran.Want(t, "list_files", 1)
}

func TestF23_TheBodyRunsAfterTheAnswer(t *testing.T) {
	for _, approver := range []*ringitest.Approver{nil, ringitest.ApproveAll(ringitest.Ana)} {
		s := newShop(t, turn("delete_file", `{"path":"a"}`))
		if approver != nil {
			s.cfg.OnApprovalRequired = func(ctx context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) {
				s.nothingRan()
				return approver.Decide(ctx, r)
			}
			s.start()
		} else {
			res := s.waits(1)
			s.resume(res.RunID)
			s.nothingRan()
			s.decide(res.Pending[0].Approve(ringitest.Ana))
			s.nothingRan() // deciding runs nothing
			s.ends(res.RunID)
		}
		s.ran.Want(t, "delete_file", 1)
	}
}

// Every rung and every floor asks; one decision answers them all.
func TestF25_OneDecisionForAllGates(t *testing.T) {
	s := newShop(t, turn("post", `{"channel":"ops"}`))
	s.ran.Tool(s.reg, ringi.Tool{Name: "post", Effect: ringi.NonIdempotentWrite, RequiresApproval: true, NeedsApproval: true}, "posted",
		ringi.ToolHooks{NeedsApproval: func(context.Context, ringi.ToolCall) (bool, error) { return true, nil }})
	asks := ringi.Approval{
		Func: func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
			return ringi.Verdict{Status: ringi.UserApproval}, nil
		},
		Tools: map[string]ringi.ToolApproval{"post": {Status: ringi.UserApproval}},
	}
	s.cfg.Approval, s.cfg.Floor, s.cfg.RequireApproval = asks, asks, []string{"post"}
	s.cfg.PrepareStep = func(context.Context, engine.StepInfo) (engine.StepPlan, error) {
		return engine.StepPlan{Approval: ringi.Approval{Func: asks.Func}}, nil
	}
	res := s.waits(1)
	s.restart()
	s.decide(res.Pending[0].Approve(ringitest.Ana))
	s.ends(res.RunID)
	s.ran.Want(t, "post", 1)
	page, err := s.e.Requests(t.Context(), ringi.RequestQuery{RunID: res.RunID,
		State: []ringi.RequestState{ringi.Pending, ringi.Granted, ringi.Refused, ringi.Stale, ringi.Withdrawn, ringi.Expired, ringi.Spent}})
	if err != nil || len(page.Requests) != 1 || page.Requests[0].State != ringi.Spent {
		t.Errorf("%+v, %v", page.Requests, err)
	}
}

func TestF26_EveryConnectorIsGated(t *testing.T) {
	call := ringitest.Call("delete_file", `{"path":"a"}`)
	models := map[string]ringitest.Reply{
		"plain":          ringitest.Turn(ringi.ModelTurn{Calls: []ringi.ToolCall{call}}),
		"finish stop":    ringitest.Turn(ringi.ModelTurn{Calls: []ringi.ToolCall{call}, Finish: "stop"}),
		"finish calls":   ringitest.Calls(call),
		"text and calls": ringitest.Turn(ringi.ModelTurn{Text: "I delete it.", Calls: []ringi.ToolCall{call}}),
		"repeated ids": ringitest.Turn(ringi.ModelTurn{Calls: []ringi.ToolCall{
			{ModelID: "call_0", Tool: "delete_file", Input: `{"path":"a"}`}, {ModelID: "call_0", Tool: "list_files", Input: `{}`}}}),
	}
	for name, reply := range models {
		for _, streamed := range []bool{false, true} {
			deltas := ringitest.Events(ringi.ModelEvent{TextDelta: "I "}, ringi.ModelEvent{CallTool: "delete_file", InputDelta: `{"path"`})
			s := newShop(t, deltas, reply)
			run := ""
			if streamed {
				var kinds []ringi.EventKind
				for ev, err := range s.engine().Stream(t.Context(), ringi.RunStart{Messages: []ringi.Message{ringi.User("x")}}) {
					if err != nil {
						t.Fatal(err)
					}
					run, kinds = ev.RunID, append(kinds, ev.Kind)
				}
				if !slices.Contains(kinds, ringi.EventInputDelta) || kinds[len(kinds)-1] != ringi.EventRunWaiting {
					t.Errorf("%s: streamed %q", name, kinds)
				}
			} else {
				run = s.waits(1).RunID
			}
			s.ran.Want(t, "delete_file", 0)
			res := s.resume(run)
			s.decide(res.Pending[0].Approve(ringitest.Ana))
			s.ends(run)
			s.ran.Want(t, "delete_file", 1, `{"path":"a"}`)
		}
	}
}
