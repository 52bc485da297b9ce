package notify

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// One notice a run, and a further one when something new needs them.
func TestF153_OneNoticeARun(t *testing.T) {
	h := newHouse(t, nil,
		ringitest.Calls(ringitest.Call("pay", `{"n":1}`), ringitest.Call("pay", `{"n":2}`), ringitest.Call("pay", `{"n":3}`)),
		ringitest.Calls(ringitest.Call("pay", `{"n":4}`)), ringitest.Text("done"))
	h.add("ana", Settings{})
	h.add("ben", Settings{})
	res := h.asks("local:cho")
	h.step()
	for _, n := range h.got("ana", "ben") {
		if n.Waiting != 3 || n.Kind != Asked || n.Agent != "office" || n.Risk != RiskOnce || n.Link != "https://ringi.example.org/run/"+res.RunID ||
			n.Expires.IsZero() || n.Title() != "3 requests need your decision" {
			t.Errorf("notice %+v", n)
		}
	}
	h.step()
	h.got()
	for _, r := range res.Pending {
		h.approve(r, "local:ana")
		h.step()
		h.got()
	}
	if _, err := h.engine.Resume(t.Context(), res.RunID); err != nil {
		t.Fatal(err)
	}
	h.step()
	list := h.got("ana", "ben")
	if n := list[0]; n.Waiting != 1 || !strings.HasPrefix(n.Link, "https://ringi.example.org/a/req_") {
		t.Errorf("second notice %+v", n)
	}
	h.restart()
	h.step()
	h.got()
}

// A hundred runs at once are a hundred notices to who wants each, and one to who
// wants a digest.
func TestF153_DigestOfManyRuns(t *testing.T) {
	h := newHouse(t, nil)
	h.add("ana", Settings{Digest: Every, Minutes: 10})
	h.add("ben", Settings{Digest: Daily, At: minuteOf(h.clock.Now().Add(2 * time.Hour))})
	for range 30 {
		h.asks("local:cho")
	}
	h.step()
	h.got()
	h.clock.on(11 * time.Minute)
	h.step()
	if n := h.got("ana")[0]; n.Waiting != 30 || n.Link != "https://ringi.example.org/" || n.Title() != "30 requests need your decision" {
		t.Errorf("digest %+v", n)
	}
	h.clock.on(2 * time.Hour)
	h.step()
	if n := h.got("ben")[0]; n.Waiting != 30 {
		t.Errorf("daily digest %+v", n)
	}
	h.clock.on(24 * time.Hour)
	h.step()
	h.got()
}

func minuteOf(t time.Time) int { return t.UTC().Hour()*60 + t.UTC().Minute() }

func TestQuietHours(t *testing.T) {
	for _, c := range []struct {
		name   string
		expiry time.Duration
		now    bool
	}{{"waits for the morning", 48 * time.Hour, false}, {"expires in them", 90 * time.Minute, true}} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t, func(cfg *engine.Config, _ *Options) { cfg.Expiry = c.expiry })
			now := minuteOf(h.clock.Now())
			h.add("ana", Settings{QuietFrom: (now + day - 60) % day, QuietTo: (now + 120) % day})
			h.add("ben", Settings{QuietFrom: (now + 60) % day, QuietTo: (now + 120) % day})
			h.asks("local:cho")
			h.step()
			if c.now {
				h.got("ana", "ben")
				return
			}
			h.got("ben")
			h.clock.on(time.Hour)
			h.step()
			h.got()
			h.clock.on(time.Hour)
			h.step()
			h.got("ana")
		})
	}
}

// New settings count for what is owed already.
func TestSettingsCountForWhatIsOwed(t *testing.T) {
	h := newHouse(t, nil)
	ana := h.add("ana", Settings{Digest: Every, Minutes: 600})
	h.asks("local:cho")
	h.step()
	h.got()
	h.set(ana, Settings{Topic: "topic-of-ana"})
	h.step()
	h.got("ana")
}

func TestWhoIsTold(t *testing.T) {
	admin := func(u *access.User) { u.Roles = append(u.Roles, access.RoleAdmin) }
	fill := func(h *house) {
		h.add("ana", Settings{}, in("refunds"))
		h.add("ben", Settings{}, in("refunds", "leads"))
		h.add("cho", Settings{}, admin)
		h.add("dan", Settings{}, func(u *access.User) { u.Disabled = true })
		h.add("eve", Settings{}, func(u *access.User) { u.Roles = []access.Role{access.RoleUser, access.RoleAuditor} })
	}
	for _, c := range []struct {
		name string
		cfg  func(*engine.Config, *Options)
		want []string
	}{
		{"nobody is named", nil, []string{"ana", "ben", "cho"}},
		{"a team", func(c *engine.Config, _ *Options) { c.Deciders.Teams = []string{"refunds"} }, []string{"ana", "ben"}},
		{"a person and a team", func(c *engine.Config, _ *Options) {
			c.Deciders = ringi.Deciders{People: []string{"local:cho"}, Teams: []string{"leads"}}
		}, []string{"ben", "cho"}},
		{"a disabled person", func(c *engine.Config, _ *Options) { c.Deciders.People = []string{"local:dan"} }, nil},
		{"one who is no approver", func(c *engine.Config, _ *Options) { c.Deciders.People = []string{"local:eve"} }, nil},
		{"four eyes", func(c *engine.Config, _ *Options) { c.FourEyes = engine.FourEyesAll }, []string{"ben", "cho"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t, c.cfg)
			fill(h)
			h.asks("local:ana")
			h.step()
			h.got(c.want...)
			if c.want == nil && !strings.Contains(h.logged.String(), "nobody can be told") {
				t.Errorf("an operator is not told: %s", h.logged)
			}
		})
	}
}

// Who was disabled, or has left the approvers, since he was owed a notice gets
// none.
func TestNobodyElseIsTold(t *testing.T) {
	h := newHouse(t, nil)
	ana := h.add("ana", Settings{Digest: Every, Minutes: 5})
	h.asks("local:cho")
	h.step()
	if err := h.people.SetUser(t.Context(), operator, access.User{ID: ana, Name: "Ana", Roles: []access.Role{access.RoleApprover}, Disabled: true}); err != nil {
		t.Fatal(err)
	}
	h.d.asOf = time.Time{}
	h.clock.on(time.Hour)
	h.step()
	h.got()
}

// What was decided before the notice goes out is not told of.
func TestDecidedMeanwhileIsNotToldOf(t *testing.T) {
	h := newHouse(t, nil)
	h.add("ana", Settings{Digest: Every, Minutes: 5})
	h.add("ben", Settings{})
	first, second := h.asks("local:cho"), h.asks("local:cho")
	h.box.failing(errors.New("down"))
	h.step() // Ben's letters are written, and not sent
	h.box.failing(nil)
	h.approve(first.Pending[0], "local:cho")
	h.clock.on(time.Hour)
	h.step()
	for _, n := range h.got("ana", "ben") {
		if n.Waiting != 1 || !strings.HasSuffix(n.Link, second.Pending[0].ID) {
			t.Errorf("notice %+v", n)
		}
	}
}

// A person's own edit brings him no notice; others, who would approve other
// words than they were told of, get one.
func TestSuccessors(t *testing.T) {
	h := newHouse(t, nil)
	h.add("ana", Settings{})
	h.add("ben", Settings{})
	res := h.asks("local:cho")
	h.step()
	h.got("ana", "ben")
	set, err := h.engine.Decide(t.Context(), res.Pending[0].Edit(ringi.Principal{ID: "local:ana", Kind: ringi.Person, Auth: "test"}, []byte(`{"n":2}`)))
	if err != nil {
		t.Fatal(err)
	}
	h.step()
	h.got("ben")
	if _, err := h.engine.Extend(t.Context(), set.Request.ID, h.clock.Now().Add(time.Hour), ringi.Principal{ID: "local:ana", Kind: ringi.Person, Auth: "test"}, ""); err != nil {
		t.Fatal(err)
	}
	h.step()
	for _, n := range h.box.take() {
		if n.To.User == "local:ana" {
			t.Errorf("Ana is told of what she did: %+v", n)
		}
	}
}

func TestRemindAndHandOver(t *testing.T) {
	h := newHouse(t, func(c *engine.Config, o *Options) {
		c.Deciders.Teams, c.HandOver, c.Expiry = []string{"refunds"}, []string{"leads"}, 10*time.Hour
		o.Escalations = map[string]Escalation{"office": {Share: 50, Then: "leads"}}
	})
	h.add("ana", Settings{}, in("refunds"))
	h.add("ben", Settings{}, in("leads"))
	res := h.asks("local:cho")
	h.step()
	h.got("ana")
	h.clock.on(4*time.Hour + 59*time.Minute)
	h.step()
	h.got()
	h.clock.on(2 * time.Minute)
	h.step()
	if n := h.got("ana")[0]; n.Kind != Reminder || n.Title() != "Reminder: a request still waits for you" || !n.Urgent {
		t.Errorf("reminder %+v", n)
	}
	h.clock.on(2*time.Hour + 50*time.Minute)
	h.step()
	h.got()
	h.clock.on(10 * time.Minute) // 80 percent
	h.step()                     // hands over
	h.step()                     // finds the successor
	n := h.got("ben")[0]         // and does not remind Ana, whose it is no more
	if n.Kind != Asked || strings.HasSuffix(n.Link, res.Pending[0].ID) {
		t.Errorf("notice %+v", n)
	}
	next, err := h.engine.Request(t.Context(), strings.TrimPrefix(n.Link, "https://ringi.example.org/a/"))
	if err != nil || next.Replaces != res.Pending[0].ID || len(next.Deciders.Teams) != 1 || next.Deciders.Teams[0] != "leads" || !next.ExpiresAt.Equal(res.Pending[0].ExpiresAt) {
		t.Fatalf("successor %+v %v", next, err)
	}
	events, err := h.engine.Events(t.Context(), res.RunID, 0)
	if err != nil {
		t.Fatal(err)
	}
	recorded := false
	for _, e := range events {
		if c, ok := e.Body.(*ringi.RequestClosed); ok {
			recorded = recorded || c.By.ID == System.ID && c.By.Kind == ringi.Process && strings.Contains(c.Why, "nobody decided in time")
		}
	}
	if !recorded {
		t.Error("the log does not tell who handed over")
	}
	h.approve(next, "local:ben", "leads")
	if res, err := h.engine.Resume(t.Context(), res.RunID); err != nil || res.Status != ringi.Completed {
		t.Errorf("run after the hand-over: %+v %v", res, err)
	}
	h.clock.on(3 * time.Hour)
	h.step()
	h.got()
}

// A hand-over that the rule forbids is said once, and not tried for ever.
func TestHandOverThatIsRefused(t *testing.T) {
	h := newHouse(t, func(c *engine.Config, o *Options) {
		c.Deciders.Teams = []string{"refunds"}
		o.Escalations = map[string]Escalation{"office": {After: time.Hour, Then: "leads"}}
	})
	h.add("ana", Settings{}, in("refunds"))
	h.add("ben", Settings{}, in("leads"))
	res := h.asks("local:cho")
	h.step()
	h.clock.on(3 * time.Hour)
	for range 5 {
		h.step()
	}
	if n := strings.Count(h.logged.String(), "hand request over"); n != 1 {
		t.Errorf("said %d times: %s", n, h.logged)
	}
	if r, err := h.engine.Request(t.Context(), res.Pending[0].ID); err != nil || r.State != ringi.Pending {
		t.Errorf("request is %s, %v", r.State, err)
	}
}

// A team of nobody would leave the request to nobody: it stays where it is.
func TestHandOverToNobody(t *testing.T) {
	h := newHouse(t, func(_ *engine.Config, o *Options) {
		o.Escalations = map[string]Escalation{"office": {After: time.Hour, Then: "leads"}}
	})
	h.add("ana", Settings{}, in("refunds"))
	h.add("ben", Settings{}, in("leads"), func(u *access.User) { u.Disabled = true })
	res := h.asks("local:cho")
	for range 4 {
		h.clock.on(time.Hour)
		h.step()
	}
	if r, err := h.engine.Request(t.Context(), res.Pending[0].ID); err != nil || r.State != ringi.Pending || strings.Count(h.logged.String(), "it stays where it is") != 1 {
		t.Errorf("request is %s, %v\n%s", r.State, err, h.logged)
	}
}

// What is handed over is reminded of again, and goes round no further.
func TestHandOverEnds(t *testing.T) {
	h := newHouse(t, func(c *engine.Config, o *Options) {
		c.Expiry = -1 // never
		o.Escalations = map[string]Escalation{"office": {After: time.Minute, Then: "leads"}}
	})
	h.add("ben", Settings{}, in("leads"))
	h.asks("local:cho")
	for range 60 {
		h.step()
		h.clock.on(time.Minute)
	}
	if n := strings.Count(h.logged.String(), "handed request over"); n != 1 {
		t.Errorf("handed over %d times", n)
	}
	if list := h.box.take(); len(list) > 3 {
		t.Errorf("%d notices of one request", len(list))
	}
}

// A process that dies before it sends loses nothing; one that dies before it
// records what it sent sends once more, and no oftener.
func TestCrash(t *testing.T) {
	for _, c := range []struct {
		name string
		die  func(h *house)
		want []string
	}{
		{"before anything", func(h *house) {}, []string{"ana"}},
		{"behind the look", func(h *house) { h.d.look(h.t.Context()) }, []string{"ana"}},
		{"behind the letter", func(h *house) { h.d.step(h.t.Context()) }, []string{"ana"}},
		{"before the sending", func(h *house) {
			h.d.step(h.t.Context())
			if l, err := h.book.claim(h.t.Context(), ChannelNtfy, 9); err != nil || len(l) != 1 {
				h.t.Fatal(l, err)
			}
		}, []string{"ana"}},
		{"behind the sending", func(h *house) {
			h.d.step(h.t.Context())
			l, err := h.book.claim(h.t.Context(), ChannelNtfy, 9)
			if err != nil || len(l) != 1 {
				h.t.Fatal(l, err)
			}
			n, err := h.d.notice(h.t.Context(), l[0])
			if err != nil {
				h.t.Fatal(err)
			}
			h.box.Notify(h.t.Context(), *n)
		}, []string{"ana", "ana"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t, nil)
			h.add("ana", Settings{})
			h.asks("local:cho")
			c.die(h)
			h.restart()
			h.step()
			h.clock.on(sendLease + time.Second)
			for range 3 {
				h.step()
				h.restart()
			}
			list := h.got(c.want...)
			if len(list) == 2 && list[0].ID != list[1].ID {
				t.Error("the same notice has two ids")
			}
		})
	}
}

// Two processes over one book tell a person once.
func TestTwoDispatchers(t *testing.T) {
	h := newHouse(t, nil)
	h.add("ana", Settings{})
	for range 20 {
		h.asks("local:cho")
	}
	other, err := New(h.o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	other.o.Look, h.d.o.Look = 5*time.Millisecond, 5*time.Millisecond
	for _, d := range []*Dispatcher{other, h.d} {
		go func() { d.Run(ctx); done <- struct{}{} }()
	}
	deadline := time.Now().Add(90 * time.Second)
	for h.count() < 20 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
	cancel()
	<-done
	<-done
	if n := len(h.box.take()); n != 20 {
		t.Errorf("%d notices of 20 runs\n%s", n, h.logged)
	}
}

func (h *house) count() int {
	h.box.mu.Lock()
	defer h.box.mu.Unlock()
	return len(h.box.list)
}

// A channel that hangs keeps no other from sending, nor the runs.
func TestDeadChannel(t *testing.T) {
	dead := &box{each: func(ctx context.Context, _ Notice) error { <-ctx.Done(); return ctx.Err() }}
	h := newHouse(t, func(_ *engine.Config, o *Options) {
		o.Channels[ChannelMail], o.Timeout, o.Look = dead, 30*time.Second, 5*time.Millisecond
	})
	ana := h.add("ana", Settings{Topic: "topic-of-ana", Mail: "ana@example.org"})
	if ok, err := h.book.Confirm(t.Context(), ana, h.book.code(ana, "ana@example.org")); err != nil || !ok {
		t.Fatal(ok, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { h.d.Run(ctx); close(done) }()
	for range 6 {
		res := h.asks("local:cho")
		deadline := time.Now().Add(90 * time.Second)
		for h.count() == 0 && time.Now().Before(deadline) {
			time.Sleep(5 * time.Millisecond)
		}
		h.got("ana")
		h.approve(res.Pending[0], "local:ana")
		if res, err := h.engine.Resume(t.Context(), res.RunID); err != nil || res.Status != ringi.Completed {
			t.Fatal(res, err)
		}
	}
	cancel()
	<-done
	if len(dead.take()) != 0 {
		t.Error("the dead channel has sent")
	}
}

func TestRetries(t *testing.T) {
	h := newHouse(t, nil)
	h.add("ana", Settings{})
	tries := 0
	h.box.each = func(context.Context, Notice) error {
		if tries++; tries < 4 {
			return errors.New("not now")
		}
		return nil
	}
	h.asks("local:cho")
	h.step()
	for _, wait := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
		h.clock.on(wait - time.Second)
		before := tries
		h.step()
		if tries != before {
			t.Errorf("tried again before %s", wait)
		}
		h.clock.on(time.Second)
		h.step()
	}
	h.got("ana")
	if tries != 4 {
		t.Errorf("%d tries", tries)
	}
	if backOff(1) != 10*time.Second || backOff(100) != time.Hour || backOff(0) != 10*time.Second {
		t.Error("back-off is not bounded")
	}
	h.box.each = nil
	h.box.failing(errors.New("never again"))
	h.asks("local:cho")
	for range 60 {
		h.step()
		h.clock.on(time.Hour)
	}
	if n := strings.Count(h.logged.String(), "give notice up"); n != 1 {
		t.Errorf("given up %d times:\n%s", n, h.logged)
	}
	if len(h.box.take()) != 0 {
		t.Error("it was sent")
	}
}

func TestPanickingNotifier(t *testing.T) {
	h := newHouse(t, nil)
	h.add("ana", Settings{})
	h.box.each = func(context.Context, Notice) error { panic("secret words") }
	h.asks("local:cho")
	h.step()
	if s := h.logged.String(); strings.Contains(s, "secret words") || !strings.Contains(s, "the notifier panicked") {
		t.Errorf("logged: %s", s)
	}
	h.box.each = nil
	h.clock.on(time.Minute)
	h.step()
	h.got("ana")
}

// A look goes no further back than it must.
func TestLookIsShort(t *testing.T) {
	var asked []ringi.RequestQuery
	h := newHouse(t, nil)
	h.d.o.Store = counting{h.store, &asked}
	for range 25 {
		h.asks("local:cho")
	}
	h.step()
	if len(asked) != 2 {
		t.Errorf("the first look has %d pages, want 20 and the rest", len(asked))
	}
	h.d.mark = h.d.mark.Add(2 * time.Minute) // as if they were old
	asked = nil
	h.step()
	if len(asked) != 1 || asked[0].Limit != 20 || asked[0].Order != ringi.NewestFirst {
		t.Errorf("a look with nothing new asks %+v", asked)
	}
}

type counting struct {
	Source
	asked *[]ringi.RequestQuery
}

func (c counting) Requests(ctx context.Context, q ringi.RequestQuery) ([]ringi.RequestRow, error) {
	*c.asked = append(*c.asked, q)
	return c.Source.Requests(ctx, q)
}

// What is over is forgotten; what waits never is, or people would be told anew.
func TestForgets(t *testing.T) {
	h := newHouse(t, func(c *engine.Config, _ *Options) { c.Expiry = -1 })
	h.add("ana", Settings{})
	over, waiting := h.asks("local:cho"), h.asks("local:cho")
	h.step()
	h.got("ana", "ana")
	h.approve(over.Pending[0], "local:ana")
	h.clock.on(40 * 24 * time.Hour)
	h.step()
	rows := h.rows()
	if strings.Contains(rows, over.Pending[0].ID) || !strings.Contains(rows, waiting.Pending[0].ID) || strings.Contains(rows, "notify_letters ") {
		t.Errorf("kept:\n%s", rows)
	}
	h.restart()
	h.step()
	h.got()
}

// A test goes to every address that somebody has given, which may be anybody's:
// it is sent a few times in a minute, to each person.
func TestTry_IsBounded(t *testing.T) {
	h := newHouse(t, nil)
	ana, ben := h.add("ana", Settings{}), h.add("ben", Settings{})
	tries := func(who string) (n int) {
		t.Helper()
		for range 10 {
			tried, err := h.d.Try(t.Context(), who)
			if err == nil {
				n++
			} else if !errors.Is(err, ErrSettings) || tried != nil {
				t.Fatalf("%+v %v", tried, err)
			}
		}
		return n
	}
	if a, b := tries(ana), tries(ben); a != 5 || b != 5 {
		t.Errorf("%d and %d tests", a, b)
	}
	h.clock.on(time.Minute)
	if n := tries(ana); n != 5 {
		t.Errorf("a minute later %d tests", n)
	}
}
