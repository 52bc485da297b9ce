package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// Live hears a run as it happens, whoever drives it: deltas, commits by number,
// a decision of this process, and that the process has left the run.
func TestLive_TellsRunsAndDecisions(t *testing.T) {
	var heard []string
	model := ringitest.Script(ringitest.Calls(ringitest.Call("pay", `{}`)), ringitest.Text("done"))
	reg := ringi.NewRegistry()
	ringi.MustAddTool(reg, ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite}, func(context.Context, struct{}) (string, error) { return "paid", nil })
	e := ringitest.Engine(t, engine.Config{Registry: reg, Model: model, Live: func(ev ringi.Event) {
		heard = append(heard, fmt.Sprintf("%d:%s", ev.Seq, ev.Kind))
	}})
	res, err := e.Run(context.Background(), ringi.RunStart{By: ringi.Principal{ID: "ana", Kind: ringi.Person}, Messages: []ringi.Message{ringi.User("pay")}})
	if err != nil || len(res.Pending) != 1 {
		t.Fatalf("run: %+v, %v", res, err)
	}
	if got := strings.Join(heard, " "); got != "1:run_started 0:step_started 2:model_responded 3:approval_requested 0:run_left" {
		t.Errorf("until it waits Live heard %s", got)
	}
	heard = nil
	if _, err := e.Decide(context.Background(), res.Pending[0].Approve(ringi.Principal{ID: "ben", Kind: ringi.Person})); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(heard, " "); got != "4:approval_decided" {
		t.Errorf("of the decision Live heard %s", got)
	}
}

// A Live that panics changes nothing.
func TestLive_Panics(t *testing.T) {
	e := ringitest.Engine(t, engine.Config{Model: ringitest.Script(ringitest.Text("hi")), Live: func(ringi.Event) { panic("live") }})
	res, err := e.Run(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("hi")}})
	if err != nil || res.Status != ringi.Completed {
		t.Fatalf("run: %+v, %v", res, err)
	}
}
