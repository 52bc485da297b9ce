package ringitest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// What follows is what a user writes to test his own policy: a tool, approval
// settings, a table and one run that crosses a restart.

type PaymentIn struct {
	To     string `json:"to"`
	Amount int64  `json:"amount"`
}

type OrderIn struct {
	ID string `json:"id"`
}

type Session struct {
	Role string `json:"role"`
}

var approval = ringi.Approval{
	Tools: map[string]ringi.ToolApproval{
		"pay": ringi.When(func(ctx context.Context, in PaymentIn, c ringi.CallInfo) (ringi.Verdict, error) {
			s, err := ringi.Runtime[Session](c)
			switch {
			case err != nil:
				return ringi.Verdict{}, err // refuses
			case in.Amount > 1000_00:
				return ringi.Verdict{Status: ringi.UserApproval, Reason: "over 1,000"}, nil
			case s.Role != "admin":
				return ringi.Verdict{Status: ringi.Denied, Reason: "Only admins can send payments"}, nil
			}
			return ringi.Verdict{Status: ringi.NotApplicable}, nil
		}),
	},
}

func pay(context.Context, PaymentIn) (string, error)     { return "paid", nil }
func findOrder(context.Context, OrderIn) (string, error) { return "found", nil }

func counted(ran *ringitest.Effects) *ringi.Registry {
	reg := ringi.NewRegistry()
	ringi.MustAddTool(reg, ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite}, ringitest.Counted(ran, "pay", pay))
	ringi.MustAddTool(reg, ringi.Tool{Name: "find_order", Effect: ringi.ReadOnly}, ringitest.Counted(ran, "find_order", findOrder))
	return reg
}

func TestApproval(t *testing.T) {
	var ran ringitest.Effects
	cfg := engine.Config{Registry: counted(&ran), Approval: approval}
	admin, clerk := Session{Role: "admin"}, Session{Role: "clerk"}
	for _, c := range []struct {
		name, tool, input string
		runtime           any
		want              ringi.Status
	}{
		{"small, admin", "pay", `{"to":"bob","amount":100000}`, admin, ringi.NotApplicable},
		{"small, clerk", "pay", `{"to":"bob","amount":100000}`, clerk, ringi.Denied},
		{"one cent over", "pay", `{"to":"bob","amount":100001}`, admin, ringi.UserApproval},
		{"no runtime value", "pay", `{"to":"bob","amount":1}`, nil, ringi.Denied},
		{"wrong type", "pay", `{"to":"bob","amount":"1"}`, admin, ringi.Denied},
		{"unknown tool", "wire", `{}`, admin, ringi.Denied},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := ringitest.Judge(t, cfg, c.tool, c.input, c.runtime)
			if v.Status != c.want {
				t.Errorf("%s (%s: %s), want %s", v.Status, v.Source, v.Reason, c.want)
			}
		})
	}
	ran.Want(t, "pay", 0)
}

func TestWaitsAndRunsOnce(t *testing.T) {
	var ran ringitest.Effects
	model := ringitest.Script(
		ringitest.Calls(ringitest.Call("pay", `{"to":"bob","amount":200000}`), ringitest.Call("find_order", `{"id":"A-1"}`)),
		ringitest.Text("Paid."))
	e := ringitest.Engine(t, engine.Config{Registry: counted(&ran), Model: model, Approval: approval})
	res, err := e.Run(t.Context(), ringi.RunStart{Messages: []ringi.Message{ringi.User("pay bob")}, Runtime: Session{Role: "admin"}})
	if err != nil || res.Status != ringi.WaitingForApproval || len(res.Pending) != 1 {
		t.Fatal(res, err)
	}
	ran.Want(t, "find_order", 1)
	ran.Want(t, "pay", 0)
	req := res.Pending[0]
	e = ringitest.Restart(t, e) // as another process: nothing in memory survives
	for range 2 {               // the second is refused
		_, err = e.Decide(t.Context(), req.Approve(ringitest.Ana))
	}
	if _, ok := errors.AsType[*ringi.DecidedError](err); !ok {
		t.Errorf("second decision: %v", err)
	}
	if res, err = e.Resume(t.Context(), res.RunID); err != nil || res.Text != "Paid." {
		t.Error(res, err)
	}
	ran.Want(t, "pay", 1)
}

// TestEveryCrash holds the same run at every point at which a process can die.
func TestEveryCrash(t *testing.T) {
	ringitest.Crashes(t, func(t *testing.T, c *ringitest.Crash) {
		c.Engine(engine.Config{Registry: counted(&c.Effects), Approval: approval, Model: ringitest.Script(
			ringitest.Calls(ringitest.Call("pay", `{"to":"bob","amount":200000}`), ringitest.Call("find_order", `{"id":"A-1"}`)),
			ringitest.Text("Paid."))})
		res := c.Run(ringi.RunStart{Messages: []ringi.Message{ringi.User("pay bob")}, Runtime: Session{Role: "admin"}})
		res = c.Settle(res, ringitest.Witness(ringitest.Ana, &c.Effects))
		if err := res.Err(); err != nil || res.Text != "Paid." {
			t.Error(res, err)
		}
		c.Effects.WantOnce(t, "pay")
	})
}
