package webhook

import (
	"context"
	"crypto/x509"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/outbound"
)

// clock is a wall clock that a test turns.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) turn(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// book is a log that a test writes: a store's feed and the events of its runs.
type book struct {
	mu   sync.Mutex
	id   string
	rows []ringi.FeedRow
	runs map[string][]ringi.Event
	errs map[string]error // by run
	asks int              // how often events were read
}

func newBook() *book {
	return &book{id: "sto_1", runs: map[string][]ringi.Event{}, errs: map[string]error{}}
}

// add commits events of a run together.
func (b *book) add(run string, bodies ...ringi.EventBody) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := time.Date(2026, 5, 4, 0, 0, len(b.rows), 0, time.UTC)
	for _, body := range bodies {
		seq := int64(len(b.runs[run]) + 1)
		b.runs[run] = append(b.runs[run], ringi.Event{Seq: seq, Kind: body.Kind(), At: at, RunID: run, Body: body})
		b.rows = append(b.rows, ringi.FeedRow{N: int64(len(b.rows) + 1), Space: "default", RunID: run, Seq: seq, Kind: body.Kind()})
	}
}

// finish is a run that ends at once: one message.
func (b *book) finish(run string) {
	b.add(run, &ringi.RunStarted{Agent: "office", Thread: "thr_" + run})
	b.add(run, &ringi.RunFinished{Status: ringi.Completed, Reason: ringi.ReasonCompleted})
}

func (b *book) ID(context.Context) (string, error) { return b.id, nil }

func (b *book) Feed(_ context.Context, after int64, limit int) ([]ringi.FeedRow, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rows := b.rows[min(int(after), len(b.rows)):]
	return slices.Clone(rows[:min(len(rows), limit)]), nil
}

func (b *book) FeedEnd(context.Context) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(len(b.rows)), nil
}

func (b *book) Events(_ context.Context, run string, after int64) ([]ringi.Event, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asks++
	return slices.Clone(b.runs[run][after:]), b.errs[run]
}

// came is a message as a receiver got it.
type came struct {
	id, signature string
	at            time.Time
	body          []byte
	message       struct {
		Type      Type      `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      Data      `json:"data"`
	}
}

// receiver is a server that takes messages. It refuses nothing unless told.
type receiver struct {
	*httptest.Server
	secret string
	answer func(w http.ResponseWriter, r *http.Request, n int) // nil: 204
	mu     sync.Mutex
	got    []came
	bad    []string
}

func newReceiver(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, n int)) *receiver {
	t.Helper()
	r := &receiver{secret: NewSecret(), answer: answer}
	known := secrets(t, r.secret)
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		c := came{id: q.Header.Get(HeaderID), signature: q.Header.Get(HeaderSignature), at: time.Now(), body: body}
		err := json.Unmarshal(body, &c.message)
		stamp := q.Header.Get(HeaderTimestamp)
		var seconds int64
		fmt.Sscan(stamp, &seconds)
		if err == nil {
			err = Verify(q.Header, known, time.Unix(seconds, 0), body)
		}
		if err == nil && (q.Method != http.MethodPost || q.Header.Get("Content-Type") != "application/json") {
			err = fmt.Errorf("%s of %s", q.Method, q.Header.Get("Content-Type"))
		}
		r.mu.Lock()
		if err != nil {
			r.bad = append(r.bad, err.Error())
		}
		r.got = append(r.got, c)
		n := len(r.got)
		r.mu.Unlock()
		if r.answer != nil {
			r.answer(w, q, n)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(func() {
		r.Close()
		if len(r.bad) > 0 {
			t.Errorf("messages that no receiver would take: %q", r.bad)
		}
	})
	return r
}

// messages are what came, and their ids.
func (r *receiver) messages() ([]came, []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for _, c := range r.got {
		ids = append(ids, c.id)
	}
	return slices.Clone(r.got), ids
}

// endpoint is the receiver as it is configured.
func (r *receiver) endpoint(t testing.TB, name string, types ...Type) Endpoint {
	return Endpoint{Name: name, URL: r.URL + "/hook/in-the-address", Secrets: secrets(t, r.secret), Types: types}
}

// to is a client that reaches receivers.
func to(t testing.TB, timeout time.Duration, all ...*receiver) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	for _, r := range all {
		pool.AddCert(r.Certificate())
	}
	c, err := outbound.New(outbound.Options{Roots: pool, Allow: []string{"127.0.0.1"}, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// sqliteParams are a server's, but that nothing waits for the disk.
const sqliteParams = "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=secure_delete(1)"

func openDB(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+sqliteParams)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// lines is a log that a test reads.
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

// desk is an outbox over a book, whose clock a test turns, step by step.
type desk struct {
	*Outbox
	t     *testing.T
	book  *book
	clock *clock
	log   *lines
	opts  Options
	size  int // of a batch, where it is set
}

func newDesk(t *testing.T, client *http.Client, endpoints ...Endpoint) *desk {
	t.Helper()
	d := &desk{t: t, book: newBook(), clock: newClock(), log: &lines{}}
	d.opts = Options{DB: openDB(t, filepath.Join(t.TempDir(), "webhook.db")), Log: d.book, Runs: d.book, Endpoints: endpoints, Client: client,
		Logger: slog.New(slog.NewTextHandler(d.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Now: d.clock.now, BaseURL: "https://ringi.example.org/"}
	d.open()
	return d
}

// open is a server that starts over the same table.
func (d *desk) open(change ...func(*Options)) {
	d.t.Helper()
	for _, f := range change {
		f(&d.opts)
	}
	b, err := Open(d.t.Context(), d.opts)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := b.enrol(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
	if d.size > 0 {
		b.batch = d.size
	}
	d.Outbox = b
}

// work makes steps until nothing is due any more.
func (d *desk) work() {
	d.t.Helper()
	for range 10_000 {
		if err := d.step(d.t.Context()); err != nil {
			d.t.Fatal(err)
		}
		d.wg.Wait()
		due, err := d.due(d.t.Context())
		if err != nil {
			d.t.Fatal(err)
		}
		if len(due) == 0 {
			return
		}
	}
	d.t.Fatal("something is due for ever")
}

func (d *desk) status(name string) Status {
	d.t.Helper()
	all, err := d.List(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	for _, s := range all {
		if s.Name == name {
			return s
		}
	}
	return Status{}
}

func (d *desk) dead(name string) []Letter {
	d.t.Helper()
	list, err := d.Dead(d.t.Context(), name, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	return list
}
