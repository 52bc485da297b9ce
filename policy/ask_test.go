package policy_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/policy"
)

// call is a call of the tool, with an input.
func call(tool ringi.Tool) ringi.CallInfo {
	return ringi.CallInfo{Tool: tool, Call: ringi.ToolCall{ID: "call_1", Tool: tool.Name, Input: `{"amount":2000}`}}
}

// says is an approval function with one answer.
func says(v ringi.Verdict) ringi.ApprovalFunc {
	return func(context.Context, ringi.CallInfo) (ringi.Verdict, error) { return v, nil }
}

func silent(context.Context, ringi.CallInfo) (ringi.Verdict, error) { return ringi.Verdict{}, nil }

// needs is rung 4 with one answer; it counts how often it was asked.
func needs(yes bool, asked *int) func(context.Context, ringi.ToolCall) (bool, error) {
	return func(context.Context, ringi.ToolCall) (bool, error) {
		*asked++
		return yes, nil
	}
}

func mapOf(name string, own ringi.ToolApproval) map[string]ringi.ToolApproval {
	return map[string]ringi.ToolApproval{name: own}
}

// judged is the whole way of a verdict: ask, then judge.
func judged(t *testing.T, a ringi.Approval, hook func(context.Context, ringi.ToolCall) (bool, error), tool ringi.Tool) ringi.Verdict {
	t.Helper()
	return policy.Judge(policy.Ask(t.Context(), a, hook, call(tool), 0), tool, ringi.Verdict{}, policy.RuleOptions{})
}

// The seeds' order: generic function, per-tool function, per-tool status, the
// tool's own flag; then our rule.
func TestAsk_Ladder(t *testing.T) {
	deny := ringi.Verdict{Status: ringi.Denied, Reason: "r1"}
	ok := ringi.Verdict{Status: ringi.Approved, Reason: "r2"}
	status := ringi.ToolApproval{Status: ringi.NotApplicable, Reason: "r3"}
	tests := []struct {
		name   string
		a      ringi.Approval
		hook   bool
		status ringi.Status
		source string
		reason string
	}{
		{"rung 1 over all", ringi.Approval{Func: says(deny), Tools: mapOf("pay", ringi.ToolApproval{Func: says(ok), Status: ringi.Approved})}, true, ringi.Denied, ringi.SourceFunc, "r1"},
		{"rung 2 after a silent rung 1", ringi.Approval{Func: silent, Tools: mapOf("pay", ringi.ToolApproval{Func: says(ok), Status: ringi.Denied})}, true, ringi.Approved, ringi.SourceToolFunc, "r2"},
		{"rung 3 after a silent rung 2", ringi.Approval{Tools: mapOf("pay", ringi.ToolApproval{Func: silent, Status: ringi.NotApplicable, Reason: "r3"})}, true, ringi.NotApplicable, ringi.SourceToolStatus, "r3"},
		{"an explicit not-applicable is final", ringi.Approval{Tools: mapOf("pay", status)}, true, ringi.NotApplicable, ringi.SourceToolStatus, "r3"},
		{"rung 4", ringi.Approval{Func: silent, Tools: mapOf("pay", ringi.ToolApproval{Func: silent})}, true, ringi.UserApproval, ringi.SourceNeeds, ""},
		{"no opinion", ringi.Approval{Func: silent}, false, "", "", ""},
		{"another tool's entry", ringi.Approval{Tools: mapOf("pay2", status)}, false, "", "", ""},
		{"a name in another letter case", ringi.Approval{Tools: mapOf("Pay", status)}, false, "", "", ""},
		{"unknown status", ringi.Approval{Tools: mapOf("pay", ringi.ToolApproval{Status: "allow"})}, false, ringi.Denied, ringi.SourceToolStatus, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			hook := needs(tt.hook, &asked)
			v := policy.Ask(t.Context(), tt.a, hook, call(ringi.Tool{Name: "pay"}), 0)
			if v.Status != tt.status || v.Source != tt.source || tt.reason != "" && v.Reason != tt.reason {
				t.Errorf("Ask = %s, want %s by %s", v, tt.status, tt.source)
			}
			if reached := tt.status == "" || tt.source == ringi.SourceNeeds; (asked > 0) != reached {
				t.Errorf("rung 4 was asked %d times", asked)
			}
		})
	}
}

func TestB1_NoPolicyNoFlag(t *testing.T) {
	if v := judged(t, ringi.Approval{}, nil, ringi.Tool{Name: "t"}); v.Status != ringi.NotApplicable {
		t.Errorf("%s", v)
	}
}

func TestB2_GenericFuncEndsTheQuestion(t *testing.T) {
	asked, calls := 0, 0
	a := ringi.Approval{Func: func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
		calls++
		return ringi.Verdict{Status: ringi.Denied}, nil
	}}
	if v := judged(t, a, needs(true, &asked), ringi.Tool{Name: "t", NeedsApproval: true}); v.Status != ringi.Denied || calls != 1 || asked != 0 {
		t.Errorf("%s, asked %d and %d times", v, calls, asked)
	}
}

// B3, B7: a function is told the call, the tool, the run, the messages of the
// step and the runtime value, exactly as they are.
func TestB3_B7_WhatAFunctionIsTold(t *testing.T) {
	want := call(ringi.Tool{Name: "t"})
	want.Run = ringi.RunInfo{ID: "run_1", Step: 3}
	want.Messages = []ringi.Message{ringi.User("hi")}
	want.Runtime = json.RawMessage(`{"role":"clerk"}`)
	type session struct {
		Role string `json:"role"`
	}
	var got ringi.CallInfo
	var role string
	f := func(_ context.Context, c ringi.CallInfo) (ringi.Verdict, error) {
		got = c
		s, err := ringi.Runtime[session](c)
		role = s.Role
		return ringi.Verdict{}, err
	}
	for _, a := range []ringi.Approval{{Func: f}, {Tools: mapOf("t", ringi.ToolApproval{Func: f})}} {
		got, role = ringi.CallInfo{}, ""
		if v := policy.Ask(t.Context(), a, nil, want, 0); v.Status != "" {
			t.Errorf("%s", v)
		}
		if got.Call != want.Call || got.Run.ID != "run_1" || &got.Messages[0] != &want.Messages[0] || role != "clerk" {
			t.Errorf("told %+v, role %q", got, role)
		}
	}
}

// B4: a function may take its time (2 s of it).
func TestB4_AFunctionIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := ringi.Approval{Func: func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
			time.Sleep(1999 * time.Millisecond)
			return ringi.Verdict{Status: ringi.UserApproval}, nil
		}}
		if v := policy.Ask(t.Context(), a, nil, call(ringi.Tool{Name: "t"}), 0); v.Status != ringi.UserApproval {
			t.Errorf("%s", v)
		}
	})
}

// B5: stricter than the field. There a function that returns undefined means
// not-applicable and ends the question; here no opinion falls on, to the
// legacy flag and to the rule: a silent function waves no write through.
func TestB5_NoOpinionFallsOnToTheRule(t *testing.T) {
	asked := 0
	for _, a := range []ringi.Approval{{Func: silent}, {Tools: mapOf("t", ringi.ToolApproval{Func: silent})}} {
		if v := judged(t, a, nil, ringi.Tool{Name: "t"}); v.Status != ringi.NotApplicable || v.Source != ringi.SourceRule {
			t.Errorf("undeclared: %s", v)
		}
		if v := judged(t, a, nil, ringi.Tool{Name: "t", Effect: ringi.IdempotentWrite}); v.Status != ringi.UserApproval || v.Source != ringi.SourceEffect {
			t.Errorf("write: %s", v)
		}
		if v := judged(t, a, needs(true, &asked), ringi.Tool{Name: "t"}); v.Status != ringi.UserApproval || v.Source != ringi.SourceNeeds {
			t.Errorf("legacy: %s", v)
		}
	}
}

func TestB6_AReasonIsKept(t *testing.T) {
	a := ringi.Approval{Func: says(ringi.Verdict{Status: ringi.Denied, Reason: "Manual deletion disabled", Source: "forged"})}
	if v := judged(t, a, nil, ringi.Tool{Name: "t"}); v != (ringi.Verdict{Status: ringi.Denied, Source: ringi.SourceFunc, Reason: "Manual deletion disabled"}) {
		t.Errorf("%s", v)
	}
	long := ringi.Approval{Func: says(ringi.Verdict{Status: ringi.Denied, Reason: "\xff" + strings.Repeat("é", 10_000)})}
	if v := judged(t, long, nil, ringi.Tool{Name: "t"}); len(v.Reason) > 8<<10 || strings.ToValidUTF8(v.Reason, "") != v.Reason {
		t.Errorf("a reason of %d bytes", len(v.Reason))
	}
}

func TestB8_AnEntryBeatsTheFlag(t *testing.T) {
	asked := 0
	a := ringi.Approval{Tools: mapOf("t", ringi.ToolApproval{Status: ringi.Denied})}
	if v := judged(t, a, needs(true, &asked), ringi.Tool{Name: "t", NeedsApproval: true}); v.Status != ringi.Denied || asked != 0 {
		t.Errorf("%s, asked %d times", v, asked)
	}
}

func TestB9_AFunctionWavesAFlagThrough(t *testing.T) {
	asked := 0
	a := ringi.Approval{Tools: mapOf("t", ringi.ToolApproval{Func: says(ringi.Verdict{Status: ringi.Approved})})}
	if v := judged(t, a, needs(true, &asked), ringi.Tool{Name: "t", NeedsApproval: true, Effect: ringi.NonIdempotentWrite}); v.Status != ringi.Approved || asked != 0 {
		t.Errorf("%s, asked %d times", v, asked)
	}
}

// B10: true asks. False is stricter than the field's not-applicable: it is no
// opinion, and the rule follows.
func TestB10_TheToolsOwnFlag(t *testing.T) {
	asked := 0
	write := ringi.Tool{Name: "t", Effect: ringi.NonIdempotentWrite}
	tests := []struct {
		name   string
		tool   ringi.Tool
		hook   func(context.Context, ringi.ToolCall) (bool, error)
		status ringi.Status
		source string
	}{
		{"true", ringi.Tool{Name: "t", NeedsApproval: true}, nil, ringi.UserApproval, ringi.SourceNeeds},
		{"function true", ringi.Tool{Name: "t"}, needs(true, &asked), ringi.UserApproval, ringi.SourceNeeds},
		{"function false", ringi.Tool{Name: "t"}, needs(false, &asked), ringi.NotApplicable, ringi.SourceRule},
		{"function false on a write", write, needs(false, &asked), ringi.UserApproval, ringi.SourceEffect},
		{"true beside a function", ringi.Tool{Name: "t", NeedsApproval: true}, needs(false, &asked), ringi.UserApproval, ringi.SourceNeeds},
	}
	for _, tt := range tests {
		if v := judged(t, ringi.Approval{}, tt.hook, tt.tool); v.Status != tt.status || v.Source != tt.source {
			t.Errorf("%s: %s, want %s by %s", tt.name, v, tt.status, tt.source)
		}
	}
	var input ringi.Input
	hook := func(_ context.Context, c ringi.ToolCall) (bool, error) {
		input = c.Input
		return strings.Contains(string(c.Input), "2000"), nil
	}
	if v := judged(t, ringi.Approval{}, hook, ringi.Tool{Name: "t"}); v.Status != ringi.UserApproval || input != `{"amount":2000}` {
		t.Errorf("%s, input %s", v, input)
	}
}

// B11: what a function is to be told and cannot be read denies before it is
// called.
func TestB11_WhatCannotBeReadDenies(t *testing.T) {
	called := false
	typed := ringi.When(func(context.Context, struct {
		Amount string `json:"amount"`
	}, ringi.CallInfo) (ringi.Verdict, error) {
		called = true
		return ringi.Verdict{Status: ringi.Approved}, nil
	})
	if v := judged(t, ringi.Approval{Tools: mapOf("t", typed)}, nil, ringi.Tool{Name: "t"}); v.Status != ringi.Denied || called {
		t.Errorf("%s, called %v", v, called)
	}
	// S-08: a function that needs the run's runtime value and finds none.
	needsRuntime := func(_ context.Context, c ringi.CallInfo) (ringi.Verdict, error) {
		_, err := ringi.Runtime[struct{}](c)
		return ringi.Verdict{Status: ringi.Approved}, err
	}
	if v := judged(t, ringi.Approval{Func: needsRuntime}, nil, ringi.Tool{Name: "t"}); v.Status != ringi.Denied {
		t.Errorf("%s", v)
	}
}

func TestB12_NamesOfPrototypesAreNames(t *testing.T) {
	for _, name := range []string{"constructor", "toString", "valueOf", "__proto__", "hasOwnProperty"} {
		if v := judged(t, ringi.Approval{Tools: map[string]ringi.ToolApproval{}}, nil, ringi.Tool{Name: name}); v.Status != ringi.NotApplicable {
			t.Errorf("%s, not listed: %s", name, v)
		}
		if v := judged(t, ringi.Approval{Tools: mapOf(name, ringi.ToolApproval{Status: ringi.Denied})}, nil, ringi.Tool{Name: name}); v.Status != ringi.Denied {
			t.Errorf("%s, listed: %s", name, v)
		}
	}
}

// F110: a judge that fails, in whatever way, refuses; its own words stay out
// of what the model reads.
func TestF110_AFunctionThatFailsDenies(t *testing.T) {
	secret := errors.New("dial tcp 10.0.0.7: password=hunter2")
	failing := map[string]ringi.ApprovalFunc{
		"error": func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
			return ringi.Verdict{Status: ringi.Approved}, secret
		},
		"panic": func(context.Context, ringi.CallInfo) (ringi.Verdict, error) { panic(secret) },
		"exit": func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
			runtime.Goexit()
			return ringi.Verdict{}, nil
		},
		"unknown status": says(ringi.Verdict{Status: "allow hunter2", Reason: "hunter2"}),
		"upper case":     says(ringi.Verdict{Status: "Approved"}),
	}
	for name, f := range failing {
		for source, a := range map[string]ringi.Approval{
			ringi.SourceFunc:     {Func: f},
			ringi.SourceToolFunc: {Tools: mapOf("t", ringi.ToolApproval{Func: f, Status: ringi.Approved})},
		} {
			var told error
			var from string
			ctx := policy.WithFaultFunc(t.Context(), func(source string, err error) { from, told = source, err })
			v := policy.Ask(ctx, a, nil, call(ringi.Tool{Name: "t"}), 0)
			if v.Status != ringi.Denied || v.Source != source || v.Reason == "" {
				t.Errorf("%s: %s", name, v)
			}
			if strings.Contains(v.Reason, "hunter2") {
				t.Errorf("%s: the model reads %q", name, v.Reason)
			}
			if told == nil || from != source {
				t.Errorf("%s: the log is told %v from %q", name, told, from)
			}
			if name == "error" && !errors.Is(told, secret) {
				t.Errorf("the log is told %v", told)
			}
		}
	}
	hooks := map[string]func(context.Context, ringi.ToolCall) (bool, error){
		"error": func(context.Context, ringi.ToolCall) (bool, error) { return false, secret },
		"panic": func(context.Context, ringi.ToolCall) (bool, error) { panic(secret) },
	}
	for name, hook := range hooks {
		if v := policy.Ask(t.Context(), ringi.Approval{}, hook, call(ringi.Tool{Name: "t"}), 0); v.Status != ringi.Denied || v.Source != ringi.SourceNeeds || strings.Contains(v.Reason, "hunter2") {
			t.Errorf("needs, %s: %s", name, v)
		}
	}
}

func TestAsk_ALateFunctionDeniesAndIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var finished atomic.Bool
		deaf := func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
			time.Sleep(time.Hour)
			finished.Store(true)
			return ringi.Verdict{Status: ringi.Approved}, nil
		}
		start := time.Now()
		v := policy.Ask(t.Context(), ringi.Approval{Func: deaf}, nil, call(ringi.Tool{Name: "t"}), 0)
		if v.Status != ringi.Denied || v.Source != ringi.SourceFunc || !strings.Contains(v.Reason, "in time") {
			t.Errorf("%s", v)
		}
		if waited := time.Since(start); waited != policy.DefaultTimeout {
			t.Errorf("waited %v", waited)
		}
		start = time.Now()
		policy.Ask(t.Context(), ringi.Approval{Func: deaf}, nil, call(ringi.Tool{Name: "t"}), 5*time.Second)
		if waited := time.Since(start); waited != 5*time.Second {
			t.Errorf("waited %v, want the given 5 s", waited)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait() // its goroutine ends: nothing waits for a reader
		if !finished.Load() {
			t.Error("the function did not finish")
		}
	})
}

func TestAsk_AFunctionThatHeedsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told error
		ctx := policy.WithFaultFunc(t.Context(), func(_ string, err error) { told = err })
		v := policy.Ask(ctx, ringi.Approval{Func: func(ctx context.Context, _ ringi.CallInfo) (ringi.Verdict, error) {
			<-ctx.Done()
			return ringi.Verdict{}, ctx.Err()
		}}, nil, call(ringi.Tool{Name: "t"}), time.Second)
		if v.Status != ringi.Denied || !errors.Is(told, context.DeadlineExceeded) {
			t.Errorf("%s, %v", v, told)
		}
	})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	block := func(context.Context, ringi.CallInfo) (ringi.Verdict, error) { select {} }
	if v := policy.Ask(ended, ringi.Approval{Func: block}, nil, call(ringi.Tool{Name: "t"}), time.Hour); v.Status != ringi.Denied {
		t.Errorf("ended context: %s", v)
	}
}

func TestAsk_TheCallAndTheToolMustBeOne(t *testing.T) {
	c := call(ringi.Tool{Name: "read"})
	c.Call.Tool = "delete"
	if v := policy.Ask(t.Context(), ringi.Approval{}, nil, c, 0); v.Status != ringi.Denied {
		t.Errorf("Ask: %s", v)
	}
	if v := policy.AskFloor(t.Context(), ringi.Approval{}, nil, c, 0); v.Status != ringi.Denied {
		t.Errorf("AskFloor: %s", v)
	}
}

func TestAskFloor(t *testing.T) {
	user := verdict(ringi.UserApproval, ringi.SourceOperator)
	tests := []struct {
		name    string
		floor   ringi.Approval
		require []string
		status  ringi.Status
		source  string
	}{
		{"empty", ringi.Approval{}, nil, "", ""},
		{"rung 1", ringi.Approval{Func: says(verdict(ringi.Denied, "")), Tools: mapOf("t", ringi.ToolApproval{Status: ringi.Approved})}, nil, ringi.Denied, "floor.approval.func"},
		{"rung 2", ringi.Approval{Func: silent, Tools: mapOf("t", ringi.ToolApproval{Func: says(verdict(ringi.UserApproval, "")), Status: ringi.Denied})}, nil, ringi.UserApproval, "floor.approval.tool.func"},
		{"rung 3", ringi.Approval{Tools: mapOf("t", ringi.ToolApproval{Func: silent, Status: ringi.Denied})}, nil, ringi.Denied, "floor.approval.tool.status"},
		{"required", ringi.Approval{}, []string{"s", "t"}, user.Status, user.Source},
		{"required in another case", ringi.Approval{}, []string{"T"}, user.Status, user.Source},
		{"another tool is required", ringi.Approval{}, []string{"s"}, "", ""},
		{"required over a milder floor", ringi.Approval{Tools: mapOf("t", ringi.ToolApproval{Status: ringi.Approved})}, []string{"t"}, user.Status, user.Source},
		{"required under a stricter floor", ringi.Approval{Tools: mapOf("t", ringi.ToolApproval{Status: ringi.Denied})}, []string{"t"}, ringi.Denied, "floor.approval.tool.status"},
		{"the floor asks no legacy flag", ringi.Approval{Func: silent}, nil, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := policy.AskFloor(t.Context(), tt.floor, tt.require, call(ringi.Tool{Name: "t", NeedsApproval: true}), 0)
			if v.Status != tt.status || v.Source != tt.source {
				t.Errorf("AskFloor = %s, want %s by %s", v, tt.status, tt.source)
			}
			if tt.source != "" && !strings.HasPrefix(v.Source, ringi.SourceFloor) {
				t.Errorf("source %q", v.Source)
			}
		})
	}
}

// Without a function there is no goroutine and no allocation.
func TestAsk_StaticSettingsAllocateNothing(t *testing.T) {
	a := ringi.Approval{Tools: mapOf("t", ringi.ToolApproval{Status: ringi.Denied})}
	c := call(ringi.Tool{Name: "t"})
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		policy.Ask(ctx, a, nil, c, 0)
		policy.AskFloor(ctx, ringi.Approval{}, nil, c, 0)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The seed's own examples, in Go.
func TestSeed_ToolApprovals(t *testing.T) {
	type payment struct {
		Amount int `json:"amount"`
	}
	type session struct {
		Role, Env string
	}
	tools := ringi.Approval{Tools: map[string]ringi.ToolApproval{
		"run_command": {Status: ringi.UserApproval},
		"delete_file": {Status: ringi.Denied, Reason: "Deleting files is disabled in this workspace"},
		"pay": ringi.When(func(_ context.Context, in payment, c ringi.CallInfo) (ringi.Verdict, error) {
			s, err := ringi.Runtime[session](c)
			switch {
			case err != nil:
				return ringi.Verdict{}, err
			case in.Amount > 1000:
				return ringi.Verdict{Status: ringi.UserApproval}, nil
			case s.Role != "admin":
				return ringi.Verdict{Status: ringi.Denied, Reason: "Only admins can send payments"}, nil
			}
			return ringi.Verdict{}, nil
		}),
	}}
	one := ringi.Approval{Func: func(_ context.Context, c ringi.CallInfo) (ringi.Verdict, error) {
		s, err := ringi.Runtime[session](c)
		switch {
		case c.Call.Tool == "delete_file":
			return ringi.Verdict{Status: ringi.Denied, Reason: "Manual deletion disabled"}, nil
		case s.Env == "production":
			return ringi.Verdict{Status: ringi.UserApproval}, nil
		}
		return ringi.Verdict{}, err
	}}
	tests := []struct {
		name, tool, input, runtime string
		a                          ringi.Approval
		want                       ringi.Verdict
	}{
		{"tools run by default", "read", `{}`, `{}`, tools, ringi.Verdict{Status: ringi.NotApplicable, Source: ringi.SourceRule}},
		{"a map entry", "run_command", `{}`, `{}`, tools, ringi.Verdict{Status: ringi.UserApproval, Source: ringi.SourceToolStatus}},
		{"a map entry with a reason", "delete_file", `{}`, `{}`, tools, ringi.Verdict{Status: ringi.Denied, Source: ringi.SourceToolStatus, Reason: "Deleting files is disabled in this workspace"}},
		{"by input", "pay", `{"amount":2000}`, `{"Role":"clerk"}`, tools, ringi.Verdict{Status: ringi.UserApproval, Source: ringi.SourceToolFunc}},
		{"by runtime", "pay", `{"amount":20}`, `{"Role":"clerk"}`, tools, ringi.Verdict{Status: ringi.Denied, Source: ringi.SourceToolFunc, Reason: "Only admins can send payments"}},
		{"no opinion", "pay", `{"amount":20}`, `{"Role":"admin"}`, tools, ringi.Verdict{Status: ringi.NotApplicable, Source: ringi.SourceRule}},
		{"no runtime", "pay", `{"amount":20}`, ``, tools, ringi.Verdict{Status: ringi.Denied, Source: ringi.SourceToolFunc, Reason: "the approval function failed"}},
		{"one policy for all: by name", "delete_file", `{}`, `{"Env":"production"}`, one, ringi.Verdict{Status: ringi.Denied, Source: ringi.SourceFunc, Reason: "Manual deletion disabled"}},
		{"one policy for all: by runtime", "read", `{}`, `{"Env":"production"}`, one, ringi.Verdict{Status: ringi.UserApproval, Source: ringi.SourceFunc}},
		{"one policy for all: no opinion", "read", `{}`, `{"Env":"test"}`, one, ringi.Verdict{Status: ringi.NotApplicable, Source: ringi.SourceRule}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := call(ringi.Tool{Name: tt.tool})
			c.Call.Input, c.Runtime = ringi.Input(tt.input), json.RawMessage(tt.runtime)
			v := policy.Judge(policy.Ask(t.Context(), tt.a, nil, c, 0), c.Tool, ringi.Verdict{}, policy.RuleOptions{})
			if v != tt.want {
				t.Errorf("%s, want %s", v, tt.want)
			}
		})
	}
}
