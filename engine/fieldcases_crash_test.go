package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
	"github.com/ringi-dev/ringi/store/memory"
)

// F30 and F31 over a run that has everything: reads, an automatic approval, an
// idempotent and a non-idempotent write, typed input, an edit, a denial, and a
// second step. It is killed at every point, and its store fails while it lives.

// fullRun gives a shop the tools and the script of such a run.
func fullRun(t *testing.T, ran *ringitest.Effects, mode ringi.TurnMode) engine.Config {
	reg := ringi.NewRegistry()
	text := json.RawMessage(`{"type":"object","properties":{"code":{"type":"string"}},"required":["code"],"additionalProperties":false}`)
	for _, tool := range []ringi.Tool{
		{Name: "find", Effect: ringi.ReadOnly}, {Name: "look", Effect: ringi.ReadOnly, RequiresApproval: true},
		{Name: "note"}, {Name: "put", Effect: ringi.IdempotentWrite}, {Name: "pay", Effect: ringi.NonIdempotentWrite, AllowEdit: true},
		{Name: "mail", Effect: ringi.NonIdempotentWrite},
		{Name: "sign", Effect: ringi.NonIdempotentWrite, InputRequired: text, InputSchema: json.RawMessage(
			`{"type":"object","properties":{"n":{"type":"integer"},"code":{"type":"string"}},"required":["n","code"],"additionalProperties":false}`)},
	} {
		ran.Tool(reg, tool, "ok "+tool.Name)
	}
	return engine.Config{Registry: reg, Keyring: shopKeys(t), TurnMode: mode,
		Approval: ringi.Approval{Tools: map[string]ringi.ToolApproval{"put": {Status: ringi.Approved}}},
		Model: ringitest.Script(
			turn("find", `{"n":1}`, "note", `{"n":2}`, "put", `{"n":3}`, "pay", `{"n":4}`, "find", `{"n":5}`, "mail", `{"n":6}`, "sign", `{"n":7}`),
			turn("look", `{"n":8}`, "pay", `{"n":9}`),
			ringitest.Text("Done."))}
}

// person answers a full run: edits the first payment, denies the mail, fills in
// a code, and tells the truth of what may have run.
func person(ran *ringitest.Effects) ringitest.Reaction {
	return func(r ringi.ApprovalRequest) (ringi.Decision, error) {
		switch {
		case r.Kind == ringi.KindOutcome:
		case r.Call.Tool == "mail":
			return r.Deny(ringitest.Ana, "no mail"), nil
		case r.Call.Input == `{"n":4}`:
			return r.Edit(ringitest.Ana, json.RawMessage(`{"n":44}`)), nil
		case r.Kind == ringi.KindApprovalAndInput || r.Kind == ringi.KindInput:
			return r.Fill(ringitest.Ana, json.RawMessage(`{"code":"1234"}`)), nil
		}
		return ringitest.Witness(ringitest.Ben, ran)(r)
	}
}

// checkFullRun holds what must be true of a full run, whatever happened to it.
// A write that a person says did not run is not run again by itself.
func checkFullRun(t *testing.T, res *ringi.Result, ran *ringitest.Effects) {
	t.Helper()
	if err := res.Err(); err != nil || res.Text != "Done." || len(res.Results) != 9 {
		t.Errorf("%v, %q, %d results", err, res.Text, len(res.Results))
		return
	}
	ran.WantOnce(t, "note", "pay", "mail", "sign")
	ran.Want(t, "mail", 0)
	ran.Want(t, "pay", 0, `{"n":4}`)
	for i, r := range res.Results {
		n := 0
		for _, did := range ran.Calls() {
			if did.CallID == r.CallID {
				n++
			}
		}
		switch {
		case r.Tool == "mail":
			if r.Code != ringi.CodeDeniedByPerson {
				t.Errorf("call %d: %+v", i, r)
			}
		case r.Code == ringi.CodeDidNotRun:
			if n != 0 {
				t.Errorf("call %d ran %d times, and the model reads that it did not", i, n)
			}
		case n == 0 || r.Output != "ok "+r.Tool:
			t.Errorf("call %d ran %d times, and the model reads %+v", i, n, r)
		}
	}
}

func TestF30_AFullRunAtEveryCrash(t *testing.T) {
	for _, mode := range []ringi.TurnMode{ringi.Eager, ringi.Hold} {
		t.Run(string(mode), func(t *testing.T) {
			ringitest.Crashes(t, func(t *testing.T, c *ringitest.Crash) {
				c.Engine(fullRun(t, &c.Effects, mode))
				checkFullRun(t, c.Settle(c.Run(ringi.RunStart{By: ringitest.Ben}), person(&c.Effects)), &c.Effects)
			})
		})
	}
}

func TestF30_AFullRunWithACallbackAtEveryCrash(t *testing.T) {
	ringitest.Crashes(t, func(t *testing.T, c *ringitest.Crash) {
		cfg := fullRun(t, &c.Effects, ringi.Eager)
		cfg.OnApprovalRequired = func(_ context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) { return person(&c.Effects)(r) }
		c.Engine(cfg)
		checkFullRun(t, c.Run(ringi.RunStart{By: ringitest.Ben}), &c.Effects)
	})
}

func TestF30_ACrashInTheRecovery(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred runs")
	}
	ringitest.CrashesTwice(t, func(t *testing.T, c *ringitest.Crash) {
		s := newShop(t, turn("find", `{}`, "put", `{}`, "pay", `{}`))
		cfg := fullRun(t, &c.Effects, ringi.Eager)
		cfg.Model = s.model
		c.Engine(cfg)
		res := c.Settle(c.Run(ringi.RunStart{}), ringitest.Witness(ringitest.Ana, &c.Effects))
		if err := res.Err(); err != nil || res.Text != "Done." {
			t.Errorf("%v, %+v", err, res)
		}
		c.Effects.WantOnce(t, "pay")
	})
}

// The process lives on, and its store fails: before a commit, behind it, and at
// reads. No run is stranded, and no write runs twice.
func TestF30_AFullRunOverAFailingStore(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed_", seed), func(t *testing.T) {
			var ran ringitest.Effects
			f := &ringitest.Faults{Rate: 0.1 + 0.1*float64(seed%3), Seed: seed, Both: true, Reads: seed%2 == 0}
			store := memory.New(memory.Options{})
			cfg := fullRun(t, &ran, []ringi.TurnMode{ringi.Eager, ringi.Hold}[seed/2%2])
			if seed%5 == 0 {
				cfg.OnApprovalRequired = func(_ context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) { return person(&ran)(r) }
			}
			cfg.Limits.Attempts = 10 // a store that fails so often makes claims that come to nothing
			cfg.Store = f.Store(store)
			e := ringitest.Engine(t, cfg)
			res, errs := persist(t, e, store, person(&ran))
			if res == nil {
				t.Fatalf("the run is stranded: %v", errs)
			}
			checkFullRun(t, res, &ran)
			if t.Failed() {
				t.Logf("after %d faults: %v", f.Count(), errs)
			}
		})
	}
}

// persist drives the one run of a store to its end, as a caller does who tries
// again after every error.
func persist(t *testing.T, e *engine.Engine, store ringi.Store, react ringitest.Reaction) (*ringi.Result, []error) {
	t.Helper()
	var errs []error
	for range 400 {
		rows, err := store.Runs(t.Context(), ringi.RunQuery{Space: "default"})
		if err != nil || len(rows) > 1 {
			t.Fatalf("%d runs, %v", len(rows), err)
		}
		var res *ringi.Result
		if len(rows) == 0 {
			res, err = e.Run(t.Context(), ringi.RunStart{By: ringitest.Ben})
		} else {
			res, err = e.Resume(t.Context(), rows[0].ID)
		}
		switch {
		case err != nil:
			errs = append(errs, err)
			continue
		case res.Status.Final():
			return res, errs
		}
		for _, r := range res.Pending {
			d, err := react(r)
			if err == nil {
				_, err = e.Decide(t.Context(), d)
			}
			if err != nil {
				errs = append(errs, err)
			}
		}
	}
	return nil, errs
}
