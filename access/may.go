package access

import (
	"fmt"
	"slices"

	"github.com/ringi-dev/ringi"
)

// May reports, as an error, why w may not use a route on a thing that stands to
// him as owner says: nil means that he may.
//
// [ErrForbidden] says that he may not, and tells nothing of the thing: no role
// or scope of his has the route at all, or he may read the thing anyway.
// [ErrHidden] says "not found": it is what another's id gets, and what
// [Unknown] gives for an id that does not exist. A Who without a principal gets
// [ringi.ErrNoPrincipal].
func May(w Who, route Route, owner Owner) error {
	if w.Principal.IsZero() {
		return fmt.Errorf("%s: %w", route, ringi.ErrNoPrincipal)
	}
	line := find(route)
	if line == nil {
		return fmt.Errorf("%s: %w: no such route", route, ErrForbidden)
	}
	may := w.owners(line)
	switch {
	case may&owner != 0:
		return nil
	case may == 0:
		return fmt.Errorf("%s: %w", route, ErrForbidden)
	case owner == All, w.owners(find(line.reads))&owner != 0:
		return fmt.Errorf("%s: %w", route, ErrForbidden)
	}
	return fmt.Errorf("%s: %w", route, ErrHidden)
}

// Unknown is the answer for an id that does not exist: [ErrForbidden] where the
// route is not his at all, else [ErrHidden]. It is never nil, and it is what May
// says of a thing that he must not learn of.
func Unknown(w Who, route Route) error { return May(w, route, 0) }

// owners returns what w may use a route on. Roles add up; a token's scopes cut
// off.
func (w Who) owners(line *right) Owner {
	if line.granted && !w.Payloads || w.TokenID != "" && !w.hasScope(line.scope) {
		return 0
	}
	var may Owner
	for role, o := range line.may {
		if w.Has(role) {
			may |= o
		}
	}
	return may
}

// hasScope reports whether a token has a scope. An agent's never has decide or
// manage, whatever its row says.
func (w Who) hasScope(s Scope) bool {
	if w.Principal.Kind != ringi.Person && (s == ScopeDecide || s == ScopeManage) {
		return false
	}
	return slices.Contains(w.Scopes, s)
}

// Has reports whether w has a role. A person has any but agent, an agent's
// token only that one, and a process none.
func (w Who) Has(role Role) bool {
	kind := ringi.Person
	if role == RoleAgent {
		kind = ringi.ServiceAccount
	}
	return w.Principal.Kind == kind && slices.Contains(w.Roles, role)
}
