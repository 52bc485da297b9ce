package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// TestS36_AcceptedClock: the clock was a year ahead and is set right. Nothing
// is decided until an operator says so; then runs of before, of the wrong time
// and of after go on, and their logs are whole and never go back.
func TestS36_AcceptedClock(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{"n":1}`), calls("pay", `{"n":2}`))
	w.cfg.Keyring = keyring(t)
	e := w.engine()
	ctx := t.Context()
	before := w.run(e, ringi.RunStart{By: ana})
	w.advance(365 * 24 * time.Hour)
	wrong := w.run(e, ringi.RunStart{By: ana})
	w.advance(-365 * 24 * time.Hour)
	right := w.now()

	for _, res := range []*ringi.Result{before, wrong} {
		_, err := e.Decide(ctx, res.Pending[0].Approve(ben))
		if err == nil {
			t.Fatal("decided by a clock that is not trusted")
		}
	}
	refuseAccept(t, w)
	a, err := e.AcceptClock(ctx, right.Add(time.Minute), ana, "the battery was empty")
	if err != nil {
		t.Fatal(err)
	}
	if a.By != "ana" || a.Reason != "the battery was empty" || !a.At.Equal(right) || !a.Newest.After(right.Add(364*24*time.Hour)) ||
		len(a.Ahead) != 1 || a.Ahead[0].RequestID != wrong.Pending[0].ID || a.Ahead[0].State != ringi.Pending || a.Ahead[0].RunID != wrong.RunID {
		t.Errorf("accepted: %+v", a)
	}
	if _, err := e.AcceptClock(ctx, right, ana, ""); err == nil || !strings.Contains(err.Error(), "nothing to accept") {
		t.Errorf("accepted again: %v", err)
	}

	w.advance(time.Hour) // the heartbeats of the wrong time are over, and the engine still lives
	after := w.run(e, ringi.RunStart{By: ana})
	for _, res := range []*ringi.Result{before, wrong, after} {
		w.advance(time.Hour)
		set := w.decide(e, res.Pending[0].Approve(ben))
		row, err := w.store.Request(ctx, "default", set.Request.ID)
		if err != nil || !row.DecidedAt.Equal(w.now()) || !row.UseBy.Equal(w.now().Add(24*time.Hour)) {
			t.Errorf("decided: %+v, %v", row, err)
		}
		res = w.resume(e, res.RunID)
		wantStatus(t, res, ringi.WaitingForApproval, 1)
		w.advance(time.Hour)
		w.decide(e, res.Pending[0].Approve(ben))
		wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
		if v, err := e.Verify(ctx, res.RunID); err != nil || v.Broken != "" || v.Decisions != 2 {
			t.Errorf("verify: %+v, %v", v, err)
		}
		neverBack(t, w, res.RunID)
	}
	if w.count("pay") != 6 {
		t.Errorf("%d payments, want 6", w.count("pay"))
	}
}

// refuseAccept tries what must accept nothing.
func refuseAccept(t *testing.T, w *world) {
	t.Helper()
	e := w.engine()
	for _, off := range []time.Duration{-time.Hour, 2*time.Minute + time.Second, 365 * 24 * time.Hour} {
		if _, err := e.AcceptClock(t.Context(), w.now().Add(off), ana, ""); err == nil || !strings.Contains(err.Error(), "set it right first") {
			t.Errorf("a clock that is %s off: %v", off, err)
		}
	}
	_, err := e.AcceptClock(t.Context(), w.now(), ringi.Principal{}, "")
	wantErr(t, err, ringi.ErrNoPrincipal)
	cfg := w.cfg
	w.cfg.ReadOnly = true
	if _, err := w.engine().AcceptClock(t.Context(), w.now(), ana, ""); err == nil {
		t.Error("a read-only engine accepted the clock")
	}
	w.cfg = cfg
	if c, err := w.store.Clock(t.Context()); err != nil || !c.Refuses || len(c.Corrections) != 0 {
		t.Errorf("the clock is %+v, %v", c, err)
	}
}

func neverBack(t *testing.T, w *world, run string) {
	t.Helper()
	stored, err := w.store.Load(t.Context(), "default", run)
	if err != nil {
		t.Fatal(err)
	}
	var last string
	for _, r := range stored.Records {
		head := string(r.Head)
		i := strings.Index(head, `"at":`)
		at, _, _ := strings.Cut(head[i+len(`"at":`):], ",")
		if i < 0 || len(at) < len(last) || at < last {
			t.Errorf("run %s goes back from %s: %s", run, last, head)
		}
		last = at
	}
}
