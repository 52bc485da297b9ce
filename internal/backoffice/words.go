package backoffice

import (
	"fmt"
	"strings"

	"github.com/ringi-dev/ringi"
)

// fate says what became of a call that did not simply run. Each outcome has
// its own sentence: a denial is not a failure, silence is not a no, and what
// nobody knows is said to be unknown.
func fate(what string, r ringi.ToolResult) string {
	switch r.Outcome {
	case ringi.OutcomeDenied:
		if why := reason(r); why != "" {
			return fmt.Sprintf("A colleague said no to %s: “%s”. Nothing was done.", what, why)
		}
		if r.Code == ringi.CodeDeniedByPerson {
			return fmt.Sprintf("A colleague said no to %s, without a reason. Nothing was done.", what)
		}
		return fmt.Sprintf("The rules of this office do not allow %s: %s. Nothing was done.", what, r.Text())
	case ringi.OutcomeExpired:
		return fmt.Sprintf("Nobody decided on %s in time, so it expired. Nothing was done, and nobody said no: you may ask again.", what)
	case ringi.OutcomeInDoubt:
		return fmt.Sprintf("I do not know whether %s went through: the call began, and no answer came. Please look it up before anybody tries again.", what)
	case ringi.OutcomeCancelled:
		return fmt.Sprintf("The run was cancelled before %s: nothing was done.", what)
	case ringi.OutcomeNotExecuted:
		if r.Code == ringi.CodeDidNotRun {
			return fmt.Sprintf("A colleague looked it up: %s did not go through. You may ask again.", what)
		}
		return fmt.Sprintf("I could not go on with %s: %s.", what, r.Text())
	case ringi.OutcomeResponded:
		if _, interrupted := byPerson(r); interrupted {
			return strings.TrimSpace(fmt.Sprintf("A colleague looked it up: %s went through. %s", what, strings.TrimSpace(r.Output)))
		}
		return fmt.Sprintf("A colleague answered in place of %s: %s", what, strings.TrimSpace(r.Output))
	case ringi.OutcomeInvalid:
		return fmt.Sprintf("I asked for %s in a way that is not taken: %s", what, r.Text())
	case ringi.OutcomeError:
		if r.Code == ringi.CodeNotDone {
			return fmt.Sprintf("I could not do it: %s. Nothing was done.", r.Error)
		}
		return fmt.Sprintf("%s failed: %s. It may have been done in part.", capital(what), r.Error)
	}
	return fmt.Sprintf("%s: done.", capital(what))
}

// reason is what a person said in denying.
func reason(r ringi.ToolResult) string {
	if r.Code != ringi.CodeDeniedByPerson {
		return ""
	}
	_, why, _ := strings.Cut(r.Text(), "Reason: ")
	return strings.TrimSpace(why)
}

// byPerson reports whether a person, and not the tool, gave the result; and
// whether it is their word on a call that was interrupted.
func byPerson(r ringi.ToolResult) (answered, interrupted bool) {
	return r.Origin == ringi.OriginPerson, r.Origin == ringi.OriginPerson && strings.Contains(r.Note, "interrupted")
}

// changed reports whether a person changed the input of a call that ran.
func changed(r ringi.ToolResult) bool {
	return r.Outcome == ringi.OutcomeOK && strings.HasPrefix(r.Note, "A person changed the input")
}

// nothingDone reports whether surely nothing came of a call.
func nothingDone(r ringi.ToolResult) bool {
	switch r.Outcome {
	case ringi.OutcomeDenied, ringi.OutcomeExpired, ringi.OutcomeCancelled, ringi.OutcomeNotExecuted, ringi.OutcomeInvalid:
		return true
	}
	return r.Outcome == ringi.OutcomeError && r.Code == ringi.CodeNotDone
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
