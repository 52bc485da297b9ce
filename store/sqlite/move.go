package sqlite

import "github.com/ringi-dev/ringi"

// The statements that move a run's row. Every condition on the run stands in
// the statement that moves it; where one moves no row, why finds the reason.

const insertRun = `
	INSERT INTO runs (space, id, thread, agent, parent, status, reason, open, seq, head, mac,
	  owner, epoch, attempts, corrupt, deadline, created_at, updated_at)
	SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
	WHERE (? = '' OR EXISTS (SELECT 1 FROM owners WHERE id = ? AND until > ?))
	  AND (? = '' OR ? = ` + newestRun + `)`

// newestRun is the id of the run that a thread was given last.
const newestRun = `coalesce((SELECT id FROM runs WHERE space = ? AND thread = ? ORDER BY n DESC LIMIT 1), '` + ringi.NoRun + `')`

const (
	updateRun = `
	UPDATE runs SET seq = seq + ?, head = coalesce(?, head), mac = coalesce(?, mac),
	  corrupt = coalesce(?, corrupt), updated_at = ?`
	setStatus   = `, status = ?, reason = ?, deadline = ?`
	setEnd      = `, open = NULL`
	setHeld     = `, owner = ?, attempts = iif(?, 0, attempts)`
	setClaimed  = `, owner = ?, attempts = iif(?, 0, attempts + 1), epoch = epoch + 1`
	setIfNobody = `, status = iif(` + nobodyRuns + `, ?, status), reason = iif(` + nobodyRuns + `, ?, reason),
	  deadline = iif(` + nobodyRuns + `, ?, deadline)`
	nobodyRuns = `open = 1 AND status <> 'running'` // queued, or waiting

	// Time never goes back in a run: a row that is newer than the commit is
	// looked at by why.
	whereRun = `
	WHERE space = ? AND id = ? AND seq = ? AND updated_at <= ? AND (corrupt = '' OR ?)`
	// An ended run stays as it ended.
	andStays     = ` AND (open = 1 OR status = ?)`
	andHeld      = ` AND owner = ? AND epoch = ?`
	andClaimable = ` AND epoch = ?
	  AND EXISTS (SELECT 1 FROM owners WHERE id = ? AND until > ?)
	  AND (owner = '' OR owner = ? OR NOT EXISTS (SELECT 1 FROM owners o WHERE o.id = runs.owner AND o.until > ?))`
	// A settler ends no run.
	andEnded = ` AND open IS NULL`

	holdKeeping  = updateRun + setHeld + whereRun + andHeld
	holdMoving   = updateRun + setHeld + setStatus + whereRun + andHeld + andStays
	holdEnding   = updateRun + setHeld + setStatus + setEnd + whereRun + andHeld + andStays
	claimKeeping = updateRun + setClaimed + whereRun + andClaimable
	claimMoving  = updateRun + setClaimed + setStatus + whereRun + andClaimable + andStays
	claimEnding  = updateRun + setClaimed + setStatus + setEnd + whereRun + andClaimable + andStays
	settleKeep   = updateRun + whereRun
	settleMoving = updateRun + setIfNobody + whereRun
	settleEnded  = updateRun + whereRun + andEnded
)

// create makes a run. A claim needs a living owner; the unique indexes hold
// the run's id and the one open run of its thread.
func (w *writer) create(c *ringi.Commit, now int64) (int64, error) {
	if c.Claim != (c.Owner != "") || c.Claim && c.Epoch != 0 {
		return 0, nil
	}
	owner, epoch, attempts, unended := c.Owner, int64(0), int64(0), any(int64(1))
	if c.Claim {
		epoch, attempts = 1, 1
	}
	if c.Release {
		owner = ""
	}
	if c.Progress {
		attempts = 0
	}
	if c.Row.Status.Final() {
		unended = nil
	}
	return w.exec(insertRun,
		c.Space, c.RunID, c.Row.Thread, c.Row.Agent, c.Row.Parent, string(c.Row.Status), string(c.Row.Reason), unended,
		int64(len(c.Records)), c.Row.Head[:], c.Row.MAC,
		owner, epoch, attempts, c.Row.Corrupt, orNull(c.Row.Deadline), now, now,
		c.Owner, c.Owner, now,
		c.Follows, c.Follows, c.Space, c.Row.Thread)
}

// hold moves a run that the writer holds.
func (w *writer) hold(c *ringi.Commit, now int64) (int64, error) {
	query, moves := holdKeeping, c.Row.Status != ""
	switch {
	case c.Row.Status.Final():
		query = holdEnding
	case moves:
		query = holdMoving
	}
	args := append(w.logArgs(c, now), keptOwner(c), c.Progress)
	if moves {
		args = append(args, string(c.Row.Status), string(c.Row.Reason), orNull(c.Row.Deadline))
	}
	args = append(runArgs(args, c, now), c.Owner, c.Epoch)
	if moves {
		args = append(args, string(c.Row.Status))
	}
	return w.exec(query, args...)
}

// claim takes a run that nobody living holds, and moves it.
func (w *writer) claim(c *ringi.Commit, now int64) (int64, error) {
	query, moves := claimKeeping, c.Row.Status != ""
	switch {
	case c.Row.Status.Final():
		query = claimEnding
	case moves:
		query = claimMoving
	}
	args := append(w.logArgs(c, now), keptOwner(c), c.Progress)
	if moves {
		args = append(args, string(c.Row.Status), string(c.Row.Reason), orNull(c.Row.Deadline))
	}
	args = append(runArgs(args, c, now), c.Epoch, c.Owner, now, c.Owner, now)
	if moves {
		args = append(args, string(c.Row.Status))
	}
	return w.exec(query, args...)
}

// settle appends what a settler brings. The status that it gives counts only
// where nobody runs the run.
func (w *writer) settle(c *ringi.Commit, now int64) (int64, error) {
	args := w.logArgs(c, now)
	switch {
	case c.Row.Status == "":
		return w.exec(settleKeep, runArgs(args, c, now)...)
	case c.Row.Status.Final():
		return w.exec(settleEnded, runArgs(args, c, now)...)
	}
	args = append(args, string(c.Row.Status), string(c.Row.Reason), orNull(c.Row.Deadline))
	return w.exec(settleMoving, runArgs(args, c, now)...)
}

// logArgs begins the arguments of a move: those of updateRun. Without records
// the head stays, and the MAC that binds it.
func (w *writer) logArgs(c *ringi.Commit, now int64) []any {
	var head, mac, corrupt any
	if len(c.Records) > 0 {
		head, mac = c.Row.Head[:], c.Row.MAC
	}
	if c.Row.Corrupt != "" {
		corrupt = c.Row.Corrupt
	}
	if w.moveArgs == nil {
		w.moveArgs = make([]any, 0, 24)
	}
	return append(w.moveArgs[:0], int64(len(c.Records)), head, mac, corrupt, now)
}

// runArgs adds the arguments of whereRun. A corrupt run takes no records and
// no claim.
func runArgs(args []any, c *ringi.Commit, now int64) []any {
	harmless := len(c.Records) == 0 && !c.Claim
	return append(args, c.Space, c.RunID, c.Expect, now, harmless)
}

// keptOwner returns who holds the run after the commit.
func keptOwner(c *ringi.Commit) string {
	if c.Release {
		return ""
	}
	return c.Owner
}
