package memory

import (
	"time"

	"github.com/ringi-dev/ringi"
)

// make adds a run to its space and thread.
func (d *data) make(c *ringi.Commit, now time.Time) *run {
	sp := d.space(c.Space)
	d.made++
	r := &run{number: d.made, row: ringi.RunRow{
		Space: c.Space, ID: c.RunID, Thread: c.Row.Thread, Agent: c.Row.Agent, Parent: c.Row.Parent, CreatedAt: now,
	}}
	th := sp.threads[c.Row.Thread]
	if th == nil {
		th = &r.begun
		th.runs = th.first[:0]
		sp.threads[c.Row.Thread] = th
	}
	r.thread = th
	sp.runs[c.RunID] = r
	sp.order = append(sp.order, r)
	th.runs = append(th.runs, r)
	return r
}

// write applies an admitted commit to a run and what belongs to it.
func (d *data) write(r *run, c *ringi.Commit, in incoming, now time.Time) {
	row := &r.row
	if n := len(c.Records); n > 0 {
		if c.Sealer != r.sealer {
			r.seal()
		}
		row.Seq, row.Head, row.MAC = c.Expect+int64(n), c.Row.Head, c.Row.MAC
		d.keep(r, c.Records)
		d.feeds(r, n)
		if c.Sealer != nil {
			r.sealer, r.drafts = c.Sealer, r.drafts+n
		}
	}
	if c.Row.Corrupt != "" {
		row.Corrupt = c.Row.Corrupt
	}
	if takesStatus(row.Status, c) {
		row.Status, row.Reason, row.Deadline = c.Row.Status, c.Row.Reason, micros(c.Row.Deadline)
	}
	if c.Claim {
		row.Owner = c.Owner
		row.Epoch++
		row.Attempts++
	}
	if c.Progress {
		row.Attempts = 0
	}
	if c.Release {
		row.Owner = ""
	}
	row.UpdatedAt = now
	d.index(r)
	for _, q := range in.requests {
		sp := d.spaces[c.Space]
		sp.requests[q.row.ID] = q
		sp.byAge.add(q)
		r.requests.add(q)
	}
	for digest, def := range in.tools {
		if _, known := d.tools[digest]; !known {
			d.tools[digest] = def
		}
	}
}

// takesStatus reports whether a commit's status counts. A settler's does where
// the run waits or is queued; it is neither running nor final there.
func takesStatus(was ringi.RunStatus, c *ringi.Commit) bool {
	return c.Row.Status != "" && (!c.Settle || was == ringi.Queued || was.Waiting())
}

// index puts a run among the open ones of the data and of its thread, or takes
// it away. The open ones stay in the order in which they were made.
func (d *data) index(r *run) {
	open, listed := !r.row.Status.Final(), r.prevOpen != nil || d.firstOpen == r
	switch {
	case open && !listed:
		r.thread.open = r
		before := d.lastOpen
		for before != nil && before.number > r.number {
			before = before.prevOpen
		}
		d.link(before, r)
	case !open && listed:
		if r.thread.open == r {
			r.thread.open = nil
		}
		d.unlink(r)
	}
}

// link puts r behind before, or first.
func (d *data) link(before, r *run) {
	after := d.firstOpen
	if before != nil {
		after = before.nextOpen
		before.nextOpen = r
	} else {
		d.firstOpen = r
	}
	r.prevOpen, r.nextOpen = before, after
	if after != nil {
		after.prevOpen = r
	} else {
		d.lastOpen = r
	}
}

func (d *data) unlink(r *run) {
	if r.prevOpen != nil {
		r.prevOpen.nextOpen = r.nextOpen
	} else {
		d.firstOpen = r.nextOpen
	}
	if r.nextOpen != nil {
		r.nextOpen.prevOpen = r.prevOpen
	} else {
		d.lastOpen = r.prevOpen
	}
	r.prevOpen, r.nextOpen = nil, nil
}
