package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// household knows logins: ana has two, an agent's client and a token are hers,
// the desk is everybody's, and cron is nobody's.
type household struct{ down bool }

func (h *household) Persons(_ context.Context, ids []string) ([]string, error) {
	if h.down {
		return nil, errors.New("the directory does not answer")
	}
	known := map[string]string{"ana": "ana", "ana@work": "ana", "client:shop": "ana", "tok_ana": "ana", "ben": "ben", "cho": "cho"}
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = known[id]
	}
	return out, nil
}

func login(id string) ringi.Principal {
	return ringi.Principal{ID: id, Name: id, Kind: ringi.Person, Auth: "test"}
}

// S-12: who may approve, by who asked. Every set of initiators that there is,
// each against every login.
func TestS12_WhoMayApprove(t *testing.T) {
	shop := ringi.Principal{ID: "client:shop", Kind: ringi.ServiceAccount, Auth: "token:tok_ana"}
	cron := ringi.Principal{ID: "client:cron", Kind: ringi.ServiceAccount, Auth: "token:tok_cron"}
	said := func(author string) ringi.Message {
		m := ringi.User("refund 500 to X")
		m.Author = author
		return m
	}
	tests := []struct {
		name string
		ask  func(w *world, e *engine.Engine) *ringi.Result
		may  []string // nobody: the call is denied
	}{
		{"the starter", func(w *world, e *engine.Engine) *ringi.Result {
			return w.run(e, ringi.RunStart{By: ana})
		}, []string{"ben", "cho"}},
		{"the starter, by his other login", func(w *world, e *engine.Engine) *ringi.Result {
			return w.run(e, ringi.RunStart{By: login("ana@work")})
		}, []string{"ben", "cho"}},
		{"two authors of messages", func(w *world, e *engine.Engine) *ringi.Result {
			return w.run(e, ringi.RunStart{By: ben, Messages: []ringi.Message{said("ana@work"), said("ben")}})
		}, []string{"cho"}},
		{"two authors on a thread", func(w *world, e *engine.Engine) *ringi.Result {
			w.says()
			w.run(w.engine(), ringi.RunStart{Thread: "thr_two", By: ana})
			w.says(calls("pay", `{}`))
			return w.run(w.engine(), ringi.RunStart{Thread: "thr_two", By: ben})
		}, []string{"cho"}},
		{"an agent's token counts as its owner", func(w *world, e *engine.Engine) *ringi.Result {
			return w.run(e, ringi.RunStart{By: shop})
		}, []string{"ben", "cho"}},
		{"an agent that belongs to nobody", func(w *world, e *engine.Engine) *ringi.Result {
			return w.run(e, ringi.RunStart{By: cron})
		}, nil},
		{"a shared login", func(w *world, e *engine.Engine) *ringi.Result {
			return w.run(e, ringi.RunStart{By: login("desk")})
		}, nil},
		{"an editor, by his other login", func(w *world, e *engine.Engine) *ringi.Result {
			res := w.run(e, ringi.RunStart{By: ben})
			w.decide(e, res.Pending[0].Edit(login("ana@work"), json.RawMessage(`{"a":1}`)))
			return w.resume(e, res.RunID)
		}, []string{"cho"}},
		{"an editor whom nobody knows", func(w *world, e *engine.Engine) *ringi.Result {
			res := w.run(e, ringi.RunStart{By: ben})
			_, err := e.Decide(t.Context(), res.Pending[0].Edit(login("desk"), json.RawMessage(`{"a":1}`)))
			wantErr(t, err, ringi.ErrNotPermitted)
			return w.resume(e, res.RunID)
		}, []string{"ana", "ana@work", "cho", "tok_ana"}},
		{"who gave typed input", func(w *world, _ *engine.Engine) *ringi.Result {
			w.says(calls("wire", `{}`))
			e := w.engine()
			res := w.run(e, ringi.RunStart{By: ben})
			w.decide(e, res.Pending[0].Fill(login("ana@work"), json.RawMessage(`{"code":"1"}`)))
			return w.resume(e, res.RunID)
		}, []string{"cho"}},
	}
	logins := []string{"ana", "ana@work", "ben", "cho", "desk", "stranger", "tok_ana"}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, id := range logins {
				w := newWorld(t)
				w.tool(ringi.Tool{Name: "wire", Effect: ringi.NonIdempotentWrite, RequiresApproval: true, InputSchema: json.RawMessage(
					`{"type":"object","properties":{"code":{"type":"string"}},"additionalProperties":false}`), InputRequired: json.RawMessage(
					`{"type":"object","properties":{"code":{"type":"string"}},"required":["code"],"additionalProperties":false}`)}, nil)
				w.cfg.FourEyes, w.cfg.Persons = engine.FourEyesAll, &household{}
				w.says(calls("pay", `{}`))
				e := w.engine()
				res := tt.ask(w, e)
				if tt.may == nil {
					wantStatus(t, res, ringi.Completed, 0)
					if r := res.Results[0]; r.Code != ringi.CodeNoDecider {
						t.Errorf("result %+v", r)
					}
					return
				}
				_, err := e.Decide(t.Context(), res.Pending[0].Approve(login(id)))
				if may := slices.Contains(tt.may, id); may != (err == nil) || !may && !errors.Is(err, ringi.ErrNotPermitted) {
					t.Errorf("%s approves: %v, want %v", id, err, may)
				}
				if err != nil {
					w.decide(e, res.Pending[0].Deny(login(id), "no")) // who asked may say no
				}
			}
		})
	}
}

// What a parent was asked for, its child is asked for.
func TestS12_AChildHasItsParentsInitiators(t *testing.T) {
	w := newWorld(t)
	w.cfg.FourEyes, w.cfg.Persons = engine.FourEyesWrites, &household{}
	var inner string
	var e *engine.Engine
	w.tool(ringi.Tool{Name: "agent", Effect: ringi.ReadOnly}, func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
		res, err := e.Run(ctx, ringi.RunStart{By: ben, Messages: []ringi.Message{ringi.User("inner")}})
		if err == nil {
			inner = res.RunID
		}
		return ringi.ToolResult{}, err
	})
	w.cfg.Model = modelFunc(func(req ringi.ModelRequest) *ringi.ModelTurn {
		if req.Messages[0].Text != "inner" && req.Step == 1 {
			return calls("agent", `{}`)
		}
		return &ringi.ModelTurn{Text: "done"}
	})
	e = w.engine()
	w.run(e, ringi.RunStart{By: ana})
	events, err := e.Events(t.Context(), inner, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := events[0].Body.(*ringi.RunStarted).Initiators; !slices.Equal(got, []string{"ben", "ana"}) {
		t.Errorf("the child's initiators are %q", got)
	}
}

// An edit under four eyes is somebody else's to approve, whatever login the
// other one has; nobody approves where the directory is silent, and a decision
// that another process took without knowing people does not run.
func TestS12_EveryPathKnowsPeople(t *testing.T) {
	ask := func(t *testing.T) (*world, *household, *engine.Engine, *ringi.Result) {
		w, people := newWorld(t), &household{}
		w.cfg.FourEyes, w.cfg.Persons = engine.FourEyesAll, people
		w.says(calls("pay", `{}`))
		e := w.engine()
		return w, people, e, w.run(e, ringi.RunStart{By: ana})
	}
	t.Run("the directory is silent", func(t *testing.T) {
		_, people, e, res := ask(t)
		people.down = true
		_, err := e.Decide(t.Context(), res.Pending[0].Approve(ben))
		if err == nil || errors.Is(err, ringi.ErrNotPermitted) || !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("approved without the directory: %v", err)
		}
		if _, err = e.Decide(t.Context(), res.Pending[0].Deny(ana, "")); err != nil {
			t.Errorf("deny: %v", err)
		}
	})
	t.Run("silent when it is spent", func(t *testing.T) {
		w, people, e, res := ask(t)
		w.decide(e, res.Pending[0].Approve(ben))
		people.down = true
		if _, err := e.Resume(t.Context(), res.RunID); err == nil {
			t.Error("the call was started without the directory")
		}
		w.wantRan()
		people.down = false
		wantStatus(t, w.resume(w.restart(), res.RunID), ringi.Completed, 0)
		w.wantRan("pay {}")
	})
	t.Run("decided where people are not known", func(t *testing.T) {
		w, people, _, res := ask(t)
		w.cfg.Persons = nil
		w.decide(w.engine(), res.Pending[0].Approve(login("ana@work")))
		w.cfg.Persons = people
		res = w.resume(w.engine(), res.RunID)
		w.wantRan()
		wantStatus(t, res, ringi.WaitingForApproval, 1) // it is asked anew
	})
	t.Run("a router without the agent", func(t *testing.T) {
		w, _, _, res := ask(t)
		w.cfg.Agent = "another"
		r, err := engine.Route(w.engine())
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Decide(t.Context(), res.Pending[0].Approve(login("ana@work")))
		wantErr(t, err, ringi.ErrNotPermitted)
	})
	t.Run("a gate", func(t *testing.T) {
		w, _, e, _ := ask(t)
		g, err := e.Gate(t.Context(), ringi.RunInfo{By: login("client:shop")})
		if err != nil {
			t.Fatal(err)
		}
		j, err := g.Judge(t.Context(), ringi.ToolCall{Tool: "pay", Input: `{}`})
		if err != nil || j.Request == nil {
			t.Fatal(j, err)
		}
		_, err = e.Decide(t.Context(), j.Request.Approve(ana))
		wantErr(t, err, ringi.ErrNotPermitted)
		w.decide(e, j.Request.Approve(ben))
	})
	t.Run("only his other login may decide", func(t *testing.T) {
		w := newWorld(t)
		w.cfg.FourEyes, w.cfg.Persons = engine.FourEyesAll, &household{}
		w.cfg.Deciders = ringi.Deciders{People: []string{"ana@work"}}
		w.says(calls("pay", `{}`))
		res := w.run(w.engine(), ringi.RunStart{By: ana})
		wantStatus(t, res, ringi.Completed, 0)
		if res.Results[0].Code != ringi.CodeNoDecider {
			t.Errorf("result %+v", res.Results[0])
		}
	})
}
