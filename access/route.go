package access

import "slices"

// Route is a group of addresses and pages that ask for the same right.
type Route string

// The routes.
const (
	ThreadsRead       Route = "threads.read"
	RunsStart         Route = "runs.start"
	RunsRead          Route = "runs.read"
	RunsCancel        Route = "runs.cancel"
	ApprovalsList     Route = "approvals.list"
	ApprovalsRead     Route = "approvals.read"
	ApprovalsReveal   Route = "approvals.reveal" // a masked value in clear; it is logged
	ApprovalsDecide   Route = "approvals.decide" // every answer, typed input among them
	ApprovalsTakeBack Route = "approvals.takeback"
	ApprovalsWithdraw Route = "approvals.withdraw"
	ApprovalsReassign Route = "approvals.reassign"
	ApprovalsExtend   Route = "approvals.extend"
	OutcomeSettle     Route = "outcome.settle"
	CallsMake         Route = "calls.make" // judge, start and finish of a foreign loop's calls
	ToolsRead         Route = "tools.read"
	Verify            Route = "verify"
	TokensMake        Route = "tokens.make"  // make, list and revoke
	UsersManage       Route = "users.manage" // users, teams, login links
	AuditRead         Route = "audit.read"   // the log without payloads
	AuditPayloads     Route = "audit.payloads"
)

// Scope is what a token is for: a set of routes. A token may do what both its
// scopes and the roles behind it allow.
type Scope string

// The scopes.
const (
	ScopeRead Scope = "read"
	ScopeRun  Scope = "run"
	ScopeCall Scope = "call"
	// ScopeDecide lets a person's token answer requests. An admin grants it,
	// and an agent's token never has it.
	ScopeDecide Scope = "decide"
	ScopeAudit  Scope = "audit"
	// ScopeManage carries an admin's rights. An admin grants it, and an agent's
	// token never has it.
	ScopeManage Scope = "manage"
)

// Scopes returns all scopes.
func Scopes() []Scope {
	return []Scope{ScopeRead, ScopeRun, ScopeCall, ScopeDecide, ScopeAudit, ScopeManage}
}

// right is a line of the table: which scope a token needs for the route, and
// for which owners each role may use it.
type right struct {
	route Route
	scope Scope
	may   map[Role]Owner
	// reads is the route by which one would know that the thing exists: who may
	// use it is told "forbidden", who may not is told "not found".
	reads Route
	// granted says that the role alone is not enough: see [User.Payloads].
	granted bool
}

const (
	mine  = Own
	every = Own | Asked | Other | All
)

// rights is the table. Nothing else says who may do what.
var rights = []right{
	{route: ThreadsRead, scope: ScopeRead, reads: ThreadsRead,
		may: map[Role]Owner{RoleUser: mine, RoleAgent: mine, RoleApprover: Asked, RoleAdmin: every}},
	{route: RunsStart, scope: ScopeRun, reads: ThreadsRead,
		may: map[Role]Owner{RoleUser: mine, RoleAgent: mine, RoleAdmin: mine}},
	{route: RunsRead, scope: ScopeRead, reads: RunsRead,
		may: map[Role]Owner{RoleUser: mine, RoleAgent: mine, RoleApprover: Asked, RoleAdmin: every}},
	{route: RunsCancel, scope: ScopeRun, reads: RunsRead,
		may: map[Role]Owner{RoleUser: mine, RoleAgent: mine, RoleApprover: Asked, RoleAdmin: every &^ All}},
	{route: ApprovalsList, scope: ScopeRead, reads: ApprovalsRead,
		may: map[Role]Owner{RoleUser: mine, RoleAgent: mine, RoleApprover: Asked, RoleAdmin: every}},
	{route: ApprovalsRead, scope: ScopeRead, reads: ApprovalsRead,
		may: map[Role]Owner{RoleUser: mine, RoleAgent: mine, RoleApprover: Asked, RoleAdmin: every}},
	{route: ApprovalsReveal, scope: ScopeDecide, reads: ApprovalsRead,
		may: map[Role]Owner{RoleApprover: Asked}},
	{route: ApprovalsDecide, scope: ScopeDecide, reads: ApprovalsRead,
		may: map[Role]Owner{RoleApprover: Asked}},
	{route: ApprovalsTakeBack, scope: ScopeDecide, reads: ApprovalsRead,
		may: map[Role]Owner{RoleApprover: Asked, RoleAdmin: every &^ All}},
	{route: ApprovalsWithdraw, scope: ScopeRun, reads: ApprovalsRead,
		may: map[Role]Owner{RoleUser: mine, RoleAgent: mine, RoleAdmin: every &^ All}},
	{route: ApprovalsReassign, scope: ScopeDecide, reads: ApprovalsRead,
		may: map[Role]Owner{RoleApprover: Asked, RoleAdmin: every &^ All}},
	{route: ApprovalsExtend, scope: ScopeDecide, reads: ApprovalsRead,
		may: map[Role]Owner{RoleApprover: Asked, RoleAdmin: every &^ All}},
	{route: OutcomeSettle, scope: ScopeDecide, reads: ApprovalsRead,
		may: map[Role]Owner{RoleApprover: Asked}},
	{route: CallsMake, scope: ScopeCall, reads: RunsRead,
		may: map[Role]Owner{RoleAgent: mine}},
	{route: ToolsRead, scope: ScopeRead, reads: ToolsRead,
		may: map[Role]Owner{RoleUser: Own | Other, RoleAgent: Own | Other, RoleApprover: Own | Other, RoleAuditor: Own | Other | All, RoleAdmin: every}},
	{route: Verify, scope: ScopeAudit, reads: AuditRead,
		may: map[Role]Owner{RoleAuditor: every, RoleAdmin: every}},
	{route: TokensMake, scope: ScopeManage, reads: TokensMake,
		may: map[Role]Owner{RoleUser: mine, RoleApprover: mine, RoleAuditor: mine, RoleAdmin: every}},
	{route: UsersManage, scope: ScopeManage, reads: UsersManage,
		may: map[Role]Owner{RoleAdmin: every}},
	{route: AuditRead, scope: ScopeAudit, reads: AuditRead,
		may: map[Role]Owner{RoleAuditor: every, RoleAdmin: every}},
	{route: AuditPayloads, scope: ScopeAudit, reads: AuditRead, granted: true,
		may: map[Role]Owner{RoleAuditor: every, RoleAdmin: every}},
}

// Routes returns all routes, in the order of the table.
func Routes() []Route {
	out := make([]Route, len(rights))
	for i, r := range rights {
		out[i] = r.route
	}
	return out
}

// find returns the line of a route, or nil.
func find(route Route) *right {
	i := slices.IndexFunc(rights, func(r right) bool { return r.route == route })
	if i < 0 {
		return nil
	}
	return &rights[i]
}
