package httpapi_test

import (
	"context"
	"database/sql"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/httpapi"
	"github.com/ringi-dev/ringi/store/sqlite"
)

// crowded is a store in which somebody else is always first.
type crowded struct {
	*sqlite.Store
	full atomic.Bool
}

func (c *crowded) Commit(ctx context.Context, commit *ringi.Commit) error {
	if c.full.Load() {
		return ringi.ErrConflict
	}
	return c.Store.Commit(ctx, commit)
}

func (c *crowded) CommitAdmitted(ctx context.Context, commit *ringi.Commit, admit func(context.Context, ringi.Ledger) error) error {
	if c.full.Load() {
		return ringi.ErrConflict
	}
	return c.Store.CommitAdmitted(ctx, commit, admit)
}

// What the table of errors says comes of its own cause, over the real store:
// nothing here fails because a test told it to, but for a store in which
// somebody else is always first. (TestEveryErrorIsReached has the rest, and other
// tests reach two thirds of the table so too.)
func TestErrorsOfTheirOwnCause(t *testing.T) {
	var ahead atomic.Int64 // of the store's clock
	var denies atomic.Bool
	store := &crowded{}
	var cfg engine.Config
	w := newWorld(t, setting{
		now:   func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
		store: func(s *sqlite.Store) ringi.Store { store.Store = s; return store },
		engine: func(c *engine.Config) {
			c.Approval.Tools = map[string]ringi.ToolApproval{"look": {Func: func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
				if denies.Load() {
					return ringi.Verdict{Status: ringi.Denied, Reason: "closed for today"}, nil
				}
				return ringi.Verdict{Status: ringi.UserApproval}, nil
			}}}
			cfg = *c // the last one is "other"
		},
	})
	ask := func(text string) request { return w.asked("ben", w.start("uma", "shop", text)) }
	wants := func(got reply, status int, word string) {
		t.Helper()
		if p := got.problem(t); got.status != status || p.Type != "urn:ringi:problem:"+word {
			t.Errorf("%s: %d %s", word, got.status, got.body)
		}
	}
	approve := func(q request) reply { return w.decide("ben", q, `{"answer":"approve"}`) }

	q := ask("refund 5")
	if got := w.do("uma", "POST", "/v1/approvals/"+q.ID+"/withdrawal", `{}`); got.status != 200 {
		t.Fatalf("withdraw: %d %s", got.status, got.body)
	}
	wants(approve(q), 410, "withdrawn")

	q = ask("look 6")
	denies.Store(true)
	wants(approve(q), 409, "policy-denies")
	denies.Store(false)

	q = ask("refund 7")
	for _, nobody := range []string{`{"people":["local:nobody"]}`, `{"people":["local:uma"]}`, `{"teams":["night"]}`} { // uma decides nothing
		wants(w.do("ben", "POST", "/v1/approvals/"+q.ID+"/reassignment", nobody), 422, "invalid-request")
	}
	store.full.Store(true)
	wants(approve(q), 409, "conflict")
	store.full.Store(false)

	other, err := engine.New(cfg)
	w.must(err)
	lone, err := engine.Route(other)
	w.must(err)
	lacking := w.another(func(o *httpapi.Options) { o.Service = lone })
	peek := w.call("bot", `{"agent":"shop","tool":"peek","input":"{}"}`)
	wants(lacking.do("bot", "POST", "/v1/calls/"+peek.ID+"/start", `{}`), 503, "policy-missing")

	late := ask("refund 8")
	ahead.Store(int64(73 * time.Hour))
	wants(approve(late), 410, "expired")
	ask("refund 9") // its time is recorded
	ahead.Store(0)
	wants(w.do("uma", "POST", "/v1/runs", `{"agent":"shop","text":"refund 10"}`), 503, "clock")
	ahead.Store(int64(74 * time.Hour))

	q = ask("refund 11")
	db, err := sql.Open("sqlite", "file:"+w.file+"?_pragma=busy_timeout(5000)")
	w.must(err)
	defer db.Close()
	_, err = db.Exec(`UPDATE records SET hash = zeroblob(32) WHERE run = ? AND seq = 1`, q.RunID)
	w.must(err)
	wants(w.do("ada", "GET", "/v1/runs/"+q.RunID+"/events", ""), 500, "corrupt")
	wants(w.do("ada", "POST", "/v1/runs/"+q.RunID+"/cancel", `{}`), 500, "corrupt")
	wants(approve(q), 404, "not-found") // whose it is stands in the log
	if w.ran[q.Call.ID] != 0 {
		t.Error("what was changed in the store ran")
	}
}
