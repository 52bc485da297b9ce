package policy_test

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/policy"
)

var statuses = []ringi.Status{ringi.NotApplicable, ringi.Approved, ringi.UserApproval, ringi.Denied}

func verdict(s ringi.Status, source string) ringi.Verdict {
	if s == "" {
		return ringi.Verdict{}
	}
	return ringi.Verdict{Status: s, Source: source}
}

// Every rung, every status, every floor: the strictest of ladder and floor,
// the ladder's own verdict in a tie.
func TestJudge_LadderTimesFloor(t *testing.T) {
	write, read := ringi.Tool{Effect: ringi.NonIdempotentWrite}, ringi.Tool{Effect: ringi.ReadOnly}
	legacy := ringi.Tool{Effect: ringi.ReadOnly, NeedsApproval: true}
	type ladder struct {
		opinion ringi.Verdict
		tool    ringi.Tool
		want    ringi.Verdict
	}
	var ladders []ladder
	for _, source := range []string{ringi.SourceFunc, ringi.SourceToolFunc, ringi.SourceToolStatus, ringi.SourceNeeds} {
		for _, s := range statuses {
			for _, tool := range []ringi.Tool{write, read, legacy} { // user settings beat tool settings
				ladders = append(ladders, ladder{verdict(s, source), tool, verdict(s, source)})
			}
		}
	}
	ladders = append(ladders,
		ladder{ringi.Verdict{}, write, verdict(ringi.UserApproval, ringi.SourceEffect)},
		ladder{ringi.Verdict{}, read, verdict(ringi.NotApplicable, ringi.SourceRule)},
		ladder{ringi.Verdict{}, legacy, verdict(ringi.UserApproval, ringi.SourceNeeds)},
		ladder{verdict("allow", ringi.SourceFunc), read, verdict(ringi.Denied, ringi.SourceFunc)},
	)
	for _, l := range ladders {
		for _, f := range append([]ringi.Status{"", "allow"}, statuses...) {
			floor := verdict(f, floorSource)
			want := l.want
			switch {
			case f == "allow" && want.Status != ringi.Denied:
				want = verdict(ringi.Denied, floorSource)
			case f != "allow" && f.Strictness() > want.Status.Strictness():
				want = floor
			}
			got := policy.Judge(l.opinion, l.tool, floor, policy.RuleOptions{})
			if got.Status != want.Status || got.Source != want.Source {
				t.Errorf("Judge(%s, effect %q, floor %s) = %s, want %s", l.opinion, l.tool.Effect, floor, got, want)
			}
		}
	}
}

const floorSource = ringi.SourceFloor + "." + ringi.SourceToolStatus

// The server's default: what the rule asks about no setting waves through.
func TestJudge_TheRuleAsAFloor(t *testing.T) {
	o := policy.RuleOptions{Floor: true}
	write := ringi.Tool{Effect: ringi.NonIdempotentWrite}
	tests := []struct {
		opinion ringi.Verdict
		tool    ringi.Tool
		status  ringi.Status
		source  string
	}{
		{verdict(ringi.NotApplicable, ringi.SourceFunc), write, ringi.UserApproval, "floor.rule.effect"},
		{verdict(ringi.Approved, ringi.SourceToolStatus), write, ringi.UserApproval, "floor.rule.effect"},
		{verdict(ringi.UserApproval, ringi.SourceFunc), write, ringi.UserApproval, ringi.SourceFunc},
		{verdict(ringi.Denied, ringi.SourceFunc), write, ringi.Denied, ringi.SourceFunc},
		{ringi.Verdict{}, write, ringi.UserApproval, ringi.SourceEffect},
		{verdict(ringi.Approved, ringi.SourceFunc), ringi.Tool{RequiresApproval: true}, ringi.UserApproval, "floor.rule.marker"},
		{verdict(ringi.Approved, ringi.SourceFunc), ringi.Tool{Remote: &ringi.Remote{Server: "s"}}, ringi.UserApproval, "floor.rule.remote"},
		{verdict(ringi.Approved, ringi.SourceFunc), ringi.Tool{Effect: ringi.ReadOnly}, ringi.Approved, ringi.SourceFunc},
		{ringi.Verdict{}, ringi.Tool{}, ringi.NotApplicable, ringi.SourceRule},
	}
	for _, tt := range tests {
		if v := policy.Judge(tt.opinion, tt.tool, ringi.Verdict{}, o); v.Status != tt.status || v.Source != tt.source {
			t.Errorf("Judge(%s, %+v) = %s, want %s by %s", tt.opinion, tt.tool, v, tt.status, tt.source)
		}
	}
}

// B115: a helper of the field makes a map total by a default for whatever is
// unmatched. Here that default is the rule: a remote tool that nobody judged
// asks, explicit entries stay, and a name of a prototype is a name like any.
// An explicit not-applicable stays too, unless the rule is the floor.
func TestB115_UnmatchedRemoteToolsGetTheRule(t *testing.T) {
	remote := func(name string) ringi.Tool { return ringi.Tool{Name: name, Remote: &ringi.Remote{Server: "s"}} }
	a := ringi.Approval{Tools: map[string]ringi.ToolApproval{
		"listed": {Status: ringi.Approved},
		"silent": {Func: func(context.Context, ringi.CallInfo) (ringi.Verdict, error) { return ringi.Verdict{}, nil }},
		"waved":  {Status: ringi.NotApplicable},
	}}
	for name, want := range map[string]ringi.Status{
		"unmatched": ringi.UserApproval, "silent": ringi.UserApproval, "constructor": ringi.UserApproval, "__proto__": ringi.UserApproval,
		"listed": ringi.Approved, "waved": ringi.NotApplicable,
	} {
		v := policy.Judge(policy.Ask(t.Context(), a, nil, call(remote(name)), 0), remote(name), ringi.Verdict{}, policy.RuleOptions{})
		if v.Status != want {
			t.Errorf("%s: %s, want %s", name, v, want)
		}
	}
	v := policy.Judge(policy.Ask(t.Context(), a, nil, call(remote("waved")), 0), remote("waved"), ringi.Verdict{}, policy.RuleOptions{Floor: true})
	if v.Status != ringi.UserApproval {
		t.Errorf("waved under the rule as a floor: %s", v)
	}
}

// F115: while a request waited the rules were tightened. A denial and a gate
// are evaluated again and win; "asks" is no refusal of a decided call.
func TestF115_RulesTightenedWhileWaiting(t *testing.T) {
	r := registry(t, ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite})
	tool, _ := r.Tool("pay")
	now := policy.Judge(ringi.Verdict{}, tool, verdict(ringi.Denied, floorSource), policy.RuleOptions{})
	if now.Status != ringi.Denied {
		t.Errorf("the new floor: %s", now)
	}
	if again := policy.Judge(ringi.Verdict{}, tool, ringi.Verdict{}, policy.RuleOptions{}); again.Status != ringi.UserApproval {
		t.Errorf("unchanged rules: %s", again)
	}
	if refusal, refused := (policy.Gates{Registry: r, Disabled: []string{"pay"}}).Refuses("pay", ringi.RunInfo{}, ""); !refused || refusal.Reason != ringi.ToolDisabled {
		t.Errorf("a disabled tool: %+v, %v", refusal, refused)
	}
}

var (
	anyStatus  = rapid.SampledFrom([]ringi.Status{"", "allow", ringi.NotApplicable, ringi.Approved, ringi.UserApproval, ringi.Denied})
	anyVerdict = rapid.Custom(func(t *rapid.T) ringi.Verdict {
		return ringi.Verdict{Status: anyStatus.Draw(t, "status"), Source: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "source")}
	})
	anyTool = rapid.Custom(func(t *rapid.T) ringi.Tool {
		tool := ringi.Tool{
			Effect:           rapid.SampledFrom([]ringi.Effect{"", ringi.ReadOnly, ringi.IdempotentWrite, ringi.NonIdempotentWrite}).Draw(t, "effect"),
			RequiresApproval: rapid.Bool().Draw(t, "marker"),
			NeedsApproval:    rapid.Bool().Draw(t, "needs"),
		}
		if rapid.Bool().Draw(t, "remote") {
			tool.Remote = &ringi.Remote{Server: "s", Approval: rapid.SampledFrom([]ringi.RemoteApproval{"", ringi.RemoteRequired, ringi.RemoteNotRequired}).Draw(t, "declared")}
		}
		return tool
	})
	anyOptions = rapid.Custom(func(t *rapid.T) policy.RuleOptions {
		return policy.RuleOptions{UndeclaredRemote: rapid.SampledFrom([]ringi.Status{"", ringi.NotApplicable, ringi.Denied}).Draw(t, "remote"), Floor: rapid.Bool().Draw(t, "floor")}
	})
)

func TestJudge_AFloorOnlyTightens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opinion, tool, floor, o := anyVerdict.Draw(t, "opinion"), anyTool.Draw(t, "tool"), anyVerdict.Draw(t, "floor"), anyOptions.Draw(t, "o")
		without := policy.Judge(opinion, tool, ringi.Verdict{}, o)
		with := policy.Judge(opinion, tool, floor, o)
		if !with.Status.Known() || !without.Status.Known() {
			t.Fatalf("no final status: %s, %s", with, without)
		}
		if with.Status.Strictness() < without.Status.Strictness() {
			t.Fatalf("floor %s loosened %s to %s", floor, without, with)
		}
		if with.Status == without.Status && with != without {
			t.Fatalf("a tie lost the ladder's own verdict: %s, %s", without, with)
		}
		o.Floor = false
		if bare := policy.Judge(opinion, tool, floor, o); bare.Status.Strictness() > with.Status.Strictness() {
			t.Fatalf("the rule as a floor loosened %s to %s", bare, with)
		}
	})
}

func TestStrictest_IsASemilattice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anyVerdict.Draw(t, "a"), anyVerdict.Draw(t, "b"), anyVerdict.Draw(t, "c")
		rank := func(v ringi.Verdict) int { return v.Status.Strictness() }
		s := policy.Strictest
		if rank(s(a, b)) != rank(s(b, a)) {
			t.Fatalf("not commutative: %s, %s", s(a, b), s(b, a))
		}
		if rank(s(s(a, b), c)) != rank(s(a, s(b, c))) {
			t.Fatal("not associative")
		}
		if rank(s(a, a)) != rank(a) || rank(s(a, b)) < rank(a) || rank(s(a, b)) < rank(b) {
			t.Fatalf("Strictest(%s, %s) = %s", a, b, s(a, b))
		}
		if got := s(a, b).Status; got != "" && !got.Known() {
			t.Fatalf("an unknown status came through: %q", got)
		}
	})
}

func TestJudge_AllocatesNothing(t *testing.T) {
	tool := ringi.Tool{Effect: ringi.NonIdempotentWrite}
	if n := testing.AllocsPerRun(100, func() {
		policy.Judge(ringi.Verdict{}, tool, verdict(ringi.UserApproval, floorSource), policy.RuleOptions{Floor: true})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
