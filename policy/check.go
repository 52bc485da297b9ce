package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/nearest"
)

// The settings that a [ringi.PolicyError] names.
const (
	whereApproval = "approval"
	whereFloor    = "floor"
	whereRequire  = "require_approval"
)

// Check looks for settings that cannot mean what their author meant, before
// anything runs: a tool name that the registry does not know (a
// [ringi.PolicyError] with the nearest name that it does), a status that is
// none of the four, and an entry that sets nothing. It returns all of them,
// joined, in a stable order; nil where there are none.
func Check(a, floor ringi.Approval, require []string, r *ringi.Registry) error {
	if r == nil {
		return errors.New("check policy: no registry")
	}
	var faults []error
	faults = append(faults, checkTools(whereApproval, a.Tools, r)...)
	faults = append(faults, checkTools(whereFloor, floor.Tools, r)...)
	for _, name := range require {
		if err := checkName(whereRequire, name, r); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

func checkTools(where string, tools map[string]ringi.ToolApproval, r *ringi.Registry) []error {
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		if err := checkName(where, name, r); err != nil {
			faults = append(faults, err)
		}
		own := tools[name]
		switch {
		case own.Status != "" && !own.Status.Known():
			faults = append(faults, fmt.Errorf("%s of tool %q: unknown status %s (one of not-applicable, approved, user-approval, denied)", where, name, quoted(string(own.Status))))
		case own.Status == "" && own.Func == nil:
			faults = append(faults, fmt.Errorf("%s of tool %q sets neither a status nor a function", where, name))
		}
	}
	return faults
}

// CheckNames refuses a setting that names a tool which does not exist, with
// the nearest name that does: a *ringi.PolicyError each, joined.
func CheckNames(where string, names []string, r *ringi.Registry) error {
	var faults []error
	for _, name := range names {
		if err := checkName(where, name, r); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

func checkName(where, name string, r *ringi.Registry) error {
	if _, ok := r.Tool(name); ok {
		return nil
	}
	return &ringi.PolicyError{Name: name, Where: where, Nearest: nearestTool(name, r)}
}

// nearestTool returns the registered name that is most like an unknown one;
// empty where none is.
func nearestTool(name string, r *ringi.Registry) string {
	return nearest.Of(name, func(yield func(string) bool) {
		for _, t := range r.Tools() {
			if !yield(t.Name) {
				return
			}
		}
	})
}
