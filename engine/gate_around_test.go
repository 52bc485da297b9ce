package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/sign"
	"github.com/ringi-dev/ringi/store/storetest"
)

// What stands around a gate: the thread with its other runs, a run above it
// and below it, and a store that somebody else wrote into.

// Our own runs before and behind a gate's run on one thread: its calls are in
// nobody's messages, its marks, denials and initiators are in everybody's.
func TestGate_BetweenOwnRuns(t *testing.T) {
	l := newLoop(t)
	l.says(calls("find", `{}`))
	e := l.engine()
	wantStatus(t, l.run(e, ringi.RunStart{Thread: "thr", By: ana, Messages: []ringi.Message{ringi.User("first")}}), ringi.Completed, 0)
	g, err := e.Gate(t.Context(), ringi.RunInfo{Thread: "thr", By: ben})
	must(t, err)
	r := l.waits(g, tc("pay", `{"n":77}`))
	if !slices.Contains(r.Initiators, "ana") && !slices.Contains(r.Initiators, "ben") {
		t.Errorf("initiators %v", r.Initiators)
	}
	d := r.Deny(ben, "")
	d.Scope = ringi.ThisTool
	l.decide(e, d)
	l.do(g, tc("note", `{"n":78}`))
	must(t, g.Close(t.Context()))
	l.seen = nil
	l.says(calls("pay", `{"n":79}`))
	res := l.run(l.engine(), ringi.RunStart{Thread: "thr", By: ana, Messages: []ringi.Message{ringi.User("third")}})
	wantStatus(t, res, ringi.Completed, 0)
	if res.Results[0].Code != ringi.CodeDeniedByPerson {
		t.Errorf("the gate's denial for the tool is forgotten: %+v", res.Results[0])
	}
	text := fmt.Sprintf("%+v", l.seen[0].Messages)
	if strings.Contains(text, `"n":77`) || strings.Contains(text, `"n":78`) || !strings.Contains(text, "first") || !strings.Contains(text, "third") {
		t.Errorf("the model is sent %s", text)
	}
	l.wantRan("find {}", `note {"n":78}`)
}

// What a gate's tools read counts for the next run's zone, and what an earlier
// run read for the gate's.
func TestGate_TheMarkOfTheThread(t *testing.T) {
	l := newLoop(t)
	l.tool(ringi.Tool{Name: "secret", Effect: ringi.ReadOnly, DataClass: ringi.SecretAdjacent}, nil)
	l.tool(ringi.Tool{Name: "page", Effect: ringi.ReadOnly, DataClass: ringi.PublicContent}, nil)
	l.says(calls("page", `{}`))
	e := l.engine()
	g, err := e.Gate(t.Context(), ringi.RunInfo{Thread: "thr", By: ana, Zone: ringi.ZoneLocal})
	must(t, err)
	l.do(g, tc("page", `{}`))
	l.do(g, tc("secret", `{}`))
	must(t, g.Close(t.Context()))
	l.cfg.Zone = ringi.ZoneExternalGlobal
	out := l.engine()
	res, err := out.Run(t.Context(), ringi.RunStart{Thread: "thr", By: ana, Messages: []ringi.Message{ringi.User("go")}})
	if err != nil || res.Status != ringi.Failed || res.Reason != ringi.ReasonTrustZone {
		t.Errorf("%+v %v", res, err)
	}
	h, err := out.Gate(t.Context(), ringi.RunInfo{Thread: "thr", By: ana})
	must(t, err)
	_, err = h.Do(t.Context(), tc("page", `{}`), l.acts)
	if f, ok := errors.AsType[*ringi.RunError](err); !ok || f.Reason != ringi.ReasonTrustZone {
		t.Errorf("%v", err)
	}
	l.wantRan("page {}", "secret {}")
}

// A gate inside a tool's handler is a child: unattended, with its parent's
// budget and initiators; and a run inside a gate's call is one of its own.
func TestGate_AsAChildAndAsAParent(t *testing.T) {
	l := newLoop(t)
	var e *engine.Engine
	var inner ringi.RunInfo
	l.tool(ringi.Tool{Name: "agent", Effect: ringi.ReadOnly}, func(ctx context.Context, c ringi.ToolCall) (ringi.ToolResult, error) {
		g, err := e.Gate(ctx, ringi.RunInfo{Thread: "child"})
		if err != nil {
			return ringi.ToolResult{}, err
		}
		inner = g.Run()
		res, err := g.Do(ctx, tc("pay", `{}`), l.acts)
		if err != nil || res.Code != ringi.CodeUnattended {
			t.Errorf("in the child: %+v %v", res, err)
		}
		for range 4 {
			if res, err = g.Do(ctx, tc("find", `{}`), l.acts); err != nil {
				return ringi.ToolResult{}, err
			}
		}
		if res.Code != ringi.CodeLimit {
			t.Errorf("the budget is not shared: %+v", res)
		}
		return ringi.ToolResult{Output: "ok"}, g.Close(ctx)
	})
	l.says(calls("agent", `{}`))
	l.cfg.Limits.ToolCalls = 4
	e = l.engine()
	res := l.run(e, ringi.RunStart{By: ana})
	if res.Results[0].Output != "ok" {
		t.Errorf("%+v", res.Results[0])
	}
	if inner.Unattended != ringi.PerTool || inner.Parent.RunID != res.RunID || inner.By.ID != "ana" {
		t.Errorf("%+v", inner)
	}

	l = newLoop(t)
	l.says(calls("pay", `{}`, "find", `{}`))
	e = l.engine()
	g := l.gate(e)
	out, err := g.Do(t.Context(), tc("note", `{}`), func(ctx context.Context, s engine.Started) (any, error) {
		res, err := e.Run(ctx, ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}})
		if err != nil {
			return nil, err
		}
		if res.Results[0].Code != ringi.CodeUnattended || res.Results[1].Outcome != ringi.OutcomeOK {
			t.Errorf("%+v", res.Results)
		}
		row := l.row(res.RunID)
		if row.Parent != g.Run().ID {
			t.Errorf("parent %q", row.Parent)
		}
		return res.Text, nil
	})
	if err != nil || out.Output != "done" {
		t.Errorf("%+v %v", out, err)
	}
	l.wantRan("find {}")
}

// F128 at a gate: an altered log runs nothing, whoever opened it before.
func TestGate_F128_AnAlteredLogRunsNothing(t *testing.T) {
	for name, steal := range map[string]func(th storetest.Thief, run string) error{
		"a byte of a payload": func(th storetest.Thief, run string) error {
			return th.UpdateRecord("default", run, 2, func(r *ringi.Record) { r.Payload[len(r.Payload)/2] ^= 1 })
		},
		"a hash": func(th storetest.Thief, run string) error {
			return th.UpdateRecord("default", run, 1, func(r *ringi.Record) { r.Hash[0] ^= 1 })
		},
		"the tail cut": func(th storetest.Thief, run string) error { return th.DeleteRecord("default", run, 4) },
		"the row's MAC": func(th storetest.Thief, run string) error {
			return th.SetRow("default", run, func(r *ringi.RunRow) { r.MAC = "" })
		},
		"the row's sequence number": func(th storetest.Thief, run string) error {
			return th.SetRow("default", run, func(r *ringi.RunRow) { r.Seq-- })
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t)
			l.cfg.Keyring = keyring(t)
			e := l.engine()
			g := l.gate(e)
			r := l.waits(g, tc("pay", `{}`))
			l.decide(e, r.Approve(ben))
			th, ok := storetest.ThiefOf(l.store)
			if !ok {
				t.Fatal("no thief")
			}
			must(t, steal(th, r.RunID))
			other := l.engine()
			for range 2 { // and it stays so
				if _, err := other.Gate(t.Context(), ringi.RunInfo{ID: r.RunID}); err == nil {
					t.Error("a gate of an altered run")
				}
			}
			// Whoever holds the gate: the mark on the row is found, and nothing starts.
			if _, err := g.Start(t.Context(), r.Call.ID); err == nil {
				t.Error("started")
			}
			if _, err := g.Do(t.Context(), tc("note", `{}`), l.acts); err == nil {
				t.Error("done")
			}
			l.wantRan()
		})
	}
}

// The inbox's row is never the source of a grant: a row that says approved, or
// denied, against the log starts nothing.
func TestGate_TheInboxRowGrantsNothing(t *testing.T) {
	for _, forged := range []ringi.RequestState{ringi.Granted, ringi.Refused} {
		l := newLoop(t)
		e := l.engine()
		g := l.gate(e)
		r := l.waits(g, tc("pay", `{}`))
		if forged == ringi.Refused {
			l.decide(e, r.Approve(ben))
		}
		th, _ := storetest.ThiefOf(l.store)
		must(t, th.SetRequest("default", r.ID, func(q *ringi.RequestRow) { q.State = forged }))
		for _, g := range []*engine.Gate{g, l.gate(l.engine())} {
			if _, err := g.Start(t.Context(), r.Call.ID); err == nil {
				t.Errorf("%s: started", forged)
			}
		}
		l.wantRan()
	}
}

// A keyed store: another key and none open nothing.
func TestGate_Keys(t *testing.T) {
	other, err := sign.New([]byte("another key of thirty-two bytes!"))
	must(t, err)
	l := newLoop(t)
	l.cfg.Store = keyless{l.store}
	l.cfg.Keyring = keyring(t)
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{}`))
	if r.Signature == "" {
		t.Error("not signed")
	}
	l.decide(e, r.Approve(ben))
	for _, k := range []*sign.Keyring{nil, other} {
		l.cfg.Keyring = k
		x := l.restart()
		if _, err := x.Gate(t.Context(), ringi.RunInfo{ID: r.RunID}); !errors.Is(err, ringi.ErrNoKey) {
			t.Errorf("%v", err)
		}
		if _, err := x.Gate(t.Context(), ringi.RunInfo{Thread: "thr"}); !errors.Is(err, ringi.ErrNoKey) {
			t.Errorf("%v", err)
		}
		if _, err := x.Expire(t.Context(), 10); err != nil {
			t.Logf("expire: %v", err)
		}
	}
	l.wantRan()
	l.cfg.Keyring = keyring(t)
	e = l.restart()
	l.do(l.gate(e), known(r.Call.ID))
	l.wantRan("pay {}")
	v, err := e.Verify(t.Context(), r.RunID)
	if err != nil || v.Broken != "" || !v.Signed || v.Requests != 1 || v.Decisions != 1 {
		t.Errorf("%+v %v", v, err)
	}
}

// An engine that only reads shows a gate's run and changes nothing of it.
func TestGate_ReadOnly(t *testing.T) {
	l := newLoop(t)
	g := l.gate(l.engine())
	r := l.waits(g, tc("pay", `{}`))
	before := l.row(r.RunID)
	l.advance(100 * time.Hour)
	l.cfg.ReadOnly = true
	e := l.engine()
	q, err := e.Request(t.Context(), r.ID)
	if err != nil || q.State != ringi.Expired || q.Call.Input != `{}` {
		t.Errorf("%+v %v", q, err)
	}
	for name, err := range map[string]error{
		"gate":   func() error { _, err := e.Gate(t.Context(), ringi.RunInfo{ID: r.RunID}); return err }(),
		"resume": func() error { _, err := e.Resume(t.Context(), r.RunID); return err }(),
		"expire": func() error { _, err := e.Expire(t.Context(), 1); return err }(),
		"decide": func() error { _, err := e.Decide(t.Context(), r.Approve(ben)); return err }(),
		"cancel": e.Cancel(t.Context(), r.RunID, ben, "", true),
	} {
		if err == nil {
			t.Errorf("%s was done", name)
		}
	}
	if w, err := e.Wait(t.Context(), r.ID); err != nil || w.State != ringi.Expired {
		t.Errorf("%+v %v", w, err)
	}
	if after := l.row(r.RunID); after != before {
		t.Errorf("%+v", after)
	}
}

// Spaces are apart: another space's engine knows neither run nor request.
func TestGate_AnotherSpace(t *testing.T) {
	l := newLoop(t)
	g := l.gate(l.engine())
	r := l.waits(g, tc("pay", `{}`))
	l.cfg.Space = "other"
	e := l.engine()
	_, err := e.Gate(t.Context(), ringi.RunInfo{ID: r.RunID})
	wantErr(t, err, ringi.ErrNotFound)
	_, err = e.Wait(t.Context(), r.ID)
	wantErr(t, err, ringi.ErrNotFound)
	h, err := e.Gate(t.Context(), ringi.RunInfo{Thread: "thr", By: ana})
	must(t, err)
	if h.Run().ID == r.RunID {
		t.Error("another space's run")
	}
	_, err = h.Start(t.Context(), r.Call.ID)
	wantErr(t, err, ringi.ErrNotFound)
	l.advance(100 * time.Hour)
	if n, err := e.Expire(t.Context(), 10); err != nil || n != 0 {
		t.Errorf("%d %v", n, err)
	}
}
