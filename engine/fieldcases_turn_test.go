package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// D. Turns with several calls, partial answers, the wrong target.

func TestF43_DecisionsAreMatchedByID(t *testing.T) {
	s := newShop(t, turn("delete_file", `{"path":"/tmp/a"}`, "send_mail", `{"to":"a@example.com"}`))
	res := s.waits(2)
	del, mail := res.Pending[0], res.Pending[1]
	s.decide(mail.Approve(ringitest.Ana)) // in the other order
	s.decide(del.Deny(ringitest.Ana, "no"))
	s.decided(mail.Approve(ringitest.Ana)) // a third answer for two calls
	res = s.ends(res.RunID)
	s.ran.Want(t, "send_mail", 1)
	s.ran.Want(t, "delete_file", 0)
	if res.Results[0].Tool != "delete_file" || res.Results[0].Code != ringi.CodeDeniedByPerson || res.Results[1].Output != "ok send_mail" {
		t.Errorf("%+v", res.Results)
	}
}

func TestF45_ADenialSettlesItsOwnCallAlone(t *testing.T) {
	for _, mode := range []ringi.TurnMode{ringi.Eager, ringi.Hold} {
		s := newShop(t, turn("list_files", `{}`, "delete_file", `{"path":"a"}`, "find_order", `{}`))
		s.cfg.TurnMode = mode
		res := s.waits(1)
		s.decide(res.Pending[0].Deny(ringitest.Ana, "no"))
		s.ends(res.RunID)
		s.ran.Want(t, "list_files", 1)
		s.ran.Want(t, "find_order", 1)
		s.ran.Want(t, "delete_file", 0)
		got := s.model.LastResults()
		if len(got) != 3 || got[0].Output != "ok list_files" || got[1].Outcome != ringi.OutcomeDenied || got[2].Output != "ok find_order" {
			t.Errorf("%s: the model reads %+v", mode, got)
		}
	}
}

func TestF46_SiblingsAreJudgedByThemselves(t *testing.T) {
	s := newShop(t, turn("list_files", `{}`, "delete_file", `{}`, "list_files", `{}`, "delete_file", `{}`, "delete_file", `{}`))
	res := s.waits(3)
	s.ran.Want(t, "list_files", 2) // equal calls without ids are two calls
	for _, r := range res.Pending {
		s.decide(r.Approve(ringitest.Ana))
	}
	res = s.ends(res.RunID)
	s.ran.Want(t, "list_files", 2)
	s.ran.Want(t, "delete_file", 3)
	for i, want := range []ringi.Status{ringi.NotApplicable, ringi.UserApproval, ringi.NotApplicable, ringi.UserApproval, ringi.UserApproval} {
		if got := res.Results[i].Approval.Status; got != want {
			t.Errorf("call %d: %s, want %s", i, got, want)
		}
	}
}

func TestF48_AnIncompleteSetIsNeverSent(t *testing.T) {
	s := newShop(t, turn("delete_file", `{"n":1}`, "delete_file", `{"n":2}`, "delete_file", `{"n":3}`))
	res := s.waits(3)
	requests := res.Pending
	for i, r := range requests {
		if n := len(s.model.Requests()); n != 1 {
			t.Errorf("with %d answers the model was asked %d times", i, n)
		}
		set, err := s.engine().Decide(t.Context(), r.Approve(ringitest.Ana))
		if err != nil || set.Remaining != 2-i {
			t.Errorf("%d remain, %v", set.Remaining, err)
		}
		if res = s.resume(res.RunID); len(res.Pending) != 2-i {
			t.Errorf("%d are pending after %d answers", len(res.Pending), i+1)
		}
	}
	if got := s.model.LastResults(); len(got) != 3 || res.Status != ringi.Completed {
		t.Errorf("run is %s, the model reads %+v", res.Status, got)
	}
}

func TestF50_AllRequestsAreListedAndCancelled(t *testing.T) {
	s := newShop(t, turn("delete_file", `{"n":1}`, "send_mail", `{}`))
	res := s.waits(2)
	list := func() int {
		page, err := s.engine().Requests(t.Context(), ringi.RequestQuery{})
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Requests)
	}
	if n := list(); n != 2 {
		t.Errorf("the inbox lists %d", n)
	}
	s.decide(res.Pending[0].Approve(ringitest.Ana))
	if n := list(); n != 1 {
		t.Errorf("the inbox lists %d", n)
	}
	if err := s.e.Cancel(t.Context(), res.RunID, ringitest.Ana, "stop", false); err != nil {
		t.Fatal(err)
	}
	if n := list(); n != 0 {
		t.Errorf("the inbox lists %d", n)
	}
	for _, r := range res.Pending { // the approved one too
		if now, err := s.e.Request(t.Context(), r.ID); err != nil || now.State != ringi.Withdrawn {
			t.Errorf("request %s is %s, %v", r.ID, now.State, err)
		}
	}
	if res = s.resume(res.RunID); res.Status != ringi.Cancelled {
		t.Errorf("run is %s", res.Status)
	}
	s.nothingRan()
}

func TestF51_TheWholeTurnIsJudgedFirst(t *testing.T) {
	s := newShop(t, turn("peek", `{}`, "list_files", `{}`, "nowhere", `{}`, "refund", `{}`))
	judged := make(chan int, 1)
	err := s.reg.Add(ringi.Tool{Name: "peek", Effect: ringi.ReadOnly}, func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
		tc, _ := ringi.ToolContextFrom(ctx)
		run, err := s.store.Load(context.WithoutCancel(ctx), tc.Space, tc.RunID)
		if err == nil && run.Records[len(run.Records)-1].Kind == ringi.EventModelResponded {
			judged <- int(run.Row.Seq)
		}
		return ringi.ToolResult{Output: "seen"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.cfg.Approval.Tools = map[string]ringi.ToolApproval{"refund": {Status: ringi.Denied, Reason: "not today"}}
	res := s.start()
	select {
	case seq := <-judged:
		if seq != 2 {
			t.Errorf("the verdicts are record %d", seq)
		}
	default:
		t.Error("a call ran before the verdicts of its turn were recorded")
	}
	want := []ringi.ResultCode{"", "", ringi.CodeUnknownTool, ringi.CodeDeniedByPolicy}
	for i, r := range res.Results {
		if r.Code != want[i] {
			t.Errorf("call %d: %+v", i, r)
		}
	}
	s.ran.Want(t, "refund", 0)
}

// A request that an earlier run left parks no later one.
func TestF53_AnOldRequestParksNothing(t *testing.T) {
	settle := map[string]func(s *shop, res *ringi.Result) ringi.RunStart{
		"expired": func(s *shop, res *ringi.Result) ringi.RunStart {
			s.clock.Advance(73 * time.Hour)
			if n, err := s.e.Expire(t.Context(), 10); err != nil || n != 1 {
				t.Errorf("expired %d, %v", n, err)
			}
			s.ends(res.RunID)
			return ringi.RunStart{}
		},
		"cancelled": func(s *shop, res *ringi.Result) ringi.RunStart {
			if err := s.e.Cancel(t.Context(), res.RunID, ringitest.Ana, "", false); err != nil {
				t.Error(err)
			}
			return ringi.RunStart{}
		},
		"withdrawn by the next message": func(*shop, *ringi.Result) ringi.RunStart { return ringi.RunStart{WithdrawOpen: true} },
	}
	for name, f := range settle {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, turn("delete_file", `{}`))
			old := s.waits(1)
			s.restart(func(c *engine.Config) {
				c.Model = ringitest.Script(turn("list_files", `{}`), ringitest.Text("Listed."))
			})
			start := f(s, old)
			start.Thread, start.By = old.Thread, ringitest.Ben
			if res := s.start(start); res.Status != ringi.Completed || res.Text != "Listed." {
				t.Errorf("run is %s: %s", res.Status, res.Text)
			}
			s.ran.Want(t, "delete_file", 0)
		})
	}
}
