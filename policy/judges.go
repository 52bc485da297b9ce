package policy

import (
	"fmt"
	"slices"

	"github.com/ringi-dev/ringi"
)

// Judges says what judges a run: which rungs are set, and for which tools. It
// is recorded when a run starts, so that a process which lacks one of them
// does not fall silent where the first one spoke (see [Missing]). Names are
// sorted; Admit and Config are left to the caller.
func Judges(a, floor ringi.Approval, require []string, r *ringi.Registry, prepareStep bool) ringi.Judges {
	j := ringi.Judges{
		Version: a.Version, Func: a.Func != nil,
		FloorVersion: floor.Version, FloorFunc: floor.Func != nil,
		PrepareStep: prepareStep,
	}
	j.ToolFuncs, j.Statuses = namesSet(a.Tools)
	j.FloorToolFuncs, j.FloorStatuses = namesSet(floor.Tools)
	j.Require = sorted(slices.Clone(require))
	if r != nil {
		for _, t := range r.Tools() {
			if r.Hooks(t.Name).NeedsApproval != nil {
				j.Needs = append(j.Needs, t.Name)
			}
		}
		slices.Sort(j.Needs)
	}
	return j
}

func namesSet(tools map[string]ringi.ToolApproval) (funcs, statuses []string) {
	for name, own := range tools {
		if own.Func != nil {
			funcs = append(funcs, name)
		}
		if own.Status != "" {
			statuses = append(statuses, name)
		}
	}
	return sorted(funcs), sorted(statuses)
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// Missing names what judged the run when it was recorded and is not in the
// present process, one sentence each; empty means that the process may judge
// the run.
//
// Another version of policy or floor is missing the recorded one; the empty
// version is one like any other. Rungs are compared by their names, since two
// functions cannot be. What the process has beyond the record is no lack:
// today's policy counts for calls that are judged today. The configuration's
// digest informs and never refuses.
func Missing(recorded, present ringi.Judges) []string {
	var lacks []string
	lacks = lacksVersion(lacks, "approval", recorded.Version, present.Version)
	lacks = lacksOne(lacks, "the generic approval function", recorded.Func, present.Func)
	lacks = lacksNames(lacks, "the approval function of tool", recorded.ToolFuncs, present.ToolFuncs)
	lacks = lacksNames(lacks, "the approval status of tool", recorded.Statuses, present.Statuses)
	lacks = lacksNames(lacks, "the needs-approval function of tool", recorded.Needs, present.Needs)
	lacks = lacksVersion(lacks, "floor", recorded.FloorVersion, present.FloorVersion)
	lacks = lacksOne(lacks, "the floor's generic function", recorded.FloorFunc, present.FloorFunc)
	lacks = lacksNames(lacks, "the floor's function of tool", recorded.FloorToolFuncs, present.FloorToolFuncs)
	lacks = lacksNames(lacks, "the floor's status of tool", recorded.FloorStatuses, present.FloorStatuses)
	lacks = lacksNames(lacks, "the operator's require_approval of tool", recorded.Require, present.Require)
	lacks = lacksOne(lacks, "the function that prepares steps", recorded.PrepareStep, present.PrepareStep)
	return lacksOne(lacks, "the function that admits calls", recorded.Admit, present.Admit)
}

func lacksVersion(lacks []string, what, recorded, present string) []string {
	if recorded == present {
		return lacks
	}
	return append(lacks, fmt.Sprintf("%s version %q (this process has %q)", what, recorded, present))
}

func lacksOne(lacks []string, what string, recorded, present bool) []string {
	if !recorded || present {
		return lacks
	}
	return append(lacks, what)
}

func lacksNames(lacks []string, what string, recorded, present []string) []string {
	for _, name := range recorded {
		if !slices.Contains(present, name) {
			lacks = append(lacks, fmt.Sprintf("%s %q", what, name))
		}
	}
	return lacks
}
