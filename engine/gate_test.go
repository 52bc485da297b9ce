package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/store/sqlite"
)

// The fixture of the gate's tests: a world whose tools belong to a loop that
// is not ours. note and log are writes that policy lets run.

var numbered = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`)

type loop struct {
	*world
	mu      sync.Mutex
	started []engine.Started // what the loop was given, in order
}

func newLoop(t *testing.T) *loop {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "note", Effect: ringi.NonIdempotentWrite, InputSchema: numbered}, nil)
	w.tool(ringi.Tool{Name: "log", Effect: ringi.IdempotentWrite, InputSchema: numbered}, nil)
	w.tool(ringi.Tool{Name: "sealed", Effect: ringi.NonIdempotentWrite}, nil)
	w.tool(ringi.Tool{Name: "sign", Effect: ringi.NonIdempotentWrite, InputRequired: json.RawMessage(
		`{"type":"object","properties":{"code":{"type":"string"}},"required":["code"],"additionalProperties":false}`), InputSchema: json.RawMessage(
		`{"type":"object","properties":{"n":{"type":"integer"},"code":{"type":"string"}},"required":["n","code"],"additionalProperties":false}`)}, nil)
	w.tool(ringi.Tool{Name: "ask", Effect: ringi.ReadOnly, InputRequired: json.RawMessage(
		`{"type":"object","properties":{"code":{"type":"string"}},"required":["code"],"additionalProperties":false}`), InputSchema: json.RawMessage(
		`{"type":"object","properties":{"code":{"type":"string"}},"required":["code"]}`)}, nil)
	w.cfg.Approval.Tools = map[string]ringi.ToolApproval{
		"note": {Status: ringi.NotApplicable}, "log": {Status: ringi.Approved, Reason: "harmless"}, "sealed": {Status: ringi.Denied, Reason: "under seal"}}
	return &loop{world: w}
}

func (l *loop) gate(e *engine.Engine) *engine.Gate {
	l.t.Helper()
	g, err := e.Gate(l.t.Context(), ringi.RunInfo{Thread: "thr", By: ana})
	if err != nil {
		l.t.Fatal(err)
	}
	return g
}

// acts is the loop's own function: it writes down what ran.
func (l *loop) acts(_ context.Context, s engine.Started) (any, error) {
	l.saw(s)
	return "ok " + s.Call().Tool, nil
}

func (l *loop) saw(s engine.Started) {
	l.world.mu.Lock()
	l.ran = append(l.ran, s.Call().Tool+" "+string(s.Input()))
	l.world.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started = append(l.started, s)
}

func (l *loop) do(g *engine.Gate, call ringi.ToolCall) ringi.ToolResult {
	l.t.Helper()
	res, err := g.Do(l.t.Context(), call, l.acts)
	if err != nil {
		l.t.Fatal(err)
	}
	return res
}

// waits does a call that must wait, and returns its request.
func (l *loop) waits(g *engine.Gate, call ringi.ToolCall) ringi.ApprovalRequest {
	l.t.Helper()
	_, err := g.Do(l.t.Context(), call, l.acts)
	return waitsFor(l.t, err)
}

func waitsFor(t *testing.T, err error) ringi.ApprovalRequest {
	t.Helper()
	w, ok := errors.AsType[*ringi.WaitingError](err)
	if !ok {
		t.Fatalf("error %v, want one that waits", err)
	}
	return w.Request
}

func (l *loop) judge(g *engine.Gate, call ringi.ToolCall) engine.Judged {
	l.t.Helper()
	j, err := g.Judge(l.t.Context(), call)
	if err != nil {
		l.t.Fatal(err)
	}
	return j
}

func (l *loop) start(g *engine.Gate, id string) engine.Started {
	l.t.Helper()
	s, err := g.Start(l.t.Context(), id)
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

// intact verifies a run.
func (l *loop) intact(e *engine.Engine, runID string) {
	l.t.Helper()
	v, err := e.Verify(context.Background(), runID)
	if err != nil || v.Broken != "" {
		l.t.Errorf("verify: %+v %v", v, err)
	}
}

func (l *loop) row(runID string) ringi.RunRow {
	l.t.Helper()
	row, err := l.cfg.Store.Row(context.Background(), "default", runID)
	if err != nil {
		l.t.Fatal(err)
	}
	return row
}

func (l *loop) runnable() int {
	l.t.Helper()
	rows, err := l.cfg.Store.Runnable(context.Background(), 10)
	if err != nil {
		l.t.Fatal(err)
	}
	return len(rows)
}

func tc(tool, input string) ringi.ToolCall {
	return ringi.ToolCall{ModelID: "m", Tool: tool, Input: ringi.Input(input)}
}

func known(id string) ringi.ToolCall { return ringi.ToolCall{ID: id} }

// overStores runs a test over both stores.
func overStores(t *testing.T, test func(t *testing.T, l *loop)) {
	t.Run("memory", func(t *testing.T) { test(t, newLoop(t)) })
	t.Run("sqlite", func(t *testing.T) {
		l := newLoop(t)
		s, err := sqlite.Open(filepath.Join(t.TempDir(), "ringi.db"), sqlite.Options{Now: l.now})
		must(t, err)
		t.Cleanup(func() { s.Close() })
		l.cfg.Store = s
		test(t, l)
	})
}

// Every outcome that needs no person, by Do and apart.
func TestGate_WhatPolicySays(t *testing.T) {
	for _, c := range []struct {
		call    ringi.ToolCall
		outcome ringi.CallOutcome
		code    ringi.ResultCode
		status  ringi.Status
		text    string
	}{
		{tc("find", `{"q":1}`), ringi.OutcomeOK, "", ringi.NotApplicable, "ok find"},
		{tc("note", `{"n":1}`), ringi.OutcomeOK, "", ringi.NotApplicable, "ok note"},
		{tc("log", `{"n":1}`), ringi.OutcomeOK, "", ringi.Approved, "ok log"},
		{tc("sealed", `{}`), ringi.OutcomeDenied, ringi.CodeDeniedByPolicy, ringi.Denied, "under seal"},
		{tc("note", `{"n":"x"}`), ringi.OutcomeInvalid, ringi.CodeInvalidInput, ringi.Denied, "not executed"},
		{tc("note", `{"n":1,"n":2}`), ringi.OutcomeInvalid, ringi.CodeInvalidInput, ringi.Denied, "not executed"},
		{tc("note", "{\"n\":\xff}"), ringi.OutcomeInvalid, ringi.CodeInvalidInput, ringi.Denied, "not executed"},
		{tc("nota", `{}`), ringi.OutcomeInvalid, ringi.CodeUnknownTool, ringi.Denied, "does not exist"},
		{tc("", `{}`), ringi.OutcomeInvalid, ringi.CodeUnknownTool, ringi.Denied, "does not exist"},
		{tc("admin", `{}`), ringi.OutcomeInvalid, ringi.CodeNotOffered, ringi.Denied, "requires_admin"},
	} {
		t.Run(c.call.Tool+" "+string(c.code), func(t *testing.T) {
			l := newLoop(t)
			l.tool(ringi.Tool{Name: "admin", Effect: ringi.ReadOnly, AdminOnly: true}, nil)
			e := l.engine()
			g := l.gate(e)
			check := func(r ringi.ToolResult) {
				t.Helper()
				if r.Outcome != c.outcome || r.Code != c.code || r.Approval.Status != c.status || !strings.Contains(r.Text(), c.text) ||
					r.ModelID != "m" || r.CallID == "" || r.Tool != c.call.Tool {
					t.Errorf("%+v", r)
				}
				if auto := c.status != ringi.NotApplicable; r.Approval.Automatic != auto || r.Approval.Request != "" || r.Approval.By != "" {
					t.Errorf("record %+v", r.Approval)
				}
			}
			r := l.do(g, c.call)
			check(r)
			j := l.judge(g, c.call)
			if j.Call.ID == "" || j.Call.ID == r.CallID || j.Request != nil || j.InFlight {
				t.Fatalf("%+v", j)
			}
			if c.code != "" {
				if j.MayStart() {
					t.Error("a refused call may start")
				}
				check(*j.Result)
				_, err := g.Start(t.Context(), j.Call.ID)
				has, ok := errors.AsType[*ringi.ResultError](err)
				if !ok {
					t.Fatal(err)
				}
				check(has.Result)
				l.wantRan()
			} else {
				if !j.MayStart() {
					t.Fatalf("%+v", j)
				}
				s := l.start(g, j.Call.ID)
				if s.Attempt() != 1 || s.Key() == "" || string(s.Input()) != string(c.call.Input) {
					t.Errorf("%+v", s)
				}
				if j := l.judge(g, known(j.Call.ID)); !j.InFlight || j.MayStart() {
					t.Errorf("%+v", j)
				}
				_, err := g.Start(t.Context(), j.Call.ID)
				wantErr(t, err, ringi.ErrBusy)
				must(t, g.Finish(t.Context(), s, ringi.ToolResult{Output: "ok " + c.call.Tool}))
				check(*l.judge(g, known(j.Call.ID)).Result)
				check(l.do(g, known(j.Call.ID))) // asked for again: the result stands
				l.wantRan(c.call.Tool + " " + string(c.call.Input))
			}
			must(t, g.Close(t.Context()))
			must(t, g.Close(t.Context()))
			l.intact(e, g.Run().ID)
			_, err := g.Judge(t.Context(), c.call)
			wantErr(t, err, ringi.ErrFinal)
		})
	}
}

// Everything a person can answer, with the record and the text that a model
// reads. decide gives the answers; the call is done again after them.
func TestGate_WhatAPersonSays(t *testing.T) {
	type answers func(l *loop, e *engine.Engine, r ringi.ApprovalRequest)
	one := func(f func(r ringi.ApprovalRequest) ringi.Decision) answers {
		return func(l *loop, e *engine.Engine, r ringi.ApprovalRequest) { l.decide(e, f(r)) }
	}
	approve := one(func(r ringi.ApprovalRequest) ringi.Decision { return r.Approve(ben) })
	thenApprove := func(f func(r ringi.ApprovalRequest) ringi.Decision) answers {
		return func(l *loop, e *engine.Engine, r ringi.ApprovalRequest) {
			set := l.decide(e, f(r))
			if set.Request.ID == r.ID || set.Request.Replaces != r.ID {
				l.t.Fatalf("no new request: %+v", set)
			}
			l.decide(e, set.Request.Approve(ben))
		}
	}
	for _, c := range []struct {
		name     string
		call     ringi.ToolCall
		kind     ringi.RequestKind
		answers  answers
		outcome  ringi.CallOutcome
		code     ringi.ResultCode
		text     string
		decision ringi.Answer
		ran      string
	}{
		{"approve", tc("pay", `{"n": 1.0}`), ringi.KindApproval, approve, ringi.OutcomeOK, "", "ok pay", ringi.Approve, `pay {"n": 1.0}`},
		{"deny", tc("pay", `{"n":1}`), ringi.KindApproval, one(func(r ringi.ApprovalRequest) ringi.Decision { return r.Deny(ben, "too dear\n\"x\"") }),
			ringi.OutcomeDenied, ringi.CodeDeniedByPerson, "denied by a person, not executed; this is final for this call. Reason: too dear\n\"x\"", ringi.Deny, ""},
		{"respond", tc("pay", `{"n":1}`), ringi.KindApproval, one(func(r ringi.ApprovalRequest) ringi.Decision { return r.Respond(ben, json.RawMessage(`{"by":"hand"}`)) }),
			ringi.OutcomeResponded, "", "A person answered in the tool's place; the tool did not run.\n{\"by\":\"hand\"}", ringi.Respond, ""},
		{"edit", tc("pay", `{"n":1}`), ringi.KindApproval, thenApprove(func(r ringi.ApprovalRequest) ringi.Decision { return r.Edit(ben, json.RawMessage(`{"n":2}`)) }),
			ringi.OutcomeOK, "", "Executed input: {\"n\":2}\nok pay", ringi.Approve, `pay {"n":2}`},
		{"an empty edit", tc("pay", `{"n":1}`), ringi.KindApproval, thenApprove(func(r ringi.ApprovalRequest) ringi.Decision { return r.Edit(ben, json.RawMessage(`{}`)) }),
			ringi.OutcomeOK, "", "Executed input: {}\nok pay", ringi.Approve, `pay {}`},
		{"fill", tc("ask", `{}`), ringi.KindInput, thenApprove(func(r ringi.ApprovalRequest) ringi.Decision {
			return r.Fill(ben, json.RawMessage(`{"code":"s3cret"}`))
		}), ringi.OutcomeOK, "", "A person supplied: code.\nok ask", ringi.Approve, `ask {"code":"s3cret"}`},
		{"approval and input", tc("sign", `{"n":1}`), ringi.KindApprovalAndInput, thenApprove(func(r ringi.ApprovalRequest) ringi.Decision {
			return r.Fill(ben, json.RawMessage(`{"code":"s3cret"}`))
		}), ringi.OutcomeOK, "", "A person supplied: code.\nok sign", ringi.Approve, `sign {"n":1,"code":"s3cret"}`},
		{"approval and input, denied", tc("sign", `{"n":1}`), ringi.KindApprovalAndInput, one(func(r ringi.ApprovalRequest) ringi.Decision { return r.Deny(ben, "") }),
			ringi.OutcomeDenied, ringi.CodeDeniedByPerson, "denied by a person, not executed; this is final for this call", ringi.Deny, ""},
		{"expired", tc("pay", `{"n":1}`), ringi.KindApproval, func(l *loop, e *engine.Engine, r ringi.ApprovalRequest) { l.advance(72 * time.Hour) },
			ringi.OutcomeExpired, ringi.CodeExpired, "expired, not executed: nobody decided in time, and silence is not consent", "", ""},
		{"denied for the tool", tc("pay", `{"n":1}`), ringi.KindApproval, one(func(r ringi.ApprovalRequest) ringi.Decision {
			d := r.Deny(ben, "")
			d.Scope = ringi.ThisTool
			return d
		}), ringi.OutcomeDenied, ringi.CodeDeniedByPerson, "this holds for every call of this tool in this conversation", ringi.Deny, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			overStores(t, func(t *testing.T, l *loop) {
				l.t = t
				e := l.engine()
				g := l.gate(e)
				r := l.waits(g, c.call)
				if r.Kind != c.kind || r.Call.Tool != c.call.Tool || r.Call.ModelID != "m" || r.RunID != g.Run().ID {
					t.Fatalf("%+v", r)
				}
				again := l.waits(g, known(r.Call.ID))
				if again.ID != r.ID || again.Digest != r.Digest {
					t.Error("asked twice")
				}
				if page, err := e.Requests(t.Context(), ringi.RequestQuery{State: []ringi.RequestState{ringi.Pending}}); err != nil || len(page.Requests) != 1 {
					t.Errorf("inbox: %v %v", page, err)
				}
				c.answers(l, e, r)
				res := l.do(g, known(r.Call.ID))
				if res.Outcome != c.outcome || res.Code != c.code || !strings.Contains(res.Text(), c.text) || res.ModelID != "m" {
					t.Errorf("%+v\n%s", res, res.Text())
				}
				a := res.Approval
				if a.Status != ringi.UserApproval || a.Request == "" || a.Digest == "" || a.Automatic || a.Decision != c.decision || (a.By == "ben") != (c.decision != "") {
					t.Errorf("record %+v", a)
				}
				if strings.Contains(res.Text(), "s3cret") {
					t.Errorf("a person's value in the model's text: %q", res.Text())
				}
				if c.ran == "" {
					l.wantRan()
				} else {
					l.wantRan(c.ran)
				}
				must(t, g.Close(t.Context()))
				l.intact(e, g.Run().ID)
				if n := l.runnable(); n != 0 {
					t.Errorf("%d runnable", n)
				}
			})
		})
	}
}

// An approval that came to nothing leads to a new request, whatever the reason.
func TestGate_AskedAnew(t *testing.T) {
	for _, c := range []struct {
		name   string
		breaks func(l *loop, e *engine.Engine, r ringi.ApprovalRequest)
		state  ringi.RequestState
	}{
		{"not used in time", func(l *loop, e *engine.Engine, r ringi.ApprovalRequest) { l.advance(24 * time.Hour) }, ringi.Expired},
		{"taken back", func(l *loop, e *engine.Engine, r ringi.ApprovalRequest) {
			_, err := e.TakeBack(l.t.Context(), r.ID, ben, "no")
			must(l.t, err)
		}, ringi.Withdrawn},
	} {
		t.Run(c.name, func(t *testing.T) {
			overStores(t, func(t *testing.T, l *loop) {
				l.t = t
				e := l.engine()
				g := l.gate(e)
				r := l.waits(g, tc("pay", `{"n":1}`))
				l.decide(e, r.Approve(ben))
				if !l.judge(g, known(r.Call.ID)).MayStart() {
					t.Error("approved, and may not start")
				}
				c.breaks(l, e, r)
				_, err := g.Start(t.Context(), r.Call.ID)
				next := waitsFor(t, err)
				if next.ID == r.ID || next.Replaces != r.ID || next.Call.Input != `{"n":1}` || next.State != ringi.Pending {
					t.Errorf("%+v", next)
				}
				was, err := e.Request(t.Context(), r.ID)
				if err != nil || was.State != c.state {
					t.Errorf("%s %v, want %s", was.State, err, c.state)
				}
				if _, err := e.Decide(t.Context(), r.Approve(ben)); err == nil {
					t.Error("the old request was decided")
				}
				l.decide(e, next.Approve(ben))
				l.do(g, known(r.Call.ID))
				l.wantRan(`pay {"n":1}`)
				l.intact(e, g.Run().ID)
			})
		})
	}
}

// A person's bytes stay the person's where an edited call is asked anew.
func TestGate_AskedAnewAfterAnEdit(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{"n":1}`))
	set := l.decide(e, r.Edit(ben, json.RawMessage(`{"n":2}`)))
	l.decide(e, set.Request.Approve(ben))
	l.advance(25 * time.Hour)
	next := l.waits(g, known(r.Call.ID))
	if next.Call.Input != `{"n":2}` || next.Proposed != `{"n":1}` || next.ProposedBy != "ben" {
		t.Errorf("%+v", next)
	}
	l.decide(e, next.Approve(ben))
	l.do(g, known(r.Call.ID))
	l.wantRan(`pay {"n":2}`)
}

// The definition of a tool, or what its preview showed, has changed between
// the approval and the start: the request is stale and the call asked anew.
func TestGate_StaleAtTheStart(t *testing.T) {
	for _, what := range []string{"definition", "precondition"} {
		t.Run(what, func(t *testing.T) {
			l := newLoop(t)
			l.cfg.Approval.Tools = nil
			state := "a"
			hooks := ringi.ToolHooks{
				Preview: func(context.Context, ringi.ToolCall) (ringi.Preview, error) {
					return ringi.Preview{Text: "state " + state, Precondition: state}, nil
				},
				Check: func(_ context.Context, _ ringi.ToolCall, was string) error {
					if was != state {
						return errors.New("it moved")
					}
					return nil
				},
			}
			l.tool(ringi.Tool{Name: "drop", Effect: ringi.NonIdempotentWrite, Description: "one"}, nil, hooks)
			e := l.engine()
			g := l.gate(e)
			r := l.waits(g, tc("drop", `{}`))
			if r.Preview == nil || r.Preview.Text != "state a" {
				t.Fatalf("%+v", r)
			}
			l.decide(e, r.Approve(ben))
			if what == "precondition" {
				state = "b"
			} else {
				l.reg = ringi.NewRegistry()
				l.cfg.Registry = l.reg
				l.tool(ringi.Tool{Name: "drop", Effect: ringi.NonIdempotentWrite, Description: "two"}, nil, hooks)
				e = l.engine()
				var err error
				g, err = e.Gate(t.Context(), ringi.RunInfo{ID: r.RunID})
				must(t, err)
			}
			next := l.waits(g, known(r.Call.ID))
			if next.ID == r.ID {
				t.Fatal("not asked anew")
			}
			if was, _ := e.Request(t.Context(), r.ID); was.State != ringi.Stale {
				t.Errorf("it is %s", was.State)
			}
			l.decide(e, next.Approve(ben))
			l.do(g, known(r.Call.ID))
			l.wantRan("drop {}")
		})
	}
}

// Limits: calls, open requests, and the three ways in which denials end it.
func TestGate_Limits(t *testing.T) {
	t.Run("calls", func(t *testing.T) {
		l := newLoop(t)
		l.cfg.Limits.ToolCalls = 2
		g := l.gate(l.engine())
		l.do(g, tc("find", `{}`))
		r := l.waits(g, tc("pay", `{}`))
		if res := l.do(g, tc("find", `{}`)); res.Code != ringi.CodeLimit || res.Outcome != ringi.OutcomeNotExecuted {
			t.Errorf("%+v", res)
		}
		e := l.restart() // budgets span a restart
		g = l.gate(e)
		if res := l.do(g, tc("find", `{}`)); res.Code != ringi.CodeLimit {
			t.Errorf("%+v", res)
		}
		l.decide(e, r.Approve(ben)) // a call that was judged within the limit still runs
		l.do(g, known(r.Call.ID))
		l.wantRan("find {}", "pay {}")
	})
	t.Run("open requests", func(t *testing.T) {
		l := newLoop(t)
		l.cfg.Limits.OpenRequests = 2
		e := l.engine()
		g := l.gate(e)
		r := l.waits(g, tc("pay", `{"n":1}`))
		l.waits(g, tc("pay", `{"n":2}`))
		if res := l.do(g, tc("pay", `{"n":3}`)); res.Code != ringi.CodeTooMany {
			t.Errorf("%+v", res)
		}
		l.decide(e, r.Deny(ben, ""))
		l.waits(g, tc("pay", `{"n":4}`))
	})
	t.Run("the same call denied", func(t *testing.T) {
		l := newLoop(t)
		e := l.engine()
		g := l.gate(e)
		for range 3 {
			l.decide(e, l.waits(g, tc("pay", `{"n":1, "m":2}`)).Deny(ben, ""))
		}
		res := l.do(g, tc("pay", `{"m":2,"n":1}`))
		if res.Code != ringi.CodeDeniedByPerson || !strings.Contains(res.Text(), "not asked again") {
			t.Errorf("%+v", res)
		}
		l.waits(g, tc("pay", `{"n":2}`))
	})
	t.Run("the tool denied", func(t *testing.T) {
		l := newLoop(t)
		e := l.engine()
		g := l.gate(e)
		d := l.waits(g, tc("pay", `{"n":1}`)).Deny(ben, "")
		d.Scope = ringi.ThisTool
		l.decide(e, d)
		if res := l.do(g, tc("pay", `{"n":2}`)); res.Code != ringi.CodeDeniedByPerson {
			t.Errorf("%+v", res)
		}
		must(t, g.Close(t.Context()))
		g = l.gate(l.restart()) // another run of the thread
		if res := l.do(g, tc("pay", `{"n":3}`)); res.Code != ringi.CodeDeniedByPerson {
			t.Errorf("%+v", res)
		}
		l.waits(g, tc("put", `{}`))
	})
	t.Run("ten in a thread", func(t *testing.T) {
		l := newLoop(t)
		e := l.engine()
		g := l.gate(e)
		for i := range 10 {
			l.decide(e, l.waits(g, tc("pay", `{"n":`+string(rune('0'+i))+`}`)).Deny(ben, ""))
		}
		_, err := g.Do(t.Context(), tc("find", `{}`), l.acts)
		f, ok := errors.AsType[*ringi.RunError](err)
		if !ok || f.Reason != ringi.ReasonDeniedTooOften || f.Status != ringi.Failed || !errors.Is(err, ringi.ErrFinal) {
			t.Errorf("%v", err)
		}
		l.wantRan()
		l.intact(e, g.Run().ID)
		g = l.gate(l.engine()) // old denials alone end no new run
		l.do(g, tc("find", `{}`))
	})
}

// Who may decide: deciders, four eyes, nobody left, services.
func TestGate_Deciders(t *testing.T) {
	svc := ringi.Principal{ID: "bot", Kind: ringi.ServiceAccount, Auth: "test"}
	l := newLoop(t)
	l.cfg.FourEyes = engine.FourEyesWrites
	l.cfg.Deciders = ringi.Deciders{People: []string{"ana", "ben"}}
	e := l.engine()
	_, err := e.Gate(t.Context(), ringi.RunInfo{Thread: "anon"})
	wantErr(t, err, ringi.ErrNoAuthor)
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{"n":1}`))
	if !r.FourEyes || len(r.Initiators) != 1 || r.Initiators[0] != "ana" {
		t.Errorf("%+v", r)
	}
	cyd := ringi.Principal{ID: "cyd", Kind: ringi.Person, Auth: "test"}
	for _, by := range []ringi.Principal{ana, svc, cyd, {ID: "p", Kind: ringi.Process}} {
		_, err := e.Decide(t.Context(), r.Approve(by))
		wantErr(t, err, ringi.ErrNotPermitted)
	}
	_, err = e.Decide(t.Context(), r.Approve(ringi.Principal{}))
	wantErr(t, err, ringi.ErrNoPrincipal)
	// The author of an edit is an initiator too.
	set := l.decide(e, r.Edit(ben, json.RawMessage(`{"n":2}`)))
	_, err = e.Decide(t.Context(), set.Request.Approve(ben))
	wantErr(t, err, ringi.ErrNotPermitted)
	l.wantRan()
	r = l.waits(g, tc("pay", `{"n":3}`))
	l.decide(e, r.Approve(ben))
	l.do(g, known(r.Call.ID))
	l.wantRan(`pay {"n":3}`)

	// The decider leaves before the start: the approval is stale.
	r = l.waits(g, tc("pay", `{"n":4}`))
	l.decide(e, r.Approve(ben))
	l.cfg.Deciders = ringi.Deciders{People: []string{"cyd"}}
	g = l.gate(l.engine())
	if next := l.waits(g, known(r.Call.ID)); next.ID == r.ID {
		t.Error("spent by one who may not decide any more")
	}

	l = newLoop(t) // nobody is left: the call is denied, not asked into the void
	l.cfg.FourEyes = engine.FourEyesAll
	l.cfg.Deciders = ringi.Deciders{People: []string{"ana"}}
	g = l.gate(l.engine())
	if res := l.do(g, tc("pay", `{}`)); res.Code != ringi.CodeNoDecider {
		t.Errorf("%+v", res)
	}
}

// Nobody is there to ask: what needs a person is refused at once.
func TestGate_Unattended(t *testing.T) {
	for _, mode := range []ringi.Unattended{ringi.PerTool, ringi.PerCall} {
		t.Run(string(mode), func(t *testing.T) {
			l := newLoop(t)
			l.cfg.Approval.Tools["put"] = ringi.ToolApproval{Func: func(_ context.Context, c ringi.CallInfo) (ringi.Verdict, error) {
				if c.Call.Input == `{"n":1}` {
					return ringi.Verdict{Status: ringi.Approved}, nil
				}
				return ringi.Verdict{Status: ringi.UserApproval}, nil
			}}
			e := l.engine()
			g, err := e.Gate(t.Context(), ringi.RunInfo{Thread: "thr", By: ana, Unattended: mode})
			must(t, err)
			l.do(g, tc("note", `{"n":1}`))
			for _, tool := range []string{"pay", "sign", "ask"} {
				if res := l.do(g, tc(tool, `{"n":1}`)); res.Code != ringi.CodeUnattended {
					t.Errorf("%s: %+v", tool, res)
				}
			}
			res := l.do(g, tc("put", `{"n":1}`))
			if per := res.Outcome == ringi.OutcomeOK; per != (mode == ringi.PerCall) {
				t.Errorf("%+v", res)
			}
			if res := l.do(g, tc("put", `{"n":2}`)); res.Code != ringi.CodeUnattended {
				t.Errorf("%+v", res)
			}
			// An outcome that nobody knows ends an unattended run.
			j := l.judge(g, tc("note", `{"n":2}`))
			s := l.start(g, j.Call.ID)
			if err := g.Finish(t.Context(), s, ringi.ToolResult{Outcome: ringi.OutcomeInDoubt}); err == nil {
				t.Error("finished")
			}
			if row := l.row(g.Run().ID); row.Status != ringi.Failed || row.Reason != ringi.ReasonOutcomeUnknown {
				t.Errorf("%+v", row)
			}
			_, err = g.Do(t.Context(), tc("find", `{}`), l.acts)
			wantErr(t, err, ringi.ErrFinal)
			l.intact(e, g.Run().ID)
		})
	}
}

// A known id: the same bytes, the model's after an edit, those that run, other
// ones, another tool; and one that nobody knows.
func TestGate_TheSameIDAgain(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{"n":1}`))
	id := r.Call.ID
	for _, c := range []struct {
		call ringi.ToolCall
		err  error
	}{
		{ringi.ToolCall{ID: id}, nil},
		{ringi.ToolCall{ID: id, Tool: "pay"}, nil},
		{ringi.ToolCall{ID: id, Tool: "pay", Input: `{"n":1}`}, nil},
		{ringi.ToolCall{ID: id, Tool: "pay", Input: `{"n": 1}`}, ringi.ErrStale},
		{ringi.ToolCall{ID: id, Tool: "pay", Input: `{"n":2}`}, ringi.ErrStale},
		{ringi.ToolCall{ID: id, Tool: "put", Input: `{"n":1}`}, ringi.ErrStale},
		{ringi.ToolCall{ID: id, Tool: "Pay", Input: `{"n":1}`}, ringi.ErrStale},
		{ringi.ToolCall{ID: id + "x", Tool: "pay", Input: `{"n":1}`}, ringi.ErrNotFound},
		{ringi.ToolCall{ID: "call_1", Tool: "pay", Input: `{"n":1}`}, ringi.ErrNotFound},
	} {
		_, err := g.Judge(t.Context(), c.call)
		if !errors.Is(err, c.err) {
			t.Errorf("%+v: %v, want %v", c.call, err, c.err)
		}
		_, derr := g.Do(t.Context(), c.call, l.acts)
		if c.err != nil && !errors.Is(derr, c.err) {
			t.Errorf("%+v: %v, want %v", c.call, derr, c.err)
		} else if c.err == nil {
			waitsFor(t, derr)
		}
	}
	_, err := g.Start(t.Context(), "")
	if err == nil {
		t.Error("an empty id was started")
	}
	set := l.decide(e, r.Edit(ben, json.RawMessage(`{"n":2}`)))
	l.decide(e, set.Request.Approve(ben))
	for _, in := range []ringi.Input{"", `{"n":1}`, `{"n":2}`} {
		j := l.judge(g, ringi.ToolCall{ID: id, Tool: "pay", Input: in})
		if j.Call.Input != `{"n":2}` || !j.MayStart() {
			t.Errorf("%q: %+v", in, j)
		}
	}
	_, err = g.Judge(t.Context(), ringi.ToolCall{ID: id, Tool: "pay", Input: `{"n":3}`})
	wantErr(t, err, ringi.ErrStale)
	res := l.do(g, ringi.ToolCall{ID: id, Tool: "pay", Input: `{"n":1}`})
	l.wantRan(`pay {"n":2}`)
	if again := l.do(g, known(id)); again.CallID != res.CallID || again.Output != res.Output || again.Approval.Request != res.Approval.Request {
		t.Errorf("%+v, %+v", res, again)
	}
	l.wantRan(`pay {"n":2}`)
}

// The spellings of an empty input are one: what the model wrote is kept.
func TestGate_TheRawBytesOfAnEmptyInput(t *testing.T) {
	l := newLoop(t)
	g := l.gate(l.engine())
	for _, raw := range []ringi.Input{``, ` `, `null`, `"{}"`} {
		r := l.waits(g, ringi.ToolCall{Tool: "pay", Input: raw})
		if r.Call.Input != `{}` {
			t.Errorf("%q: %+v", raw, r.Call)
		}
		j := l.judge(g, ringi.ToolCall{ID: r.Call.ID, Tool: "pay", Input: raw})
		if j.Request == nil || j.Request.ID != r.ID {
			t.Errorf("%q: %+v", raw, j)
		}
		l.judge(g, j.Call) // what Judge gave is that call
		l.judge(g, r.Call) // and what a request shows
		l.waits(g, known(j.Call.ID))
	}
}

// The model's ids say nothing: empty and repeated ones are new calls.
func TestGate_ModelIDsSayNothing(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	ids, keys := map[string]bool{}, map[string]bool{}
	for range 3 {
		for _, m := range []string{"", "call_0", "call_0"} {
			c := ringi.ToolCall{ModelID: m, Tool: "pay", Input: `{"n":1}`}
			r := l.waits(g, c)
			if ids[r.Call.ID] {
				t.Errorf("%s again", r.Call.ID)
			}
			ids[r.Call.ID] = true
		}
	}
	for id := range ids {
		r := l.waits(g, known(id))
		l.decide(e, r.Approve(ben))
		l.do(g, known(id))
	}
	for _, s := range l.started {
		keys[s.Key()] = true
	}
	if len(ids) != 9 || len(keys) != 9 || l.count("pay") != 9 {
		t.Errorf("%d ids, %d keys, %d runs", len(ids), len(keys), l.count("pay"))
	}
}

// The gate's own opening: what is fixed, what may be left out.
func TestGate_OpenedAgain(t *testing.T) {
	overStores(t, func(t *testing.T, l *loop) {
		l.t = t
		e := l.engine()
		first := ringi.RunInfo{Thread: "thr", Agent: "bot", By: ana, Groups: []string{"a", "b"}, Zone: ringi.ZonePrivateHosted}
		g, err := e.Gate(t.Context(), first)
		must(t, err)
		id := g.Run().ID
		same := []ringi.RunInfo{first, {Thread: "thr"}, {ID: id}, {ID: id, Thread: "thr", By: ana}, {ID: id, Zone: ringi.ZonePrivateHosted}, {ID: id, Zone: ringi.ZoneLocal}}
		other := []ringi.RunInfo{{ID: id, Thread: "other"}, {Thread: "thr", By: ben}, {Thread: "thr", Agent: "b"}, {Thread: "thr", Groups: []string{"a"}},
			{Thread: "thr", Groups: []string{}}, {Thread: "thr", Groups: []string{"a", "b", "c"}}, {Thread: "thr", Zone: ringi.ZoneExternalGlobal}, {Thread: "thr", Unattended: ringi.PerTool}}
		for _, e := range []*engine.Engine{e, l.engine()} {
			for _, run := range same {
				g, err := e.Gate(t.Context(), run)
				if err != nil || g.Run().ID != id || g.Run().By.ID != "ana" || g.Run().Agent != "bot" {
					t.Errorf("%+v: %v", run, err)
				}
			}
			for _, run := range other {
				_, err := e.Gate(t.Context(), run)
				if !errors.Is(err, ringi.ErrRunOpen) {
					t.Errorf("%+v: %v", run, err)
				}
			}
			_, err := e.Gate(t.Context(), ringi.RunInfo{ID: "run_none"})
			wantErr(t, err, ringi.ErrNotFound)
			_, err = e.Gate(t.Context(), ringi.RunInfo{Thread: "zone", Zone: "moon"})
			if err == nil {
				t.Error("an unknown zone")
			}
			_, err = e.Gate(t.Context(), ringi.RunInfo{Thread: "mode", Unattended: "maybe"})
			if err == nil {
				t.Error("an unknown mode")
			}
		}
		must(t, g.Close(t.Context()))
		_, err = e.Gate(t.Context(), ringi.RunInfo{ID: id})
		wantErr(t, err, ringi.ErrFinal)
		g2, err := e.Gate(t.Context(), ringi.RunInfo{Thread: "thr"})
		if err != nil || g2.Run().ID == id {
			t.Errorf("%v", err)
		}
		g3, err := e.Gate(t.Context(), ringi.RunInfo{})
		if err != nil || g3.Run().Thread == "" || g3.Run().Thread == "thr" {
			t.Errorf("%v", err)
		}
	})
}

// What cannot be a gate: steps that are prepared, an engine that only reads, a
// thread whose open run is ours.
func TestGate_Refused(t *testing.T) {
	l := newLoop(t)
	l.cfg.PrepareStep = func(context.Context, engine.StepInfo) (engine.StepPlan, error) { return engine.StepPlan{}, nil }
	if _, err := l.engine().Gate(t.Context(), ringi.RunInfo{}); err == nil {
		t.Error("with PrepareStep")
	}
	l.cfg.PrepareStep = nil
	l.cfg.ReadOnly = true
	_, err := l.engine().Gate(t.Context(), ringi.RunInfo{})
	wantErr(t, err, ringi.ErrNotRecorded)
	l.cfg.ReadOnly = false
	l.says(calls("pay", `{}`))
	e := l.engine()
	res := l.run(e, ringi.RunStart{Thread: "thr"})
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	_, err = e.Gate(t.Context(), ringi.RunInfo{Thread: "thr"})
	wantErr(t, err, ringi.ErrRunOpen)
	_, err = e.Gate(t.Context(), ringi.RunInfo{ID: res.RunID})
	wantErr(t, err, ringi.ErrRunOpen)
	// And the other way round.
	g, err := e.Gate(t.Context(), ringi.RunInfo{Thread: "mine"})
	must(t, err)
	_, err = e.Run(t.Context(), ringi.RunStart{Thread: "mine", Messages: []ringi.Message{ringi.User("go")}})
	wantErr(t, err, ringi.ErrRunOpen)
	l.waits(g, tc("pay", `{}`))
	_, err = e.Run(t.Context(), ringi.RunStart{Thread: "mine", WithdrawOpen: true, Messages: []ringi.Message{ringi.User("go")}})
	must(t, err)
	_, err = g.Judge(t.Context(), tc("find", `{}`))
	wantErr(t, err, ringi.ErrFinal)
}

// The offer holds for the gate as for a run: groups, disabled tools, zones.
func TestGate_Offer(t *testing.T) {
	l := newLoop(t)
	l.tool(ringi.Tool{Name: "ops", Effect: ringi.ReadOnly, Group: "ops"}, nil)
	l.tool(ringi.Tool{Name: "open", Effect: ringi.ReadOnly, DataClass: ringi.PublicContent}, nil)
	l.cfg.Disabled = []string{"look"}
	e := l.engine()
	g, err := e.Gate(t.Context(), ringi.RunInfo{Thread: "thr", By: ana, Groups: []string{}, Zone: ringi.ZoneExternalGlobal})
	must(t, err)
	o := g.Offer()
	if !o.Has("open") || o.Has("ops") || o.Has("look") || o.Has("find") {
		t.Errorf("%+v", o.Names())
	}
	for tool, want := range map[string]string{"ops": "group", "look": "tool_disabled", "find": "trust_zone", "pay": "trust_zone"} {
		if res := l.do(g, tc(tool, `{}`)); res.Code != ringi.CodeNotOffered || !strings.Contains(res.Text(), want) {
			t.Errorf("%s: %+v", tool, res)
		}
	}
	l.do(g, tc("open", `{}`))
	l.wantRan("open {}")
}

// The zero Started opens nothing, and one of another gate neither.
func TestGate_ForeignStarted(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	if err := g.Finish(t.Context(), engine.Started{}, ringi.ToolResult{Output: "x"}); err == nil {
		t.Error("the zero Started was finished")
	}
	h, err := e.Gate(t.Context(), ringi.RunInfo{Thread: "other"})
	must(t, err)
	s := l.start(g, l.judge(g, tc("note", `{}`)).Call.ID)
	if err := h.Finish(t.Context(), s, ringi.ToolResult{Output: "x"}); err == nil {
		t.Error("finished at another gate")
	}
	in := s.Input()
	in[0] = 'x'
	if string(s.Input()) != `{}` {
		t.Error("the caller changed the bytes")
	}
	must(t, g.Finish(t.Context(), s, ringi.ToolResult{Error: "no funds"}))
	if res := l.judge(g, known(s.Call().ID)).Result; res.Outcome != ringi.OutcomeError || res.Error != "no funds" || res.Code != ringi.CodeToolError {
		t.Errorf("%+v", res)
	}
	// Finished twice: the first result stands.
	err = g.Finish(t.Context(), s, ringi.ToolResult{Output: "two"})
	if has, ok := errors.AsType[*ringi.ResultError](err); !ok || has.Result.Error != "no funds" {
		t.Errorf("%v", err)
	}
}

// What the loop's function returns is what the model reads.
func TestGate_WhatDoReturns(t *testing.T) {
	type shape struct {
		A int64 `json:"a"`
	}
	for _, c := range []struct {
		out  any
		err  error
		want ringi.ToolResult
	}{
		{nil, nil, ringi.ToolResult{Outcome: ringi.OutcomeOK}},
		{"text <&>", nil, ringi.ToolResult{Outcome: ringi.OutcomeOK, Output: "text <&>"}},
		{[]byte("bytes"), nil, ringi.ToolResult{Outcome: ringi.OutcomeOK, Output: "bytes"}},
		{json.RawMessage(`{"a": 1.0}`), nil, ringi.ToolResult{Outcome: ringi.OutcomeOK, Output: `{"a": 1.0}`}},
		{shape{9007199254740993}, nil, ringi.ToolResult{Outcome: ringi.OutcomeOK, Output: `{"a":9007199254740993}`}},
		{ringi.ToolResult{Output: "o"}, nil, ringi.ToolResult{Outcome: ringi.OutcomeOK, Output: "o"}},
		{ringi.ToolResult{Error: "e"}, nil, ringi.ToolResult{Outcome: ringi.OutcomeError, Code: ringi.CodeToolError, Error: "e"}},
		{"lost", errors.New("no funds"), ringi.ToolResult{Outcome: ringi.OutcomeError, Code: ringi.CodeToolError, Error: "no funds"}},
		{nil, ringi.NotDone(errors.New("offline")), ringi.ToolResult{Outcome: ringi.OutcomeError, Code: ringi.CodeNotDone, Error: "offline"}},
		{make(chan int), nil, ringi.ToolResult{Outcome: ringi.OutcomeError, Code: ringi.CodeToolError,
			Error: "the tool ran; its result cannot be shown: json: unsupported type: chan int"}},
	} {
		for _, tool := range []string{"find", "note"} {
			l := newLoop(t)
			g := l.gate(l.engine())
			res, err := g.Do(t.Context(), tc(tool, `{}`), func(context.Context, engine.Started) (any, error) { return c.out, c.err })
			if err != nil || res.Outcome != c.want.Outcome || res.Code != c.want.Code || res.Output != c.want.Output || res.Error != c.want.Error {
				t.Errorf("%v: %+v %v", c.out, res, err)
			}
		}
	}
}

// A long result is cut and marked, by Do and by Finish.
func TestGate_ALongResultIsCut(t *testing.T) {
	l := newLoop(t)
	l.cfg.Limits.ResultBytes = 10
	g := l.gate(l.engine())
	long := strings.Repeat("é", 8)
	res, err := g.Do(t.Context(), tc("note", `{}`), func(context.Context, engine.Started) (any, error) { return long, nil })
	must(t, err)
	s := l.start(g, l.judge(g, tc("note", `{}`)).Call.ID)
	must(t, g.Finish(t.Context(), s, ringi.ToolResult{Output: long}))
	for _, r := range []ringi.ToolResult{res, *l.judge(g, known(s.Call().ID)).Result} {
		if len(r.Output) < 8 || len(r.Output) > 10 || !utf8.ValidString(r.Output) || !r.Truncated || r.Note == "" {
			t.Errorf("%+v", r)
		}
	}
}

// The loop's function has the context of a tool: its key, its call, its limit.
func TestGate_TheContextOfATool(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{}`))
	l.decide(e, r.Approve(ben))
	type keyT struct{}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), keyT{}, "v"))
	res, err := g.Do(ctx, known(r.Call.ID), func(ctx context.Context, s engine.Started) (any, error) {
		cancel()
		c, ok := ringi.ToolContextFrom(ctx)
		if !ok || c.Key != s.Key() || c.CallID != s.Call().ID || c.RunID != g.Run().ID || c.Thread != "thr" || c.Attempt != 1 || c.Initiator.ID != "ana" {
			t.Errorf("%+v", c)
		}
		if c.Decider == "" || strings.Contains(c.Decider, "ben") {
			t.Errorf("decider %q", c.Decider)
		}
		if until, ok := ctx.Deadline(); !ok || time.Until(until) > 31*time.Second {
			t.Error("no limit")
		}
		if ctx.Err() != nil || ctx.Value(keyT{}) != "v" {
			t.Error("cut, or without the caller's values")
		}
		return "paid", nil
	})
	if err != nil || res.Output != "paid" {
		t.Errorf("%+v %v", res, err)
	}
}

// A gate over a store that fails: what is not recorded does not run.
func TestGate_NotRecordedDoesNotRun(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	j := l.judge(g, tc("note", `{}`))
	l.store.Close()
	if _, err := g.Start(t.Context(), j.Call.ID); err == nil {
		t.Error("started without a store")
	}
	if _, err := g.Do(t.Context(), tc("find", `{}`), l.acts); err == nil {
		t.Error("a read was done without a store")
	}
	l.wantRan()
}
