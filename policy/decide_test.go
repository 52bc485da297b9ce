package policy_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/policy"
)

func person(id string, teams ...string) ringi.Principal {
	return ringi.Principal{ID: id, Kind: ringi.Person, Teams: teams}
}

var answers = []ringi.Answer{ringi.Approve, ringi.Edit, ringi.Fill, ringi.Respond, ringi.Ran, ringi.DidNotRun, ringi.RunAgain}

// S-03: who may decide, by decider, tool, initiator and four eyes. Every
// answer but deny counts as an approval.
func TestS03_MayDecide(t *testing.T) {
	listed := ringi.Deciders{People: []string{"ana"}, Teams: []string{"refunds"}}
	eyes := func(initiators ...string) policy.DecideRule {
		return policy.DecideRule{FourEyes: true, Initiators: initiators}
	}
	bot := ringi.Principal{ID: "bot", Kind: ringi.ServiceAccount, Admin: true}
	program := ringi.Principal{ID: "process", Kind: ringi.Process}
	root := person("root")
	root.Admin = true
	no, none := ringi.ErrNotPermitted, ringi.ErrNoPrincipal
	tests := []struct {
		name          string
		rule          policy.DecideRule
		by            ringi.Principal
		proposedBy    string
		approve, deny error
	}{
		{"anybody", policy.DecideRule{}, person("ana"), "", nil, nil},
		{"nobody", policy.DecideRule{}, ringi.Principal{Kind: ringi.Person, Name: "Ana", Admin: true}, "", none, none},
		{"nobody, empty initiator", eyes(""), ringi.Principal{Kind: ringi.Person}, "", none, none},
		{"a service never", policy.DecideRule{}, bot, "", no, no},
		{"a service never, though listed", policy.DecideRule{Deciders: ringi.Deciders{People: []string{"bot"}}}, bot, "", no, no},
		{"no kind", policy.DecideRule{}, ringi.Principal{ID: "ana"}, "", no, no},
		{"unknown kind", policy.DecideRule{}, ringi.Principal{ID: "ana", Kind: "admin"}, "", no, no},
		{"the program, where it may not", policy.DecideRule{}, program, "", no, no},
		{"the program, in a library", policy.DecideRule{AllowProcess: true}, program, "", nil, nil},
		{"the program is nobody's team", policy.DecideRule{AllowProcess: true, Deciders: listed}, program, "", no, no},
		{"the program is no second person", policy.DecideRule{AllowProcess: true, FourEyes: true, Initiators: []string{"ana"}}, program, "", no, nil},
		{"admin-only, user", policy.DecideRule{AdminOnly: true}, person("ana"), "", no, no},
		{"admin-only, admin", policy.DecideRule{AdminOnly: true}, root, "", nil, nil},
		{"admin-only, the program", policy.DecideRule{AdminOnly: true, AllowProcess: true}, program, "", no, no},
		{"listed by name", policy.DecideRule{Deciders: listed}, person("ana"), "", nil, nil},
		{"listed by team", policy.DecideRule{Deciders: listed}, person("ben", "mail", "refunds"), "", nil, nil},
		{"not listed", policy.DecideRule{Deciders: listed}, person("ben", "mail"), "", no, no},
		{"a name is not an id", policy.DecideRule{Deciders: listed}, ringi.Principal{ID: "x", Name: "ana", Kind: ringi.Person}, "", no, no},
		{"a team is not a person", policy.DecideRule{Deciders: ringi.Deciders{Teams: []string{"ana"}}}, person("ana"), "", no, no},
		{"an id in another case", policy.DecideRule{Deciders: listed}, person("Ana"), "", no, no},
		{"an empty team", policy.DecideRule{Deciders: ringi.Deciders{Teams: []string{""}}}, person("ana", ""), "", no, no},
		{"no bypass for admins", policy.DecideRule{Deciders: listed}, root, "", no, no},
		{"without four eyes an initiator may", policy.DecideRule{Initiators: []string{"ana"}}, person("ana"), "", nil, nil},
		{"F148 an initiator may deny, not approve", eyes("ana", "ben"), person("ben"), "", no, nil},
		{"F148 a second person", eyes("ana", "ben"), person("cho"), "", nil, nil},
		{"F148 no exemption for admins", eyes("root"), root, "", no, nil},
		{"F148 an unknown initiator is nobody's second pair", eyes("ana", ""), person("cho"), "", no, nil},
		{"F148 no initiators at all", eyes(), person("cho"), "", no, nil},
		{"four eyes and deciders", policy.DecideRule{Deciders: listed, FourEyes: true, Initiators: []string{"ana"}}, person("ben", "refunds"), "", nil, nil},
		{"an initiator who is no decider", policy.DecideRule{Deciders: listed, FourEyes: true, Initiators: []string{"ben"}}, person("ben"), "", no, no},
		{"S06 the proposer under four eyes", eyes("ana"), person("cho"), "cho", no, nil},
		{"S06 somebody else", eyes("ana"), person("cho"), "dan", nil, nil},
		{"the proposer without four eyes", policy.DecideRule{}, person("cho"), "cho", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, answer := range answers {
				if err := policy.MayDecide(tt.rule, tt.by, answer, tt.proposedBy); !errors.Is(err, tt.approve) {
					t.Errorf("%s: %v, want %v", answer, err, tt.approve)
				}
			}
			if err := policy.MayDecide(tt.rule, tt.by, ringi.Deny, tt.proposedBy); !errors.Is(err, tt.deny) {
				t.Errorf("deny: %v, want %v", err, tt.deny)
			}
		})
	}
	for _, answer := range []ringi.Answer{"", "yes", "Approve"} {
		if err := policy.MayDecide(policy.DecideRule{}, person("ana"), answer, ""); !errors.Is(err, ringi.ErrAnswer) {
			t.Errorf("answer %q: %v", answer, err)
		}
	}
}

func TestNoDecider(t *testing.T) {
	teams := map[string][]string{"refunds": {"ana", "ben"}, "empty": {}}
	people := func(ids ...string) ringi.Deciders { return ringi.Deciders{People: ids} }
	team := func(names ...string) ringi.Deciders { return ringi.Deciders{Teams: names} }
	tests := []struct {
		name string
		rule policy.DecideRule
		want bool
	}{
		{"anybody", policy.DecideRule{}, false},
		{"anybody but the initiator", policy.DecideRule{FourEyes: true, Initiators: []string{"ana"}}, false},
		{"nobody knows who asked", policy.DecideRule{FourEyes: true, Initiators: []string{"ana", ""}}, true},
		{"nobody asked", policy.DecideRule{FourEyes: true}, true},
		{"a person", policy.DecideRule{Deciders: people("ana")}, false},
		{"the initiator, without four eyes", policy.DecideRule{Deciders: people("ana"), Initiators: []string{"ana"}}, false},
		{"the initiator, with four eyes", policy.DecideRule{Deciders: people("ana"), FourEyes: true, Initiators: []string{"ana"}}, true},
		{"one of two", policy.DecideRule{Deciders: people("ana", "ben"), FourEyes: true, Initiators: []string{"ana"}}, false},
		{"an id of nobody", policy.DecideRule{Deciders: people("")}, true},
		{"a team, one excluded", policy.DecideRule{Deciders: team("refunds"), FourEyes: true, Initiators: []string{"ana"}}, false},
		{"a team, all excluded", policy.DecideRule{Deciders: team("refunds"), FourEyes: true, Initiators: []string{"ben", "ana"}}, true},
		{"a team that is not known", policy.DecideRule{Deciders: team("refunds", "mail"), FourEyes: true, Initiators: []string{"ben", "ana"}}, false},
		{"a team without members", policy.DecideRule{Deciders: team("empty")}, true},
		{"an empty team and a person", policy.DecideRule{Deciders: ringi.Deciders{People: []string{"cho"}, Teams: []string{"empty"}}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := policy.NoDecider(tt.rule, teams); got != tt.want {
				t.Errorf("NoDecider = %v", got)
			}
		})
	}
}

// Where nobody is left, nobody may: no request is asked into the void, and
// none is withheld from somebody who could have approved it.
func TestNoDecider_AgreesWithMayDecide(t *testing.T) {
	ids := []string{"ana", "ben", "cho", ""}
	some := rapid.SliceOfN(rapid.SampledFrom(ids), 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		teams := map[string][]string{"red": some.Draw(t, "red"), "blue": some.Draw(t, "blue")}
		rule := policy.DecideRule{
			Deciders:   ringi.Deciders{People: some.Draw(t, "people"), Teams: rapid.SliceOfN(rapid.SampledFrom([]string{"red", "blue"}), 0, 2).Draw(t, "teams")},
			FourEyes:   rapid.Bool().Draw(t, "eyes"),
			Initiators: some.Draw(t, "initiators"),
		}
		if rapid.Bool().Draw(t, "people") {
			rule.People = map[string]string{"stranger": "stranger"}
			for _, id := range ids {
				rule.People[id] = rapid.SampledFrom([]string{"ana", "ben", ""}).Draw(t, "person")
			}
		}
		anyone := false
		for _, id := range append(ids, "stranger") {
			by := person(id)
			for name, members := range teams {
				for _, m := range members {
					if m == id {
						by.Teams = append(by.Teams, name)
					}
				}
			}
			if policy.MayDecide(rule, by, ringi.Approve, "") == nil {
				anyone = true
			}
		}
		if rule.Deciders.IsZero() && rule.People != nil && !anyone {
			return // anybody may decide, and a new login is not known to be anybody yet
		}
		if got := policy.NoDecider(rule, teams); got == anyone {
			t.Fatalf("NoDecider = %v, somebody may: %v, %+v, teams %v", got, anyone, rule, teams)
		}
	})
}
