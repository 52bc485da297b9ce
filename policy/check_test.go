package policy_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/policy"
)

func TestF20_ATypingMistakeIsAnErrorAtStart(t *testing.T) {
	r := registry(t, ringi.Tool{Name: "delete_file"}, ringi.Tool{Name: "pay"}, ringi.Tool{Name: "read_page"})
	set := ringi.ToolApproval{Status: ringi.UserApproval}
	tests := []struct {
		name     string
		a, floor ringi.Approval
		require  []string
		where    string // of a PolicyError
		nearest  string
		says     string
	}{
		{"approval", ringi.Approval{Tools: mapOf("delete_files", set)}, ringi.Approval{}, nil, "approval", "delete_file", `approval names unknown tool "delete_files" (nearest: "delete_file")`},
		{"floor", ringi.Approval{}, ringi.Approval{Tools: mapOf("Pay", set)}, nil, "floor", "pay", ""},
		{"require_approval", ringi.Approval{}, ringi.Approval{}, []string{"pay", "read_pgae"}, "require_approval", "read_page", ""},
		{"nothing near", ringi.Approval{Tools: mapOf("xyzzy", set)}, ringi.Approval{}, nil, "approval", "", `approval names unknown tool "xyzzy"`},
		{"a name without end", ringi.Approval{Tools: mapOf(strings.Repeat("pay", 1000), set)}, ringi.Approval{}, nil, "approval", "", ""},
		{"unknown status", ringi.Approval{Tools: mapOf("pay", ringi.ToolApproval{Status: "user_approval"})}, ringi.Approval{}, nil, "", "", `approval of tool "pay": unknown status "user_approval"`},
		{"unknown status of the floor", ringi.Approval{}, ringi.Approval{Tools: mapOf("pay", ringi.ToolApproval{Status: "Denied"})}, nil, "", "", `floor of tool "pay": unknown status`},
		{"an entry that sets nothing", ringi.Approval{Tools: mapOf("pay", ringi.ToolApproval{Reason: "because"})}, ringi.Approval{}, nil, "", "", "neither a status nor a function"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := policy.Check(tt.a, tt.floor, tt.require, r)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("Check = %v, want %q", err, tt.says)
			}
			var pe *ringi.PolicyError
			if found := errors.As(err, &pe); found != (tt.where != "") {
				t.Fatalf("%T", err)
			}
			if pe != nil && (pe.Where != tt.where || pe.Nearest != tt.nearest) {
				t.Errorf("%+v", pe)
			}
		})
	}
	fine := ringi.Approval{Tools: map[string]ringi.ToolApproval{"pay": {Func: silent}, "delete_file": {Status: ringi.Denied, Func: silent}}}
	if err := policy.Check(fine, fine, []string{"pay"}, r); err != nil {
		t.Errorf("good settings: %v", err)
	}
	if err := policy.Check(ringi.Approval{}, ringi.Approval{}, nil, nil); err == nil {
		t.Error("no registry is no error")
	}
}

func TestCheck_TellsAllFaultsInOneOrder(t *testing.T) {
	a := ringi.Approval{Tools: map[string]ringi.ToolApproval{"b": {Status: ringi.Denied}, "a": {}, "c": {Status: "x"}}}
	first := policy.Check(a, a, []string{"z"}, registry(t)).Error()
	if n := strings.Count(first, "\n") + 1; n != 11 {
		t.Errorf("%d faults:\n%s", n, first)
	}
	for range 20 {
		if got := policy.Check(a, a, []string{"z"}, registry(t)).Error(); got != first {
			t.Fatalf("another order:\n%s", got)
		}
	}
}

func TestJudges(t *testing.T) {
	r := ringi.NewRegistry()
	asked := 0
	for _, name := range []string{"z", "a", "m"} {
		var hooks ringi.ToolHooks
		if name != "m" {
			hooks.NeedsApproval = needs(true, &asked)
		}
		if err := r.Add(ringi.Tool{Name: name}, nothing, hooks); err != nil {
			t.Fatal(err)
		}
	}
	a := ringi.Approval{Version: "3", Func: silent, Tools: map[string]ringi.ToolApproval{
		"z": {Func: silent}, "a": {Func: silent, Status: ringi.Denied}, "m": {Status: ringi.Approved}}}
	floor := ringi.Approval{Version: "f", Tools: map[string]ringi.ToolApproval{"m": {Func: silent}, "a": {Status: ringi.Denied}}}
	require := []string{"z", "a", "z"}
	want := ringi.Judges{
		Version: "3", Func: true, ToolFuncs: []string{"a", "z"}, Statuses: []string{"a", "m"}, Needs: []string{"a", "z"},
		FloorVersion: "f", FloorToolFuncs: []string{"m"}, FloorStatuses: []string{"a"}, Require: []string{"a", "z"}, PrepareStep: true,
	}
	if got := policy.Judges(a, floor, require, r, true); !reflect.DeepEqual(got, want) {
		t.Errorf("Judges = %+v\nwant     %+v", got, want)
	}
	if require[0] != "z" {
		t.Error("the caller's list was sorted")
	}
	if got := policy.Judges(ringi.Approval{}, ringi.Approval{}, nil, registry(t, ringi.Tool{Name: "a"}), false); !reflect.DeepEqual(got, ringi.Judges{}) {
		t.Errorf("nothing set: %+v", got)
	}
}

// S-08: a process that lacks what judged the run judges nothing. What it has
// beyond the record is no lack.
func TestS08_Missing(t *testing.T) {
	full := ringi.Judges{
		Version: "3", Func: true, ToolFuncs: []string{"a", "b"}, Statuses: []string{"c"}, Needs: []string{"d"},
		FloorVersion: "f", FloorFunc: true, FloorToolFuncs: []string{"e"}, FloorStatuses: []string{"g"}, Require: []string{"h"},
		PrepareStep: true, Admit: true, Config: "sha256:1",
	}
	without := func(change func(*ringi.Judges)) ringi.Judges {
		j := full
		change(&j)
		return j
	}
	tests := []struct {
		name              string
		recorded, present ringi.Judges
		lacks             string // one sentence; empty: may judge
	}{
		{"the same", full, full, ""},
		{"nothing set", ringi.Judges{}, ringi.Judges{}, ""},
		{"version", full, without(func(j *ringi.Judges) { j.Version = "4" }), `approval version "3" (this process has "4")`},
		{"version was empty", ringi.Judges{}, ringi.Judges{Version: "1"}, `approval version "" (this process has "1")`},
		{"version is gone", ringi.Judges{Version: "1"}, ringi.Judges{}, `approval version "1" (this process has "")`},
		{"rung 1", full, without(func(j *ringi.Judges) { j.Func = false }), "the generic approval function"},
		{"rung 2", full, without(func(j *ringi.Judges) { j.ToolFuncs = []string{"a"} }), `the approval function of tool "b"`},
		{"rung 2 became a status", full, without(func(j *ringi.Judges) { j.ToolFuncs, j.Statuses = []string{"a"}, []string{"b", "c"} }), `the approval function of tool "b"`},
		{"rung 3", full, without(func(j *ringi.Judges) { j.Statuses = nil }), `the approval status of tool "c"`},
		{"rung 4", full, without(func(j *ringi.Judges) { j.Needs = []string{"D"} }), `the needs-approval function of tool "d"`},
		{"floor version", full, without(func(j *ringi.Judges) { j.FloorVersion = "" }), `floor version "f" (this process has "")`},
		{"floor rung 1", full, without(func(j *ringi.Judges) { j.FloorFunc = false }), "the floor's generic function"},
		{"floor rung 2", full, without(func(j *ringi.Judges) { j.FloorToolFuncs = nil }), `the floor's function of tool "e"`},
		{"floor rung 3", full, without(func(j *ringi.Judges) { j.FloorStatuses = nil }), `the floor's status of tool "g"`},
		{"operator", full, without(func(j *ringi.Judges) { j.Require = nil }), `the operator's require_approval of tool "h"`},
		{"steps", full, without(func(j *ringi.Judges) { j.PrepareStep = false }), "the function that prepares steps"},
		{"limits over calls", full, without(func(j *ringi.Judges) { j.Admit = false }), "the function that admits calls"},
		{"configuration never refuses", full, without(func(j *ringi.Judges) { j.Config = "sha256:2" }), ""},
		{"more rungs", without(func(j *ringi.Judges) { j.Func, j.ToolFuncs, j.Require, j.PrepareStep = false, nil, nil, false }), full, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(policy.Missing(tt.recorded, tt.present), "; "); got != tt.lacks {
				t.Errorf("Missing = %q, want %q", got, tt.lacks)
			}
		})
	}
	if got := policy.Missing(full, ringi.Judges{}); len(got) != 13 {
		t.Errorf("an empty process lacks %d things: %q", len(got), got)
	}
}
