package access

import (
	"fmt"
	"slices"
)

// Role is a row of rights. A user may have several; without one he may do
// nothing.
type Role string

// The roles.
const (
	// RoleUser starts runs and reads his own threads.
	RoleUser Role = "user"
	// RoleAgent is the role of an agent's token, and of nothing else: runs that it
	// started, approvals that it made.
	RoleAgent Role = "agent"
	// RoleApprover decides the requests that ask him, with their context.
	RoleApprover Role = "approver"
	// RoleAuditor reads the log, without payloads unless that is granted.
	RoleAuditor Role = "auditor"
	// RoleAdmin manages. An admin who shall decide is an approver as well.
	RoleAdmin Role = "admin"
)

// Roles returns all roles, in the order of the table.
func Roles() []Role { return []Role{RoleUser, RoleAgent, RoleApprover, RoleAuditor, RoleAdmin} }

// checkRoles refuses a role that a person cannot have. It returns them sorted
// as the table is, each once.
func checkRoles(roles []Role) ([]Role, error) {
	for _, r := range roles {
		if r == RoleAgent {
			return nil, fmt.Errorf("%w: the role agent is for agents' tokens", ErrInvalid)
		}
		if !slices.Contains(Roles(), r) {
			return nil, fmt.Errorf("%w: unknown role %q", ErrInvalid, r)
		}
	}
	return slices.DeleteFunc(Roles(), func(r Role) bool { return !slices.Contains(roles, r) }), nil
}
