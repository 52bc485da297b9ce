package storetest

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
)

// space is the space of every test that does not need two.
const space = "default"

// lease is how long a test's heartbeat lives.
const lease = 30 * time.Second

// records makes records behind sequence number seq, one of each kind. A store
// never looks into them, so that their hashes are no chain.
func records(seq int64, kinds ...ringi.EventKind) []ringi.Record {
	out := make([]ringi.Record, len(kinds))
	for i, k := range kinds {
		n := seq + int64(i) + 1
		salt := sha256.Sum256(fmt.Appendf(nil, "salt %d", n))
		out[i] = ringi.Record{
			Seq: n, Kind: k,
			Head:    fmt.Appendf(nil, `{"v":1,"seq":%d,"kind":%q}`, n, k),
			Payload: fmt.Appendf(nil, `{"text":"payload of %d"}`, n),
			Salt:    salt[:],
			Hash:    sha256.Sum256(fmt.Appendf(nil, "hash %d", n)),
		}
	}
	return out
}

// first makes the commit that makes a run: queued, held by nobody.
func first(run, thread string) *ringi.Commit {
	c := &ringi.Commit{Space: space, RunID: run, Records: records(0, ringi.EventRunStarted)}
	c.Row = ringi.RunRow{Thread: thread, Agent: "clerk", Status: ringi.Queued}
	return headed(c)
}

// started makes the commit that makes a run and claims it for owner.
func started(run, thread, owner string) *ringi.Commit {
	c := first(run, thread)
	c.Owner, c.Claim, c.Row.Status = owner, true, ringi.Running
	return c
}

// next makes the commit that the owner of the row makes next.
func next(row ringi.RunRow, kinds ...ringi.EventKind) *ringi.Commit {
	return headed(&ringi.Commit{
		Space: row.Space, RunID: row.ID, Expect: row.Seq, Owner: row.Owner, Epoch: row.Epoch,
		Records: records(row.Seq, kinds...), Row: row,
	})
}

// claim makes the commit that takes the run for owner.
func claim(row ringi.RunRow, owner string, kinds ...ringi.EventKind) *ringi.Commit {
	c := next(row, kinds...)
	c.Owner, c.Claim, c.Row.Status = owner, true, ringi.Running
	return c
}

// release makes the commit by which the owner of the row gives the run back.
func release(row ringi.RunRow, status ringi.RunStatus, kinds ...ringi.EventKind) *ringi.Commit {
	c := next(row, kinds...)
	c.Release, c.Row.Status = true, status
	return c
}

// settle makes a settler's commit. It gives the status that the run has if
// nobody runs it.
func settle(row ringi.RunRow, kinds ...ringi.EventKind) *ringi.Commit {
	c := next(row, kinds...)
	c.Owner, c.Epoch, c.Settle = "", 0, true
	if row.Status == ringi.Running {
		c.Row.Status = ringi.Queued
	}
	return c
}

// headed gives the row the head and MAC of the newest record.
func headed(c *ringi.Commit) *ringi.Commit {
	if n := len(c.Records); n > 0 {
		c.Row.Head = c.Records[n-1].Hash
		c.Row.MAC = fmt.Sprintf("mac of %s %d", c.RunID, c.Records[n-1].Seq)
	}
	return c
}

// asked makes the row of a pending request of a run.
func asked(row ringi.RunRow, id string, created time.Time) ringi.RequestRow {
	return ringi.RequestRow{
		Space: row.Space, ID: id, RunID: row.ID, Thread: row.Thread, CallID: "call_" + id,
		Kind: ringi.KindApproval, Tool: "send_mail", State: ringi.Pending, Digest: "digest of " + id,
		Agent: "clerk", Initiator: "ivy", People: []string{"ada"}, Teams: []string{"desk"}, Text: "send_mail clerk " + strings.ToLower(id), Risk: ringi.RiskHigh,
		CreatedAt: created, ExpiresAt: created.Add(72 * time.Hour),
	}
}

// approve makes the change by which a person approves at the given time.
func approve(id string, at time.Time) ringi.RequestChange {
	return ringi.RequestChange{ID: id, From: ringi.Pending, To: ringi.Granted, Live: true,
		DecidedAt: at, DecidedBy: "ada", UseBy: at.Add(24 * time.Hour)}
}

// deny makes the change by which a person denies.
func deny(id string, at time.Time) ringi.RequestChange {
	return ringi.RequestChange{ID: id, From: ringi.Pending, To: ringi.Refused, Live: true,
		DecidedAt: at, DecidedBy: "bob"}
}

// spend makes the change that spends an approval.
func spend(id string) ringi.RequestChange {
	return ringi.RequestChange{ID: id, From: ringi.Granted, To: ringi.Spent, Live: true}
}
