package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// A request may be handed to a team that the operator named for it, and what
// that team's member approves runs; a tool's own rule is not widened, nor is an
// approval that another team's member gave before.
func TestHandOverToATeamBesideTheRule(t *testing.T) {
	admin := ringi.Principal{ID: "root", Kind: ringi.Person, Admin: true, Auth: "test"}
	leads := ringi.Deciders{Teams: []string{"leads"}}
	make := func(own ringi.Deciders, handOver ...string) (*engine.Engine, *ringi.Result) {
		reg := ringi.NewRegistry()
		ringi.AddTool(reg, ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite, RequiresApproval: true, Deciders: own},
			func(context.Context, struct{}) (string, error) { return "paid", nil })
		e := ringitest.Engine(t, engine.Config{Registry: reg, Deciders: ringi.Deciders{Teams: []string{"refunds"}}, HandOver: handOver,
			Model: ringitest.Script(ringitest.Calls(ringitest.Call("pay", `{}`)), ringitest.Text("done"))})
		res, err := e.Run(t.Context(), ringi.RunStart{By: ringi.Principal{ID: "cho", Kind: ringi.Person, Auth: "test"}, Messages: []ringi.Message{ringi.User("pay")}})
		if err != nil {
			t.Fatal(err)
		}
		return e, res
	}
	for name, refused := range map[string]func() (*engine.Engine, *ringi.Result){
		"no team is named": func() (*engine.Engine, *ringi.Result) { return make(ringi.Deciders{}) },
		"another is named": func() (*engine.Engine, *ringi.Result) { return make(ringi.Deciders{}, "board") },
		"the rule is the tool's": func() (*engine.Engine, *ringi.Result) {
			return make(ringi.Deciders{Teams: []string{"refunds"}}, "leads")
		},
	} {
		e, res := refused()
		if _, err := e.Reassign(t.Context(), res.Pending[0].ID, leads, admin, ""); !errors.Is(err, ringi.ErrNotPermitted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	e, res := make(ringi.Deciders{}, "leads")
	set, err := e.Reassign(t.Context(), res.Pending[0].ID, leads, admin, "")
	if err != nil {
		t.Fatal(err)
	}
	ben := ringi.Principal{ID: "ben", Kind: ringi.Person, Auth: "test", Teams: []string{"leads"}}
	ana := ringi.Principal{ID: "ana", Kind: ringi.Person, Auth: "test", Teams: []string{"refunds"}}
	if _, err := e.Decide(t.Context(), set.Request.Approve(ana)); !errors.Is(err, ringi.ErrNotPermitted) {
		t.Errorf("who was asked before still decides: %v", err)
	}
	if _, err := e.Decide(t.Context(), set.Request.Approve(ben)); err != nil {
		t.Fatal(err)
	}
	if res, err := e.Resume(t.Context(), res.RunID); err != nil || res.Status != ringi.Completed || len(res.Results) == 0 && res.Text != "done" {
		t.Errorf("after the hand-over: %+v %v", res, err)
	}
}
