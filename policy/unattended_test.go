package policy_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/policy"
)

// fleet is a registry with a tool of every kind; asking are tools with
// settings of their own in the tests.
func fleet(t *testing.T) *ringi.Registry {
	t.Helper()
	typed := ringi.Tool{
		Name: "typed", Effect: ringi.ReadOnly,
		InputSchema:   []byte(`{"type":"object","properties":{"code":{"type":"string"}}}`),
		InputRequired: []byte(`{"type":"object","properties":{"code":{"type":"string"}},"additionalProperties":false}`),
	}
	both := typed
	both.Name, both.RequiresApproval = "both", true
	r := registry(t,
		ringi.Tool{Name: "read", Effect: ringi.ReadOnly},
		ringi.Tool{Name: "undeclared"},
		ringi.Tool{Name: "write", Effect: ringi.NonIdempotentWrite},
		ringi.Tool{Name: "marked", Effect: ringi.ReadOnly, RequiresApproval: true},
		ringi.Tool{Name: "legacy", NeedsApproval: true},
		ringi.Tool{Name: "far", Remote: &ringi.Remote{Server: "s"}},
		ringi.Tool{Name: "far_judged", Effect: ringi.NonIdempotentWrite, Remote: &ringi.Remote{Server: "s", Approval: ringi.RemoteNotRequired}},
		ringi.Tool{Name: "far_bound", Remote: &ringi.Remote{Server: "s", Approval: ringi.RemoteRequired}},
		typed, both,
	)
	asked := 0
	for name, tool := range map[string]ringi.Tool{"hooked": {Effect: ringi.ReadOnly}, "hooked_write": {Effect: ringi.IdempotentWrite}, "far_hooked": {Remote: &ringi.Remote{Server: "s"}}} {
		tool.Name = name
		if err := r.Add(tool, nothing, ringi.ToolHooks{NeedsApproval: needs(false, &asked)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.AddExternal(ringi.Tool{Name: "browser", Effect: ringi.ReadOnly}); err != nil {
		t.Fatal(err)
	}
	return r
}

func answersOf(f policy.Filter, names ...string) map[string]ringi.UnattendedAnswer {
	answers := map[string]ringi.UnattendedAnswer{}
	for _, w := range f.Explain(names) {
		answers[w.Tool] = w.Answer
	}
	return answers
}

func TestUnattended_Answers(t *testing.T) {
	r := fleet(t)
	deny, approve, ask, wave := ringi.ToolApproval{Status: ringi.Denied}, ringi.ToolApproval{Status: ringi.Approved}, ringi.ToolApproval{Status: ringi.UserApproval}, ringi.ToolApproval{Status: ringi.NotApplicable}
	function := ringi.ToolApproval{Func: silent, Status: ringi.Denied}
	tests := []struct {
		name     string
		a, floor ringi.Approval
		require  []string
		o        policy.RuleOptions
		want     map[string]ringi.UnattendedAnswer
	}{
		{"the rule alone", ringi.Approval{}, ringi.Approval{}, nil, policy.RuleOptions{}, map[string]ringi.UnattendedAnswer{
			"read": "runs", "undeclared": "runs", "write": "asks", "marked": "asks", "legacy": "asks", "far": "asks", "far_judged": "runs", "far_bound": "asks",
			"typed": "input", "both": "asks", "hooked": "per_call", "hooked_write": "asks", "browser": "asks", "none": "unknown", "Read": "unknown"}},
		{"ADR-210: an imported tool without a declaration stays in the set", ringi.Approval{}, ringi.Approval{}, nil, policy.RuleOptions{UndeclaredRemote: ringi.NotApplicable}, map[string]ringi.UnattendedAnswer{
			"far": "runs", "far_bound": "asks"}},
		{"an unjudged server denied", ringi.Approval{}, ringi.Approval{}, nil, policy.RuleOptions{UndeclaredRemote: ringi.Denied}, map[string]ringi.UnattendedAnswer{
			"far": "denied", "far_hooked": "asks"}}, // where its function says yes, rung 4 asks
		{"settings", ringi.Approval{Tools: map[string]ringi.ToolApproval{"read": deny, "write": approve, "marked": wave, "undeclared": ask, "hooked": approve, "typed": deny, "both": wave, "far": function}}, ringi.Approval{}, nil, policy.RuleOptions{}, map[string]ringi.UnattendedAnswer{
			"read": "denied", "write": "runs", "marked": "runs", "undeclared": "asks", "hooked": "runs", "typed": "denied", "both": "input", "far": "per_call"}},
		{"a floor tightens", ringi.Approval{Tools: mapOf("write", approve)}, ringi.Approval{Tools: map[string]ringi.ToolApproval{"write": ask, "read": deny, "undeclared": approve}}, nil, policy.RuleOptions{}, map[string]ringi.UnattendedAnswer{
			"write": "asks", "read": "denied", "undeclared": "runs"}},
		{"ADR-210: an operator's declaration takes a reading tool out", ringi.Approval{}, ringi.Approval{}, []string{"read", "typed"}, policy.RuleOptions{}, map[string]ringi.UnattendedAnswer{
			"read": "asks", "undeclared": "runs", "typed": "asks"}},
		{"the rule as a floor", ringi.Approval{Tools: mapOf("write", approve)}, ringi.Approval{}, nil, policy.RuleOptions{Floor: true}, map[string]ringi.UnattendedAnswer{
			"write": "asks", "read": "runs"}},
		{"S46: the generic function makes every tool per_call", ringi.Approval{Func: silent}, ringi.Approval{}, nil, policy.RuleOptions{}, map[string]ringi.UnattendedAnswer{
			"read": "per_call", "undeclared": "per_call", "write": "per_call", "marked": "per_call", "legacy": "per_call", "far": "per_call", "hooked": "per_call", "typed": "input", "browser": "asks", "none": "unknown"}},
		{"a floor or an operator holds under the generic function too", ringi.Approval{Func: silent}, ringi.Approval{Tools: mapOf("read", deny)}, []string{"undeclared"}, policy.RuleOptions{}, map[string]ringi.UnattendedAnswer{
			"read": "denied", "undeclared": "asks", "write": "per_call"}},
		{"the floor's generic function", ringi.Approval{}, ringi.Approval{Func: silent, Tools: mapOf("read", deny)}, nil, policy.RuleOptions{}, map[string]ringi.UnattendedAnswer{
			"read": "per_call", "undeclared": "per_call", "write": "asks"}},
		{"the floor's function of a tool", ringi.Approval{}, ringi.Approval{Tools: mapOf("read", function)}, nil, policy.RuleOptions{}, map[string]ringi.UnattendedAnswer{
			"read": "per_call", "undeclared": "runs"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := policy.Unattended(r, tt.a, tt.floor, tt.require, tt.o)
			for name, want := range tt.want {
				got := f.Explain([]string{name})
				if len(got) != 1 || got[0].Tool != name || got[0].Answer != want || got[0].Reason == "" {
					t.Errorf("Explain(%q) = %+v, want %s", name, got, want)
				}
				if in := len(f.Unattended([]string{name})) == 1; in != (want == ringi.UnattendedRuns) {
					t.Errorf("%q in the set: %v, answer %s", name, in, want)
				}
			}
		})
	}
}

func TestS46_TheGenericFunctionEmptiesTheSetAndSaysSo(t *testing.T) {
	r := fleet(t)
	var names []string
	for _, tool := range r.Tools() {
		names = append(names, tool.Name)
	}
	f := policy.Unattended(r, ringi.Approval{Func: silent}, ringi.Approval{}, nil, policy.RuleOptions{})
	if got := f.Unattended(names); len(got) != 0 {
		t.Errorf("set %v", got)
	}
	if got := f.Explain([]string{"read"}); got[0].Answer != ringi.UnattendedPerCall || !strings.Contains(got[0].Reason, "generic approval function") {
		t.Errorf("%+v", got)
	}
}

// The ADR's sentences on order, unknown names and what changes without a
// change in the filter.
func TestADR210_OrderUnknownNamesAndNewTools(t *testing.T) {
	r := registry(t, ringi.Tool{Name: "b"}, ringi.Tool{Name: "a"}, ringi.Tool{Name: "w", Effect: ringi.IdempotentWrite})
	var f ringi.UnattendedFilter = policy.Unattended(r, ringi.Approval{}, ringi.Approval{}, nil, policy.RuleOptions{})
	if got := f.Unattended([]string{"x", "a", "w", "b", "A", "a"}); strings.Join(got, " ") != "a b a" {
		t.Errorf("Unattended = %v", got)
	}
	if got := f.Unattended(nil); len(got) != 0 {
		t.Errorf("Unattended(nil) = %v", got)
	}
	if err := r.Add(ringi.Tool{Name: "x"}, nothing); err != nil {
		t.Fatal(err)
	}
	if got := f.Unattended([]string{"x"}); len(got) != 1 {
		t.Error("a tool that was registered since is unknown")
	}
}

func TestF155_AnAbsentRegistryAnswersUnknown(t *testing.T) {
	for _, f := range []policy.Filter{{}, policy.Unattended(nil, ringi.Approval{}, ringi.Approval{}, nil, policy.RuleOptions{})} {
		if got := f.Unattended([]string{"a"}); len(got) != 0 {
			t.Errorf("%v", got)
		}
		if got := f.Explain([]string{"a"}); got[0].Answer != ringi.UnattendedUnknown {
			t.Errorf("%+v", got)
		}
	}
}

// F166: a tool that is both gated and asking is out for both; F158, F155: no
// mode of a caller makes it an approval.
func TestF166_GatedAndAsking(t *testing.T) {
	r := fleet(t)
	f := policy.Unattended(r, ringi.Approval{}, ringi.Approval{}, nil, policy.RuleOptions{})
	if got := answersOf(f, "both", "typed"); got["both"] != ringi.UnattendedAsks || got["typed"] != ringi.UnattendedInput {
		t.Errorf("%v", got)
	}
	approved := ringi.Approval{Tools: mapOf("typed", ringi.ToolApproval{Status: ringi.Approved})}
	if got := answersOf(policy.Unattended(r, approved, ringi.Approval{}, nil, policy.RuleOptions{}), "typed"); got["typed"] != ringi.UnattendedInput {
		t.Errorf("an approval types no values: %v", got)
	}
}

// F111: one policy, whoever asks. For static settings the filter answers what
// a run's own verdict is; where functions are set, "runs" is never wrong, and
// "asks" and "denied" hold whatever the functions say.
func TestF111_TheFilterAgreesWithTheRun(t *testing.T) {
	names := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		r := ringi.NewRegistry()
		for _, name := range names {
			tool := anyTool.Draw(t, "tool")
			tool.Name = name
			if rapid.Bool().Draw(t, "input") {
				tool.InputSchema = []byte(`{"type":"object","properties":{"k":{}}}`)
				tool.InputRequired = []byte(`{"type":"object","properties":{"k":{}},"additionalProperties":false}`)
			}
			var hooks ringi.ToolHooks
			if rapid.Bool().Draw(t, "hook") {
				yes := rapid.Bool().Draw(t, "yes")
				hooks.NeedsApproval = func(context.Context, ringi.ToolCall) (bool, error) { return yes, nil }
			}
			if err := r.Add(tool, nothing, hooks); err != nil {
				t.Fatal(err)
			}
		}
		a, floor := anyApproval(t, names, "ladder"), anyApproval(t, names, "floor")
		require := rapid.SliceOfN(rapid.SampledFrom(names), 0, 2).Draw(t, "require")
		o := anyOptions.Draw(t, "options")
		f := policy.Unattended(r, a, floor, require, o)
		var set []string
		for _, name := range names {
			tool, _ := r.Tool(name)
			c := call(tool)
			ctx := context.Background()
			v := policy.Judge(policy.Ask(ctx, a, r.Hooks(name).NeedsApproval, c, 0), tool, policy.AskFloor(ctx, floor, require, c, 0), o)
			answer := f.Explain([]string{name})[0].Answer
			ok := false
			switch answer {
			case ringi.UnattendedRuns:
				ok = v.Runs() && len(tool.InputRequired) == 0
				set = append(set, name)
			case ringi.UnattendedAsks:
				ok = !v.Runs()
			case ringi.UnattendedDenied:
				ok = v.Status == ringi.Denied
			case ringi.UnattendedInput:
				ok = len(tool.InputRequired) > 0
			case ringi.UnattendedPerCall:
				ok = a.Func != nil || floor.Func != nil || a.Tools[name].Func != nil || floor.Tools[name].Func != nil || r.Hooks(name).NeedsApproval != nil
			}
			if !ok {
				t.Fatalf("%s is answered %s, the run says %s: %+v", name, answer, v, tool)
			}
			static := a.Func == nil && floor.Func == nil && a.Tools[name].Func == nil && floor.Tools[name].Func == nil && r.Hooks(name).NeedsApproval == nil
			if static && v.Runs() && len(tool.InputRequired) == 0 && answer != ringi.UnattendedRuns {
				t.Fatalf("%s runs and is answered %s", name, answer)
			}
		}
		if got := f.Unattended(names); !slices.Equal(got, set) {
			t.Fatalf("Unattended = %v, explained %v", got, set)
		}
	})
}

// anyApproval draws settings; its functions have fixed answers.
func anyApproval(t *rapid.T, names []string, label string) ringi.Approval {
	a := ringi.Approval{Tools: map[string]ringi.ToolApproval{}}
	if rapid.IntRange(0, 5).Draw(t, label+" generic") == 0 {
		a.Func = says(anyVerdict.Draw(t, label+" func"))
	}
	for _, name := range names {
		own := ringi.ToolApproval{Status: anyStatus.Draw(t, label+" status")}
		if rapid.IntRange(0, 3).Draw(t, label+" own") == 0 {
			own.Func = says(anyVerdict.Draw(t, label+" tool func"))
		}
		a.Tools[name] = own
	}
	return a
}
