package access

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// S-10: of any number of uses of one login link at once, one works.
func TestS10_LoginLinkWorksOnce(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleUser)
	link, _, err := h.MakeLink(ctx, operator, "local:ana")
	if err != nil {
		t.Fatal(err)
	}
	// Half of them in another process, as it were.
	other, err := Open(ctx, openFile(t, h.path), Options{Now: h.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	var worked, refused atomic.Int32
	var wg sync.WaitGroup
	for i := range 100 {
		d := h.Directory
		if i%2 == 1 {
			d = other
		}
		wg.Go(func() {
			switch _, err := d.UseLink(ctx, link, ""); {
			case err == nil:
				worked.Add(1)
			case errors.Is(err, ErrLink):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if worked.Load() != 1 || refused.Load() != 99 || h.count(t, "sessions") != 1 {
		t.Errorf("%d worked, %d were refused, %d sessions", worked.Load(), refused.Load(), h.count(t, "sessions"))
	}
}

func TestS10_LoginLinkEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		at   time.Duration
		good bool
	}{{"-1", 10*time.Minute - time.Microsecond, true}, {"0", 10 * time.Minute, false}, {"+1", 10*time.Minute + time.Microsecond, false}} {
		h := newHouse(t, Options{})
		h.add(t, "ana", RoleUser)
		link, ends, err := h.MakeLink(ctx, operator, "local:ana")
		if err != nil || !ends.Equal(h.clock.now().Add(10*time.Minute)) {
			t.Fatalf("ends %v, %v", ends, err)
		}
		h.clock.move(c.at)
		if _, err := h.UseLink(ctx, link, ""); (err == nil) != c.good || err != nil && !errors.Is(err, ErrLink) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestWhoMakesLinks(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "root", RoleAdmin)
	root, _ := h.enterAs(t, "local:root")
	_, secret := h.token(t, root, NewToken{Kind: PersonToken, Name: "ci", Scopes: []Scope{ScopeManage}})
	ci, err := h.ByToken(ctx, secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := May(ci, UsersManage, All); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		by   Who
		user string
		want error
	}{
		"admin":        {root, "local:root", nil},
		"token":        {ci, "local:root", ErrForbidden},
		"user":         {person("local:u", RoleUser, RoleApprover, RoleAuditor), "local:u", ErrForbidden},
		"unknown user": {root, "local:none", ErrHidden},
	} {
		if _, _, err := h.MakeLink(ctx, c.by, c.user); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	for _, bad := range []string{"", "x", newSecret(), secret} {
		if _, err := h.UseLink(ctx, bad, ""); !errors.Is(err, ErrLink) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestS26_SessionsEnd(t *testing.T) {
	idle, age := 12*time.Hour, 30*24*time.Hour
	for _, c := range []struct {
		name  string
		steps []time.Duration // the session is used after each but the last
		good  bool
	}{
		{"idle -1", []time.Duration{idle - time.Microsecond}, true},
		{"idle 0", []time.Duration{idle}, false},
		{"idle +1", []time.Duration{idle + time.Microsecond}, false},
		{"used in between", []time.Duration{idle - 1, idle - time.Microsecond}, true},
		{"used in between, then idle", []time.Duration{idle - time.Hour, idle}, false},
		{"old -1", append(repeat(71, 10*time.Hour), age-710*time.Hour-time.Microsecond), true},
		{"old 0", append(repeat(71, 10*time.Hour), age-710*time.Hour), false},
	} {
		for _, tended := range []bool{false, true} {
			h := newHouse(t, Options{})
			h.add(t, "ana", RoleUser)
			_, session := h.enterAs(t, "local:ana")
			var err error
			for _, step := range c.steps {
				h.clock.move(step)
				if tended {
					if err := h.Tend(ctx); err != nil {
						t.Fatal(err)
					}
				}
				_, err = h.BySession(ctx, session)
			}
			if (err == nil) != c.good || err != nil && !errors.Is(err, ringi.ErrNoPrincipal) {
				t.Errorf("%s, tended %v: %v", c.name, tended, err)
			}
		}
	}
}

func repeat(n int, d time.Duration) []time.Duration {
	out := make([]time.Duration, n)
	for i := range out {
		out[i] = d
	}
	return out
}

// S-32: who only reads changes no row; Tend writes the last use.
func TestS32_ReadingChangesNoRow(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleUser)
	_, session := h.enterAs(t, "local:ana")
	tok, secret := h.token(t, operator, NewToken{Kind: AgentToken, Name: "shop", Agents: []string{"*"}, Scopes: []Scope{ScopeRead}})
	seenAt := func() (session, token int64) {
		if err := h.db.QueryRow(`SELECT seen_at, (SELECT used_at FROM tokens) FROM sessions`).Scan(&session, &token); err != nil {
			t.Fatal(err)
		}
		return session, token
	}
	began, _ := seenAt()
	h.clock.move(11 * time.Hour)
	for range 3 {
		if _, err := h.BySession(ctx, session); err != nil {
			t.Fatal(err)
		}
		if _, err := h.ByToken(ctx, secret); err != nil {
			t.Fatal(err)
		}
	}
	if s, k := seenAt(); s != began || k != 0 {
		t.Errorf("seen at %d, used at %d", s, k)
	}
	if err := h.Tend(ctx); err != nil {
		t.Fatal(err)
	}
	now := h.clock.now()
	if s, k := seenAt(); s != now.UnixMicro() || k != now.UnixMicro() {
		t.Errorf("seen at %d, used at %d after tending", s, k)
	}
	if list, err := h.Tokens(ctx, operator, "", "", 0); err != nil || list[0].ID != tok.ID || !list[0].UsedAt.Equal(now) {
		t.Errorf("token %+v, %v", list, err)
	}
	// Another process goes on from what was written.
	other, err := Open(ctx, openFile(t, h.path), Options{Now: h.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	h.clock.move(11 * time.Hour)
	if _, err := other.BySession(ctx, session); err != nil {
		t.Error(err)
	}
}

// What Tend could not write it keeps for the next time.
func TestTendFails(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleUser)
	_, session := h.enterAs(t, "local:ana")
	h.clock.move(11 * time.Hour)
	if _, err := h.BySession(ctx, session); err != nil {
		t.Fatal(err)
	}
	if _, err := h.db.Exec(`ALTER TABLE presence RENAME TO elsewhere`); err != nil {
		t.Fatal(err)
	}
	if err := h.Tend(ctx); !errors.Is(err, ringi.ErrNotRecorded) {
		t.Fatalf("tend: %v", err)
	}
	h.clock.move(11 * time.Hour)
	if _, err := h.BySession(ctx, session); err != nil {
		t.Errorf("the use is forgotten: %v", err)
	}
}

func TestTendDeletesWhatHasEnded(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleUser, RoleApprover)
	w, _ := h.enterAs(t, "local:ana")
	if _, _, err := h.MakeLink(ctx, operator, "local:ana"); err != nil {
		t.Fatal(err)
	}
	if err := h.Look(ctx, w, "req_1"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Begin(ctx, w, Call{Route: RunsStart, Owner: Own, Method: "POST", Path: "/v1/runs", Key: "k"}); err != nil {
		t.Fatal(err)
	}
	tables := []string{"sessions", "links", "answers", "presence"}
	h.clock.move(24*time.Hour - time.Microsecond)
	if err := h.Tend(ctx); err != nil || h.count(t, "answers") != 1 || h.count(t, "sessions") != 0 {
		t.Errorf("%v: %d answers, %d sessions", err, h.count(t, "answers"), h.count(t, "sessions"))
	}
	h.clock.move(time.Microsecond)
	if err := h.Tend(ctx); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if n := h.count(t, table); n != 0 {
			t.Errorf("%d rows in %s", n, table)
		}
	}
}

func TestEndSessions(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleUser)
	first, one := h.enterAs(t, "local:ana")
	_, two := h.enterAs(t, "local:ana")
	if err := h.EndSession(ctx, first); err != nil {
		t.Fatal(err)
	}
	if _, err := h.BySession(ctx, one); !errors.Is(err, ringi.ErrNoPrincipal) {
		t.Errorf("logged out: %v", err)
	}
	second, err := h.BySession(ctx, two)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.EndSessions(ctx, person("local:eve", RoleUser), "local:ana"); !errors.Is(err, ErrForbidden) {
		t.Errorf("another's: %v", err)
	}
	_, secret := h.token(t, second, NewToken{Kind: PersonToken, Name: "x", Scopes: []Scope{ScopeRead}})
	byToken, err := h.ByToken(ctx, secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.EndSessions(ctx, byToken, "local:ana"); !errors.Is(err, ErrForbidden) {
		t.Errorf("by a token: %v", err)
	}
	if err := h.EndSessions(ctx, second, "local:ana"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.BySession(ctx, two); !errors.Is(err, ringi.ErrNoPrincipal) {
		t.Errorf("all ended: %v", err)
	}
	if err := h.EndSession(ctx, operator); err != nil {
		t.Errorf("no session: %v", err)
	}
}

// Somebody disables a user while he logs in: no session is left over.
func TestRaceOfLoginAndDisabling(t *testing.T) {
	h := newHouse(t, Options{})
	u := h.add(t, "ana", RoleUser)
	for range 20 {
		u.Disabled = false
		if err := h.SetUser(ctx, operator, u); err != nil {
			t.Fatal(err)
		}
		link, _, err := h.MakeLink(ctx, operator, u.ID)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := h.UseLink(ctx, link, ""); err != nil && !errors.Is(err, ErrLink) && !errors.Is(err, ringi.ErrNoPrincipal) {
				t.Error(err)
			}
		})
		u.Disabled = true
		if err := h.SetUser(ctx, operator, u); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if n := h.count(t, "sessions"); n != 0 {
			t.Fatalf("%d sessions of a disabled user", n)
		}
	}
}
