package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// J. Stale approvals, time of check and time of use, expiry.

// A preview that resolves a path binds what it resolved to: a link that was
// swapped between yes and start makes the request stale, and it is asked again.
func TestF113_ASwappedLinkIsAskedAgain(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "work")
	point := func(to string) {
		os.Remove(link)
		if err := os.MkdirAll(filepath.Join(dir, to), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(dir, to), link); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	point("inside")
	s := newShop(t, turn("write_file", `{"path":"work"}`))
	s.ran.Tool(s.reg, ringi.Tool{Name: "write_file", Effect: ringi.NonIdempotentWrite}, "written", ringi.ToolHooks{
		Preview: func(context.Context, ringi.ToolCall) (ringi.Preview, error) {
			real, err := filepath.EvalSymlinks(link)
			return ringi.Preview{Text: "writes into " + real, Precondition: real}, err
		},
		Check: func(_ context.Context, _ ringi.ToolCall, was string) error {
			if real, err := filepath.EvalSymlinks(link); err != nil || real != was {
				return fmt.Errorf("the path is %s now", real)
			}
			return nil
		},
	})
	res := s.waits(1)
	s.decide(res.Pending[0].Approve(ringitest.Ana))
	point("outside")
	again := s.resume(res.RunID)
	s.nothingRan()
	if len(again.Pending) != 1 || again.Pending[0].ID == res.Pending[0].ID || !strings.HasSuffix(again.Pending[0].Preview.Text, "outside") {
		t.Fatalf("%+v", again)
	}
	s.refuses(res.Pending[0].Approve(ringitest.Ana), ringi.ErrStale)
	s.decide(again.Pending[0].Approve(ringitest.Ana))
	s.ends(res.RunID)
	s.ran.Want(t, "write_file", 1)
}

func TestF115_RulesTightenedWhileWaiting(t *testing.T) {
	ceiling := 0
	s := newShop(t, turn("pay", `{"amount":900}`))
	s.ran.Tool(s.reg, ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite}, "paid")
	s.cfg.Approval.Tools = map[string]ringi.ToolApproval{"pay": ringi.When(func(_ context.Context, in struct {
		Amount int `json:"amount"`
	}, _ ringi.CallInfo) (ringi.Verdict, error) {
		if in.Amount > ceiling {
			return ringi.Verdict{Status: ringi.Denied, Reason: "above the ceiling"}, nil
		}
		return ringi.Verdict{Status: ringi.UserApproval}, nil
	})}
	s.cfg.Deciders = ringi.Deciders{Teams: []string{"cash"}}
	s.cfg.Teams = map[string][]string{"cash": {"ana"}}
	cashier := ringitest.Ana
	cashier.Teams = []string{"cash"}
	approve := func(res *ringi.Result) { s.decide(res.Pending[0].Approve(cashier)) }

	ceiling = 1000
	res := s.waits(1)
	ceiling = 500
	s.refuses(res.Pending[0].Approve(cashier), ringi.ErrNowDenied) // before the yes
	ceiling = 1000
	approve(res)
	ceiling = 500 // and behind it
	if out := s.ends(res.RunID).Results[0]; out.Code != ringi.CodeDeniedByPolicy || !strings.Contains(out.Error, "above the ceiling") {
		t.Errorf("%+v", out)
	}
	s.nothingRan()

	ceiling = 1000
	res = s.waits(1)
	approve(res)
	s.restart(func(c *engine.Config) { c.Disabled = []string{"pay"} })
	if out := s.ends(res.RunID).Results[0]; out.Code != ringi.CodeNotOffered {
		t.Errorf("a disabled tool: %+v", out)
	}
	s.restart(func(c *engine.Config) { c.Disabled = nil })
	res = s.waits(1)
	approve(res)
	s.restart(func(c *engine.Config) { c.Teams = map[string][]string{"cash": {"ben"}} })
	if again := s.resume(res.RunID); len(again.Pending) != 1 || again.Pending[0].ID == res.Pending[0].ID {
		t.Errorf("a decider who left: %+v", again)
	}
	s.nothingRan()

	s.restart(func(c *engine.Config) { c.Teams = s.cfg.Teams })
	res = s.waits(1)
	approve(res)
	s.restart(func(c *engine.Config) { c.RequireApproval = []string{"pay"} }) // asks, and it was asked
	s.ends(res.RunID)
	s.ran.Want(t, "pay", 1)
}

func TestF116_SilenceIsNoConsent(t *testing.T) {
	for _, expiry := range []time.Duration{0, time.Hour} {
		s := newShop(t, turn("delete_file", `{}`))
		s.cfg.Expiry = expiry
		res := s.waits(1)
		s.clock.Advance(72 * time.Hour)
		out := s.ends(res.RunID).Results[0]
		if out.Outcome != ringi.OutcomeExpired || out.Code != ringi.CodeExpired || out.Approval.Decision != "" || out.Approval.By != "" {
			t.Errorf("%+v", out)
		}
		if r, err := s.e.Request(t.Context(), res.Pending[0].ID); err != nil || r.State != ringi.Expired || r.DecidedBy != "" || !r.DecidedAt.IsZero() {
			t.Errorf("%+v, %v", r, err)
		}
		s.nothingRan()
	}
	s := newShop(t, turn("delete_file", `{}`))
	s.cfg.Expiry = -1 // for ever
	res := s.waits(1)
	s.clock.Advance(10 * 365 * 24 * time.Hour)
	if res = s.resume(res.RunID); len(res.Pending) != 1 {
		t.Errorf("%+v", res)
	}
}

func TestF118_ALateClickIsToldSo(t *testing.T) {
	s := newShop(t, turn("refund", `{"amount":1}`))
	res := s.waits(1)
	r := res.Pending[0]
	s.clock.Advance(72 * time.Hour)
	for _, d := range []ringi.Decision{
		r.Approve(ringitest.Ana), r.Edit(ringitest.Ana, json.RawMessage(`{"amount":2}`)), r.Respond(ringitest.Ana, json.RawMessage(`"done"`)), r.Deny(ringitest.Ana, "no"),
	} {
		s.refuses(d, ringi.ErrExpired)
	}
	late := s.attempts(res.RunID)
	if len(late) != 4 || late[0].By != "ana" || !strings.Contains(late[0].Detail, "not executed") {
		t.Errorf("the late attempts are kept as %+v", late)
	}
	s.ends(res.RunID)
	s.nothingRan()
}

func TestF120_LookingChangesNothing(t *testing.T) {
	s := newShop(t, turn("delete_file", `{}`))
	res := s.waits(1)
	before := s.row(res.RunID)
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := s.e.Request(ctx, res.Pending[0].ID); err != nil {
			t.Error(err)
		}
		if _, err := s.e.Requests(ctx, ringi.RequestQuery{}); err != nil {
			t.Error(err)
		}
		s.resume(res.RunID)
		cancel()
		if _, err := s.e.Resume(ctx, res.RunID); !errors.Is(err, context.Canceled) {
			t.Errorf("resume under a cancelled context: %v", err)
		}
		s.clock.Advance(10 * time.Second)
	}
	if after := s.row(res.RunID); after != before {
		t.Errorf("%+v became %+v", before, after)
	}
	s.decide(res.Pending[0].Approve(ringitest.Ana))
	s.ends(res.RunID)
	s.ran.Want(t, "delete_file", 1)
}

// The deadline is compared in the statement that decides and in the one that
// lists: no sweeper has run here.
func TestF121_TheDeadlineNeedsNoSweeper(t *testing.T) {
	s := newShop(t, turn("delete_file", `{}`))
	res := s.waits(1)
	r := res.Pending[0]
	list := func() int {
		page, err := s.e.Requests(t.Context(), ringi.RequestQuery{})
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Requests)
	}
	s.clock.Advance(72*time.Hour - time.Microsecond)
	if n := list(); n != 1 {
		t.Errorf("%d are listed before the deadline", n)
	}
	s.clock.Advance(time.Microsecond)
	if n := list(); n != 0 {
		t.Errorf("%d are listed at the deadline", n)
	}
	if now, err := s.e.Request(t.Context(), r.ID); err != nil || now.State != ringi.Expired {
		t.Errorf("request is %s, %v", now.State, err)
	}
	s.refuses(r.Approve(ringitest.Ana), ringi.ErrExpired)

	res = s.waits(1) // and the yes has a deadline of its own
	s.decide(res.Pending[0].Approve(ringitest.Ana))
	s.clock.Advance(24 * time.Hour)
	again := s.resume(res.RunID)
	if len(again.Pending) != 1 || again.Pending[0].ID == res.Pending[0].ID {
		t.Errorf("an approval past its use_by: %+v", again)
	}
	s.nothingRan()
}

func TestF123_TheWaitOutlivesItsCaller(t *testing.T) {
	s := newShop(t, turn("slow", `{}`), turn("delete_file", `{}`))
	ctx, gone := context.WithCancel(t.Context())
	err := s.reg.Add(ringi.Tool{Name: "slow", Effect: ringi.IdempotentWrite}, s.ran.Handler(func(hctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
		gone() // the request that started the run ends while the call is in flight
		if err := hctx.Err(); err != nil {
			t.Errorf("the handler is cancelled: %v", err)
		}
		return ringi.ToolResult{Output: "slow, and done"}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	s.cfg.Approval.Tools = map[string]ringi.ToolApproval{"slow": {Status: ringi.NotApplicable}}
	if _, err := s.engine().Run(ctx, ringi.RunStart{Messages: []ringi.Message{ringi.User("x")}}); !errors.Is(err, context.Canceled) {
		t.Fatalf("run: %v", err)
	}
	rows, err := s.store.Runs(t.Context(), ringi.RunQuery{Space: "default"})
	if err != nil || len(rows) != 1 || rows[0].Status != ringi.Queued || rows[0].Owner != "" {
		t.Fatalf("%+v, %v", rows, err)
	}
	res := s.resume(rows[0].ID) // goes on with the recorded result
	s.clock.Advance(8 * time.Minute)
	s.decide(res.Pending[0].Approve(ringitest.Ana))
	if res = s.ends(res.RunID); res.Results[0].Output != "slow, and done" {
		t.Errorf("%+v", res.Results)
	}
	s.ran.Want(t, "slow", 1)
	s.ran.Want(t, "delete_file", 1)
}

func TestF125_AnUnansweredRequestEnds(t *testing.T) {
	s := newShop(t, turn("delete_file", `{}`))
	res := s.waits(1)
	more := ringi.RunStart{Thread: res.Thread, By: ringitest.Ben, Messages: []ringi.Message{ringi.User("forget it")}}
	if _, err := s.e.Run(t.Context(), more); !errors.Is(err, ringi.ErrRunOpen) {
		t.Errorf("both at once: %v", err)
	}
	more.WithdrawOpen = true
	s.restart(func(c *engine.Config) {
		c.Model = ringitest.ScriptFunc(func(req ringi.ModelRequest) ringi.ModelTurn {
			if n := len(req.Messages); n != 4 || len(req.Messages[2].Results) != 1 || req.Messages[2].Results[0].Text() == "" {
				t.Errorf("the model reads %+v", req.Messages)
			}
			return ringi.ModelTurn{Text: "Forgotten."}
		})
	})
	if next := s.start(more); next.Text != "Forgotten." {
		t.Errorf("%+v", next)
	}
	if old := s.resume(res.RunID); old.Status != ringi.Cancelled || old.Results[0].Outcome == ringi.OutcomeDenied {
		t.Errorf("%+v", old)
	}
	s.refuses(res.Pending[0].Approve(ringitest.Ana), ringi.ErrWithdrawn)
	s.nothingRan()
}
