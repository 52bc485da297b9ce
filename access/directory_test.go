package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/sqltable"
)

func TestUsers(t *testing.T) {
	h := newHouse(t, Options{})
	for _, team := range []string{"refunds", "ops"} {
		if err := h.AddTeam(ctx, operator, team, "The "+team); err != nil {
			t.Fatal(err)
		}
	}
	ana := User{ID: LocalID("ana"), Name: "Ana", Roles: []Role{RoleAdmin, RoleApprover, RoleApprover}, Teams: []string{"refunds", "ops", "ops"}}
	if err := h.AddUser(ctx, operator, ana); err != nil {
		t.Fatal(err)
	}
	got, err := h.User(ctx, ana.ID)
	want := User{ID: "local:ana", Name: "Ana", Roles: []Role{RoleApprover, RoleAdmin}, Teams: []string{"ops", "refunds"}, CreatedAt: h.clock.now()}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("user %+v, %v; want %+v", got, err, want)
	}
	if err := h.AddUser(ctx, operator, ana); !errors.Is(err, ErrExists) {
		t.Errorf("added twice: %v", err)
	}
	h.add(t, "ben", RoleUser)
	for name, c := range map[string]struct {
		by   Who
		u    User
		want error
	}{
		"by a user":      {person("local:ben", RoleUser, RoleApprover, RoleAuditor), User{ID: "local:x", Name: "x"}, ErrForbidden},
		"by nobody":      {Who{Space: "default"}, User{ID: "local:x", Name: "x"}, ringi.ErrNoPrincipal},
		"other space":    {Operator("os:1@x", "blue"), User{ID: "local:x", Name: "x"}, ErrForbidden},
		"no issuer":      {operator, User{ID: "x", Name: "x"}, ErrInvalid},
		"blank in id":    {operator, User{ID: "local:a b", Name: "x"}, ErrInvalid},
		"control in id":  {operator, User{ID: "local:a\u202eb", Name: "x"}, ErrInvalid},
		"a client's id":  {operator, User{ID: "client:shop", Name: "x"}, ErrInvalid},
		"an operator":    {operator, User{ID: "os:1000@test", Name: "x"}, ErrInvalid},
		"no name":        {operator, User{ID: "local:x", Name: " "}, ErrInvalid},
		"agent's role":   {operator, User{ID: "local:x", Name: "x", Roles: []Role{RoleAgent}}, ErrInvalid},
		"unknown role":   {operator, User{ID: "local:x", Name: "x", Roles: []Role{"root"}}, ErrInvalid},
		"unknown team":   {operator, User{ID: "local:x", Name: "x", Teams: []string{"none"}}, ErrInvalid},
		"too long an id": {operator, User{ID: "local:" + strings.Repeat("x", 250), Name: "x"}, ErrInvalid},
	} {
		if err := h.AddUser(ctx, c.by, c.u); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if n := h.count(t, "users"); n != 2 {
		t.Errorf("%d users: a refused one is there", n)
	}
	if err := h.SetUser(ctx, operator, User{ID: "local:zoe", Name: "Zoe"}); !errors.Is(err, ErrHidden) {
		t.Errorf("set an unknown user: %v", err)
	}
	list, err := h.Users(ctx, operator, "", 1)
	if err != nil || len(list) != 1 || list[0].ID != ana.ID {
		t.Errorf("first page %v, %v", list, err)
	}
	if list, err = h.Users(ctx, operator, ana.ID, 0); err != nil || len(list) != 1 || list[0].ID != "local:ben" {
		t.Errorf("second page %v, %v", list, err)
	}
}

func TestTeams(t *testing.T) {
	h := newHouse(t, Options{})
	admin := person("local:root", RoleAdmin)
	for _, err := range []error{h.AddTeam(ctx, admin, "ops", "Operations"), h.AddTeam(ctx, admin, "refunds", "Refunds")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, u := range []User{
		{ID: "local:ana", Name: "Ana", Teams: []string{"ops", "refunds"}}, {ID: "local:ben", Name: "Ben", Teams: []string{"refunds"}},
		{ID: "local:gone", Name: "Gone", Teams: []string{"refunds"}, Disabled: true},
	} {
		if err := h.AddUser(ctx, admin, u); err != nil {
			t.Fatal(err)
		}
	}
	got, err := h.Teams(ctx)
	want := []Team{{"ops", "Operations", []string{"local:ana"}}, {"refunds", "Refunds", []string{"local:ana", "local:ben"}}}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("teams %v, %v; want %v", got, err, want)
	}
	for name, c := range map[string]struct{ got, want error }{
		"twice":          {h.AddTeam(ctx, admin, "ops", "Again"), ErrExists},
		"no word":        {h.AddTeam(ctx, admin, "o ps", "Again"), ErrInvalid},
		"no name":        {h.AddTeam(ctx, admin, "new", ""), ErrInvalid},
		"by a user":      {h.AddTeam(ctx, person("local:u", RoleUser), "new", "New"), ErrForbidden},
		"remove unknown": {h.RemoveTeam(ctx, admin, "none"), ErrHidden},
		"user removes":   {h.RemoveTeam(ctx, person("local:u", RoleUser), "ops"), ErrForbidden},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	if err := h.RemoveTeam(ctx, admin, "refunds"); err != nil {
		t.Fatal(err)
	}
	if u, err := h.User(ctx, "local:ben"); err != nil || len(u.Teams) != 0 {
		t.Errorf("ben is in %v, %v", u.Teams, err)
	}
}

func TestLastAdminStays(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleAdmin)
	h.add(t, "ben", RoleAdmin)
	set := func(id string, u User) error {
		u.ID, u.Name = id, "x"
		return h.SetUser(ctx, operator, u)
	}
	if err := set("local:ana", User{Roles: []Role{RoleUser}}); err != nil {
		t.Fatal(err)
	}
	for name, u := range map[string]User{"demoted": {Roles: []Role{RoleUser}}, "disabled": {Roles: []Role{RoleAdmin}, Disabled: true}} {
		if err := set("local:ben", u); !errors.Is(err, ErrLastAdmin) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if u, err := h.User(ctx, "local:ben"); err != nil || u.Disabled || !slices.Contains(u.Roles, RoleAdmin) {
		t.Errorf("ben is %+v, %v", u, err)
	}
}

// A house that never had an admin can be changed by its operator.
func TestNoAdminYet(t *testing.T) {
	h := newHouse(t, Options{})
	u := h.add(t, "ana", RoleUser)
	u.Roles = []Role{RoleApprover}
	if err := h.SetUser(ctx, operator, u); err != nil {
		t.Error(err)
	}
}

// Two admins at once take the role from each other: one stays.
func TestRaceOfTwoAdmins(t *testing.T) {
	h := newHouse(t, Options{})
	for range 20 {
		for _, word := range []string{"ana", "ben"} {
			u := User{ID: LocalID(word), Name: word, Roles: []Role{RoleAdmin}}
			if err := h.AddUser(ctx, operator, u); errors.Is(err, ErrExists) {
				err = h.SetUser(ctx, operator, u)
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		var left atomic.Int32
		var wg sync.WaitGroup
		for _, word := range []string{"ana", "ben"} {
			wg.Go(func() {
				err := h.SetUser(ctx, operator, User{ID: LocalID(word), Name: word})
				if errors.Is(err, ErrLastAdmin) {
					left.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if left.Load() != 1 {
			t.Fatalf("%d admins stayed", left.Load())
		}
	}
}

// What has ended stays ended when the clock goes back, also after a restart.
func TestS36_ClockGoesBack(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleUser)
	link, _, err := h.MakeLink(ctx, operator, "local:ana")
	if err != nil {
		t.Fatal(err)
	}
	h.clock.move(11 * time.Minute)
	if _, err := h.UseLink(ctx, link, ""); !errors.Is(err, ErrLink) {
		t.Fatalf("a link of eleven minutes: %v", err)
	}
	h.add(t, "ben", RoleUser)
	h.clock.move(-10 * time.Minute)
	if _, err := h.UseLink(ctx, link, ""); !errors.Is(err, ErrLink) {
		t.Errorf("the clock went back: %v", err)
	}
	again, err := Open(ctx, openFile(t, h.path), Options{Now: h.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.UseLink(ctx, link, ""); !errors.Is(err, ErrLink) {
		t.Errorf("the clock went back, and a restart: %v", err)
	}
}

func TestChangesAreNoted(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleAdmin)
	ana, _ := h.enterAs(t, "local:ana")
	tok, secret := h.token(t, ana, NewToken{Kind: PersonToken, Name: "laptop", Scopes: []Scope{ScopeRead, ScopeDecide}})
	if err := h.RevokeToken(ctx, ana, tok.ID); err != nil {
		t.Fatal(err)
	}
	if err := h.EndSession(ctx, ana); err != nil {
		t.Fatal(err)
	}
	list, err := h.Changes(ctx, person("local:audit", RoleAuditor), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range list {
		got = append(got, c.What+" by "+c.By+" "+c.Auth)
		if strings.Contains(fmt.Sprint(c), secret) {
			t.Errorf("a change holds the secret: %v", c)
		}
		if !c.At.Equal(h.clock.now()) {
			t.Errorf("%s at %v", c.What, c.At)
		}
	}
	slices.Sort(got) // ids of one moment have no order
	want := []string{"link.made by os:1000@test operator", "session.ended by local:ana link", "session.started by local:ana link",
		"token.made by local:ana link", "token.revoked by local:ana link", "user.added by os:1000@test operator"}
	if !slices.Equal(got, want) {
		t.Errorf("changes\n%q, want\n%q", got, want)
	}
	if page, err := h.Changes(ctx, operator, list[4].ID, 10); err != nil || len(page) != 1 {
		t.Errorf("last page %v, %v", page, err)
	}
	if _, err := h.Changes(ctx, ana, "", 0); err != nil {
		t.Errorf("an admin reads the changes: %v", err)
	}
	if _, err := h.Changes(ctx, person("local:u", RoleUser, RoleApprover), "", 0); !errors.Is(err, ErrForbidden) {
		t.Errorf("a user reads the changes: %v", err)
	}
}

func TestSpacesDoNotMeet(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleAdmin)
	_, session := h.enterAs(t, "local:ana")
	_, token := h.token(t, operator, NewToken{Kind: AgentToken, Name: "shop", Agents: []string{"*"}, Scopes: []Scope{ScopeRead}})
	blue, err := Open(ctx, h.db, Options{Space: "blue", Now: h.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := blue.BySession(ctx, session); !errors.Is(err, ringi.ErrNoPrincipal) {
		t.Errorf("session in another space: %v", err)
	}
	if _, err := blue.ByToken(ctx, token); !errors.Is(err, ringi.ErrNoPrincipal) {
		t.Errorf("token in another space: %v", err)
	}
	if _, err := blue.User(ctx, "local:ana"); !errors.Is(err, ErrHidden) {
		t.Errorf("user in another space: %v", err)
	}
	w, err := h.BySession(ctx, session)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := blue.Recheck(ctx, w); !errors.Is(err, ringi.ErrNoPrincipal) {
		t.Errorf("recheck in another space: %v", err)
	}
	if _, err := blue.Users(ctx, w, "", 0); !errors.Is(err, ErrForbidden) {
		t.Errorf("an admin of another space: %v", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	db := openFile(t, t.TempDir()+"/x.db")
	for name, o := range map[string]Options{
		"dialect":     {Dialect: "oracle"},
		"space":       {Space: "a b"},
		"age":         {TokenAge: -1},
		"same person": {SamePerson: [][]string{{"ana"}}},
	} {
		if _, err := Open(ctx, db, o); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMigrations(t *testing.T) {
	h := newHouse(t, Options{})
	if steps, err := sqltable.Steps(migrations); err != nil || len(steps) != h.count(t, "access_migrations") {
		t.Errorf("steps %v, %v", steps, err)
	}
	file := &fstest.MapFile{Data: []byte("SELECT 1")}
	for name, files := range map[string]fstest.MapFS{
		"gap":       {"migrations/0001_a.sql": file, "migrations/0003_b.sql": file},
		"no number": {"migrations/a.sql": file},
	} {
		if steps, err := sqltable.Steps(files); err == nil {
			t.Errorf("%s: taken as %v", name, steps)
		}
	}
	if _, err := h.db.Exec(`INSERT INTO access_migrations VALUES (99, '0099_later.sql', 0)`); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(ctx, h.db, Options{}); err == nil || !strings.Contains(err.Error(), "version 99") {
		t.Errorf("a newer schema was opened: %v", err)
	}
}

// A statement of the schema that fails leaves nothing of the others.
func TestMigrationIsOneTransaction(t *testing.T) {
	h := newHouse(t, Options{})
	steps, err := sqltable.Steps(migrations)
	if err != nil {
		t.Fatal(err)
	}
	err = h.change(ctx, func(tx *tx) error {
		s := sqltable.Schema{Table: "access_migrations", Steps: append(steps,
			sqltable.Step{Version: len(steps) + 1, Name: "bad.sql", SQL: "CREATE TABLE half (x TEXT);\nnonsense;\n"})}
		return s.Apply(tx.ctx, tx.Tx, SQLite, time.UnixMicro(tx.now))
	})
	if err == nil || !strings.Contains(err.Error(), "bad.sql") {
		t.Errorf("the error is %v", err)
	}
	var n int
	if err := h.db.QueryRow(`SELECT count(*) FROM sqlite_schema WHERE name = 'half'`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d tables are left, %v", n, err)
	}
}

func TestOpenAtOnce(t *testing.T) {
	path := t.TempDir() + "/access.db"
	var wg sync.WaitGroup
	for range 8 {
		db := openFile(t, path)
		wg.Go(func() {
			if _, err := Open(ctx, db, Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestPlaceholders(t *testing.T) {
	d := &Directory{o: Options{Dialect: PostgreSQL}}
	if got := d.bind(`a = ? AND b = ? OR ? = ''`); got != `a = $1 AND b = $2 OR $3 = ''` {
		t.Errorf("%s", got)
	}
	d.o.Dialect = SQLite
	if got := d.bind(`a = ?`); got != `a = ?` {
		t.Errorf("%s", got)
	}
}

// A database that does not answer is an error of its own, and refuses.
func TestDatabaseIsGone(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleUser)
	w, session := h.enterAs(t, "local:ana")
	_, token := h.token(t, operator, NewToken{Kind: AgentToken, Name: "shop", Agents: []string{"*"}, Scopes: []Scope{ScopeRead}})
	if err := h.db.Close(); err != nil {
		t.Fatal(err)
	}
	_, bySession := h.BySession(ctx, session)
	_, byToken := h.ByToken(ctx, token)
	_, recheck := h.Recheck(ctx, w)
	for name, err := range map[string]error{"session": bySession, "token": byToken, "recheck": recheck} {
		if err == nil || errors.Is(err, ringi.ErrNoPrincipal) || Status(err) != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := h.EndSession(ctx, w); !errors.Is(err, ringi.ErrNotRecorded) {
		t.Errorf("end session: %v", err)
	}
}

// S-26: whoever copies the database has nothing that logs in.
func TestS26_DumpLogsNobodyIn(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleUser, RoleApprover, RoleAdmin)
	ana, session := h.enterAs(t, "local:ana")
	_, token := h.token(t, ana, NewToken{Kind: PersonToken, Name: "laptop", Scopes: Scopes()})
	link, _, err := h.MakeLink(ctx, operator, "local:ana")
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{session, token, link, ana.CSRF(), strings.Split(token, "_")[2]}
	try, err := h.Begin(ctx, ana, Call{Route: TokensMake, Owner: Own, Method: "POST", Path: "/v1/tokens", Key: "k", Body: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	if err := try.Finish(ctx, Answer{Status: 201, Body: []byte(token), Secret: true}); err != nil {
		t.Fatal(err)
	}
	if err := h.Tend(ctx); err != nil {
		t.Fatal(err)
	}
	values := dump(t, h.db)
	if len(values) < 60 {
		t.Fatalf("only %d values were dumped", len(values))
	}
	for _, v := range values {
		for _, s := range secrets {
			if strings.Contains(v, s) {
				t.Errorf("the dump holds a secret: %q", v)
			}
		}
		if _, err := h.BySession(ctx, v); err == nil {
			t.Errorf("%q is a session", v)
		}
		if _, err := h.UseLink(ctx, v, ""); err == nil {
			t.Errorf("%q is a login link", v)
		}
		for _, tok := range []string{v, tokenMark + v, strings.Replace(token, strings.Split(token, "_")[2], v, 1)} {
			if _, err := h.ByToken(ctx, tok); err == nil {
				t.Errorf("%q is a token", tok)
			}
		}
	}
	// Nor do the files hold them, written or deleted.
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(h.path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range secrets {
			if strings.Contains(string(b), s) {
				t.Errorf("access.db%s holds a secret", suffix)
			}
		}
	}
	// The secrets themselves do.
	if _, err := h.BySession(ctx, session); err != nil {
		t.Error(err)
	}
	if _, err := h.ByToken(ctx, token); err != nil {
		t.Error(err)
	}
}

// dump returns every value of every table as text.
func dump(t *testing.T, db *sql.DB) []string {
	t.Helper()
	var out []string
	tables, err := db.QueryContext(context.Background(), `SELECT name FROM sqlite_schema WHERE type = 'table'`)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for tables.Next() {
		var name string
		if err := tables.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	tables.Close()
	for _, name := range names {
		rows, err := db.Query(`SELECT * FROM "` + name + `"`)
		if err != nil {
			t.Fatal(err)
		}
		cols, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			row, at := make([]string, len(cols)), make([]any, len(cols))
			for i := range row {
				at[i] = &row[i]
			}
			if err := rows.Scan(at...); err != nil {
				t.Fatal(err)
			}
			out = append(out, row...)
		}
		rows.Close()
	}
	return out
}
