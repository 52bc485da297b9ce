package webhook

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
)

func request(id string, change ...func(*ringi.ApprovalRequested)) *ringi.ApprovalRequested {
	b := &ringi.ApprovalRequested{Request: id, Call: "call_1", Ask: ringi.KindApproval}
	for _, f := range change {
		f(b)
	}
	return b
}

var (
	started  = &ringi.RunStarted{Agent: "office", Thread: "thr_1"}
	turn     = &ringi.ModelResponded{Calls: []ringi.JudgedCall{{ID: "call_1", Tool: "refund", Input: `{"amount":9}`}}}
	finished = &ringi.RunFinished{Status: ringi.Completed, Reason: ringi.ReasonCompleted}
	approved = &ringi.ApprovalDecided{Request: "req_1", Answer: ringi.Approve}
)

// What each course of a run says, in order: each inner list is one commit.
func TestMessagesOfARun(t *testing.T) {
	commits := func(list ...[]ringi.EventBody) [][]ringi.EventBody { return list }
	one := func(b ...ringi.EventBody) []ringi.EventBody { return b }
	closed := func(state ringi.RequestState, successor string) *ringi.RequestClosed {
		return &ringi.RequestClosed{Request: "req_1", State: state, Successor: successor}
	}
	for name, c := range map[string]struct {
		log  [][]ringi.EventBody
		want string
	}{
		"no request": {commits(one(started), one(&ringi.ModelResponded{Finished: finished})),
			"run.finished completed"},
		"approved": {commits(one(started), one(turn, request("req_1")), one(approved), one(&ringi.ToolStarted{Call: "call_1"}), one(&ringi.ToolFinished{}), one(&ringi.ModelResponded{Finished: finished})),
			"approval.requested req_1 pending, run.waiting waiting_for_approval, approval.decided req_1 approved approve, run.resumed running, run.finished completed"},
		"denied": {commits(one(started), one(turn, request("req_1")), one(&ringi.ApprovalDecided{Request: "req_1", Answer: ringi.Deny})),
			"approval.requested req_1 pending, run.waiting waiting_for_approval, approval.decided req_1 denied deny, run.resumed running"},
		"answered in the tool's place": {commits(one(started), one(turn, request("req_1")), one(&ringi.ApprovalDecided{Request: "req_1", Answer: ringi.Respond})),
			"approval.requested req_1 pending, run.waiting waiting_for_approval, approval.decided req_1 spent respond, run.resumed running"},
		"three requests wait once": {commits(one(started), one(turn, request("req_1"), request("req_2"), request("req_3")), one(approved),
			one(&ringi.ApprovalDecided{Request: "req_2", Answer: ringi.Approve}), one(&ringi.ApprovalDecided{Request: "req_3", Answer: ringi.Approve})),
			"approval.requested req_1 pending, approval.requested req_2 pending, approval.requested req_3 pending, run.waiting waiting_for_approval, " +
				"approval.decided req_1 approved approve, approval.decided req_2 approved approve, approval.decided req_3 approved approve, run.resumed running"},
		"edited": {commits(one(started), one(turn, request("req_1")), one(&ringi.InputProposed{Request: "req_1"}),
			one(closed(ringi.Stale, "req_2"), request("req_2", func(b *ringi.ApprovalRequested) { b.Replaces = "req_1" }))),
			"approval.requested req_1 pending, run.waiting waiting_for_approval, approval.stale req_1 stale >req_2, approval.requested req_2 pending <req_1"},
		"expired": {commits(one(started), one(turn, request("req_1")), one(closed(ringi.Expired, ""))),
			"approval.requested req_1 pending, run.waiting waiting_for_approval, approval.expired req_1 expired, run.resumed running"},
		"approved and not used in time": {commits(one(started), one(turn, request("req_1")), one(approved), one(closed(ringi.Expired, ""))),
			"approval.requested req_1 pending, run.waiting waiting_for_approval, approval.decided req_1 approved approve, run.resumed running, approval.expired req_1 expired"},
		"taken back and asked again": {commits(one(started), one(turn, request("req_1")), one(approved), one(&ringi.ApprovalTakenBack{Request: "req_1"}), one(request("req_2"))),
			"approval.requested req_1 pending, run.waiting waiting_for_approval, approval.decided req_1 approved approve, run.resumed running, " +
				"approval.withdrawn req_1 withdrawn, approval.requested req_2 pending, run.waiting waiting_for_approval"},
		"cancelled": {commits(one(started), one(turn, request("req_1")), one(&ringi.CancelRequested{}, closed(ringi.Withdrawn, ""), &ringi.RunFinished{Status: ringi.Cancelled, Reason: ringi.ReasonCancelled})),
			"approval.requested req_1 pending, run.waiting waiting_for_approval, approval.withdrawn req_1 withdrawn, run.finished cancelled"},
		"outcome": {commits(one(started), one(turn), one(&ringi.OutcomeUnknown{Call: "call_1", Request: *request("req_1", func(b *ringi.ApprovalRequested) { b.Ask = ringi.KindOutcome })}),
			one(&ringi.OutcomeSettled{Request: "req_1", Answer: ringi.Ran})),
			"approval.requested req_1 pending, run.waiting waiting_for_outcome, approval.decided req_1 spent ran, run.resumed running"},
		"input": {commits(one(started), one(turn, request("req_1", func(b *ringi.ApprovalRequested) { b.Ask = ringi.KindInput }))),
			"approval.requested req_1 pending, run.waiting waiting_for_input"},
		"approval before input": {commits(one(started), one(turn, request("req_1", func(b *ringi.ApprovalRequested) { b.Ask = ringi.KindInput }), request("req_2"))),
			"approval.requested req_1 pending, approval.requested req_2 pending, run.waiting waiting_for_approval"},
		"gate": {commits(one(started), one(&ringi.CallJudged{Call: ringi.JudgedCall{ID: "call_1", Tool: "refund"}}, request("req_1"))),
			"approval.requested req_1 pending, run.waiting waiting_for_approval"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook()
			for _, commit := range c.log {
				b.add("run_1", commit...)
			}
			all, err := derive("https://ringi.example.org", "default", "run_1", b.runs["run_1"], func(int64) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(said(t, all), ", "); got != c.want {
				t.Errorf("said\n  %s\nwant\n  %s", got, c.want)
			}
			inPieces(t, b, all)
		})
	}
}

// inPieces holds that a log which is read record by record, while it grows, says
// the same as one that is read whole.
func inPieces(t *testing.T, b *book, all []message) {
	t.Helper()
	var got []message
	for _, r := range b.rows {
		if !tells(r.Kind) {
			continue
		}
		part, err := derive("https://ringi.example.org", "default", r.RunID, b.runs[r.RunID], func(seq int64) bool { return seq == r.Seq })
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, part...)
	}
	same := slices.EqualFunc(got, all, func(a, b message) bool { return a.id == b.id && string(a.body) == string(b.body) })
	if !same {
		t.Errorf("in pieces it says %q, whole %q", said(t, got), said(t, all))
	}
	ids := map[string]bool{}
	for _, m := range all {
		if ids[m.id] || strings.ContainsAny(m.id, ". ") {
			t.Errorf("id %q", m.id)
		}
		ids[m.id] = true
	}
}

func said(t *testing.T, list []message) []string {
	t.Helper()
	var out []string
	for _, m := range list {
		var b struct {
			Type Type `json:"type"`
			Data Data `json:"data"`
		}
		if err := json.Unmarshal(m.body, &b); err != nil {
			t.Fatal(err)
		}
		d := b.Data
		text := fmt.Sprint(b.Type)
		for prefix, word := range map[string]string{"": d.RequestID} {
			if word != "" {
				text += " " + prefix + word
			}
		}
		text += " " + d.State
		for _, word := range []struct{ mark, text string }{{"", string(d.Answer)}, {">", d.Successor}, {"<", d.Replaces}} {
			if word.text != "" {
				text += " " + word.mark + word.text
			}
		}
		out = append(out, text)
		if d.Space != "default" || d.RunID != "run_1" || d.Thread != "thr_1" || d.Agent != "office" {
			t.Errorf("where: %+v", d)
		}
		if d.RequestID != "" && (d.Tool != "refund" || d.CallID != "call_1" || d.URL != "https://ringi.example.org/a/"+d.RequestID) {
			t.Errorf("request: %+v", d)
		}
		if d.RequestID == "" && d.URL != "https://ringi.example.org/run/run_1" {
			t.Errorf("run: %+v", d)
		}
	}
	return out
}

// What is erased says nothing, and breaks nothing.
func TestErasedRecordsSayNothing(t *testing.T) {
	b := newBook()
	b.add("run_1", started)
	b.add("run_1", turn, request("req_1"))
	b.add("run_1", approved)
	b.add("run_1", finished)
	for i := range b.runs["run_1"] {
		b.runs["run_1"][i].Body = nil
	}
	if all, err := derive("", "default", "run_1", b.runs["run_1"], func(int64) bool { return true }); len(all) != 0 || err != nil {
		t.Errorf("%d messages, %v", len(all), err)
	}
	b.runs["run_1"][3].Body = approved
	if all, err := derive("", "default", "run_1", b.runs["run_1"], func(int64) bool { return true }); len(all) != 0 || err != nil {
		t.Errorf("a decision on what is erased: %d messages, %v", len(all), err)
	}
}

func TestBodiesAreSmallAndPlain(t *testing.T) {
	b := newBook()
	long := strings.Repeat("a", 100_000)
	b.add("run_1", &ringi.RunStarted{Agent: "office\u202e", Thread: long})
	b.add("run_1", finished)
	all, err := derive("", "default", "run_1", b.runs["run_1"], func(int64) bool { return true })
	if err != nil || len(all) != 1 {
		t.Fatal(len(all), err)
	}
	if body := string(all[0].body); len(body) > 400 || strings.Contains(body, "\u202e") || !strings.Contains(body, `office\u202e`) || strings.Contains(body, "thread") {
		t.Errorf("%s", body)
	}
}
