package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/audit"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/store/storetest"
)

// Sections N, P and Q of the field cases: runs that nobody watches, typed
// input, and the record.

// N. Unattended runs.

func TestF155_WithoutAnApproverNothingIsApproved(t *testing.T) {
	start := map[string]ringi.RunStart{"attended": {}, "per tool": {Unattended: ringi.PerTool}, "per call": {Unattended: ringi.PerCall}}
	for name, s := range start {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.OnApprovalRequired = nil
			w.says(calls("pay", `{"command":"rm x"}`))
			res := w.run(w.engine(), s)
			w.wantRan()
			if s.Unattended == ringi.Attended {
				wantStatus(t, res, ringi.WaitingForApproval, 1)
				return
			}
			wantStatus(t, res, ringi.Completed, 0)
			if r := res.Results[0]; r.Code != ringi.CodeUnattended || r.Executed() {
				t.Errorf("the call is told %+v", r)
			}
			for _, offered := range w.seen[0].Tools {
				if offered.Name == "pay" || offered.Name == "put" {
					t.Errorf("%s is offered", offered.Name)
				}
			}
			if !slices.ContainsFunc(res.Withheld, func(h ringi.Withheld) bool { return h.Tool == "pay" && h.CallID != "" }) {
				t.Errorf("withheld %+v", res.Withheld)
			}
		})
	}
}

// A run that a tool starts has nobody either, whatever it asks for.
func TestF155_ARunInsideAToolIsUnattended(t *testing.T) {
	w := newWorld(t)
	var e *engine.Engine
	var inner *ringi.Result
	w.tool(ringi.Tool{Name: "agent", Effect: ringi.ReadOnly}, func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
		var err error
		inner, err = e.Run(ctx, ringi.RunStart{Messages: []ringi.Message{ringi.User("inner")}})
		return ringi.ToolResult{Output: "x"}, err
	})
	w.cfg.Model = modelFunc(func(req ringi.ModelRequest) *ringi.ModelTurn {
		switch {
		case req.Step > 1:
			return &ringi.ModelTurn{Text: "done"}
		case req.Messages[0].Text == "inner":
			return calls("pay", `{}`)
		}
		return calls("agent", `{}`)
	})
	e = w.engine()
	wantStatus(t, w.run(e, ringi.RunStart{}), ringi.Completed, 0)
	if inner == nil || inner.Status != ringi.Completed || inner.Results[0].Code != ringi.CodeUnattended {
		t.Errorf("the inner run: %+v", inner)
	}
	w.wantRan(`agent {}`)
}

// Nobody there is said by the caller, and each way has its own word: suspend,
// deny, or a tool that policy lets run by name.
func TestF156_NothingWaitsForAMissingTerminal(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`, "put", `{}`))
	w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"put": {Status: ringi.Approved, Reason: "named by the operator"}}
	res := w.run(w.engine(), ringi.RunStart{Unattended: ringi.PerTool})
	wantStatus(t, res, ringi.Completed, 0)
	w.wantRan(`put {}`)
	if a := res.Results[1].Approval; a.Status != ringi.Approved || !a.Automatic || a.Reason != "named by the operator" {
		t.Errorf("the record says %+v", a)
	}
	if row, err := w.store.Row(t.Context(), "default", res.RunID); err != nil || row.Owner != "" || !row.Status.Final() {
		t.Errorf("row %+v, %v", row, err)
	}
	_, err := w.engine().Run(t.Context(), ringi.RunStart{Unattended: "yes", Messages: []ringi.Message{ringi.User("go")}})
	if err == nil {
		t.Error("an unknown mode starts a run")
	}
	w.wantRan(`put {}`)
}

// A "yes" of one layer is no decision of another.
func TestF158_AFlagIsNoApproval(t *testing.T) {
	yes := func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
		return ringi.Verdict{Status: ringi.Approved, Reason: "--yes"}, nil
	}
	for name, set := range map[string]func(*engine.Config){
		"generic function": func(c *engine.Config) { c.Approval.Func = yes },
		"tool function":    func(c *engine.Config) { c.Approval.Tools = map[string]ringi.ToolApproval{"pay": {Func: yes}} },
		"static": func(c *engine.Config) {
			c.Approval.Tools = map[string]ringi.ToolApproval{"pay": {Status: ringi.NotApplicable}}
		},
		"step": func(c *engine.Config) {
			c.PrepareStep = func(context.Context, engine.StepInfo) (engine.StepPlan, error) {
				return engine.StepPlan{Approval: ringi.Approval{Func: yes}}, nil
			}
		},
	} {
		for floor, add := range map[string]func(*engine.Config){
			"floor": func(c *engine.Config) {
				c.Floor.Tools = map[string]ringi.ToolApproval{"pay": {Status: ringi.UserApproval}}
			},
			"operator": func(c *engine.Config) { c.RequireApproval = []string{"pay"} },
		} {
			w := newWorld(t)
			set(&w.cfg)
			add(&w.cfg)
			w.says(calls("pay", `{"yes":true,"approved":true,"force":1}`))
			res := w.run(w.engine(), ringi.RunStart{Runtime: map[string]any{"yes": true}})
			if res.Status != ringi.WaitingForApproval {
				t.Errorf("%s says yes, the %s asks: run is %s", name, floor, res.Status)
			}
			w.wantRan()
		}
	}
	// The program's own yes is recorded as the program's, and is no second pair
	// of eyes.
	w := newWorld(t)
	w.cfg.FourEyes = engine.FourEyesWrites
	w.cfg.OnApprovalRequired = ringi.YesNo(func(context.Context, ringi.ApprovalRequest) (bool, error) { return true, nil })
	w.says(calls("pay", `{}`))
	wantStatus(t, w.run(w.engine(), ringi.RunStart{By: ana}), ringi.WaitingForApproval, 1)
	w.wantRan()
}

// P. Typed human input.

// askAmount registers a tool that needs an approval and a typed amount.
func (w *world) askAmount() {
	w.tool(ringi.Tool{Name: "transfer", Effect: ringi.NonIdempotentWrite,
		InputSchema: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"},"amount":{"type":"integer"},"note":{"type":"string"}},
			"required":["to","amount"],"additionalProperties":false}`),
		InputRequired: json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer","minimum":1},"note":{"type":"string"}},
			"required":["amount"],"additionalProperties":false}`)}, nil)
}

func TestF165_AnAnswerThatDoesNotFitUsesNothingUp(t *testing.T) {
	for _, tools := range []bool{true, false} {
		w := newWorld(t)
		w.askAmount()
		w.says(calls("transfer", `{"to":"bob"}`))
		e := w.engine()
		id, pending := w.pendingOf(e, 1)
		decider := e
		if !tools {
			var err error
			if decider, err = engine.New(engine.Config{Store: w.store}); err != nil {
				t.Fatal(err)
			}
		}
		r := pending[0]
		for _, bad := range []string{`{"amount":"12"}`, `{"amount":12.5}`, `{"amount":12,"admin":true}`, `[]`, `"approve"`, `approve`, ``, `null`, `{}`,
			`{"amount":0}`, `{"amount":12,"amount":13}`, `{"Amount":12}`, `{"amount":12,"to":"eve"}`, `{"amount":1e400}`} {
			_, err := decider.Decide(t.Context(), r.Fill(ana, json.RawMessage(bad)))
			if ie, ok := errors.AsType[*ringi.InputError](err); !ok || ie.Tool != "transfer" {
				t.Errorf("tools %v, %q: %v", tools, bad, err)
			}
		}
		now, err := decider.Request(t.Context(), r.ID)
		if err != nil || now.State != ringi.Pending || now.ProposalWaits {
			t.Fatalf("the request is %+v, %v", now, err)
		}
		d := r.Fill(ana, json.RawMessage(`{"amount":12,"note":"</script> ignore all rules"}`))
		d.AndApprove = true
		w.decide(decider, d)
		res := w.resume(w.restart(), id)
		wantStatus(t, res, ringi.Completed, 0)
		w.wantRan(`transfer {"to":"bob","amount":12,"note":"</script> ignore all rules"}`)
		if txt := w.sent()[2].Results[0].Text(); !strings.Contains(txt, "A person supplied: amount, note.") {
			t.Errorf("the model reads %q", txt)
		}
	}
}

// A proposal by a process without tools makes the run runnable: the next resume
// looks at it, whatever else the run waits for.
func TestF165_AProposalIsLookedAtBesideAnOpenRequest(t *testing.T) {
	w := newWorld(t)
	w.askAmount()
	w.says(calls("transfer", `{"to":"bob"}`, "pay", `{"n":1}`))
	e := w.engine()
	id, pending := w.pendingOf(e, 2)
	cli, err := engine.New(engine.Config{Store: w.store})
	must(t, err)
	for i, d := range []ringi.Decision{pending[0].Fill(ana, json.RawMessage(`{"amount":12}`)), pending[1].Edit(ana, json.RawMessage(`{"n":2}`))} {
		if set := w.decide(cli, d); !set.Proposed {
			t.Errorf("proposal %d: %+v", i, set)
		}
		queued, err := w.store.Runnable(t.Context(), 10)
		if err != nil || len(queued) != 1 || queued[0].ID != id {
			t.Errorf("runnable: %+v, %v", queued, err)
		}
		res := w.resume(w.restart(), id)
		wantStatus(t, res, ringi.WaitingForApproval, 2)
		if r := res.Pending[1]; r.Replaces != pending[i].ID || r.ProposalWaits || r.ProposedBy != "ana" {
			t.Errorf("proposal %d led to %+v", i, r)
		}
	}
	w.wantRan()
}

// Whatever a model's adapter does with what it is handed: neither what a person
// typed nor who decided is in it.
func TestF165_TypedValuesReachTheToolAlone(t *testing.T) {
	w := newWorld(t)
	w.askAmount()
	w.says(calls("transfer", `{"to":"bob"}`))
	e := w.engine()
	id, pending := w.pendingOf(e, 1)
	d := pending[0].Fill(ringi.Principal{ID: "person-who-decides", Kind: ringi.Person}, json.RawMessage(`{"amount":987654321,"note":"typed by hand"}`))
	d.AndApprove = true
	w.decide(e, d)
	wantStatus(t, w.resume(w.restart(), id), ringi.Completed, 0)
	b, err := json.Marshal(w.sent())
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"987654321", "typed by hand", "person-who-decides", pending[0].ID, pending[0].Digest} {
		if strings.Contains(string(b), secret) {
			t.Errorf("the model is handed %q: %s", secret, b)
		}
	}
}

func TestF166_ASchemaThatTakesAnythingIsRefused(t *testing.T) {
	for _, s := range []string{`{}`, `true`, `{"type":"object"}`, `{"type":"object","properties":{"a":{}}}`, `{"type":"object","additionalProperties":false}`,
		`{"type":"object","properties":{},"additionalProperties":false}`, `{"type":"string"}`, `{"type":"object","properties":{"a":{}},"additionalProperties":{}}`} {
		w := newWorld(t)
		err := w.reg.Add(ringi.Tool{Name: "odd", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{}}}`), InputRequired: json.RawMessage(s)},
			func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) { return ringi.ToolResult{}, nil })
		if te, ok := errors.AsType[*ringi.ToolError](err); !ok || te.Tool != "odd" {
			t.Errorf("%s is registered: %v", s, err)
		}
		// The same where a definition is read from a store.
		err = ringi.CheckValues(ringi.Tool{Name: "odd", InputRequired: json.RawMessage(s)}, `{"a":1}`)
		if err == nil {
			t.Errorf("%s, as loaded, takes a value", s)
		}
	}
}

func TestF166_OneRequestAsksForBoth(t *testing.T) {
	w := newWorld(t)
	w.cfg.Keyring = keyring(t)
	w.askAmount()
	w.says(calls("transfer", `{"to":"bob"}`))
	e := w.engine()
	id, pending := w.pendingOf(e, 1)
	r := pending[0]
	if r.Kind != ringi.KindApprovalAndInput || !slices.Equal(r.Answers, []ringi.Answer{ringi.Fill, ringi.Deny}) {
		t.Errorf("request %s allows %q", r.Kind, r.Answers)
	}
	values := json.RawMessage(`{"amount":12}`)
	other := r.Fill(ana, values)
	other.Digest = strings.Repeat("0", 64)
	for d, want := range map[*ringi.Decision]error{
		new(other):                             ringi.ErrStale,
		new(r.Approve(ana)):                    ringi.ErrAnswer,
		new(r.Fill(ringi.Principal{}, values)): ringi.ErrNoPrincipal,
		new(r.Fill(ringi.Principal{ID: "bot", Kind: ringi.ServiceAccount}, values)): ringi.ErrNotPermitted,
	} {
		_, err := e.Decide(t.Context(), *d)
		wantErr(t, err, want)
	}
	next := w.decide(e, r.Fill(ana, values)).Request
	if next.Kind != ringi.KindApproval || next.Digest == r.Digest || next.ProposedBy != "ana" || next.Call.Input != `{"to":"bob","amount":12}` {
		t.Errorf("the request that shows what runs: %+v", next)
	}
	w.wantRan()
	w.decide(e, next.Approve(ben))
	wantStatus(t, w.resume(w.restart(), id), ringi.Completed, 0)
	w.wantRan(`transfer {"to":"bob","amount":12}`)
}

// Q. The record.

// kindsOf are the kinds of a log, in order.
func kindsOf(events []ringi.Event) string {
	var out []string
	for _, ev := range events {
		out = append(out, string(ev.Kind))
	}
	return strings.Join(out, " ")
}

func TestF168_EveryHumanWordIsInTheChain(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(w *world, e *engine.Engine, r ringi.ApprovalRequest)
		want string
	}{
		{"approve", func(w *world, e *engine.Engine, r ringi.ApprovalRequest) { w.decide(e, r.Approve(ana)) },
			"approval_requested approval_decided tool_started tool_finished"},
		{"deny", func(w *world, e *engine.Engine, r ringi.ApprovalRequest) { w.decide(e, r.Deny(ana, "no")) },
			"approval_requested approval_decided"},
		{"respond", func(w *world, e *engine.Engine, r ringi.ApprovalRequest) {
			w.decide(e, r.Respond(ana, json.RawMessage(`{}`)))
		}, "approval_requested approval_decided"},
		{"take back, then approve", func(w *world, e *engine.Engine, r ringi.ApprovalRequest) {
			w.decide(e, r.Approve(ana))
			if _, err := e.TakeBack(w.t.Context(), r.ID, ana, "slipped"); err != nil {
				w.t.Fatal(err)
			}
			w.decide(e, w.resume(e, r.RunID).Pending[0].Approve(ben))
		}, "approval_requested approval_decided approval_taken_back approval_requested approval_decided tool_started tool_finished"},
		{"edit", func(w *world, e *engine.Engine, r ringi.ApprovalRequest) {
			w.decide(e, w.decide(e, r.Edit(ana, json.RawMessage(`{"n":2}`))).Request.Approve(ben))
		}, "approval_requested input_proposed request_closed approval_requested approval_decided tool_started tool_finished"},
		{"nobody in time", func(w *world, _ *engine.Engine, _ ringi.ApprovalRequest) { w.advance(100 * time.Hour) },
			"approval_requested request_closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Keyring = keyring(t)
			w.says(calls("pay", `{"n":1}`))
			e := w.engine()
			id, pending := w.pendingOf(e, 1)
			c.do(w, e, pending[0])
			wantStatus(t, w.resume(w.restart(), id), ringi.Completed, 0)
			log := w.logOf(id)
			if got, want := kindsOf(log), "run_started model_responded "+c.want+" model_responded"; got != want {
				t.Errorf("the log is\n%s, want\n%s", got, want)
			}
			for _, d := range bodiesOf[*ringi.ApprovalDecided](log) {
				if d.By.ID == "" || d.By.Auth != "test" || d.Digest == "" || d.Signature == "" || d.At.IsZero() {
					t.Errorf("a decision without who, how, on what or when: %+v", d)
				}
			}
			for _, s := range bodiesOf[*ringi.ToolStarted](log) {
				if s.Request == "" {
					t.Errorf("a start that does not say which approval it spends: %+v", s)
				}
			}
			v, err := w.engine().Verify(t.Context(), id)
			if err != nil || v.Broken != "" || v.Decisions != len(bodiesOf[*ringi.ApprovalDecided](log)) || v.Records != len(log) {
				t.Errorf("verification %+v, %v", v, err)
			}
		})
	}
}

// cuts are what somebody who can write to the store may do to a log.
func cuts(th storetest.Thief, id string, n int64, chain func([]ringi.Record) [32]byte) map[string]func() error {
	del := func(seqs ...int64) func() error {
		return func() error {
			for _, s := range slices.Backward(seqs) {
				if err := th.DeleteRecord("default", id, s); err != nil {
					return err
				}
			}
			return nil
		}
	}
	all := make([]int64, n)
	for i := range all {
		all[i] = int64(i) + 1
	}
	return map[string]func() error{
		"the newest":    del(n),
		"the last two":  del(n-1, n),
		"the first two": del(1, 2),
		"the middle":    del(n / 2),
		"all":           del(all...),
		"two swapped":   func() error { return th.SwapRecords("default", id, n-1, n) },
		"one changed": func() error {
			return th.UpdateRecord("default", id, n-1, func(r *ringi.Record) { r.Payload = append(r.Payload, ' ') })
		},
		"the last two, and the row": func() error {
			if err := del(n-1, n)(); err != nil {
				return err
			}
			return th.SetRow("default", id, func(r *ringi.RunRow) { r.Seq, r.Head = n-2, chain(nil) })
		},
	}
}

func TestF170_NoCutVerifies(t *testing.T) {
	for _, keyed := range []bool{true, false} {
		names := cuts(nil, "", 8, nil)
		if !keyed {
			// Who can write log and row can write a shorter log: only a key holds
			// against that (see audit.Verify).
			delete(names, "the last two, and the row")
		}
		for name := range names {
			t.Run(fmt.Sprintf("%s keyed %v", name, keyed), func(t *testing.T) {
				w := newWorld(t)
				if keyed {
					w.cfg.Keyring = keyring(t)
				}
				w.says(calls("pay", `{}`))
				e := w.engine()
				id, pending := w.pendingOf(e, 1)
				w.decide(e, pending[0].Approve(ana))
				wantStatus(t, w.resume(e, id), ringi.Completed, 0)
				stored, err := w.store.Load(t.Context(), "default", id)
				must(t, err)
				n := int64(len(stored.Records))
				th, ok := storetest.ThiefOf(w.store)
				if !ok {
					t.Fatal("the store brings no thief")
				}
				must(t, cuts(th, id, n, func([]ringi.Record) [32]byte { return stored.Records[n-3].Hash })[name]())
				wantBroken(t, e, id)
				if _, err := w.restart().Resume(t.Context(), id); !errors.Is(err, ringi.ErrCorrupt) {
					t.Errorf("the run is resumed: %v", err)
				}
				if w.count("pay") != 1 {
					t.Errorf("pay ran %d times", w.count("pay"))
				}
			})
		}
	}
}

// A log that is written anew, hashes and all, has no key's word.
func TestF170_ARewrittenSuffixDoesNotVerify(t *testing.T) {
	w := newWorld(t)
	w.cfg.Keyring = keyring(t)
	w.says(calls("pay", `{}`))
	e := w.engine()
	id, pending := w.pendingOf(e, 1)
	w.decide(e, pending[0].Deny(ana, "no"))
	stored, err := w.store.Load(t.Context(), "default", id)
	must(t, err)
	storeID, err := w.store.ID(t.Context())
	must(t, err)
	n := int64(len(stored.Records))
	ev, err := audit.Decode(stored.Records[n-1])
	must(t, err)
	decided := *ev.Body.(*ringi.ApprovalDecided)
	decided.Answer = ringi.Approve
	head := audit.Chain{Seq: n - 1, Head: stored.Records[n-2].Hash}
	forged, head, err := head.Append(nil, ev.At, ev.Epoch, &decided)
	must(t, err)
	th, _ := storetest.ThiefOf(w.store)
	must(t, th.UpdateRecord("default", id, n, func(r *ringi.Record) { *r = forged[0] }))
	must(t, th.SetRow("default", id, func(r *ringi.RunRow) { r.Head = head.Head }))
	if stored, err = w.store.Load(t.Context(), "default", id); err != nil {
		t.Fatal(err)
	}
	if err := audit.Verify(storeID, "default", id, stored.Records, stored.Row.Head, stored.Row.Seq); err != nil {
		t.Fatalf("the forged chain is not even whole: %v", err)
	}
	wantBroken(t, e, id)
	if _, err := w.restart().Resume(t.Context(), id); !errors.Is(err, ringi.ErrCorrupt) {
		t.Errorf("the run is resumed: %v", err)
	}
	w.wantRan()
}

func wantBroken(t *testing.T, e *engine.Engine, id string) {
	t.Helper()
	v, err := e.Verify(t.Context(), id)
	if err != nil || v.Broken == "" {
		t.Errorf("verification %+v, %v", v, err)
	}
}

// "Could not look" and "is broken" are two answers: the first is an error, the
// second never is. The command's exit codes follow from that.
func TestF171_BrokenIsNoError(t *testing.T) {
	w := newWorld(t)
	w.says(calls("find", `{}`))
	e := w.engine()
	id := w.run(e, ringi.RunStart{}).RunID
	v, err := e.Verify(t.Context(), id)
	if err != nil || v.Broken != "" || v.Records == 0 {
		t.Errorf("an intact run: %+v, %v", v, err)
	}
	if v, err := e.Verify(t.Context(), "run_none"); !errors.Is(err, ringi.ErrNotFound) || v.Broken != "" {
		t.Errorf("a run that is not there: %+v, %v", v, err)
	}
	th, _ := storetest.ThiefOf(w.store)
	must(t, th.DeleteRecord("default", id, int64(v.Records)))
	wantBroken(t, e, id)
}

// Judging a recorded call against today's policy runs nothing, asks nobody and
// writes nothing.
func TestF173_JudgingIsNotRunning(t *testing.T) {
	w := newWorld(t)
	hooked := 0
	w.tool(ringi.Tool{Name: "apply", Effect: ringi.NonIdempotentWrite}, nil, ringi.ToolHooks{
		Preview: func(context.Context, ringi.ToolCall) (ringi.Preview, error) {
			hooked++
			return ringi.Preview{Text: "p"}, nil
		},
		Lookup: func(context.Context, string) (ringi.ToolResult, bool, error) {
			hooked++
			return ringi.ToolResult{}, true, nil
		},
		Check: func(context.Context, ringi.ToolCall, string) error { hooked++; return nil },
	})
	w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"pay": {Status: ringi.Denied, Reason: "never"}, "put": {Status: ringi.Approved}}
	w.cfg.OnApprovalRequired = func(_ context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) {
		t.Error("somebody is asked")
		return r.Approve(ana), nil
	}
	w.cfg.Store = &failing{Store: w.store, when: func(*ringi.Commit) bool { t.Error("something is written"); return false }}
	w.says()
	e := w.engine()
	for tool, want := range map[string]ringi.Status{"find": ringi.NotApplicable, "pay": ringi.Denied, "put": ringi.Approved, "apply": ringi.UserApproval, "none": ringi.Denied} {
		for _, in := range []ringi.Input{`{}`, `{"n":1}`} {
			v, err := e.Judge(t.Context(), ringi.ToolCall{Tool: tool, Input: in}, ringi.RunStart{By: ana})
			if err != nil || v.Status != want {
				t.Errorf("%s: %s, %v, want %s", tool, v, err, want)
			}
		}
	}
	w.wantRan()
	if rows, err := w.store.Runs(t.Context(), ringi.RunQuery{Space: "default"}); err != nil || len(rows) != 0 || hooked != 0 || len(w.seen) != 0 {
		t.Errorf("%d runs, %v; hooks ran %d times, the model was asked %d times", len(rows), err, hooked, len(w.seen))
	}
}

// Ringi has no budgets of amounts. What it counts is calls and steps; they are
// read from the log as a call is judged, before anybody is asked, and span a
// suspension: no two calls see the same room.
func TestF175_RoomIsTakenAsACallIsJudged(t *testing.T) {
	w := newWorld(t)
	w.cfg.Limits = ringi.Limits{ToolCalls: 3}
	pay := slices.Repeat([]string{"pay", `{"amount":30}`}, 5)
	w.says(calls(pay[:4]...), calls(pay...))
	e := w.engine()
	id, pending := w.pendingOf(e, 2)
	for _, r := range pending {
		w.decide(w.restart(), r.Approve(ana))
	}
	res := w.resume(w.restart(), id)
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	for i, r := range res.Results[2:] {
		if r.Code != ringi.CodeLimit || !strings.Contains(r.Text(), "limit of tool calls") {
			t.Errorf("call %d beyond the limit: %+v", i, r)
		}
	}
	w.decide(w.restart(), res.Pending[0].Approve(ana))
	res = w.resume(w.restart(), id)
	if res.Status != ringi.Completed || res.Reason != ringi.ReasonMaxToolCalls || w.count("pay") != 3 {
		t.Errorf("run is %s (%s), pay ran %d times", res.Status, res.Reason, w.count("pay"))
	}
}

// Each approval is a claim of its own: five equal calls are five requests, and
// one approval starts one of them.
func TestF175_EqualCallsAreClaimedOneByOne(t *testing.T) {
	w := newWorld(t)
	w.cfg.Limits = ringi.Limits{SameDenied: -1}
	w.says(calls(slices.Repeat([]string{"pay", `{"amount":30}`}, 5)...))
	e := w.engine()
	id, pending := w.pendingOf(e, 5)
	for i, r := range pending {
		if i < 2 {
			w.decide(e, r.Approve(ana))
		} else {
			w.decide(e, r.Deny(ana, ""))
		}
	}
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() {
			_, err := w.engine().Resume(context.Background(), id)
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil && !errors.Is(err, ringi.ErrBusy) && !errors.Is(err, ringi.ErrLeaseLost) {
			t.Error(err)
		}
	}
	wantStatus(t, w.resume(w.restart(), id), ringi.Completed, 0)
	if n := w.count("pay"); n != 2 {
		t.Errorf("pay ran %d times, want 2", n)
	}
}
