package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// cycle is one durable cycle at the level of the store: six commits, as the
// engine makes them, of the size that they have there.
type cycle struct {
	s     *Store
	owner string
	row   ringi.RunRow
}

func (c *cycle) records(kinds ...ringi.EventKind) []ringi.Record {
	sizes := map[ringi.EventKind]int{
		ringi.EventRunStarted: 500, ringi.EventModelResponded: 600, ringi.EventApprovalRequested: 500,
	}
	out := make([]ringi.Record, len(kinds))
	for i, k := range kinds {
		n := sizes[k]
		if n == 0 {
			n = 250
		}
		salt := sha256.Sum256([]byte{byte(i)})
		out[i] = ringi.Record{Seq: c.row.Seq + int64(i) + 1, Kind: k,
			Head:    fmt.Appendf(nil, `{"v":1,"seq":%d,"kind":%q,"at":1234567890123456,"epoch":1,"c":"0123456789abcdef0123456789abcdef0123456789abcdef"}`, i, k),
			Payload: bytes.Repeat([]byte("x"), n), Salt: salt[:], Hash: salt}
	}
	return out
}

func (c *cycle) commit(k *ringi.Commit, kinds ...ringi.EventKind) error {
	k.Space, k.RunID, k.Expect = c.row.Space, c.row.ID, c.row.Seq
	k.Records = c.records(kinds...)
	k.Row.Thread, k.Row.Agent, k.Row.MAC = c.row.Thread, "clerk", "v1.0123456789abcdef.0123456789abcdef0123456789abcdef"
	k.Row.Head = k.Records[len(k.Records)-1].Hash
	if k.Owner != "" && !k.Claim {
		k.Epoch = c.row.Epoch
	}
	if err := c.s.Commit(context.Background(), k); err != nil {
		return err
	}
	c.row.Seq += int64(len(kinds))
	return nil
}

// run makes the six: start with the claim; turn, request and release; decide
// and wake; claim, start and spend; finish; answer and end.
func (c *cycle) run() error {
	now := time.Now()
	c.row = ringi.RunRow{Space: "default", ID: ringi.NewID("run_", now), Thread: ringi.NewID("thr_", now)}
	request := ringi.NewID("req_", now)
	own := func(k ringi.Commit) *ringi.Commit { k.Owner = c.owner; return &k }

	k := own(ringi.Commit{Claim: true, Row: ringi.RunRow{Status: ringi.Running}})
	if err := c.commit(k, ringi.EventRunStarted); err != nil {
		return err
	}
	c.row.Epoch = 1
	k = own(ringi.Commit{Release: true, Progress: true, Row: ringi.RunRow{Status: ringi.WaitingForApproval, Deadline: now.Add(time.Hour)}})
	k.Requests = []ringi.RequestRow{{Space: "default", ID: request, RunID: c.row.ID, Thread: c.row.Thread, CallID: "call_1",
		Kind: ringi.KindApproval, Tool: "send_mail", State: ringi.Pending, Digest: "0123456789abcdef0123456789abcdef",
		Agent: "clerk", Initiator: "ivy@example.com", Teams: []string{"desk"},
		Text:      "send_mail clerk " + strings.ToLower(request) + " call_1 ivy@example.com please send the money of order a-1017 back to the customer",
		CreatedAt: now, ExpiresAt: now.Add(time.Hour)}}
	if err := c.commit(k, ringi.EventModelResponded, ringi.EventApprovalRequested); err != nil {
		return err
	}
	k = &ringi.Commit{Settle: true, Wake: true, Row: ringi.RunRow{Status: ringi.Queued}, Changes: []ringi.RequestChange{{
		ID: request, From: ringi.Pending, To: ringi.Granted, Live: true, DecidedAt: now, DecidedBy: "ada", UseBy: now.Add(time.Hour)}}}
	if err := c.commit(k, ringi.EventApprovalDecided); err != nil {
		return err
	}
	k = own(ringi.Commit{Claim: true, Epoch: 1, Row: ringi.RunRow{Status: ringi.Running}, Changes: []ringi.RequestChange{{
		ID: request, From: ringi.Granted, To: ringi.Spent, Live: true}}})
	if err := c.commit(k, ringi.EventToolStarted); err != nil {
		return err
	}
	c.row.Epoch = 2
	if err := c.commit(own(ringi.Commit{Progress: true, Row: ringi.RunRow{Status: ringi.Running}}), ringi.EventToolFinished); err != nil {
		return err
	}
	k = own(ringi.Commit{Release: true, Progress: true, Row: ringi.RunRow{Status: ringi.Completed, Reason: ringi.ReasonCompleted}})
	return c.commit(k, ringi.EventModelResponded)
}

func benchStore(b *testing.B) *Store {
	b.Helper()
	s, err := Open(filepath.Join(b.TempDir(), "ringi.db"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	if err := s.Beat(context.Background(), "own_1", time.Hour); err != nil {
		b.Fatal(err)
	}
	return s
}

// rawRate measures how many commits of one small row this disk takes a second.
func rawRate(b *testing.B, n int) float64 {
	b.Helper()
	path := filepath.Join(b.TempDir(), "raw.db")
	db, err := sql.Open("sqlite", dsn(path, "_pragma=busy_timeout(10000)", "_pragma=journal_mode(WAL)", "_pragma=synchronous(FULL)"))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`CREATE TABLE raw (n INTEGER PRIMARY KEY, body TEXT)`); err != nil {
		b.Fatal(err)
	}
	insert, err := db.Prepare(`INSERT INTO raw (body) VALUES (?)`)
	if err != nil {
		b.Fatal(err)
	}
	body := string(bytes.Repeat([]byte("x"), 100))
	start := time.Now()
	for range n {
		if _, err := insert.Exec(body); err != nil {
			b.Fatal(err)
		}
	}
	return float64(n) / time.Since(start).Seconds()
}

// BenchmarkRawCommit is the yardstick: one small row, one synced commit.
func BenchmarkRawCommit(b *testing.B) {
	rate := rawRate(b, b.N)
	b.ReportMetric(rate, "commits/s")
}

// BenchmarkSQLiteCycle1 runs one cycle after the other.
func BenchmarkSQLiteCycle1(b *testing.B) { benchCycles(b, 1) }

// BenchmarkSQLiteCycle64 runs 64 cycles at once. The target is three times the
// raw rate divided by six, the commits of a cycle: x_target of 1 meets it.
func BenchmarkSQLiteCycle64(b *testing.B) { benchCycles(b, 64) }

func benchCycles(b *testing.B, runs int) {
	s := benchStore(b)
	raw := rawRate(b, 1000)
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for range runs {
		wg.Go(func() {
			c := cycle{s: s, owner: "own_1"}
			for n := left.Add(-1); n >= 0; n = left.Add(-1) {
				if err := c.run(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	rate := float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(rate, "cycles/s")
	b.ReportMetric(raw, "raw_commits/s")
	b.ReportMetric(rate/(3*raw/6), "x_target")
}

// BenchmarkSQLiteLoad loads a run of seven records, as Resume and Decide do.
func BenchmarkSQLiteLoad(b *testing.B) {
	s := benchStore(b)
	c := cycle{s: s, owner: "own_1"}
	if err := c.run(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Load(context.Background(), "default", c.row.ID); err != nil {
			b.Fatal(err)
		}
	}
}
