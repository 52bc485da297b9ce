package ringitest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

func TestReactions(t *testing.T) {
	for _, c := range []struct {
		name    string
		react   ringitest.Reaction
		ran     int
		results string
	}{
		{"approve", ringitest.Approve(ringitest.Ana), 1, "filed"},
		{"deny", ringitest.Deny(ringitest.Ana, "not yet"), 0, "Reason: not yet"},
		{"edit", func(r ringi.ApprovalRequest) (ringi.Decision, error) {
			if r.Proposed != "" {
				return ringitest.Approve(ringitest.Ana)(r)
			}
			return ringitest.Edit(ringitest.Ana, `{"n":2}`)(r)
		}, 1, `Executed input: {"n":2}`},
		{"respond", ringitest.Respond(ringitest.Ana, "by hand"), 0, "by hand"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ran ringitest.Effects
			reg := ringi.NewRegistry()
			ran.Tool(reg, ringi.Tool{Name: "file", Effect: ringi.NonIdempotentWrite, AllowEdit: true, AllowRespond: true}, "filed")
			e := ringitest.Engine(t, engine.Config{Registry: reg, Model: ringitest.Script(
				ringitest.Calls(ringitest.Call("file", `{"n":1}`)), ringitest.Text("Done."))})
			res, err := e.Run(t.Context(), hello)
			if err != nil {
				t.Fatal(err)
			}
			res = ringitest.Settle(t, e, res, c.react)
			if res.Text != "Done." || !strings.Contains(res.Results[0].Text(), c.results) {
				t.Errorf("%q, and the model reads %q", res.Text, res.Results[0].Text())
			}
			ran.Want(t, "file", c.ran)
		})
	}
}

func TestFillSuppliesTypedValues(t *testing.T) {
	var ran ringitest.Effects
	reg := ringi.NewRegistry()
	pin := json.RawMessage(`{"type":"object","properties":{"pin":{"type":"string"}},"required":["pin"],"additionalProperties":false}`)
	ran.Tool(reg, ringi.Tool{Name: "open", Effect: ringi.NonIdempotentWrite, InputSchema: pin, InputRequired: pin}, "open")
	e := ringitest.Engine(t, engine.Config{Registry: reg, Model: ringitest.Script(
		ringitest.Calls(ringitest.Call("open", `{}`)), ringitest.Text("Done."))})
	res, err := e.Run(t.Context(), hello)
	if err != nil {
		t.Fatal(err)
	}
	res = ringitest.Settle(t, e, res, func(r ringi.ApprovalRequest) (ringi.Decision, error) {
		if r.Allows(ringi.Fill) {
			return ringitest.Fill(ringitest.Ana, `{"pin":"12"}`)(r)
		}
		return ringitest.Approve(ringitest.Ana)(r)
	})
	if res.Text != "Done." {
		t.Errorf("%+v", res)
	}
	ran.Want(t, "open", 1, `{"pin":"12"}`)
}

func TestDenyAll(t *testing.T) {
	var ran ringitest.Effects
	cfg := asking(&ran)
	approver := ringitest.DenyAll(ringitest.Ben, "never")
	cfg.OnApprovalRequired = approver.Decide
	res, err := ringitest.Engine(t, cfg).Run(t.Context(), hello)
	if err != nil || res.Text != "Done." || len(approver.Requests()) != 1 {
		t.Error(res, err)
	}
	ran.Want(t, "send", 0)
}
