package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

func TestGateSmoke(t *testing.T) {
	ctx := t.Context()
	reg := ringi.NewRegistry()
	must(t, reg.AddExternal(ringi.Tool{Name: "refund", Effect: ringi.NonIdempotentWrite, Description: "pay back", InputSchema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)}))
	must(t, reg.AddExternal(ringi.Tool{Name: "look", Description: "look", Effect: ringi.ReadOnly, InputSchema: []byte(`{"type":"object"}`)}))
	e, err := engine.New(engine.Config{Registry: reg})
	must(t, err)
	g, err := e.Gate(ctx, ringi.RunInfo{Thread: "t1"})
	must(t, err)
	runs := 0
	var mu sync.Mutex
	run := func(ctx context.Context, s engine.Started) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		runs++
		return map[string]string{"ok": string(s.Input())}, nil
	}
	res, err := g.Do(ctx, ringi.ToolCall{Tool: "look", Input: "{}"}, run)
	if err != nil || res.Output != `{"ok":"{}"}` {
		t.Fatal(res, err)
	}
	_, err = g.Do(ctx, ringi.ToolCall{Tool: "refund", ModelID: "m1", Input: `{"n":1}`}, run)
	w, ok := errors.AsType[*ringi.WaitingError](err)
	if !ok {
		t.Fatal(err)
	}
	person := ringi.Principal{ID: "p1", Name: "P", Kind: ringi.Person}
	go func() {
		if _, err := e.Decide(ctx, w.Request.Approve(person)); err != nil {
			t.Error(err)
		}
	}()
	r, err := e.Wait(ctx, w.Request.ID)
	if err != nil || r.State != ringi.Granted {
		t.Fatal(r, err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			res, err := g.Do(ctx, w.Request.Call, run)
			if err != nil || res.Output != `{"ok":"{\"n\":1}"}` {
				t.Error(res, err)
			}
		})
	}
	all.Wait()
	if runs != 2 {
		t.Fatal(runs)
	}
	must(t, g.Close(ctx))
	if _, err := g.Judge(ctx, ringi.ToolCall{Tool: "look", Input: "{}"}); !errors.Is(err, ringi.ErrFinal) {
		t.Fatal(err)
	}
	rep, err := e.Verify(ctx, g.Run().ID)
	t.Log(rep, err)
}
