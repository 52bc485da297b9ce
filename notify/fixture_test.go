package notify

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
	"github.com/ringi-dev/ringi/store/sqlite"
)

var operator = access.Operator("os:1000@test", "default")

// clock is the wall clock, moved on by tests.
type clock struct {
	mu    sync.Mutex
	moved time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.moved)
}

func (c *clock) on(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved += d
}

// house is an engine over a real store, people, a book, and a dispatcher whose
// steps the test takes.
type house struct {
	t      testing.TB
	clock  *clock
	store  ringi.Store
	engine *engine.Engine
	people *access.Directory
	book   *Book
	logged *lines
	box    *box
	o      Options
	d      *Dispatcher
}

func newHouse(t testing.TB, change func(*engine.Config, *Options), script ...ringitest.Reply) *house {
	t.Helper()
	dir := t.TempDir()
	h := &house{t: t, clock: &clock{}, logged: &lines{}, box: &box{}}
	var err error
	if h.store, err = sqlite.Open(filepath.Join(dir, "ringi.db"), sqlite.Options{Now: h.clock.Now}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.store.Close() })
	h.people, err = access.Open(t.Context(), openDB(t, filepath.Join(dir, "access.db"), access.SQLiteParams), access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if h.book, err = Open(t.Context(), openDB(t, filepath.Join(dir, "notify.db"), SQLiteParams), BookOptions{Now: h.clock.Now}); err != nil {
		t.Fatal(err)
	}
	reg := ringi.NewRegistry()
	type in struct {
		N    int    `json:"n"`
		Note string `json:"note,omitempty"`
	}
	ringi.AddTool(reg, ringi.Tool{Name: "pay", Description: "Pays.", Effect: ringi.NonIdempotentWrite, RequiresApproval: true, AllowEdit: true},
		func(context.Context, in) (string, error) { return "paid", nil })
	if len(script) == 0 {
		script = []ringitest.Reply{ringitest.Calls(ringitest.Call("pay", `{"n":1}`)), ringitest.Text("done")}
	}
	cfg := engine.Config{Agent: "office", Store: h.store, Registry: reg, Model: ringitest.Script(script...)}
	h.o = Options{Book: h.book, Store: h.store, Directory: h.people, PublicURL: "https://ringi.example.org", Gather: time.Nanosecond,
		Channels: map[Channel]Notifier{ChannelMail: h.box, ChannelNtfy: h.box, ChannelPush: h.box}, Logger: slog.New(slog.NewTextHandler(h.logged, nil))}
	if change != nil {
		change(&cfg, &h.o)
	}
	if h.engine, err = engine.New(cfg); err != nil {
		t.Fatal(err)
	}
	h.o.Service = h.engine
	h.restart()
	return h
}

func openDB(t testing.TB, path, params string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?"+params)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// restart makes a new dispatcher over the same book, as a new process does.
func (h *house) restart() {
	h.t.Helper()
	var err error
	if h.d, err = New(h.o); err != nil {
		h.t.Fatal(err)
	}
}

// add adds a person with a topic.
func (h *house) add(name string, s Settings, change ...func(*access.User)) string {
	h.t.Helper()
	u := access.User{ID: access.LocalID(name), Name: strings.ToUpper(name[:1]) + name[1:], Roles: []access.Role{access.RoleApprover}}
	for _, c := range change {
		c(&u)
	}
	for _, team := range u.Teams {
		if err := h.people.AddTeam(h.t.Context(), operator, team, team); err != nil && !errors.Is(err, access.ErrExists) {
			h.t.Fatal(err)
		}
	}
	if err := h.people.AddUser(h.t.Context(), operator, u); err != nil {
		h.t.Fatal(err)
	}
	if s.Topic == "" && s.Mail == "" {
		s.Topic = "topic-of-" + name
	}
	h.set(u.ID, s)
	h.d.asOf = time.Time{}
	return u.ID
}

func (h *house) set(user string, s Settings) {
	h.t.Helper()
	if err := h.book.SetSettings(h.t.Context(), user, s); err != nil {
		h.t.Fatal(err)
	}
}

func in(teams ...string) func(*access.User) { return func(u *access.User) { u.Teams = teams } }

// asks begins a run of somebody's, which leads to requests.
func (h *house) asks(by string) *ringi.Result {
	h.t.Helper()
	m := ringi.User("pay")
	m.Author = by
	res, err := h.engine.Run(h.t.Context(), ringi.RunStart{Agent: "office", By: ringi.Principal{ID: by, Name: by, Kind: ringi.Person, Auth: "test"}, Messages: []ringi.Message{m}})
	if err != nil {
		h.t.Fatal(err)
	}
	if len(res.Pending) == 0 {
		h.t.Fatalf("run asks nothing: %+v", res)
	}
	return res
}

func (h *house) approve(r ringi.ApprovalRequest, by string, teams ...string) {
	h.t.Helper()
	if _, err := h.engine.Decide(h.t.Context(), r.Approve(ringi.Principal{ID: by, Name: by, Kind: ringi.Person, Auth: "test", Teams: teams})); err != nil {
		h.t.Fatal(err)
	}
}

// step looks, writes, and sends what is due.
func (h *house) step() {
	h.t.Helper()
	h.d.step(h.t.Context())
	h.sendAll()
}

func (h *house) sendAll() {
	h.t.Helper()
	for c := range h.o.Channels {
		for h.d.sendDue(h.t.Context(), c) {
		}
	}
}

// got takes what was sent since, by person.
func (h *house) got(want ...string) []Notice {
	h.t.Helper()
	list := h.box.take()
	slices.SortStableFunc(list, func(a, b Notice) int { return strings.Compare(a.To.User, b.To.User) })
	var who []string
	for _, n := range list {
		who = append(who, strings.TrimPrefix(n.To.User, "local:"))
	}
	if !slices.Equal(who, want) {
		h.t.Fatalf("told are %q, want %q\n%s", who, want, h.logged)
	}
	return list
}

// box is a channel that keeps what it is given.
type box struct {
	mu   sync.Mutex
	list []Notice
	fail error
	each func(context.Context, Notice) error
}

func (b *box) Notify(ctx context.Context, n Notice) error {
	b.mu.Lock()
	each, fail := b.each, b.fail
	b.mu.Unlock()
	if each != nil {
		if err := each(ctx, n); err != nil {
			return err
		}
	}
	if fail != nil {
		return fail
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = append(b.list, n)
	return nil
}

func (b *box) take() []Notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.list
	b.list = nil
	return out
}

func (b *box) failing(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = err
}

// rows dumps every table of the book.
func (h *house) rows() string {
	h.t.Helper()
	var tables []string
	scan := func(rows *sql.Rows) error {
		var s string
		err := rows.Scan(&s)
		tables = append(tables, s)
		return err
	}
	if err := h.book.list(h.t.Context(), scan, `SELECT name FROM sqlite_master WHERE type = 'table'`); err != nil {
		h.t.Fatal(err)
	}
	var out strings.Builder
	for _, table := range tables {
		err := h.book.list(h.t.Context(), func(rows *sql.Rows) error {
			columns, err := rows.Columns()
			if err != nil {
				return err
			}
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				return err
			}
			fmt.Fprint(&out, table)
			for i, v := range values {
				fmt.Fprintf(&out, " %s=%v", columns[i], *v.(*any))
			}
			out.WriteString("\n")
			return nil
		}, `SELECT * FROM `+table)
		if err != nil {
			h.t.Fatal(err)
		}
	}
	return out.String()
}

type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
