package backoffice

import (
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
)

// TestFate: every outcome has a sentence of its own, and only those of which it
// is sure say that nothing was done.
func TestFate(t *testing.T) {
	seen := map[string]string{}
	for name, c := range map[string]struct {
		r       ringi.ToolResult
		want    string
		nothing bool
	}{
		"ok":             {ringi.ToolResult{Outcome: ringi.OutcomeOK}, "The refund: done.", false},
		"person's no":    {ringi.ToolResult{Outcome: ringi.OutcomeDenied, Code: ringi.CodeDeniedByPerson, Error: "denied by a person. Reason: too much"}, "said no to the refund: “too much”", true},
		"no reason":      {ringi.ToolResult{Outcome: ringi.OutcomeDenied, Code: ringi.CodeDeniedByPerson, Error: "denied by a person"}, "without a reason", true},
		"policy's no":    {ringi.ToolResult{Outcome: ringi.OutcomeDenied, Code: ringi.CodeDeniedByPolicy, Error: "above the limit. Reason: x"}, "rules of this office do not allow the refund: above the limit", true},
		"expired":        {ringi.ToolResult{Outcome: ringi.OutcomeExpired, Code: ringi.CodeExpired}, "nobody said no", true},
		"unknown":        {ringi.ToolResult{Outcome: ringi.OutcomeInDoubt, Code: ringi.CodeUnknownOutcome}, "I do not know whether the refund went through", false},
		"cancelled":      {ringi.ToolResult{Outcome: ringi.OutcomeCancelled}, "cancelled before the refund", true},
		"did not run":    {ringi.ToolResult{Outcome: ringi.OutcomeNotExecuted, Code: ringi.CodeDidNotRun}, "did not go through", true},
		"withdrawn":      {ringi.ToolResult{Outcome: ringi.OutcomeNotExecuted, Code: ringi.CodeWithdrawn, Error: "withdrawn"}, "could not go on with the refund: withdrawn", true},
		"answered":       {ringi.ToolResult{Outcome: ringi.OutcomeResponded, Origin: ringi.OriginPerson, Output: "by hand"}, "answered in place of the refund: by hand", false},
		"said to be ran": {ringi.ToolResult{Outcome: ringi.OutcomeResponded, Origin: ringi.OriginPerson, Note: "The call was interrupted; a person says that it ran"}, "looked it up: the refund went through.", false},
		"invalid":        {ringi.ToolResult{Outcome: ringi.OutcomeInvalid, Error: "no such key"}, "not taken: no such key", true},
		"not done":       {ringi.ToolResult{Outcome: ringi.OutcomeError, Code: ringi.CodeNotDone, Error: "too much"}, "too much. Nothing was done.", true},
		"failed":         {ringi.ToolResult{Outcome: ringi.OutcomeError, Code: ringi.CodeToolError, Error: "disk full"}, "The refund failed: disk full. It may have been done in part.", false},
	} {
		got := fate("the refund", c.r)
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if nothingDone(c.r) != c.nothing {
			t.Errorf("%s: nothing done is %v", name, !c.nothing)
		}
		if other, twice := seen[got]; twice {
			t.Errorf("%s and %s read the same: %q", name, other, got)
		}
		seen[got] = name
	}
}

// TestReport: asked what happened, the model tells of every write, and reads
// it from the messages.
func TestReport(t *testing.T) {
	s := newStage(t)
	first := s.play("", "Amara Okafor is on the telephone: cancel order A-1057.", answers{"verify_identity": deny("no time")})
	s.play(first.Thread, "Jonas Weber has moved: change the address to Lindenallee 4, 50667 Köln.", nil)
	s.play(first.Thread, "Write to Lena Brandt", answers{"send_mail": deny("not now")})
	res := s.play(first.Thread, "What happened?", nil)
	s.says(res, "The change of address of C-1002: done.", "said no to the mail to lena.brandt@example.com: “not now”")
	s.runs(res, "")
}

// TestTalk reads names, numbers and words out of a sentence.
func TestTalk(t *testing.T) {
	for said, want := range map[string]string{
		"Refund Mira Solheim":                             "Mira Solheim",
		"Please write to Tomasz Wójcik about A-1088":      "Tomasz Wójcik",
		"refund c-1004":                                   "C-1004",
		"refund for rob.vale@example.com, Order Number 7": "rob.vale@example.com",
		"refund my kettle":                                "",
	} {
		if got := (talk{said: said}).person(); got != want {
			t.Errorf("person in %q: %q, want %q", said, got, want)
		}
	}
	got := strings.Join(talk{said: "orders 1031, A-1032, a-1031 of C-1005, in 2026, for x1033@example.com"}.orders(), " ")
	if got != "A-1031 A-1032" {
		t.Errorf("orders: %s", got)
	}
	for said, want := range map[string]bool{"too late": true, "a plate": false, "later": false, "LATE!": true} {
		if (talk{said: said}).has("late ") != want {
			t.Errorf("%q is late: %v", said, !want)
		}
	}
}
