package memory

import (
	"errors"
	"fmt"

	"github.com/ringi-dev/ringi"
)

// shape checks what needs no look at what is stored.
func shape(c *ringi.Commit) error {
	switch {
	case c.Space == "" || c.RunID == "":
		return errors.New("space and run id are needed")
	case c.Expect < 0:
		return errors.New("expected sequence number is negative")
	case c.Claim && c.Owner == "":
		return errors.New("claim names no owner")
	case c.Expect == 0 && (len(c.Records) == 0 || c.Row.Thread == "" || c.Row.Status == ""):
		return errors.New("first commit needs records, a thread and a status")
	}
	for i := range c.Records {
		if want := c.Expect + int64(i) + 1; c.Records[i].Seq != want {
			return fmt.Errorf("record %d has sequence number %d, want %d", i, c.Records[i].Seq, want)
		}
	}
	if c.Settle {
		if err := settlerShape(c); err != nil {
			return err
		}
	}
	for i := range c.Changes {
		ch := &c.Changes[i]
		if ch.Live && ch.Past {
			return fmt.Errorf("change of request %s is both live and past", ch.ID)
		}
		if !moves(ch.From, ch.To) {
			return fmt.Errorf("change of request %s: %q does not move to %q", ch.ID, ch.From, ch.To)
		}
	}
	return requestShape(c)
}

// settlerShape holds a settler to what one may do without a lease.
func settlerShape(c *ringi.Commit) error {
	switch {
	case c.Owner != "":
		return errors.New("settler names an owner")
	case c.Expect == 0:
		return errors.New("settler makes no run")
	case c.Claim || c.Release || c.Progress:
		return errors.New("settler does not claim, release or progress")
	case c.Row.Status == ringi.Running:
		return errors.New("settler gives the status running, not the one that the run has if nobody runs it")
	}
	for i := range c.Records {
		if k := c.Records[i].Kind; !k.Settles() {
			return fmt.Errorf("settler writes %q", k)
		}
	}
	return nil
}

// moves is the table of ringi.RequestState.
func moves(from, to ringi.RequestState) bool {
	switch to {
	case ringi.Granted, ringi.Refused:
		return from == ringi.Pending
	case ringi.Expired, ringi.Withdrawn, ringi.Stale:
		return from == ringi.Pending || from == ringi.Granted
	case ringi.Spent:
		return from == ringi.Granted
	}
	return false
}

func requestShape(c *ringi.Commit) error {
	seen := map[string]bool(nil)
	for i := range c.Requests {
		q := &c.Requests[i]
		if q.ID == "" || q.Space != c.Space || q.RunID != c.RunID {
			return fmt.Errorf("request %q is not one of this run", q.ID)
		}
		if len(c.Requests) == 1 {
			break
		}
		if seen == nil {
			seen = make(map[string]bool, len(c.Requests))
		}
		if seen[q.ID] {
			return fmt.Errorf("request %s is there twice", q.ID)
		}
		seen[q.ID] = true
	}
	return nil
}
