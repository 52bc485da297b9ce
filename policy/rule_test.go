package policy_test

import (
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/policy"
)

func TestRule(t *testing.T) {
	adr := policy.RuleOptions{UndeclaredRemote: ringi.NotApplicable}
	remote := func(a ringi.RemoteApproval) *ringi.Remote { return &ringi.Remote{Server: "s", Approval: a} }
	hinted := remote(ringi.RemoteUnjudged)
	hinted.Annotations = []byte(`{"readOnlyHint":true}`)
	tests := []struct {
		name   string
		tool   ringi.Tool
		o      policy.RuleOptions
		status ringi.Status
		source string
	}{
		{"S01 undeclared is judged as a read", ringi.Tool{}, policy.RuleOptions{}, ringi.NotApplicable, ringi.SourceRule},
		{"read", ringi.Tool{Effect: ringi.ReadOnly}, policy.RuleOptions{}, ringi.NotApplicable, ringi.SourceRule},
		{"idempotent write", ringi.Tool{Effect: ringi.IdempotentWrite}, policy.RuleOptions{}, ringi.UserApproval, ringi.SourceEffect},
		{"write", ringi.Tool{Effect: ringi.NonIdempotentWrite}, policy.RuleOptions{}, ringi.UserApproval, ringi.SourceEffect},
		{"unknown effect", ringi.Tool{Effect: "reads"}, policy.RuleOptions{}, ringi.UserApproval, ringi.SourceEffect},
		{"marker on a read", ringi.Tool{Effect: ringi.ReadOnly, RequiresApproval: true}, policy.RuleOptions{}, ringi.UserApproval, ringi.SourceMarker},
		{"marker on a write", ringi.Tool{Effect: ringi.IdempotentWrite, RequiresApproval: true}, policy.RuleOptions{}, ringi.UserApproval, ringi.SourceMarker},
		{"marker on a remote that is waved through", ringi.Tool{RequiresApproval: true, Remote: remote(ringi.RemoteNotRequired)}, adr, ringi.UserApproval, ringi.SourceMarker},
		{"remote, required", ringi.Tool{Remote: remote(ringi.RemoteRequired)}, policy.RuleOptions{}, ringi.UserApproval, ringi.SourceRemote},
		{"remote, required, read", ringi.Tool{Effect: ringi.ReadOnly, Remote: remote(ringi.RemoteRequired)}, adr, ringi.UserApproval, ringi.SourceRemote},
		{"remote, not required", ringi.Tool{Remote: remote(ringi.RemoteNotRequired)}, policy.RuleOptions{}, ringi.NotApplicable, ringi.SourceRemote},
		{"remote is never judged on its effect", ringi.Tool{Effect: ringi.NonIdempotentWrite, Remote: remote(ringi.RemoteNotRequired)}, policy.RuleOptions{}, ringi.NotApplicable, ringi.SourceRemote},
		{"remote, unjudged", ringi.Tool{Remote: remote(ringi.RemoteUnjudged)}, policy.RuleOptions{}, ringi.UserApproval, ringi.SourceRemote},
		{"remote, unjudged, says that it reads", ringi.Tool{Effect: ringi.ReadOnly, Remote: hinted}, policy.RuleOptions{}, ringi.UserApproval, ringi.SourceRemote},
		{"remote, unjudged, the ADR's words", ringi.Tool{Effect: ringi.NonIdempotentWrite, Remote: remote(ringi.RemoteUnjudged)}, adr, ringi.NotApplicable, ringi.SourceRemote},
		{"remote, unjudged, denied", ringi.Tool{Remote: remote(ringi.RemoteUnjudged)}, policy.RuleOptions{UndeclaredRemote: ringi.Denied}, ringi.Denied, ringi.SourceRemote},
		{"remote, unjudged, unknown option", ringi.Tool{Remote: remote(ringi.RemoteUnjudged)}, policy.RuleOptions{UndeclaredRemote: "allow"}, ringi.Denied, ringi.SourceRemote},
		{"remote, unknown declaration", ringi.Tool{Remote: remote("none")}, adr, ringi.UserApproval, ringi.SourceRemote},
		{"external write", ringi.Tool{External: true, Effect: ringi.IdempotentWrite}, policy.RuleOptions{}, ringi.UserApproval, ringi.SourceEffect},
		{"the legacy flag is rung 4, not the rule", ringi.Tool{NeedsApproval: true}, policy.RuleOptions{}, ringi.NotApplicable, ringi.SourceRule},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := policy.Rule(tt.tool, tt.o)
			if v.Status != tt.status || v.Source != tt.source {
				t.Errorf("Rule = %+v, want %s by %s", v, tt.status, tt.source)
			}
			if !v.Runs() && v.Reason == "" {
				t.Error("a no without a reason")
			}
		})
	}
}
