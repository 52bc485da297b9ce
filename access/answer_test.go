package access

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

func call(key, body string) Call {
	return Call{Route: RunsStart, Owner: Own, Method: "POST", Path: "/v1/runs", Key: key, Body: []byte(body)}
}

func begin(t *testing.T, h *house, w Who, c Call) *Try {
	t.Helper()
	try, err := h.Begin(ctx, w, c)
	if err != nil {
		t.Fatal(err)
	}
	return try
}

func TestS25_AnswerIsRepeated(t *testing.T) {
	h := newHouse(t, Options{})
	ana := person("local:ana", RoleUser)
	try := begin(t, h, ana, call("k", "{}"))
	if try.Answer != nil || try.Again {
		t.Fatalf("first try %+v", try)
	}
	if _, err := h.Begin(ctx, ana, call("k", "{}")); !errors.Is(err, ErrInFlight) {
		t.Errorf("in flight: %v", err)
	}
	if _, err := h.Begin(ctx, ana, call("k", "{} ")); !errors.Is(err, ErrReused) {
		t.Errorf("other body, in flight: %v", err)
	}
	want := Answer{Status: 201, Type: "application/json", Location: "/v1/runs/run_1", Body: []byte("{\"id\":\"\x00é\"}"), Run: "run_1"}
	if err := try.Finish(ctx, want); err != nil {
		t.Fatal(err)
	}
	again := begin(t, h, ana, call("k", "{}"))
	if a := again.Answer; a == nil || a.Status != want.Status || a.Type != want.Type || a.Location != want.Location || string(a.Body) != string(want.Body) || a.Run != want.Run {
		t.Errorf("answer %+v", again.Answer)
	}
	// Ending a repeat changes nothing.
	if err := errors.Join(again.Finish(ctx, Answer{Status: 500}), again.Abandon(ctx)); err != nil {
		t.Fatal(err)
	}
	if a := begin(t, h, ana, call("k", "{}")).Answer; a == nil || a.Status != 201 {
		t.Errorf("answer %+v", a)
	}
	if _, err := h.Begin(ctx, ana, call("k", "[]")); !errors.Is(err, ErrReused) {
		t.Errorf("other body: %v", err)
	}
}

// S-25: a try that ended in doubt leaves the key taken, and its repeat knows at
// once that it may be the second; the first cannot answer any more.
func TestS25_ATryInDoubt(t *testing.T) {
	h := newHouse(t, Options{})
	ana := person("local:ana", RoleUser)
	first := begin(t, h, ana, call("k", "{}"))
	if err := first.Doubt(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Begin(ctx, ana, call("k", "[]")); !errors.Is(err, ErrReused) {
		t.Errorf("other body: %v", err)
	}
	second := begin(t, h, ana, call("k", "{}"))
	if !second.Again || second.Answer != nil {
		t.Fatalf("second try %+v", second)
	}
	if _, err := h.Begin(ctx, ana, call("k", "{}")); !errors.Is(err, ErrInFlight) {
		t.Errorf("while the second runs: %v", err)
	}
	if err := errors.Join(first.Finish(ctx, Answer{Status: 500}), first.Doubt(ctx), first.Abandon(ctx)); err != nil {
		t.Fatal(err)
	}
	if err := second.Finish(ctx, Answer{Status: 201}); err != nil {
		t.Fatal(err)
	}
	if err := second.Doubt(ctx); err != nil { // it has answered: too late
		t.Fatal(err)
	}
	if a := begin(t, h, ana, call("k", "{}")).Answer; a == nil || a.Status != 201 {
		t.Errorf("answer %+v", a)
	}
}

// S-25: a key is its principal's own, for one method and path; and who lost
// his rights gets no stored answer.
func TestS25_KeysAreTheirPrincipalsOwn(t *testing.T) {
	h := newHouse(t, Options{})
	ana := person("local:ana", RoleUser)
	if err := begin(t, h, ana, call("k", "{}")).Finish(ctx, Answer{Status: 201, Body: []byte("ana's")}); err != nil {
		t.Fatal(err)
	}
	other := call("k", "{}")
	other.Path = "/v1/calls"
	put := call("k", "{}")
	put.Method = "PUT"
	for name, try := range map[string]*Try{
		"another principal": begin(t, h, person("local:ben", RoleUser), call("k", "{}")),
		"a client of hers":  begin(t, h, client("client:shop", Scopes(), "*"), call("k", "{}")),
		"another path":      begin(t, h, ana, other),
		"another method":    begin(t, h, ana, put),
		"another key":       begin(t, h, ana, call("K", "{}")),
	} {
		if try.Answer != nil {
			t.Errorf("%s gets the answer", name)
		}
	}
	ana.Roles = []Role{RoleApprover}
	if _, err := h.Begin(ctx, ana, call("k", "{}")); !errors.Is(err, ErrForbidden) {
		t.Errorf("the role is gone: %v", err)
	}
	hidden := call("k", "{}")
	hidden.Owner = Other
	ana.Roles = []Role{RoleUser}
	if _, err := h.Begin(ctx, ana, hidden); !errors.Is(err, ErrHidden) {
		t.Errorf("it is another's now: %v", err)
	}
}

func TestS25_SecretsAreNotStored(t *testing.T) {
	h := newHouse(t, Options{})
	ana := person("local:ana", RoleUser)
	for key, a := range map[string]Answer{
		"secret":    {Status: 201, Body: []byte("the secret"), Location: "/login/the secret", Secret: true},
		"too large": {Status: 200, Body: []byte(strings.Repeat("x", MaxAnswer+1))},
	} {
		key = strings.ReplaceAll(key, " ", "-")
		if err := begin(t, h, ana, call(key, "{}")).Finish(ctx, a); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Begin(ctx, ana, call(key, "{}")); !errors.Is(err, ErrNotKept) {
			t.Errorf("%s: %v", key, err)
		}
		if _, err := h.Begin(ctx, ana, call(key, "[]")); !errors.Is(err, ErrReused) {
			t.Errorf("%s, other body: %v", key, err)
		}
	}
	for _, v := range dump(t, h.db) {
		if strings.Contains(v, "secret") && v != "secret" || strings.Contains(v, "dGhlIHNlY3JldA") {
			t.Errorf("the dump holds %q", v)
		}
	}
	if err := begin(t, h, ana, call("largest", "{}")).Finish(ctx, Answer{Status: 200, Body: []byte(strings.Repeat("x", MaxAnswer))}); err != nil {
		t.Fatal(err)
	}
	if a := begin(t, h, ana, call("largest", "{}")).Answer; a == nil || len(a.Body) != MaxAnswer {
		t.Errorf("the largest answer is not kept")
	}
}

func TestAnswersEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		at   time.Duration
		kept bool
	}{{"-1", 24*time.Hour - time.Microsecond, true}, {"0", 24 * time.Hour, false}, {"+1", 24*time.Hour + time.Microsecond, false}} {
		h := newHouse(t, Options{})
		ana := person("local:ana", RoleUser)
		if err := begin(t, h, ana, call("k", "{}")).Finish(ctx, Answer{Status: 201}); err != nil {
			t.Fatal(err)
		}
		h.clock.move(c.at)
		if try := begin(t, h, ana, call("k", "{}")); (try.Answer != nil) != c.kept || try.Again {
			t.Errorf("%s: %+v", c.name, try)
		}
	}
}

// A try whose process died is taken over, and is told so; what it says then is
// not stored over the answer of the one that took over.
func TestTriesAreTakenOver(t *testing.T) {
	h := newHouse(t, Options{})
	ana := person("local:ana", RoleUser)
	first := begin(t, h, ana, call("k", "{}"))
	h.clock.move(5*time.Minute - time.Microsecond)
	if _, err := h.Begin(ctx, ana, call("k", "{}")); !errors.Is(err, ErrInFlight) {
		t.Errorf("just in time: %v", err)
	}
	h.clock.move(time.Microsecond)
	second := begin(t, h, ana, call("k", "{}"))
	if !second.Again || second.Answer != nil {
		t.Fatalf("second try %+v", second)
	}
	if _, err := h.Begin(ctx, ana, call("k", "{}")); !errors.Is(err, ErrInFlight) {
		t.Errorf("taken over: %v", err)
	}
	if err := errors.Join(first.Abandon(ctx), first.Finish(ctx, Answer{Status: 500})); err != nil {
		t.Fatal(err)
	}
	if err := second.Finish(ctx, Answer{Status: 201}); err != nil {
		t.Fatal(err)
	}
	if a := begin(t, h, ana, call("k", "{}")).Answer; a == nil || a.Status != 201 {
		t.Errorf("answer %+v", a)
	}
	third := begin(t, h, ana, call("other", "{}"))
	if err := third.Abandon(ctx); err != nil {
		t.Fatal(err)
	}
	if try := begin(t, h, ana, call("other", "[]")); try.Answer != nil || try.Again {
		t.Errorf("after it was abandoned: %+v", try)
	}
}

func TestOneTryAtOnce(t *testing.T) {
	h := newHouse(t, Options{})
	ana := person("local:ana", RoleUser)
	var began atomic.Int32
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			switch try, err := h.Begin(ctx, ana, call("k", "{}")); {
			case err == nil && try.Answer == nil:
				began.Add(1)
			case !errors.Is(err, ErrInFlight):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if began.Load() != 1 {
		t.Errorf("%d began", began.Load())
	}
}

// Of many who find a try that died, one takes over.
func TestOneTakesOver(t *testing.T) {
	h := newHouse(t, Options{})
	ana := person("local:ana", RoleUser)
	begin(t, h, ana, call("k", "{}"))
	h.clock.move(5 * time.Minute)
	var again atomic.Int32
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			switch try, err := h.Begin(ctx, ana, call("k", "{}")); {
			case err == nil && try.Again:
				again.Add(1)
			case !errors.Is(err, ErrInFlight):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if again.Load() != 1 {
		t.Errorf("%d took over", again.Load())
	}
}

func TestKeysAreChecked(t *testing.T) {
	h := newHouse(t, Options{})
	ana := person("local:ana", RoleUser)
	for _, key := range []string{"", "a b", "a\n", "é", strings.Repeat("k", 256), "\x7f"} {
		if _, err := h.Begin(ctx, ana, call(key, "")); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", key, err)
		}
	}
	begin(t, h, ana, call(strings.Repeat("k", 255), ""))
	if _, err := h.Begin(ctx, ana, Call{Route: RunsStart, Owner: Own, Key: "k"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("no method: %v", err)
	}
	if _, err := h.Begin(ctx, Who{Space: "default"}, call("k", "")); !errors.Is(err, ringi.ErrNoPrincipal) {
		t.Errorf("nobody: %v", err)
	}
}

// S-24: what speaks of an erased run goes with it.
func TestS24_EraseRunForgetsItsAnswers(t *testing.T) {
	h := newHouse(t, Options{})
	ana := person("local:ana", RoleUser)
	for _, run := range []string{"run_1", "run_2", ""} {
		if err := begin(t, h, ana, call("k"+run, "{}")).Finish(ctx, Answer{Status: 201, Body: []byte("of " + run), Run: run}); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.EraseRun(ctx, ""); err != nil {
		t.Fatal(err)
	}
	if err := h.EraseRun(ctx, "run_1"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Begin(ctx, ana, call("krun_1", "{}")); !errors.Is(err, ErrNotKept) {
		t.Errorf("erased: %v", err)
	}
	for _, key := range []string{"krun_2", "k"} {
		if try := begin(t, h, ana, call(key, "{}")); try.Answer == nil {
			t.Errorf("%s is gone too", key)
		}
	}
}

func TestPresence(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleApprover)
	ben := h.add(t, "ben", RoleApprover)
	a, _ := h.enterAs(t, "local:ana")
	b, _ := h.enterAs(t, "local:ben")
	looking := func(w Who) []Look {
		t.Helper()
		list, err := h.Looking(ctx, w, "req_1")
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for range 2 {
		if err := errors.Join(h.Look(ctx, b, "req_1"), h.Look(ctx, b, "req_2")); err != nil {
			t.Fatal(err)
		}
	}
	if list := looking(a); len(list) != 1 || list[0] != (Look{"req_1", "local:ben", "ben", h.clock.now().Add(30 * time.Second)}) {
		t.Errorf("ana sees %v", list)
	}
	if list := looking(b); len(list) != 0 {
		t.Errorf("ben sees himself: %v", list)
	}
	h.clock.move(30*time.Second - time.Microsecond)
	if len(looking(a)) != 1 {
		t.Error("he is gone too early")
	}
	h.clock.move(time.Microsecond)
	if len(looking(a)) != 0 {
		t.Error("he is still there")
	}
	if err := errors.Join(h.Look(ctx, b, "req_1"), h.LookAway(ctx, b, "req_1")); err != nil || len(looking(a)) != 0 {
		t.Errorf("he looked away: %v", err)
	}
	if err := h.Look(ctx, b, "req_1"); err != nil {
		t.Fatal(err)
	}
	ben.Disabled = true
	if err := h.SetUser(ctx, operator, ben); err != nil || len(looking(a)) != 0 {
		t.Errorf("he is disabled: %v", err)
	}
	for who, want := range map[string]Who{"ana": a, "ben": b} {
		got, err := h.Opened(ctx, want, []string{"req_1", "req_2", "req_3"})
		if err != nil || len(got) != map[string]int{"ana": 0, "ben": 2}[who] || got["req_3"] {
			t.Errorf("%s has opened %v, %v", who, got, err)
		}
	}
	for name, w := range map[string]Who{"nobody": {Space: "default"}, "agent": client("client:x", Scopes(), "*"), "other space": Operator("os:1@x", "blue")} {
		if err := h.Look(ctx, w, "req_1"); !errors.Is(err, ErrForbidden) {
			t.Errorf("%s looks: %v", name, err)
		}
	}
	if err := h.Look(ctx, a, ""); !errors.Is(err, ErrInvalid) {
		t.Errorf("at nothing: %v", err)
	}
}

// S-12: logins of one person are one person, and tokens count as their owner.
func TestS12_Persons(t *testing.T) {
	h := newHouse(t, Options{SamePerson: [][]string{{"oidc:ana", "local:ana"}, {"local:ana", "os:1000@host"}, {"local:zoe", "oidc:zoe"}, {}}})
	for _, u := range []User{
		{ID: "local:ana", Name: "Ana", Roles: []Role{RoleUser}}, {ID: "oidc:ana", Name: "Ana", Roles: []Role{RoleUser}},
		{ID: "local:ben", Name: "Ana", Roles: []Role{RoleUser}}, {ID: "local:desk", Name: "Desk", Shared: true},
	} {
		if err := h.AddUser(ctx, operator, u); err != nil {
			t.Fatal(err)
		}
	}
	agent := NewToken{Kind: AgentToken, Name: "shop", Owner: "oidc:ana", Agents: []string{"*"}, Scopes: []Scope{ScopeRun}}
	tok, _ := h.token(t, operator, agent)
	agent.Name, agent.Owner = "cron", ""
	free, _ := h.token(t, operator, agent)
	agent.Name, agent.Owner = "desk", "local:desk"
	h.token(t, operator, agent)
	ids := []string{"local:ana", "oidc:ana", "os:1000@host", "client:shop", tok.ID, "local:ben", "oidc:zoe", "local:zoe", "os:1@x",
		"client:cron", free.ID, "client:none", "tok_none", "local:desk", "client:desk", ""}
	want := []string{"local:ana", "local:ana", "local:ana", "local:ana", "local:ana", "local:ben", "local:zoe", "local:zoe", "os:1@x",
		"", "", "", "", "", "", ""}
	got, err := h.Persons(ctx, ids)
	if err != nil {
		t.Fatal(err)
	}
	for i := range ids {
		if got[i] != want[i] {
			t.Errorf("%q is %q, want %q", ids[i], got[i], want[i])
		}
	}
	for _, c := range []struct {
		name       string
		initiators []string
		decider    string
		want       bool
	}{
		{"another", []string{"local:ana"}, "local:ben", true},
		{"himself", []string{"local:ben"}, "local:ben", false},
		{"his other login", []string{"local:ben", "oidc:ana"}, "local:ana", false},
		{"a third login", []string{"local:ana"}, "os:1000@host", false},
		{"his agent", []string{"client:shop"}, "local:ana", false},
		{"his token", []string{tok.ID}, "os:1000@host", false},
		{"another's agent", []string{"client:shop"}, "local:ben", true},
		{"nobody's agent", []string{"client:cron"}, "local:ben", false},
		{"an unknown initiator", []string{"local:ana", ""}, "local:ben", false},
		{"no initiator", nil, "local:ben", false},
		{"a shared login decides", []string{"local:ana"}, "local:desk", false},
		{"a shared login asked", []string{"local:desk"}, "local:ben", false},
		{"nobody decides", []string{"local:ana"}, "", false},
	} {
		ok, err := h.FourEyes(ctx, c.initiators, ringi.Principal{ID: c.decider})
		if err != nil || ok != c.want {
			t.Errorf("%s: %v, %v", c.name, ok, err)
		}
	}
}
