package sqlite

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/ringi-dev/ringi"
)

// checkShape refuses a commit that contradicts itself, whatever the store
// holds.
func checkShape(c *ringi.Commit) error {
	switch {
	case c.Space == "":
		return errors.New("no space")
	case c.RunID == "":
		return errors.New("no run")
	case c.Expect < 0:
		return fmt.Errorf("sequence number %d", c.Expect)
	case c.Claim && c.Owner == "":
		return errors.New("a claim without an owner")
	case c.Settle && (c.Owner != "" || c.Claim || c.Release || c.Progress || c.Expect == 0):
		return errors.New("a settler holds no lease and makes no run")
	case c.Settle && c.Row.Status == ringi.Running:
		return errors.New("a settler runs nothing")
	case c.Expect == 0 && (len(c.Records) == 0 || c.Row.Thread == "" || c.Row.Status == ""):
		return errors.New("the first commit needs records, a thread and a status")
	}
	for i, r := range c.Records {
		if want := c.Expect + int64(i) + 1; r.Seq != want {
			return fmt.Errorf("record %d where %d comes next", r.Seq, want)
		}
		if c.Settle && !r.Kind.Settles() {
			return fmt.Errorf("a settler writes no %s", r.Kind)
		}
	}
	for _, ch := range c.Changes {
		if ch.Live && ch.Past {
			return fmt.Errorf("request %s: both live and past", ch.ID)
		}
		if !goes(ch.From, ch.To) {
			return fmt.Errorf("request %s: %s does not become %s", ch.ID, ch.From, ch.To)
		}
	}
	return nil
}

// goes is the table of ringi.RequestState.
func goes(from, to ringi.RequestState) bool {
	switch to {
	case ringi.Granted, ringi.Refused:
		return from == ringi.Pending
	case ringi.Spent:
		return from == ringi.Granted
	case ringi.Expired, ringi.Withdrawn, ringi.Stale:
		return from.Open()
	}
	return false
}

// needsClock reports whether a commit depends on the time so much that it
// waits for a clock that can be trusted: it claims, decides, spends or expires.
func needsClock(c *ringi.Commit) bool {
	if c.Claim {
		return true
	}
	for _, ch := range c.Changes {
		if ch.Live || ch.Past || ch.To == ringi.Granted || ch.To == ringi.Refused || ch.To == ringi.Spent {
			return true
		}
	}
	return false
}

// standing is what decides whether a commit is refused, and why.
type standing struct {
	seq, epoch, updated int64
	owner, corrupt      string
	status              ringi.RunStatus
	ownerLives          bool // the row's owner
	writerLives         bool // the commit's owner
}

// why tells why a commit moved nothing: the first check that fails, in the
// order in which every store checks. Where none fails but the run has a later
// time than the commit, it returns that time.
func (w *writer) why(c *ringi.Commit, now int64) (int64, error) {
	at, err := w.standing(c, now)
	switch {
	case err != nil:
		return 0, err
	case at == nil && c.Expect == 0:
		return now, w.whyNotFirst(c, now)
	case at == nil:
		return 0, ringi.ErrNotFound
	case c.Expect == 0:
		return 0, ringi.ErrConflict
	}
	// What another process has recorded is recorded.
	w.s.clock.advance(at.updated)
	now = max(now, at.updated)
	held := c.Owner != "" && at.owner == c.Owner && at.epoch == c.Epoch
	switch {
	case at.corrupt != "" && (len(c.Records) > 0 || c.Claim):
		return 0, fmt.Errorf("%w: %s", ringi.ErrCorrupt, at.corrupt)
	case c.Claim && at.owner != c.Owner && at.ownerLives:
		return 0, ringi.ErrBusy
	case c.Claim && !at.writerLives:
		return 0, fmt.Errorf("%w: owner %s has no heartbeat", ringi.ErrLeaseLost, c.Owner)
	case !c.Claim && !c.Settle && !held:
		return 0, ringi.ErrLeaseLost
	case at.seq != c.Expect || c.Claim && at.epoch != c.Epoch:
		return 0, ringi.ErrConflict
	case needsClock(c) && now > w.s.clock.horizon():
		return 0, clockError(now)
	case at.status.Final() && !c.Settle && c.Row.Status != "" && c.Row.Status != at.status:
		return 0, ringi.ErrFinal
	case !at.status.Final() && c.Settle && c.Row.Status.Final():
		return 0, errors.New("a settler ends no run")
	}
	return now, nil
}

// whyNotFirst tells why a run was not made.
func (w *writer) whyNotFirst(c *ringi.Commit, now int64) error {
	var lives, open bool
	var newest string
	err := w.tx.QueryRow(`
		SELECT EXISTS (SELECT 1 FROM owners WHERE id = ? AND until > ?),
		  EXISTS (SELECT 1 FROM runs WHERE space = ? AND thread = ? AND open = 1), `+newestRun,
		c.Owner, now, c.Space, c.Row.Thread, c.Space, c.Row.Thread).Scan(&lives, &open, &newest)
	switch {
	case err != nil:
		return w.unrecorded(err)
	case c.Owner != "" && (!c.Claim || !lives):
		return ringi.ErrLeaseLost
	case c.Claim && c.Epoch != 0:
		return ringi.ErrConflict
	case needsClock(c) && now > w.s.clock.horizon():
		return clockError(now)
	case open && !c.Row.Status.Final():
		return ringi.ErrRunOpen
	case c.Follows != "" && c.Follows != newest:
		return fmt.Errorf("%w: the thread's newest run is %s", ringi.ErrConflict, newest)
	}
	return nil
}

func clockError(newest int64) error {
	return fmt.Errorf("%w (%s)", ringi.ErrClock, fromMicros(newest).Format("2006-01-02T15:04:05Z07:00"))
}

// standing reads what the checks need, in the open transaction; nil for no
// run.
func (w *writer) standing(c *ringi.Commit, now int64) (*standing, error) {
	var at standing
	err := w.tx.QueryRow(`
		SELECT seq, epoch, updated_at, owner, corrupt, status,
		  EXISTS (SELECT 1 FROM owners o WHERE o.id = runs.owner AND o.until > ?),
		  EXISTS (SELECT 1 FROM owners WHERE id = ? AND until > ?)
		FROM runs WHERE space = ? AND id = ?`, now, c.Owner, now, c.Space, c.RunID).
		Scan(&at.seq, &at.epoch, &at.updated, &at.owner, &at.corrupt, &at.status, &at.ownerLives, &at.writerLives)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, w.unrecorded(err)
	}
	return &at, nil
}
