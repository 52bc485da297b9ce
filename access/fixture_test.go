package access

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	_ "modernc.org/sqlite"
)

// clock is a clock that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(by)
}

// house is a directory over a SQLite file, with people in it.
type house struct {
	*Directory
	db    *sql.DB
	path  string
	clock *clock
}

var operator = Operator("os:1000@test", "default")

func newHouse(t testing.TB, o Options) *house {
	t.Helper()
	h := &house{path: filepath.Join(t.TempDir(), "access.db"), clock: newClock()}
	h.db = openFile(t, h.path)
	o.Now = h.clock.now
	var err error
	if h.Directory, err = Open(t.Context(), h.db, o); err != nil {
		t.Fatal(err)
	}
	return h
}

func openFile(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?"+SQLiteParams)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// add adds a user with roles.
func (h *house) add(t testing.TB, word string, roles ...Role) User {
	t.Helper()
	u := User{ID: LocalID(word), Name: word, Roles: roles}
	if err := h.AddUser(t.Context(), operator, u); err != nil {
		t.Fatal(err)
	}
	return u
}

// enterAs logs a user in and returns him and his session's secret.
func (h *house) enterAs(t testing.TB, id string) (Who, string) {
	t.Helper()
	link, _, err := h.MakeLink(t.Context(), operator, id)
	if err != nil {
		t.Fatal(err)
	}
	session, err := h.UseLink(t.Context(), link, "")
	if err != nil {
		t.Fatal(err)
	}
	w, err := h.BySession(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	return w, session
}

func (h *house) token(t testing.TB, by Who, n NewToken) (Token, string) {
	t.Helper()
	tok, secret, err := h.MakeToken(t.Context(), by, n)
	if err != nil {
		t.Fatal(err)
	}
	return tok, secret
}

func (h *house) count(t testing.TB, table string) int {
	t.Helper()
	var n int
	if err := h.db.QueryRow(`SELECT count(*) FROM ` + table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// person is a Who that no directory made: logged in, with roles.
func person(id string, roles ...Role) Who {
	return Who{Principal: ringi.Principal{ID: id, Kind: ringi.Person}, Roles: roles, Space: "default"}
}

// client is a Who of an agent's token.
func client(id string, scopes []Scope, agents ...string) Who {
	return Who{Principal: ringi.Principal{ID: id, Kind: ringi.ServiceAccount}, Roles: []Role{RoleAgent}, Space: "default",
		TokenID: "tok_1", Scopes: scopes, Agents: agents}
}

var ctx = context.Background()
