package ringi_test

import (
	"context"
	"fmt"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// Approval settings: a status for a tool, a function of its typed input, and
// what the run itself brings.
func ExampleApproval() {
	type Payment struct {
		Cents int64 `json:"cents"`
	}
	type Session struct {
		Role string `json:"role"`
	}
	tools := ringi.NewRegistry()
	ringi.MustAddTool(tools, ringi.Tool{Name: "delete_file"}, func(ctx context.Context, in struct{}) (string, error) { return "deleted", nil })
	ringi.MustAddTool(tools, ringi.Tool{Name: "pay"}, func(ctx context.Context, in Payment) (string, error) { return "paid", nil })

	approval := ringi.Approval{Tools: map[string]ringi.ToolApproval{
		"delete_file": {Status: ringi.Denied, Reason: "files are kept"},
		"pay": ringi.When(func(ctx context.Context, in Payment, c ringi.CallInfo) (ringi.Verdict, error) {
			session, err := ringi.Runtime[Session](c)
			switch {
			case err != nil:
				return ringi.Verdict{}, err // denies
			case session.Role != "admin":
				return ringi.Verdict{Status: ringi.Denied, Reason: "only admins pay"}, nil
			case in.Cents > 1000_00:
				return ringi.Verdict{Status: ringi.UserApproval, Reason: "over 1,000"}, nil
			}
			return ringi.Verdict{Status: ringi.Approved}, nil
		}),
	}}
	e, err := engine.New(engine.Config{Registry: tools, Approval: approval})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, call := range []struct {
		tool, input, role string
	}{{"delete_file", `{}`, "admin"}, {"pay", `{"cents":100000}`, "admin"}, {"pay", `{"cents":100001}`, "admin"}, {"pay", `{"cents":1}`, "clerk"}} {
		v, err := e.Judge(context.Background(), ringitest.Call(call.tool, call.input), ringi.RunStart{Runtime: Session{Role: call.role}})
		fmt.Println(call.tool, call.input, call.role, "-", v, err)
	}
	// Output:
	// delete_file {} admin - denied (approval.tool.status): files are kept <nil>
	// pay {"cents":100000} admin - approved (approval.tool.func) <nil>
	// pay {"cents":100001} admin - user-approval (approval.tool.func): over 1,000 <nil>
	// pay {"cents":1} clerk - denied (approval.tool.func): only admins pay <nil>
}
