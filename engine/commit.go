package engine

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/audit"
	"github.com/ringi-dev/ringi/sign"
)

// change is one commit in the making: events, and what rides with them.
type change struct {
	bodies   []ringi.EventBody
	rows     []ringi.RequestRow
	changes  []ringi.RequestChange
	tools    map[string][]byte
	status   ringi.RunStatus // after the change
	reason   ringi.Reason
	release  bool
	wake     bool
	progress bool
	// follows, of a first commit, is the run that the thread must have last.
	follows string
	// admit is asked in the store's transaction; nil asks nobody.
	admit func(context.Context, ringi.Ledger) error
	// settle marks a settler's change.
	settle bool
	// outside is the activation of a change that puts a request without driving
	// its run.
	outside *activation

	room  [2]ringi.EventBody // most changes hold one or two events
	tried [32]byte           // random bytes of the first record that was made of it
	whole bool               // the records are needed at once: they are handed out, or of a gate
	// stream says that the records are to be handed out: written holds them.
	stream  bool
	written *writing
}

// writing is the memory of one commit on its way to the store, which keeps
// nothing of it.
type writing struct {
	commit  ringi.Commit
	records [2]ringi.Record
	block   []byte // of the records' bytes
}

// writings keeps such memory from one commit to the next.
var writings = sync.Pool{New: func() any { return &writing{} }}

// free gives the memory back. Who may still read it after an error of the
// store is not known: then it is not given back.
func (w *writing) free() {
	if cap(w.block) <= 1<<16 { // one large event shall not hold its memory for ever
		writings.Put(w)
	}
}

// of makes a change in the activation's own memory: one at a time is in the
// making, and a store keeps nothing of it.
func (a *activation) of(body ringi.EventBody, status ringi.RunStatus) *change {
	ch := &a.change
	*ch = change{status: status, progress: true}
	ch.room[0] = body
	ch.bodies = ch.room[:1]
	return ch
}

// add appends events.
func (ch *change) add(bodies ...ringi.EventBody) {
	if ch.bodies == nil {
		ch.bodies = ch.room[:0]
	}
	ch.bodies = append(ch.bodies, bodies...)
}

// lease is the writer's hold on a run. held is false until the first commit
// claims it.
type lease struct {
	owner string
	epoch int64
	held  bool
}

// write makes one commit of the change, and moves the state on. Hashing is
// done here, before the store's lock. l is nil for a settler.
func (e *Engine) write(ctx context.Context, s *state, l *lease, ch *change) error {
	if err := e.mayWrite(); err != nil {
		return err
	}
	now, err := e.now(ctx)
	if err != nil {
		return notRecorded(err)
	}
	at := later(now, s.newest) // a run's time never goes back
	w := writings.Get().(*writing)
	c, chain, err := e.build(w, s, l, ch, at)
	if err != nil {
		return err
	}
	if ch.stream {
		ch.written = w
	}
	if l != nil {
		if err := e.heart.beat(ctx, now); err != nil {
			return notRecorded(err)
		}
	}
	if err := e.commitAdmitted(ctx, c, ch); err != nil {
		if isDefinite(err) {
			return err
		}
		return e.ambiguous(ctx, s, l, c, err)
	}
	for digest := range c.Tools {
		e.kept.Store(digest, true)
	}
	err = s.moved(c, chain, l, ch, at)
	e.tellCommitted(s.id, ch.bodies, chain.Seq)
	if !ch.stream {
		w.free()
	}
	return err
}

func (e *Engine) commitAdmitted(ctx context.Context, c *ringi.Commit, ch *change) error {
	if ch.admit == nil {
		return e.store.Commit(ctx, c)
	}
	store, ok := e.store.(ringi.AdmittingStore)
	if !ok { // a parent's limits, in a store that cannot keep them
		return &refusedEntry{errors.New("this store keeps no ledger")}
	}
	return store.CommitAdmitted(ctx, c, ch.admit)
}

// notRecorded marks a failure before the commit: nothing was written, and it
// may be tried again.
func notRecorded(err error) error {
	if isDefinite(err) {
		return err
	}
	return fmt.Errorf("commit: %w: %w", ringi.ErrNotRecorded, err)
}

// build makes the store's commit of a change.
func (e *Engine) build(w *writing, s *state, l *lease, ch *change, at time.Time) (*ringi.Commit, audit.Chain, error) {
	c := &w.commit
	*c = ringi.Commit{
		Space: s.space, RunID: s.id, Expect: s.chain.Seq, Settle: ch.settle, Release: ch.release,
		Progress: ch.progress, Follows: ch.follows, Requests: ch.rows, Changes: ch.changes, Tools: ch.tools, Wake: ch.wake,
	}
	epoch := s.row.Epoch
	if l != nil {
		c.Owner, c.Epoch, c.Claim = l.owner, l.epoch, !l.held
		if c.Claim {
			c.Epoch = s.row.Epoch
		}
		epoch = c.Epoch
		if c.Claim {
			epoch++
		}
	}
	chain := s.chain
	if len(ch.bodies) > 0 {
		var err error
		if s.sealer != nil || e.drafts && l != nil && !ch.whole && plainID(s.id) {
			c.Sealer = s.sealing(e)
		} else if s.chain.Seq == 0 {
			s.chain = audit.Genesis(e.storeID, s.space, s.id)
		}
		add := s.chain.AppendTo
		if c.Sealer != nil {
			add = s.chain.DraftTo
		}
		if c.Records, chain, err = add(&w.block, w.records[:0], at, epoch, ch.bodies...); err != nil {
			return nil, chain, fmt.Errorf("encode events: %w", err)
		}
		ch.tried = saltOf(&c.Records[0])
	}
	c.Row = s.row
	c.Row.Space, c.Row.ID, c.Row.Status, c.Row.Reason = s.space, s.id, ch.status, ch.reason
	c.Row.Seq, c.Row.Head = chain.Seq, chain.Head
	c.Row.Deadline = time.Time{}
	switch {
	case s.start != nil && s.start.Gate && !ch.status.Final():
		c.Row.Deadline = e.due(s, ch, at)
	case ch.status.Waiting():
		c.Row.Deadline = ch.deadline(s)
	}
	var err error
	if s.sealer == nil {
		c.Row.MAC, err = e.commitMAC(s.id, chain)
	}
	return c, chain, err
}

// sealing is the sealer of the run's drafts: one from the first of them to the
// next reading of the run.
func (s *state) sealing(e *Engine) *audit.Sealer {
	if s.sealer == nil {
		s.sealer = s.chain.Sealer(e.storeID, s.space, s.id, e.draftMAC)
	}
	return s.sealer
}

// deadline is when the last request that is open after the change is past its
// time; zero where one of them never is.
func (ch *change) deadline(s *state) time.Time {
	var last time.Time
	for _, r := range s.openRequests() {
		d := r.ev.ExpiresAt
		if r.state == ringi.Granted {
			d = r.decided.UseBy
		}
		for i := range ch.changes {
			if c := &ch.changes[i]; c.ID == r.ev.Request {
				d = c.UseBy
				if !c.To.Open() {
					d = time.Unix(0, 0)
				}
			}
		}
		if d.IsZero() {
			return time.Time{}
		}
		last = later(last, d)
	}
	for i := range ch.rows {
		if ch.rows[i].ExpiresAt.IsZero() {
			return time.Time{}
		}
		last = later(last, ch.rows[i].ExpiresAt)
	}
	return last
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// moved folds the written events into the state.
func (s *state) moved(c *ringi.Commit, chain audit.Chain, l *lease, ch *change, at time.Time) error {
	epoch := s.row.Epoch
	if c.Claim {
		epoch++
	}
	for i, b := range ch.bodies {
		ev := ringi.Event{Seq: s.chain.Seq + int64(i) + 1, Kind: b.Kind(), At: at, Epoch: epoch, RunID: s.id, Body: b}
		if err := s.apply(&ev); err != nil {
			return fmt.Errorf("apply own change: %w", err)
		}
	}
	s.chain = chain
	s.row.Epoch, s.row.Seq, s.row.Head, s.row.MAC = epoch, chain.Seq, chain.Head, c.Row.MAC
	s.row.Deadline = c.Row.Deadline
	if !ch.settle || s.row.Status.Waiting() || s.row.Status == ringi.Queued {
		s.row.Status, s.row.Reason = ch.status, ch.reason
	}
	if l != nil {
		l.held, l.epoch = !c.Release, epoch
		s.row.Owner = l.owner
		if c.Release {
			s.row.Owner = ""
		}
	}
	return nil
}

// ambiguous looks whether a commit that reported a failure was made: its last
// record is in the log, or it is not.
func (e *Engine) ambiguous(ctx context.Context, s *state, l *lease, c *ringi.Commit, cause error) error {
	ctx = context.WithoutCancel(ctx)
	fresh, err := e.load(ctx, s.space, s.id)
	if errors.Is(err, ringi.ErrNotFound) && c.Expect == 0 {
		return fmt.Errorf("commit: %w: %w", ringi.ErrNotRecorded, cause)
	}
	if err != nil {
		return fmt.Errorf("commit: %w: %w", ringi.ErrNotRecorded, cause)
	}
	made := len(c.Records) > 0 && fresh.has(&c.Records[len(c.Records)-1]) ||
		len(c.Records) == 0 && (c.Claim && fresh.row.Owner == c.Owner && fresh.row.Epoch == c.Epoch+1 || c.Release && fresh.row.Owner == "")
	s.replace(fresh)
	if !made {
		return fmt.Errorf("commit: %w: %w", ringi.ErrNotRecorded, cause)
	}
	if l != nil {
		l.epoch, l.held = fresh.row.Epoch, fresh.row.Owner == l.owner
	}
	return nil
}

// replace takes the place of a state with one read anew.
func (s *state) replace(fresh *state) {
	for _, c := range freshCalls(s) {
		if n := fresh.call(c.judged.ID); n != nil && n.result == nil && n.request == c.request {
			n.verdict, n.asks, n.fresh = c.verdict, c.asks, c.fresh
		}
	}
	*s = *fresh
}

// freshCalls are the open calls that this activation judged itself.
func freshCalls(s *state) []*call {
	var out []*call
	for _, c := range s.unanswered() {
		if c.fresh && c.request == nil {
			out = append(out, c)
		}
	}
	return out
}

// commitMAC authenticates sequence number and head; empty without a keyring.
func (e *Engine) commitMAC(runID string, chain audit.Chain) (string, error) {
	k := e.cfg.Keyring
	if k == nil {
		return "", nil
	}
	var buf [64]byte
	mac, kid, err := k.SignCommit(buf[:0], e.storeID, runID, chain.Seq, chain.Head)
	if err != nil {
		return "", fmt.Errorf("sign commit: %w", err)
	}
	var text [128]byte
	b := append(text[:0], kid...)
	b = append(b, '.')
	b = base64.RawURLEncoding.AppendEncode(b, mac)
	return string(b), nil
}

// macOf is commitMAC for a sealer, whose ids it takes. Where there is none the
// run does not verify, and nothing of it runs.
func (e *Engine) macOf(runID string, chain audit.Chain) string {
	mac, err := e.commitMAC(runID, chain)
	if err != nil {
		e.log.Error("sign commit", "run", runID, "error", err)
	}
	return mac
}

// checkMAC verifies the row's MAC where there is a keyring.
func (e *Engine) checkMAC(row *ringi.RunRow) error {
	k := e.cfg.Keyring
	switch {
	case k == nil && row.MAC != "" && !e.cfg.ReadOnly:
		return fmt.Errorf("%w: the run is signed", ringi.ErrNoKey)
	case k == nil:
		return nil
	case row.MAC == "":
		return errNoMAC
	}
	kid, text, ok := strings.Cut(row.MAC, ".")
	if !ok {
		return errors.New("MAC is malformed")
	}
	var buf [48]byte
	mac, err := base64.RawURLEncoding.AppendDecode(buf[:0], []byte(text))
	if err != nil {
		return errors.New("MAC is malformed")
	}
	err = k.VerifyCommit(e.storeID, row.ID, row.Seq, row.Head, kid, mac)
	if errors.Is(err, sign.ErrRetired) {
		return fmt.Errorf("%w: %w", ringi.ErrNoKey, err)
	}
	return err
}
