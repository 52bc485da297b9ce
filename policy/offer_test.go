package policy_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/policy"
)

// registry holds the given tools, with a handler that does nothing.
func registry(t testing.TB, tools ...ringi.Tool) *ringi.Registry {
	t.Helper()
	r := ringi.NewRegistry()
	for _, tool := range tools {
		if err := r.Add(tool, nothing); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func nothing(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
	return ringi.ToolResult{}, nil
}

var (
	admin  = ringi.Principal{ID: "root", Kind: ringi.Person, Admin: true}
	editor = ringi.Principal{ID: "ana", Kind: ringi.Person}
)

func TestGates_FirstRefusalIsTold(t *testing.T) {
	r := registry(t,
		ringi.Tool{Name: "plain"},
		ringi.Tool{Name: "off", AdminOnly: true, Group: "g", DataClass: ringi.SecretAdjacent},
		ringi.Tool{Name: "admin", AdminOnly: true, Group: "g", DataClass: ringi.SecretAdjacent},
		ringi.Tool{Name: "grouped", Group: "g", DataClass: ringi.SecretAdjacent},
		ringi.Tool{Name: "secret", DataClass: ringi.SecretAdjacent},
		ringi.Tool{Name: "open", Group: "h", DataClass: ringi.PublicContent},
	)
	g := policy.Gates{Registry: r, Disabled: []string{"OFF"}}
	user := ringi.RunInfo{By: editor, Groups: []string{"h"}}
	tests := []struct {
		name string
		run  ringi.RunInfo
		zone ringi.TrustZone
		want map[string]ringi.RefusalReason // of every tool; "" is offered
	}{
		{"user", user, ringi.ZoneExternalGlobal, map[string]ringi.RefusalReason{
			"none": ringi.NotRegistered, "off": ringi.ToolDisabled, "admin": ringi.RequiresAdmin, "grouped": ringi.GroupGate,
			"secret": ringi.TrustZoneGate, "plain": ringi.TrustZoneGate, "open": ""}},
		{"user without a zone", user, "", map[string]ringi.RefusalReason{
			"none": ringi.NotRegistered, "off": ringi.ToolDisabled, "admin": ringi.RequiresAdmin, "grouped": ringi.GroupGate,
			"secret": "", "plain": "", "open": ""}},
		{"admin of all groups", ringi.RunInfo{By: admin}, ringi.ZoneLocal, map[string]ringi.RefusalReason{
			"none": ringi.NotRegistered, "off": ringi.ToolDisabled, "admin": "", "grouped": "", "secret": "", "plain": "", "open": ""}},
		{"S41 nil groups are all", ringi.RunInfo{}, "", map[string]ringi.RefusalReason{"grouped": "", "open": "", "plain": ""}},
		{"S41 empty groups are none", ringi.RunInfo{Groups: []string{}}, "", map[string]ringi.RefusalReason{
			"grouped": ringi.GroupGate, "open": ringi.GroupGate, "plain": ""}},
		{"groups are exact", ringi.RunInfo{Groups: []string{"H"}}, "", map[string]ringi.RefusalReason{"open": ringi.GroupGate}},
		{"no user is no admin", ringi.RunInfo{By: ringi.Principal{Admin: true}}, "", map[string]ringi.RefusalReason{"admin": ringi.RequiresAdmin}},
		{"F96 other letters are another tool", ringi.RunInfo{By: admin}, "", map[string]ringi.RefusalReason{
			"Plain": ringi.NotRegistered, "аdmin": ringi.NotRegistered, "plain ": ringi.NotRegistered}},
		{"a zone that is not known", ringi.RunInfo{By: admin}, "mars", map[string]ringi.RefusalReason{
			"plain": ringi.TrustZoneGate, "open": ringi.TrustZoneGate, "secret": ringi.TrustZoneGate}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			offer := g.Offer(tt.run, tt.zone, nil)
			for name, want := range tt.want {
				refusal, refused := g.Refuses(name, tt.run, tt.zone)
				if refusal.Reason != want || refused != (want != "") {
					t.Errorf("Refuses(%q) = %+v, %v; want %q", name, refusal, refused, want)
				}
				if refused && (refusal.Tool != name || refusal.Detail == "") {
					t.Errorf("%q: a refusal without name or sentence: %+v", name, refusal)
				}
				if offer.Has(name) != (want == "") {
					t.Errorf("offer %v, %q is %q", offer.Names(), name, want)
				}
			}
		})
	}
}

func TestGates_ZonesAndClasses(t *testing.T) {
	classes := []ringi.DataClass{ringi.PublicContent, ringi.EditorContent, ringi.SourceCode, ringi.InternalConfiguration, ringi.SystemDiagnostics, ringi.SecretAdjacent, ""}
	ceilings := map[ringi.TrustZone]int{ // how many of classes, from the first, are offered
		ringi.ZoneLocal: 7, ringi.ZonePrivateHosted: 5, ringi.ZoneExternalEU: 4, ringi.ZoneExternalGlobal: 2, "": 7, "moon": 0,
	}
	var tools []ringi.Tool
	for i, class := range classes {
		tools = append(tools, ringi.Tool{Name: fmt.Sprintf("t%d", i), DataClass: class})
	}
	g := policy.Gates{Registry: registry(t, tools...)}
	for zone, n := range ceilings {
		offer := g.Offer(ringi.RunInfo{}, zone, nil)
		for i, class := range classes {
			if got, want := offer.Has(tools[i].Name), i < n; got != want {
				t.Errorf("zone %q, class %q: offered %v, want %v", zone, class, got, want)
			}
		}
	}
}

func TestGates_Narrow(t *testing.T) {
	g := policy.Gates{Registry: registry(t, ringi.Tool{Name: "a"}, ringi.Tool{Name: "b"}, ringi.Tool{Name: "c", AdminOnly: true})}
	tests := []struct {
		narrow  []string
		offered string
		refused string
	}{
		{nil, "a b", "c:requires_admin"},
		{[]string{}, "", ""},
		{[]string{"b", "a"}, "a b", ""},
		{[]string{"b", "x", "x", "c", "B"}, "b", "c:requires_admin x:not_registered B:not_registered"},
	}
	for _, tt := range tests {
		offer := g.Offer(ringi.RunInfo{}, "", tt.narrow)
		var refused []string
		for _, r := range offer.Refused {
			refused = append(refused, r.Tool+":"+string(r.Reason))
		}
		if got := strings.Join(offer.Names(), " "); got != tt.offered || strings.Join(refused, " ") != tt.refused {
			t.Errorf("narrow %v: offered %s, refused %v", tt.narrow, got, refused)
		}
	}
}

func TestF155_NoRegistryOffersNothing(t *testing.T) {
	var g policy.Gates
	if offer := g.Offer(ringi.RunInfo{}, "", nil); len(offer.Tools) != 0 {
		t.Errorf("offered %v", offer.Names())
	}
	if offer := g.Offer(ringi.RunInfo{}, "", []string{"a"}); len(offer.Tools) != 0 || len(offer.Refused) != 1 || offer.Refused[0].Reason != ringi.NotRegistered {
		t.Errorf("%+v", offer)
	}
	if refusal, refused := g.Refuses("a", ringi.RunInfo{}, ""); !refused || refusal.Reason != ringi.NotRegistered {
		t.Errorf("%+v, %v", refusal, refused)
	}
	if e := g.Explain("a", ringi.RunInfo{}, ""); e.Offered || len(e.Gates) != 5 {
		t.Errorf("%+v", e)
	}
}

func TestS42_Observe(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	r := registry(t,
		ringi.Tool{Name: "local", DataClass: ringi.SourceCode},
		ringi.Tool{Name: "remote", DataClass: ringi.SourceCode, Remote: &ringi.Remote{Server: "s"}},
		ringi.Tool{Name: "admin", DataClass: ringi.SourceCode, AdminOnly: true},
	)
	tests := []struct {
		name  string
		gates policy.Gates
		zone  ringi.TrustZone
		local bool
	}{
		{"observes", policy.Gates{Observe: true, ObserveUntil: now.Add(time.Hour), Now: now}, ringi.ZoneExternalGlobal, true},
		{"off", policy.Gates{ObserveUntil: now.Add(time.Hour), Now: now}, ringi.ZoneExternalGlobal, false},
		{"expired", policy.Gates{Observe: true, ObserveUntil: now.Add(-time.Hour), Now: now}, ringi.ZoneExternalGlobal, false},
		{"ends now", policy.Gates{Observe: true, ObserveUntil: now, Now: now}, ringi.ZoneExternalGlobal, false},
		{"no end date", policy.Gates{Observe: true, Now: now}, ringi.ZoneExternalGlobal, false},
		{"no clock", policy.Gates{Observe: true, ObserveUntil: now.Add(time.Hour)}, ringi.ZoneExternalGlobal, false},
		{"unknown zone", policy.Gates{Observe: true, ObserveUntil: now.Add(time.Hour), Now: now}, "external-global", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.gates.Registry = r
			offer := tt.gates.Offer(ringi.RunInfo{}, tt.zone, nil)
			if offer.Has("local") != tt.local || offer.Has("remote") || offer.Has("admin") {
				t.Errorf("offered %v", offer.Names())
			}
			if tt.local && (len(offer.Observed) != 1 || offer.Observed[0].Tool != "local" || offer.Observed[0].Reason != ringi.TrustZoneGate) {
				t.Errorf("Observed = %+v", offer.Observed)
			}
			if !tt.local && len(offer.Observed) != 0 {
				t.Errorf("Observed = %+v", offer.Observed)
			}
			if _, refused := tt.gates.Refuses("local", ringi.RunInfo{}, tt.zone); refused == tt.local {
				t.Errorf("Refuses = %v", refused)
			}
			text := tt.gates.Explain("local", ringi.RunInfo{}, tt.zone).String()
			if strings.Contains(text, "observed and not enforced") != tt.local {
				t.Errorf("Explain = %s", text)
			}
		})
	}
}

func TestOffer_ShowsTheModelNoKeyOfAPerson(t *testing.T) {
	r := registry(t, ringi.Tool{
		Name:          "pay",
		InputSchema:   []byte(`{"type":"object","properties":{"to":{},"code":{}},"required":["to","code"]}`),
		InputRequired: []byte(`{"type":"object","properties":{"code":{"type":"string"}},"additionalProperties":false}`),
	})
	offer := policy.Gates{Registry: r}.Offer(ringi.RunInfo{}, "", nil)
	if s := string(offer.Tools[0].InputSchema); strings.Contains(s, "code") || !strings.Contains(s, `"to"`) {
		t.Errorf("offered schema %s", s)
	}
}

func TestExplain(t *testing.T) {
	g := policy.Gates{
		Registry: registry(t, ringi.Tool{Name: "deploy", AdminOnly: true, Group: "ops", DataClass: ringi.SystemDiagnostics}, ringi.Tool{Name: "free"}),
		Disabled: []string{"deploy"},
	}
	e := g.Explain("deploy", ringi.RunInfo{By: editor, Groups: []string{"mail"}}, ringi.ZoneExternalEU)
	want := `deploy: not offered
  yes not_registered  the tool is registered
  no  tool_disabled   an operator disabled the tool
  no  requires_admin  the tool is for admins, and who started the run is none
  no  group           the tool's group "ops" is not among the run's groups
  no  trust_zone      the tool's data class is system_diagnostics; a model in zone external_eu may read up to internal_configuration`
	if e.String() != want {
		t.Errorf("got\n%s\nwant\n%s", e, want)
	}
	e = g.Explain("free", ringi.RunInfo{}, "")
	if !e.Offered || !strings.Contains(e.String(), "no trust zone is declared, so there is no ceiling") {
		t.Errorf("%s", e)
	}
	e = g.Explain("free", ringi.RunInfo{}, ringi.ZonePrivateHosted)
	if e.Offered || !strings.Contains(e.String(), "undeclared and counts as secret_adjacent") {
		t.Errorf("%s", e)
	}
	e = g.Explain("deplyo", ringi.RunInfo{}, "")
	if e.Offered || e.Nearest != "deploy" || len(e.Gates) != 5 || strings.Contains(e.String(), "yes") {
		t.Errorf("%s", e)
	}
}

// Offer, Refuses and Explain are one answer, whatever the run.
func TestGates_AgreeWithThemselves(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(t *rapid.T) {
		r := ringi.NewRegistry()
		for _, name := range names[:3] {
			tool := ringi.Tool{
				Name:      name,
				AdminOnly: rapid.Bool().Draw(t, "admin"),
				Group:     rapid.SampledFrom([]string{"", "g", "h"}).Draw(t, "group"),
				DataClass: rapid.SampledFrom([]ringi.DataClass{"", ringi.PublicContent, ringi.SourceCode, ringi.SecretAdjacent}).Draw(t, "class"),
			}
			if rapid.Bool().Draw(t, "remote") {
				tool.Remote = &ringi.Remote{Server: "s"}
			}
			if err := r.Add(tool, nothing); err != nil {
				t.Fatal(err)
			}
		}
		g := policy.Gates{
			Registry: r, Disabled: rapid.SliceOfN(rapid.SampledFrom(names), 0, 2).Draw(t, "disabled"),
			Observe: rapid.Bool().Draw(t, "observe"), Now: time.Unix(5, 0), ObserveUntil: time.Unix(rapid.Int64Range(4, 6).Draw(t, "until"), 0),
		}
		run := ringi.RunInfo{By: rapid.SampledFrom([]ringi.Principal{{}, editor, admin}).Draw(t, "by")}
		if rapid.Bool().Draw(t, "grouped") {
			run.Groups = rapid.SliceOfN(rapid.SampledFrom([]string{"g", "h"}), 0, 2).Draw(t, "groups")
		}
		zone := rapid.SampledFrom([]ringi.TrustZone{"", ringi.ZoneLocal, ringi.ZoneExternalGlobal, "mars"}).Draw(t, "zone")
		offer := g.Offer(run, zone, nil)
		for _, name := range names {
			refusal, refused := g.Refuses(name, run, zone)
			e := g.Explain(name, run, zone)
			all := !slices.ContainsFunc(e.Gates, func(a policy.GateAnswer) bool { return !a.Passed })
			if offer.Has(name) == refused || e.Offered == refused || all == refused {
				t.Fatalf("%s: offered %v, refused %v, explained %+v", name, offer.Has(name), refused, e)
			}
			if refused {
				first := slices.IndexFunc(e.Gates, func(a policy.GateAnswer) bool { return !a.Passed })
				if e.Gates[first].Gate != refusal.Reason {
					t.Fatalf("%s: refused by %s, explained by %s", name, refusal.Reason, e.Gates[first].Gate)
				}
			}
			// A narrowed offer is the same offer, narrowed.
			if one := g.Offer(run, zone, []string{name}); one.Has(name) == refused || len(one.Tools) > 1 {
				t.Fatalf("%s: narrowed offer %v", name, one.Names())
			}
		}
	})
}

func TestRefuses_AllocatesNothingWhereItLetsThrough(t *testing.T) {
	g := policy.Gates{Registry: registry(t, ringi.Tool{Name: "a", Group: "g", DataClass: ringi.SourceCode}), Disabled: []string{"b", "c"}}
	run := ringi.RunInfo{By: editor, Groups: []string{"f", "g"}}
	if n := testing.AllocsPerRun(100, func() { g.Refuses("a", run, ringi.ZoneExternalEU) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
