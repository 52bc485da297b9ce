package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// C. Duplicate execution, crash windows, races.

func TestF28_OneClickIsOneCall(t *testing.T) {
	press := `{"domain":"button","service":"press","entity_id":"button.gate"}`
	s := newShop(t, turn("send_mail", press, "send_mail", press))
	one, two := s.waits(2), s.waits(2) // two clients, two calls each
	s.decide(one.Pending[0].Approve(ringitest.Ana))
	var wg sync.WaitGroup
	for range 8 {
		for _, id := range []string{one.RunID, two.RunID} {
			wg.Go(func() {
				if _, err := s.engine().Resume(t.Context(), id); err != nil && !errors.Is(err, ringi.ErrBusy) {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	s.decide(one.Pending[1].Deny(ringitest.Ana, "once is enough"))
	s.ends(one.RunID)
	s.ran.Want(t, "send_mail", 1)
	if res := s.resume(two.RunID); len(res.Pending) != 2 {
		t.Errorf("the other client's requests: %+v", res.Pending)
	}
}

// Whatever the point at which the process dies around the effect, an approval
// starts nothing twice: a lost record degrades to unknown, never to runnable.
func TestF30_TheApprovalIsSpentBeforeTheEffect(t *testing.T) {
	ringitest.Crashes(t, func(t *testing.T, c *ringitest.Crash) {
		s := newShop(t, turn("pay", `{"amount":1}`))
		c.Effects.Tool(s.reg, ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite}, "paid")
		c.Engine(s.cfg)
		res := c.Run(ringi.RunStart{})
		asked := res.Pending[0]
		res = c.Settle(res, ringitest.Witness(ringitest.Ana, &c.Effects))
		if err := res.Err(); err != nil {
			t.Error(err)
		}
		c.Effects.WantOnce(t)
		err := c.Do(func(ctx context.Context, e *engine.Engine) error {
			_, err := e.Decide(ctx, asked.Approve(ringitest.Ben))
			return err
		})
		if !errors.Is(err, ringi.ErrSpent) {
			t.Errorf("the approval is used again: %v", err)
		}
	})
}

func TestF31_EffectsBeforeThePauseAreNotRepeated(t *testing.T) {
	s := newShop(t, turn("charge", `{"amount":5}`, "delete_file", `{"path":"a"}`, "send_mail", `{}`))
	s.ran.Tool(s.reg, ringi.Tool{Name: "charge"}, "charged") // undeclared: it runs, and never again
	res := s.waits(2)
	s.ran.Want(t, "charge", 1)
	for _, r := range res.Pending { // answered one by one, a restart each
		s.restart()
		s.decide(r.Approve(ringitest.Ana))
		s.resume(res.RunID)
	}
	s.ends(res.RunID)
	for _, tool := range []string{"charge", "delete_file", "send_mail"} {
		s.ran.Want(t, tool, 1)
	}
}

func TestF33_AnEndedRunGoesOnForNobody(t *testing.T) {
	s := newShop(t, turn("delete_file", `{"path":"a"}`))
	done, gone := s.waits(1), s.waits(1)
	s.decide(done.Pending[0].Approve(ringitest.Ana))
	s.ends(done.RunID)
	if err := s.engine().Cancel(t.Context(), gone.RunID, ringitest.Ana, "", false); err != nil {
		t.Fatal(err)
	}
	s.restart()
	for range 3 {
		if res := s.ends(done.RunID); res.Steps != 2 || len(res.Results) != 1 {
			t.Errorf("%+v", res)
		}
		if res := s.resume(gone.RunID); res.Status != ringi.Cancelled {
			t.Errorf("%+v", res)
		}
	}
	s.refuses(done.Pending[0].Approve(ringitest.Ana), ringi.ErrSpent)
	s.refuses(gone.Pending[0].Approve(ringitest.Ana), ringi.ErrWithdrawn)
	if err := s.e.Cancel(t.Context(), done.RunID, ringitest.Ana, "", true); !errors.Is(err, ringi.ErrFinal) {
		t.Errorf("cancel of an ended run: %v", err)
	}
	s.ran.Want(t, "delete_file", 1)
}

func TestF35_ADoubleClickIsToldWhatStands(t *testing.T) {
	s := newShop(t, turn("delete_file", `{"path":"a"}`))
	for _, click := range []func(ringi.ApprovalRequest) ringi.Decision{
		func(r ringi.ApprovalRequest) ringi.Decision { return r.Approve(ringitest.Ana) },
		func(r ringi.ApprovalRequest) ringi.Decision { return r.Deny(ringitest.Ana, "no") },
	} {
		d := click(s.waits(1).Pending[0])
		s.decide(d)
		first := s.decided(d)
		if got := first.Decision; got.Answer != d.Answer || got.By.ID != d.By.ID || got.Digest != d.Digest {
			t.Errorf("what stands is told as %+v", got)
		}
	}
}

func TestF36_ApproveAndDenyAtOnce(t *testing.T) {
	rounds := 1000
	if testing.Short() {
		rounds = 50
	}
	s := newShop(t, turn("delete_file", `{"path":"a"}`))
	other := ringitest.Beside(t, s.engine())
	for i := range rounds {
		before := s.ran.Of("delete_file")
		res := s.waits(1)
		r := res.Pending[0]
		ds := []ringi.Decision{r.Approve(ringitest.Ana), r.Deny(ringitest.Ben, "no")}
		errs := make([]error, 2)
		var wg sync.WaitGroup
		for k, e := range []*engine.Engine{s.e, other} {
			wg.Go(func() { _, errs[k] = e.Decide(t.Context(), ds[k]) })
		}
		wg.Wait()
		won, lost := 0, 1
		if errs[0] != nil {
			won, lost = 1, 0
		}
		first, ok := errors.AsType[*ringi.DecidedError](errs[lost])
		if errs[won] != nil || !ok || first.Decision.By.ID != ds[won].By.ID || first.Decision.Answer != ds[won].Answer {
			t.Fatalf("round %d: %v and %v", i, errs[0], errs[1])
		}
		if a := s.attempts(res.RunID); len(a) != 1 || a[0].By != ds[lost].By.ID {
			t.Fatalf("round %d: attempts %+v", i, a)
		}
		s.ends(res.RunID)
		if n := s.ran.Of("delete_file") - before; n != 1-won {
			t.Fatalf("round %d: %s won, and the tool ran %d times", i, ds[won].Answer, n)
		}
	}
}

func TestF38_NothingIsHeldWhileAPersonThinks(t *testing.T) {
	s := newShop(t, turn("delete_file", `{"path":"a"}`))
	res := s.waits(1)
	if row := s.row(res.RunID); row.Owner != "" || row.Status != ringi.WaitingForApproval {
		t.Errorf("held by %q as %s", row.Owner, row.Status)
	}
	s.clock.Advance(3 * time.Hour)
	more := ringi.RunStart{Thread: res.Thread, Messages: []ringi.Message{ringi.User("hello?")}}
	if _, err := s.e.Run(t.Context(), more); !errors.Is(err, ringi.ErrRunOpen) {
		t.Errorf("a message on the waiting thread: %v", err)
	}
	s.waits(1) // another thread is free
	s.decide(res.Pending[0].Deny(ringitest.Ana, "no"))
	s.decided(res.Pending[0].Approve(ringitest.Ben))
	s.ends(res.RunID)
	s.nothingRan()
}

func TestF40_AYesIsNeverReused(t *testing.T) {
	inputs := []string{`{"x":1}`, `{"x":1}`, `{"x":1.0}`, `{"x":1,"y":2}`, `{"y":2,"x":1}`}
	var replies []ringitest.Reply
	for _, in := range inputs {
		replies = append(replies, turn("put", in))
	}
	s := newShop(t, replies...)
	res := s.waits(1)
	for i, in := range inputs {
		if len(res.Pending) != 1 || string(res.Pending[0].Call.Input) != in {
			t.Fatalf("call %d %s: pending %+v", i, in, res.Pending)
		}
		s.ran.Want(t, "put", i)
		s.decide(res.Pending[0].Approve(ringitest.Ana))
		res = s.resume(res.RunID)
	}
	if res.Status != ringi.Completed {
		t.Errorf("run is %s", res.Status)
	}
	s.waits(1) // another run asks anew
	s.ran.Want(t, "put", len(inputs))
}

// The id of a request is derived from its run, step and place in the turn, so a
// card that went out before the crash is answered after it.
func TestF41_TheRequestKeepsItsIDOverACrash(t *testing.T) {
	ringitest.Crashes(t, func(t *testing.T, c *ringitest.Crash) {
		s := newShop(t, turn("delete_file", `{"path":"a"}`, "delete_file", `{"path":"b"}`))
		var published []string
		s.cfg.OnApprovalRequired = func(_ context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) {
			stored, err := s.store.Request(context.Background(), "default", r.ID) // recorded first, published second
			if err != nil || stored.Digest != r.Digest {
				t.Errorf("request %s is published and not recorded: %v", r.ID, err)
			}
			published = append(published, r.ID)
			return ringi.Decision{}, errors.New("the approver is out")
		}
		c.Engine(s.cfg)
		res := c.Run(ringi.RunStart{})
		for i, r := range res.Pending {
			if want := fmt.Sprintf("req_%s_1_%d", strings.TrimPrefix(res.RunID, "run_"), i); r.ID != want {
				t.Errorf("request %s, want %s", r.ID, want)
			}
		}
		for _, id := range published {
			if r, err := s.store.Request(context.Background(), "default", id); err != nil || r.State != ringi.Pending {
				t.Errorf("published request %s is %s, %v", id, r.State, err)
			}
		}
		if len(res.Pending) != 2 || len(published) == 0 {
			t.Errorf("%d requests, published %v", len(res.Pending), published)
		}
	})
}
