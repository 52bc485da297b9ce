//go:build unix

package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// step makes the commit that is made over and over: two records, a request and
// a tool, so that one that is half there shows.
func step(run string, seq int64) *ringi.Commit {
	id := fmt.Sprintf("req_%s_%d", run, seq)
	return &ringi.Commit{
		Space: "default", RunID: run, Expect: seq, Settle: true,
		Records: records(seq, ringi.EventInputProposed, ringi.EventRequestClosed),
		Row:     ringi.RunRow{Head: [32]byte{byte(seq + 2)}, MAC: "mac of " + strconv.FormatInt(seq+2, 10)},
		Requests: []ringi.RequestRow{{Space: "default", RunID: run, Thread: "thread of " + run, ID: id,
			State: ringi.Pending, Text: strings.Repeat("text ", rand.IntN(400)), CreatedAt: time.Now()}},
		Tools: map[string][]byte{id: []byte("{}")},
	}
}

// whole checks that a run has at least the records that were acknowledged, no
// gap, and of every commit all parts.
func whole(ctx context.Context, s *Store, run string, acknowledged int64) error {
	r, err := s.Load(ctx, "default", run)
	if err != nil {
		return err
	}
	if r.Row.Seq < acknowledged {
		return fmt.Errorf("run %s has %d records, %d were acknowledged", run, r.Row.Seq, acknowledged)
	}
	if int64(len(r.Records)) != r.Row.Seq || r.Row.Head != r.Records[len(r.Records)-1].Hash {
		return fmt.Errorf("run %s: the row %+v over %d records", run, r.Row, len(r.Records))
	}
	for i, rec := range r.Records {
		if rec.Seq != int64(i)+1 {
			return fmt.Errorf("run %s: record %d stands at %d", run, rec.Seq, i+1)
		}
	}
	for table, query := range map[string]string{
		"requests": `SELECT count(*) FROM requests WHERE space = 'default' AND run = ?`,
		"tools":    `SELECT count(*) FROM tools WHERE digest GLOB 'req_' || ? || '_*'`,
	} {
		var n int64
		if err := s.read.QueryRowContext(ctx, query, run).Scan(&n); err != nil {
			return err
		}
		if n != (r.Row.Seq-1)/2 {
			return fmt.Errorf("run %s: %d %s to %d records", run, n, table, r.Row.Seq)
		}
	}
	return nil
}

func intact(s *Store) error {
	var verdict string
	if err := s.read.QueryRow(`PRAGMA integrity_check`).Scan(&verdict); err != nil || verdict != "ok" {
		return fmt.Errorf("the file is broken: %s, %v", verdict, err)
	}
	return nil
}

const crashRuns = 6

// commitChild commits on several runs at once until it is killed, and says
// what was acknowledged.
func commitChild(args []string) error {
	s, err := Open(args[0], Options{})
	if err != nil {
		return err
	}
	failed := make(chan error)
	for i := range crashRuns {
		run := fmt.Sprintf("run_%s_%d", args[1], i)
		go func() {
			c := first(run)
			c.Row.Head = c.Records[0].Hash
			for seq := int64(1); ; seq += 2 {
				if err := s.Commit(context.Background(), c); err != nil {
					failed <- err
				}
				fmt.Printf("%s %d\n", run, seq) // one write, no buffer
				c = step(run, seq)
			}
		}()
	}
	return <-failed
}

// F126: a process that is killed at any moment loses nothing that was
// acknowledged, and leaves nothing half.
func TestF126_KillAtAnyMoment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	acknowledged := map[string]int64{}
	for round := range 20 {
		cmd := childCommand("commit", path, strconv.Itoa(round))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		var kill sync.Once
		for lines.Scan() {
			kill.Do(func() {
				time.AfterFunc(time.Duration(rand.IntN(60_000))*time.Microsecond, func() { cmd.Process.Kill() })
			})
			var run string
			var seq int64
			if _, err := fmt.Sscanf(lines.Text(), "%s %d", &run, &seq); err == nil { // the last may be cut
				acknowledged[run] = max(acknowledged[run], seq)
			}
		}
		cmd.Wait()
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
			t.Fatalf("the process ended by itself: %v", cmd.ProcessState)
		}
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for run, seq := range acknowledged {
			if err := whole(t.Context(), s, run, seq); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		}
		// What was not acknowledged may be there, but whole.
		runs, err := s.Runs(t.Context(), ringi.RunQuery{Space: "default", Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			if err := whole(t.Context(), s, r.ID, 0); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		}
		if err := errors.Join(intact(s), s.Close()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			return
		}
	}
	total := int64(0)
	for _, seq := range acknowledged {
		total += seq
	}
	t.Logf("%d records acknowledged over 20 kills", total)
	if total < 100 {
		t.Errorf("only %d records were acknowledged", total)
	}
}
