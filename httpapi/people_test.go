package httpapi_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/httpapi"
)

func (w *world) tokenID(who string) string {
	w.t.Helper()
	got, err := w.dir.ByToken(w.t.Context(), w.token[who])
	w.must(err)
	return got.TokenID
}

// Users and tokens over the API: the table of rights says who, and an agent's
// token never does.
func TestS26_UsersAndTokensAreTheAdmins(t *testing.T) {
	w := newWorld(t, setting{idle: true})
	for _, who := range []string{"uma", "ben", "ada", "aud", "pay", "nil", "bot", "bot2", "hers"} {
		caller, err := w.dir.ByToken(t.Context(), w.token[who])
		w.must(err)
		for _, c := range []struct {
			method, path, body string
			route              access.Route
			owner              access.Owner
		}{
			{"GET", "/v1/users", "", access.UsersManage, access.All},
			{"POST", "/v1/users", `{"id":"local:by-` + who + `"}`, access.UsersManage, access.All},
			{"POST", "/v1/users/local:nil", `{"name":"Nil"}`, access.UsersManage, access.All},
			{"POST", "/v1/users/local:nil/disable", `{}`, access.UsersManage, access.All},
			{"GET", "/v1/teams", "", access.UsersManage, access.All},
			{"POST", "/v1/teams", `{"id":"by-` + who + `"}`, access.UsersManage, access.All},
			{"POST", "/v1/teams/by-" + who + "/remove", `{}`, access.UsersManage, access.All},
			{"GET", "/v1/tokens?owner=local:udo", "", access.TokensMake, access.Other},
			{"GET", "/v1/tokens?owner=" + caller.Principal.ID, "", access.TokensMake, access.Own},
			{"POST", "/v1/tokens", `{"kind":"agent","name":"of-` + who + `","owner":"local:udo","agents":["shop"],"scopes":["read"]}`, access.TokensMake, access.Other},
			{"POST", "/v1/tokens", `{"kind":"person","name":"mine","scopes":["read"]}`, access.TokensMake, access.Own},
			{"POST", "/v1/tokens/" + w.tokenID("udo") + "/revoke", `{}`, access.TokensMake, access.Other},
			{"POST", "/v1/tokens/tok_none/revoke", `{}`, access.TokensMake, 0},
		} {
			if who == "ada" && strings.Contains(c.path, "nil/disable") || strings.HasSuffix(c.path, w.tokenID("udo")+"/revoke") && who == "ada" {
				continue // the others come first
			}
			got := w.do(who, c.method, c.path, c.body)
			allowed := access.May(caller, c.route, c.owner) == nil
			if allowed != (got.status < 300) {
				t.Errorf("%s %s %s: %d %s, the table says %v", who, c.method, c.path, got.status, got.body, allowed)
			}
			if !allowed && got.status != 403 && got.status != 404 {
				t.Errorf("%s %s %s: %d %s", who, c.method, c.path, got.status, got.body)
			}
		}
	}
	if got := w.do("ada", "POST", "/v1/tokens", `{"kind":"agent","name":"sly","agents":["shop"],"scopes":["decide"]}`); got.status != 400 {
		t.Errorf("an agent's token that decides: %d %s", got.status, got.body)
	}
	if got := w.do("ada", "POST", "/v1/tokens", `{"kind":"person","name":"more","scopes":["decide"]}`); got.status != 403 {
		t.Errorf("a token grants decide: %d %s", got.status, got.body)
	}
	if got := w.do("ada", "POST", "/v1/users", `{"id":"local:uma"}`); got.status != 409 || got.problem(t).Type != "urn:ringi:problem:exists" {
		t.Errorf("a user twice: %d %s", got.status, got.body)
	}
	if got := w.do("ada", "POST", "/v1/users/local:ada/disable", `{}`); got.status != 409 {
		t.Errorf("the last admin goes: %d %s", got.status, got.body)
	}
}

// What is not said of a user stays as it is, and a team comes and goes.
func TestUsersAreChanged(t *testing.T) {
	w := newWorld(t, setting{idle: true})
	c := w.client("ada")
	ctx := t.Context()
	if _, err := c.AddTeam(ctx, httpapi.TeamBody{ID: "night"}); err != nil {
		t.Fatal(err)
	}
	roles, teams := []string{"approver", "user"}, []string{"night"}
	u, err := c.ChangeUser(ctx, "local:uma", httpapi.UserChange{Roles: &roles, Teams: &teams})
	if err != nil || len(u.Roles) != 2 || !slices.Equal(u.Teams, teams) || u.Name == "" || u.Disabled {
		t.Fatalf("%+v %v", u, err)
	}
	list, err := c.Teams(ctx)
	i := slices.IndexFunc(list, func(t httpapi.Team) bool { return t.ID == "night" })
	if err != nil || i < 0 || list[i].Name != "night" || !slices.Equal(list[i].Members, []string{"local:uma"}) {
		t.Errorf("%+v %v", list, err)
	}
	yes, no, name := true, false, "Uma the Second"
	if u, err = c.ChangeUser(ctx, "local:uma", httpapi.UserChange{Disabled: &yes, Name: &name}); err != nil || !u.Disabled || len(u.Roles) != 2 || u.Name != name {
		t.Errorf("%+v %v", u, err)
	}
	if got := w.do("uma", "GET", "/v1/me", ""); got.status != 401 {
		t.Errorf("a disabled user: %d", got.status)
	}
	if u, err = c.ChangeUser(ctx, "local:uma", httpapi.UserChange{Disabled: &no}); err != nil || u.Disabled {
		t.Errorf("%+v %v", u, err)
	}
	if _, err := c.ChangeUser(ctx, "local:nobody", httpapi.UserChange{}); !errors.Is(err, ringi.ErrNotFound) {
		t.Errorf("nobody: %v", err)
	}
	if err := c.RemoveTeam(ctx, "night"); err != nil {
		t.Error(err)
	}
	if err := c.RemoveTeam(ctx, "night"); !errors.Is(err, ringi.ErrNotFound) {
		t.Errorf("a team twice: %v", err)
	}
}

// A token is shown once: its secret is kept for no Idempotency-Key, it works at
// once, and no longer once it is revoked; a disabled user's do not either.
func TestS28_TokensAreShownOnce(t *testing.T) {
	w := newWorld(t, setting{idle: true})
	body := `{"kind":"agent","name":"new","owner":"local:uma","agents":["shop"],"scopes":["read","run"],"seconds":60}`
	first := w.do("ada", "POST", "/v1/tokens", body, "Idempotency-Key", "k1")
	var made struct {
		ID, Secret string
		EndsAt     time.Time `json:"ends_at"`
	}
	first.into(t, &made)
	if first.status != 201 || made.Secret == "" || time.Until(made.EndsAt) > time.Minute {
		t.Fatalf("%d %s", first.status, first.body)
	}
	if got := w.do("ada", "POST", "/v1/tokens", body, "Idempotency-Key", "k1"); got.status != 409 || strings.Contains(got.body, made.Secret) {
		t.Errorf("a repeat: %d %s", got.status, got.body)
	}
	w.token["new"] = made.Secret
	var me struct {
		ID, Kind, Owner string
		Token           struct{ ID string }
		May             []string
	}
	w.do("new", "GET", "/v1/me", "").into(t, &me)
	if me.ID != "client:new" || me.Kind != "service" || me.Owner != "local:uma" || me.Token.ID != made.ID ||
		slices.Contains(me.May, "approvals.decide") || !slices.Contains(me.May, "runs.start") {
		t.Errorf("%+v", me)
	}
	if list := w.do("ada", "GET", "/v1/tokens", ""); strings.Contains(list.body, made.Secret) || !strings.Contains(list.body, made.ID) {
		t.Errorf("%s", list.body)
	}
	for _, id := range []string{made.ID, made.ID} { // twice is no error
		if got := w.do("ada", "POST", "/v1/tokens/"+id+"/revoke", ""); got.status != 200 {
			t.Errorf("revoke: %d %s", got.status, got.body)
		}
	}
	if got := w.do("new", "GET", "/v1/me", ""); got.status != 401 {
		t.Errorf("a revoked token: %d %s", got.status, got.body)
	}
	if got := w.do("ada", "POST", "/v1/users/local:uma/disable", ""); got.status != 200 || !strings.Contains(got.body, `"disabled":true`) {
		t.Errorf("disable: %d %s", got.status, got.body)
	}
	if got := w.do("uma", "GET", "/v1/me", ""); got.status != 401 {
		t.Errorf("a disabled user's token: %d %s", got.status, got.body)
	}
}

// A masked value is shown to who decides, after it is written down who saw it;
// where that cannot be, nothing is shown.
func TestF151_RevealIsRecorded(t *testing.T) {
	w := newWorld(t, setting{})
	r := w.start("uma", "shop", "refund 5")
	path := "/v1/approvals/" + r.Pending[0].ID + "/reveal"
	for _, who := range []string{"uma", "ada", "aud", "bot"} {
		if got := w.do(who, "POST", path, `{}`); got.status < 403 || strings.Contains(got.body, "PIN-5") {
			t.Errorf("%s: %d %s", who, got.status, got.body)
		}
	}
	if got := w.do("ben", "POST", path, `{"places":["/amount"]}`); got.status != 422 {
		t.Errorf("a place that is not masked: %d %s", got.status, got.body)
	}
	var one struct {
		Values []struct{ Place, Value string }
		Input  string
	}
	w.do("ben", "POST", path, `{"places":["/pin"]}`).into(t, &one)
	if len(one.Values) != 1 || one.Values[0].Place != "/pin" || one.Values[0].Value != `"PIN-5-secret"` || one.Input != "" {
		t.Errorf("%+v", one)
	}
	all := w.do("bea", "POST", path, `{}`, "Idempotency-Key", "k")
	all.into(t, &one)
	if one.Input != `{"amount":5,"pin":"PIN-5-secret"}` {
		t.Errorf("%+v", one)
	}
	if again := w.do("bea", "POST", path, `{}`, "Idempotency-Key", "k"); again.status != 409 {
		t.Errorf("a kept secret: %d %s", again.status, again.body)
	}
	changes, err := w.dir.Changes(t.Context(), operator, "", 1000)
	w.must(err)
	var seen []string
	for _, c := range changes {
		if c.What == "request.revealed" {
			seen = append(seen, c.By+" "+c.Target+" "+c.Detail)
		}
		b, _ := json.Marshal(c)
		if strings.Contains(string(b), "PIN-5") {
			t.Errorf("the value is in %s", b)
		}
	}
	if want := []string{"local:ben " + r.Pending[0].ID + " /pin", "local:bea " + r.Pending[0].ID + " /pin"}; !slices.Equal(seen, want) {
		t.Errorf("recorded %q, want %q", seen, want)
	}
	q := w.asked("ben", r)
	if _, err := w.db.Exec(`DROP TABLE changes`); err != nil {
		t.Fatal(err)
	}
	if got := w.do("ben", "POST", "/v1/approvals/"+q.ID+"/reveal", `{}`); got.status != 503 || strings.Contains(got.body, "PIN-5") {
		t.Errorf("where it cannot be recorded: %d %s", got.status, got.body)
	}
}

// Who decides sees who else looks; who waits sees nobody.
func TestPresence(t *testing.T) {
	w := newWorld(t, setting{})
	r := w.start("uma", "shop", "refund 5")
	path := "/v1/approvals/" + r.Pending[0].ID + "/presence"
	looking := func(who string) (names []string) {
		var out struct{ Looking []struct{ User, Name string } }
		got := w.do(who, "POST", path, "")
		if got.status != 200 {
			t.Fatalf("%s: %d %s", who, got.status, got.body)
		}
		got.into(t, &out)
		for _, l := range out.Looking {
			names = append(names, l.User)
		}
		return names
	}
	if got := looking("ben"); len(got) != 0 {
		t.Errorf("ben sees %q", got)
	}
	if got := looking("bea"); !slices.Equal(got, []string{"local:ben"}) {
		t.Errorf("bea sees %q", got)
	}
	if got := looking("uma"); len(got) != 0 {
		t.Errorf("who waits sees %q", got)
	}
	if got := w.do("bot", "POST", path, ""); got.status != 404 {
		t.Errorf("another client: %d %s", got.status, got.body)
	}
	mine := w.start("bot", "shop", "refund 5")
	if got := w.do("bot", "POST", "/v1/approvals/"+mine.Pending[0].ID+"/presence", ""); got.status != 403 {
		t.Errorf("a program looks: %d %s", got.status, got.body)
	}
}

// The filters of a list tell nobody what he does not see.
func TestS21_FiltersOfTheList(t *testing.T) {
	w := newWorld(t, setting{})
	first, second := w.start("uma", "shop", "refund 5"), w.start("uma", "shop", "teamwork 6")
	third := w.start("bot", "shop", "refund 7")
	ids := map[string]string{first.Pending[0].ID: "1", second.Pending[0].ID: "2", third.Pending[0].ID: "3"}
	for _, c := range []struct{ who, query, want string }{
		{"ben", "q=REFUND", "13"}, {"ben", "q=refund+shop", "13"}, {"ben", "q=nowhere", ""}, {"ben", "tool=teamwork", "2"},
		{"ben", "order=newest", "321"}, {"ben", "order=soonest", "123"}, {"ben", "initiator=local:uma", "12"}, {"ben", "initiator=client:bot", "3"},
		{"ben", "for=local:bea", "13"}, {"ben", "for=local:bea&for_team=money", "123"}, {"ben", "kind=input", ""}, {"ben", "kind=approval", "123"},
		{"ben", "agent=other", ""}, {"ben", "order=newest&limit=1", "321"},
		{"ben", "order=riskiest", "123"}, {"ben", "risk=low", ""}, {"ben", "risk=medium", "123"}, {"uma", "risk=medium", ""}, {"uma", "order=riskiest", "12"},
		{"ben", "q=pin-5-secret", ""},
		{"uma", "q=refund", "1"}, {"uma", "initiator=local:uma", "12"}, {"uma", "initiator=client:bot", ""}, {"uma", "for_team=money", ""},
	} {
		got, cursor := "", ""
		for {
			var page struct {
				Requests []request
				Next     string
			}
			r := w.do(c.who, "GET", "/v1/approvals?"+c.query+cursor, "")
			r.into(t, &page)
			if r.status != 200 {
				t.Fatalf("%s: %d %s", c.query, r.status, r.body)
			}
			for _, q := range page.Requests {
				got += ids[q.ID]
			}
			if page.Next == "" {
				break
			}
			if other := w.do(c.who, "GET", "/v1/approvals?order=soonest&tool=refund&cursor="+page.Next, ""); other.status != 400 {
				t.Errorf("the cursor of another list: %d", other.status)
			}
			cursor = "&cursor=" + page.Next
		}
		if got != c.want {
			t.Errorf("%s %s gives %q, want %q", c.who, c.query, got, c.want)
		}
	}
	for _, bad := range []string{"order=random", "risk=none", "kind=x", "q=" + strings.Repeat("x", 201)} {
		if got := w.do("ben", "GET", "/v1/approvals?"+bad, ""); got.status != 422 {
			t.Errorf("%s: %d %s", bad, got.status, got.body)
		}
	}
}
