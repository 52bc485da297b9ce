package httpapi_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/httpapi"
)

var update = flag.Bool("update", false, "rewrite the tables in docs/errors.md and docs/api.md")

func TestErrorsPage(t *testing.T) { pageHas(t, "errors.md", "errors", httpapi.Table()) }

// pageHas holds a page of docs against a table, at the place that the page marks
// for it.
func pageHas(t *testing.T, page, mark, table string) {
	t.Helper()
	file, from, to := "../docs/"+page, "<!-- "+mark+" -->\n", "<!-- /"+mark+" -->"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), from)
	old, tail, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatal("the page has no place for the table")
	}
	if old == table {
		return
	}
	if !*update {
		t.Fatalf("docs/%s differs from the code: go test ./httpapi -run Page -update", page)
	}
	if err := os.WriteFile(file, []byte(head+from+table+to+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

// failing is a service whose decisions and cancellations end with an error.
type failing struct {
	ringi.Service
	err error
}

func (f *failing) Decide(ctx context.Context, d ringi.Decision) (ringi.Settled, error) {
	if f.err != nil {
		return ringi.Settled{}, fmt.Errorf("decide request %s: %w", d.RequestID, f.err)
	}
	return f.Service.Decide(ctx, d)
}

// Every row of the table is reached over HTTP, by its own cause where the cause
// is the client's, else by a service that fails so.
func TestEveryErrorIsReached(t *testing.T) {
	f := &failing{}
	w := newWorld(t, setting{service: func(s ringi.Service) ringi.Service { f.Service = s; return f }})
	q := w.asked("ben", w.start("uma", "shop", "refund 5"))
	reached := map[string]bool{}
	check := func(got reply, status int, word string) {
		t.Helper()
		p := got.problem(t)
		if got.status != status || p.Type != "urn:ringi:problem:"+word {
			t.Errorf("%s: %d %s", word, got.status, got.body)
		}
		reached[word] = true
	}
	for _, c := range []struct {
		err    error
		status int
		word   string
	}{
		{ringi.ErrNotPermitted, 403, "not-permitted"},
		{ringi.ErrNotFound, 404, "not-found"},
		{&ringi.DecidedError{State: ringi.Spent}, 409, "spent"},
		{&ringi.DecidedError{State: ringi.Granted}, 409, "already-decided"},
		{ringi.ErrStale, 409, "stale"},
		{ringi.ErrNowDenied, 409, "policy-denies"},
		{ringi.ErrBusy, 409, "busy"},
		{&ringi.WaitingError{}, 409, "call-waiting"},
		{&ringi.StartedError{}, 409, "call-started"},
		{&ringi.ResultError{}, 409, "call-finished"},
		{ringi.ErrNotStarted, 409, "not-started"},
		{ringi.ErrLate, 410, "late"},
		{ringi.ErrLeaseLost, 409, "busy"},
		{ringi.ErrConflict, 409, "conflict"},
		{ringi.ErrRunOpen, 409, "run-open"},
		{ringi.ErrFinal, 409, "run-ended"},
		{ringi.ErrExpired, 410, "expired"},
		{ringi.ErrWithdrawn, 410, "withdrawn"},
		{ringi.ErrTooLarge, 413, "too-large"},
		{&ringi.InputError{Code: ringi.CodeInvalidInput, Err: errors.New("no")}, 422, "invalid-input"},
		{ringi.ErrAnswer, 422, "answer-not-allowed"},
		{ringi.ErrNoAuthor, 422, "no-author"},
		{ringi.ErrNoKey, 503, "no-key"},
		{ringi.ErrPolicyMissing, 503, "policy-missing"},
		{ringi.ErrClock, 503, "clock"},
		{ringi.ErrNotRecorded, 503, "not-recorded"},
		{context.DeadlineExceeded, 503, "stopping"},
		{ringi.ErrSimulated, 503, "simulated"},
		{ringi.ErrCorrupt, 500, "corrupt"},
		{errors.New("disk SECRET-DETAIL"), 500, "internal"},
	} {
		f.err = c.err
		got := w.decide("ben", q, `{"answer":"approve"}`)
		check(got, c.status, c.word)
		if strings.Contains(got.body, "SECRET-DETAIL") {
			t.Errorf("what went wrong inside is told: %s", got.body)
		}
	}
	f.err = nil
	path := "/v1/approvals/" + q.ID + "/decisions"
	good := `{"answer":"approve","digest":"` + q.Digest + `"}`
	check(w.do("", "GET", "/v1/runs", ""), 401, "no-principal")
	check(w.do("uma", "POST", path, good), 403, "forbidden")
	check(w.do("ben", "GET", "/v1/nothing", ""), 404, "not-found")
	got := w.do("ben", "DELETE", "/v1/runs", "")
	check(got, 405, "method-not-allowed")
	if got.header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("Allow: %s", got.header.Get("Allow"))
	}
	check(w.do("ben", "GET", "/v1/events", "", "Accept", "application/json"), 406, "not-acceptable")
	check(w.do("ben", "POST", path, good, "If-Match", `"x.pending"`), 412, "version-differs")
	check(w.do("ben", "POST", path, good), 428, "match-required")
	check(w.do("ben", "POST", path, good, "Content-Type", "text/plain"), 415, "media-type")
	check(w.do("ben", "POST", path, `{"note":"`+strings.Repeat("x", httpapi.MaxBody)+`"}`), 413, "too-large")
	check(w.do("ben", "POST", path, `{`), 400, "malformed")
	check(w.do("ben", "POST", path, `{"digest":"x"}`), 422, "invalid-request")
	check(w.do("uma", "POST", "/v1/runs", `{"agent":"shop","messages":[{"role":"system","text":"x"}]}`), 422, "authority")
	check(w.do("ada", "POST", "/v1/users", `{"id":"local:ada"}`), 409, "exists")
	check(w.do("ada", "POST", "/v1/users/local:ada/disable", ""), 409, "last-admin")
	w.keys(t, q, check)
	w.crossOrigin(t, check)
	w.slow(t, check)
	w.tooMany(t, check)
	for _, line := range strings.Split(httpapi.Table(), "\n")[2:] {
		if words := strings.Split(line, "`"); len(words) > 1 && !reached[words[1]] {
			t.Errorf("no test reaches %s", words[1])
		}
	}
	if strings.Contains(w.log.String(), w.token["ben"]) {
		t.Error("a token is logged")
	}
}

// keys reaches what Idempotency-Key is refused with.
func (w *world) keys(t *testing.T, q request, check func(reply, int, string)) {
	path := "/v1/approvals/" + q.ID + "/withdrawal"
	begin := func(key, body string) *access.Try {
		who, err := w.dir.ByToken(t.Context(), w.token["uma"])
		w.must(err)
		try, err := w.dir.Begin(t.Context(), who, access.Call{Route: access.ApprovalsWithdraw, Owner: access.Own, Method: "POST", Path: path, Key: key, Body: []byte(body)})
		w.must(err)
		return try
	}
	try := begin("k1", `{}`)
	check(w.do("uma", "POST", path, `{}`, "Idempotency-Key", "k1"), 409, "in-flight")
	w.must(try.Finish(t.Context(), access.Answer{Status: 200, Secret: true}))
	check(w.do("uma", "POST", path, `{}`, "Idempotency-Key", "k1"), 409, "not-kept")
	check(w.do("uma", "POST", path, `{"reason":"x"}`, "Idempotency-Key", "k1"), 422, "key-reused")
	check(w.do("uma", "POST", path, `{}`, "Idempotency-Key", "a key"), 400, "malformed")
	// A run in a thread of one's own, whose first try died ten minutes ago.
	var r run
	w.do("uma", "GET", "/v1/runs/"+q.RunID, "").into(t, &r)
	who, err := w.dir.ByToken(t.Context(), w.token["uma"])
	w.must(err)
	body := `{"agent":"shop","text":"say hello","thread":"` + r.Thread + `"}`
	_, err = w.dir.Begin(t.Context(), who, access.Call{Route: access.RunsStart, Owner: access.Own, Method: "POST", Path: "/v1/runs", Key: "k2", Body: []byte(body)})
	w.must(err)
	_, err = w.db.Exec(`UPDATE answers SET started_at = started_at - 600000000 WHERE idem_key = 'k2'`)
	w.must(err)
	check(w.do("uma", "POST", "/v1/runs", body, "Idempotency-Key", "k2"), 409, "unclear")
}

// crossOrigin logs ada in as a browser does, and posts without the form token.
func (w *world) crossOrigin(t *testing.T, check func(reply, int, string)) {
	link, _, err := w.dir.MakeLink(t.Context(), operator, access.LocalID("ada"))
	w.must(err)
	session, err := w.dir.UseLink(t.Context(), link, "")
	w.must(err)
	cookie := access.CookieName + "=" + session
	check(w.do("", "POST", "/v1/runs", `{}`, "Cookie", cookie), 403, "cross-origin")
	who, err := w.dir.BySession(t.Context(), session)
	w.must(err)
	if got := w.do("", "POST", "/v1/runs", `{"agent":"shop","text":"say hi"}`, "Cookie", cookie, access.CSRFHeader, who.CSRF()); got.status != 201 {
		t.Errorf("with the form token: %d %s", got.status, got.body)
	}
}

// slow sends a body that does not come.
func (w *world) slow(t *testing.T, check func(reply, int, string)) {
	conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
	w.must(err)
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{", w.token["uma"])
	conn.SetReadDeadline(time.Now().Add(90 * time.Second))
	check(readReply(t, conn), 408, "too-slow")
}

// tooMany opens as many streams as a token may hold, and one more.
func (w *world) tooMany(t *testing.T, check func(reply, int, string)) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range httpapi.MaxStreams {
		w.follow(ctx, "ben", "/v1/events", "")
	}
	got := w.do("ben", "GET", "/v1/events", "")
	check(got, 429, "too-many")
	if got.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}
