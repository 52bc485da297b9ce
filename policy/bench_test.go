package policy_test

import (
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/policy"
)

func BenchmarkVerdict(b *testing.B) {
	tool := ringi.Tool{Name: "t", Effect: ringi.NonIdempotentWrite}
	g := policy.Gates{Registry: registry(b, tool)}
	c := call(tool)
	for name, a := range map[string]ringi.Approval{"static": {}, "function": {Func: silent}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g.Refuses("t", c.Run, ringi.ZoneLocal)
				v := policy.Judge(policy.Ask(b.Context(), a, nil, c, 0), tool, policy.AskFloor(b.Context(), ringi.Approval{}, nil, c, 0), policy.RuleOptions{})
				if v.Status != ringi.UserApproval {
					b.Fatal(v)
				}
			}
		})
	}
}
