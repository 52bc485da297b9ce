package access

import (
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
)

var update = flag.Bool("update", false, "write the table into docs/access.md")

const page = "../docs/access.md"

const from, to = "<!-- rights -->\n", "<!-- /rights -->"

// table returns the rows of the page's table: route, scope, a cell a role.
func table(t *testing.T) [][]string {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), from)
	had, after, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("%s has no table between %q and %q", page, from, to)
	}
	if *update {
		had = Table()
		if err := os.WriteFile(page, []byte(before+from+had+to+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if had != Table() {
		t.Fatalf("the table of %s is not the code's (go test ./access -update):\n%s", page, Table())
	}
	var rows [][]string
	for line := range strings.Lines(had) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		rows = append(rows, cells)
	}
	if len(rows) != len(Routes())+2 || len(rows[0]) != len(Roles())+2 {
		t.Fatalf("the table has %d rows of %d cells", len(rows), len(rows[0]))
	}
	return rows[2:]
}

// TestS21_WalkOfTheTable holds May against the page, cell by cell: role by
// route by owner, for people and for tokens with and without the scope.
func TestS21_WalkOfTheTable(t *testing.T) {
	walked := 0
	for _, row := range table(t) {
		route, scope := Route(row[0]), Scope(row[1])
		for i, role := range Roles() {
			cell := row[i+2]
			for _, o := range owners {
				want := slices.Contains(strings.Split(strings.TrimSuffix(cell, ", where granted"), ", "), o.name)
				granted := strings.HasSuffix(cell, "where granted")
				for _, w := range speakers(role, scope) {
					allowed := want && w.scoped && (!granted || w.who.Payloads)
					err := May(w.who, route, o.owner)
					walked++
					switch {
					case allowed && err != nil, !allowed && err == nil:
						t.Errorf("%s %s, %s of %s: %v, the page says %q", role, w.name, route, o.name, err, cell)
					case err != nil && !errors.Is(err, ErrForbidden) && !errors.Is(err, ErrHidden):
						t.Errorf("%s %s, %s of %s: %v is neither forbidden nor hidden", role, w.name, route, o.name, err)
					}
				}
			}
		}
	}
	if walked < 20*5*4*4 {
		t.Errorf("only %d cells were walked", walked)
	}
}

type speaker struct {
	name   string
	who    Who
	scoped bool // the route's scope is no obstacle
}

// speakers are those who can have a role: logged in, by a token with all
// scopes, with the route's alone, and with all others.
func speakers(role Role, scope Scope) []speaker {
	others := slices.DeleteFunc(Scopes(), func(s Scope) bool { return s == scope })
	base := person("local:w", role)
	if role == RoleAgent {
		base = client("client:w", nil, EveryAgent)
	}
	granted := base
	granted.Payloads = true
	by := func(scopes ...Scope) Who {
		w := granted
		w.TokenID, w.Scopes, w.Agents = "tok_1", scopes, []string{EveryAgent}
		return w
	}
	privileged := scope == ScopeDecide || scope == ScopeManage
	out := []speaker{
		{"with every scope", by(Scopes()...), role != RoleAgent || !privileged},
		{"with the scope", by(scope), role != RoleAgent || !privileged},
		{"without the scope", by(others...), false},
		{"without scopes", by(), false},
	}
	if role != RoleAgent {
		out = append(out, speaker{"in person", base, true}, speaker{"in person, granted", granted, true})
	}
	return out
}

// TestS21_WhatNoTableMayGrant holds what must be true of any table.
func TestS21_WhatNoTableMayGrant(t *testing.T) {
	for _, line := range rights {
		decides := slices.Contains([]Route{ApprovalsDecide, OutcomeSettle, ApprovalsReveal}, line.route)
		for role, may := range line.may {
			switch {
			case may == 0:
				t.Errorf("%s, %s: an empty cell", line.route, role)
			case decides && (role != RoleApprover || may != Asked):
				t.Errorf("%s lets %s: who is asked decides, and nobody else", line.route, role)
			case role == RoleAgent && (line.scope == ScopeDecide || line.scope == ScopeManage || line.scope == ScopeAudit):
				t.Errorf("%s lets an agent", line.route)
			case (role == RoleUser || role == RoleAgent) && may&^Own != 0 && line.route != ToolsRead:
				t.Errorf("%s lets %s beyond his own", line.route, role)
			case role == RoleAuditor && line.scope == ScopeRun:
				t.Errorf("%s lets an auditor change something", line.route)
			}
		}
		if find(line.reads) == nil {
			t.Errorf("%s reads by %q, which is no route", line.route, line.reads)
		}
		if line.granted != (line.route == AuditPayloads) {
			t.Errorf("%s: granted %v", line.route, line.granted)
		}
	}
	if n := len(rights); n != len(slices.Compact(slices.Sorted(slices.Values(Routes())))) {
		t.Errorf("a route stands twice")
	}
}

// S-21: another's id and an unknown one get the same answer, unless one may
// read the other's anyway.
func TestS21_AnothersIsAsUnknown(t *testing.T) {
	all := []Who{person("local:w"), client("client:w", Scopes(), EveryAgent)}
	for mask := range 16 {
		var roles []Role
		for i, role := range []Role{RoleUser, RoleApprover, RoleAuditor, RoleAdmin} {
			if mask&(1<<i) != 0 {
				roles = append(roles, role)
			}
		}
		all = append(all, person("local:w", roles...))
	}
	for _, w := range all {
		for _, line := range rights {
			unknown, others := Unknown(w, line.route), May(w, line.route, Other)
			if unknown == nil {
				t.Fatalf("%v: %s of an unknown id is allowed", w.Roles, line.route)
			}
			if May(w, line.reads, Other) == nil || others == nil {
				continue
			}
			if others.Error() != unknown.Error() || Status(others) != Status(unknown) {
				t.Errorf("%v, %s: another's is %v, an unknown one %v", w.Roles, line.route, others, unknown)
			}
		}
	}
}

// S-26: an agent's token has neither scope, whatever its row and its roles say.
func TestS26_AgentsHaveNoPrivilegedScope(t *testing.T) {
	w := client("client:w", Scopes(), EveryAgent)
	w.Roles = Roles()
	for _, scope := range Scopes() {
		if want := scope != ScopeDecide && scope != ScopeManage; w.hasScope(scope) != want {
			t.Errorf("scope %s: %v", scope, !want)
		}
	}
	for _, route := range []Route{ApprovalsDecide, OutcomeSettle, ApprovalsTakeBack, TokensMake, UsersManage} {
		if err := May(w, route, every); !errors.Is(err, ErrForbidden) {
			t.Errorf("%s: %v", route, err)
		}
	}
}

func TestMayRefusesWhatIsUnclear(t *testing.T) {
	every := []Role{RoleUser, RoleAgent, RoleApprover, RoleAuditor, RoleAdmin}
	process := person("process:x", every...)
	process.Principal.Kind = ringi.Process
	for _, c := range []struct {
		name  string
		who   Who
		route Route
		owner Owner
		want  error
	}{
		{"nobody", Who{}, RunsRead, Own, ringi.ErrNoPrincipal},
		{"nobody with roles", Who{Roles: every, Space: "default"}, RunsRead, Own, ringi.ErrNoPrincipal},
		{"unknown route", person("local:w", every...), "runs.delete", Own, ErrForbidden},
		{"empty route", person("local:w", every...), "", Own, ErrForbidden},
		{"no owner", person("local:w", every...), RunsRead, 0, ErrHidden},
		{"unknown owner", person("local:w", every...), RunsRead, 1 << 7, ErrHidden},
		{"no role", person("local:w"), RunsRead, Own, ErrForbidden},
		{"unknown role", person("local:w", "root"), RunsRead, Own, ErrForbidden},
		{"a person with an agent's role", person("local:w", RoleAgent), RunsRead, Own, ErrForbidden},
		{"a service with people's roles", func() Who { w := client("client:w", Scopes(), "*"); w.Roles = every[2:]; return w }(), RunsRead, Own, ErrForbidden},
		{"a process", process, ApprovalsDecide, Asked, ErrForbidden},
		{"an operator decides", operator, ApprovalsDecide, Asked, ErrForbidden},
		{"a list of all", person("local:w", RoleUser), RunsRead, All, ErrForbidden},
	} {
		if err := May(c.who, c.route, c.owner); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestOwnerOf(t *testing.T) {
	ana := person("local:ana", RoleUser, RoleApprover)
	ana.Principal.Teams = []string{"refunds"}
	ana.Clients = []string{"client:shop"}
	shop := client("client:shop", Scopes(), "sales")
	byToken := ana
	byToken.TokenID, byToken.Agents = "tok_1", []string{"sales"}
	team := []ringi.Deciders{{Teams: []string{"refunds"}}}
	for _, c := range []struct {
		name  string
		who   Who
		thing Thing
		want  Owner
	}{
		{"started", ana, Thing{Space: "default", By: []string{"local:ben", "local:ana"}}, Own},
		{"her client's", ana, Thing{Space: "default", By: []string{"client:shop"}}, Own},
		{"another's", ana, Thing{Space: "default", By: []string{"local:ben"}}, Other},
		{"nobody's", ana, Thing{Space: "default"}, Other},
		{"unknown starter", ana, Thing{Space: "default", By: []string{""}}, Other},
		{"other space", ana, Thing{Space: "blue", By: []string{"local:ana"}, Deciders: team}, 0},
		{"no space", ana, Thing{By: []string{"local:ana"}}, 0},
		{"her team", ana, Thing{Space: "default", Deciders: team}, Asked},
		{"herself", ana, Thing{Space: "default", Deciders: []ringi.Deciders{{People: []string{"local:ana"}}}}, Asked},
		{"anybody", ana, Thing{Space: "default", Deciders: []ringi.Deciders{{}}}, Asked},
		{"another team", ana, Thing{Space: "default", Deciders: []ringi.Deciders{{Teams: []string{"ops", ""}}}}, Other},
		{"one of two requests", ana, Thing{Space: "default", Deciders: []ringi.Deciders{{Teams: []string{"ops"}}, team[0]}}, Asked},
		{"started and asked", ana, Thing{Space: "default", By: []string{"local:ana"}, Deciders: team}, Own | Asked},
		{"of an agent", ana, Thing{Space: "default", Agent: "hr", By: []string{"local:ana"}}, Own},
		{"client's own", shop, Thing{Space: "default", Agent: "sales", By: []string{"client:shop"}}, Own},
		{"client's own, no agent", shop, Thing{Space: "default", By: []string{"client:shop"}}, Own},
		{"client's own, another agent's", shop, Thing{Space: "default", Agent: "hr", By: []string{"client:shop"}}, 0},
		{"another client's", shop, Thing{Space: "default", Agent: "sales", By: []string{"client:crm"}}, Other},
		{"another client's, no agent", shop, Thing{Space: "default", By: []string{"client:crm"}}, 0},
		{"a client is never asked", shop, Thing{Space: "default", Agent: "sales", Deciders: []ringi.Deciders{{}}}, Other},
		{"a client named as decider", shop, Thing{Space: "default", Agent: "sales", Deciders: []ringi.Deciders{{People: []string{"client:shop"}}}}, Other},
		{"token for the agent", byToken, Thing{Space: "default", Agent: "sales", Deciders: team}, Asked},
		{"token for another agent", byToken, Thing{Space: "default", Agent: "hr", By: []string{"local:ana"}, Deciders: team}, 0},
		{"nobody asks", Who{Space: "default"}, Thing{Space: "default", By: []string{""}}, 0},
	} {
		if got := c.who.OwnerOf(c.thing); got != c.want {
			t.Errorf("%s: %b, want %b", c.name, got, c.want)
		}
	}
	r := ringi.ApprovalRequest{Space: "default", Agent: "sales", Initiators: []string{"local:ana"}, Deciders: team[0]}
	if got := ana.OwnerOf(Of(r)); got != Own|Asked {
		t.Errorf("of a request: %b", got)
	}
}
