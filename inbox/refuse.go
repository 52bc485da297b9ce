package inbox

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/escape"
)

// refusal is a page that says why something was not done.
type refusal struct {
	Status      int
	Title, Text string
	// Request is the request that it is about; Successor the one that took its
	// place.
	Request, Successor string
	// Kept is what somebody typed and would lose.
	Kept []keptText
}

type keptText struct{ Label, Text string }

// aboutRequest is an error of a form, with what the form held.
type aboutRequest struct {
	err       error
	id        string
	successor string
	kept      []keptText
}

func (e *aboutRequest) Error() string { return e.err.Error() }
func (e *aboutRequest) Unwrap() error { return e.err }

// refusals is the one table from error to status and words.
var refusals = []struct {
	err    error
	status int
	title  string
	text   string
}{
	{ringi.ErrStale, http.StatusConflict, "This page was out of date", "What your page showed is not what would run now. Nothing was decided. Look at the request as it stands, and decide again."},
	{ringi.ErrExpired, http.StatusGone, "The request has expired", "Nobody decided in time. Nothing was decided now, and the call does not run."},
	{ringi.ErrWithdrawn, http.StatusConflict, "The request was withdrawn", "Who asked for it has withdrawn it. Nothing was decided."},
	{ringi.ErrSpent, http.StatusConflict, "The call has begun", "The approval is spent: the call was started already. Nothing was changed."},
	{ringi.ErrNowDenied, http.StatusConflict, "Policy denies the call now", "The rules have changed since the request was put. Nothing runs."},
	{ringi.ErrNotPermitted, http.StatusForbidden, "You may not decide this", "The request's rule names others. Nothing was decided."},
	{ringi.ErrAnswer, http.StatusUnprocessableEntity, "This answer is not taken", "The request does not allow it. Nothing was decided."},
	{ringi.ErrTooLarge, http.StatusRequestEntityTooLarge, "That was too much", "A reason and a note hold at most 8 KiB, an answer 64 KiB. Nothing was decided."},
	{ringi.ErrBusy, http.StatusConflict, "The run is busy", "Another process works on the run at this moment. Nothing was changed; try again."},
	{ringi.ErrConflict, http.StatusConflict, "Somebody was first", "The run moved while you decided. Nothing was decided; look again."},
	{ringi.ErrRunOpen, http.StatusConflict, "The conversation has an open run", "Nothing was started."},
	{ringi.ErrFinal, http.StatusConflict, "The run has ended", "Nothing was changed."},
	{ringi.ErrPolicyMissing, http.StatusServiceUnavailable, "This server lacks the tool", "What judges the run is not here, so nothing can be put anew. Nothing was changed."},
	{ringi.ErrNoKey, http.StatusServiceUnavailable, "This server lacks the key", "It cannot sign. Nothing was decided."},
	{ringi.ErrNotRecorded, http.StatusServiceUnavailable, "It could not be recorded", "The store did not take it. Nothing was decided; try again."},
	{ringi.ErrCorrupt, http.StatusInternalServerError, "The run's log does not verify", "Nothing of this run is shown as true, and nothing of it runs. Tell the operator."},
	{access.ErrCrossOrigin, http.StatusForbidden, "This form is not of your session", "It came from another page, or you have logged in anew since. Nothing was changed. Open the page again."},
	{access.ErrForbidden, http.StatusForbidden, "You may not do this", "Your roles do not have the right. Nothing was changed."},
	{access.ErrInvalid, http.StatusUnprocessableEntity, "The form cannot be read", "Nothing was changed."},
	{access.ErrLogin, http.StatusForbidden, "You are not logged in", "This login was not begun in this browser, was used already, took longer than ten minutes, or what came of it does not hold. Nobody was logged in. Begin again on the log-in page."},
	{access.ErrProvider, http.StatusBadGateway, "The login provider does not answer", "Nobody can log in by it now. Nobody was logged in. Try again in a moment, or tell the operator."},
	{access.ErrNoRole, http.StatusForbidden, "You have no role here", "The login provider knows you, and none of your groups there has a role here. Ask an admin of this inbox, then log in again."},
	{ringi.ErrNoPrincipal, http.StatusUnauthorized, "You are not logged in", "Your session has ended. Nothing was decided. Log in anew."},
	{errNoCount, http.StatusNotImplemented, "Numbers are not counted here", "The service behind this inbox keeps none."},
	{ringi.ErrNotFound, http.StatusNotFound, "There is nothing here", "It does not exist, or it is not yours to see."},
}

// refuse shows an error. What went wrong inside is logged, and not told.
func (in *inbox) refuse(w http.ResponseWriter, r *http.Request, who access.Who, err error) {
	out := refusal{Status: http.StatusInternalServerError, Title: "Something went wrong", Text: "It was written to the server's log. Nothing more is known here."}
	about := (*aboutRequest)(nil)
	if errors.As(err, &about) {
		out.Request, out.Successor, out.Kept = about.id, about.successor, about.kept
	}
	decided := (*ringi.DecidedError)(nil)
	found := false
	switch {
	case errors.As(err, &decided):
		found = true
		out.Status, out.Title, out.Text = http.StatusConflict, "Somebody was first", in.firstWas(decided)
	default:
		for _, line := range refusals {
			if errors.Is(err, line.err) {
				out.Status, out.Title, out.Text, found = line.status, line.title, line.text, true
				break
			}
		}
	}
	if !found {
		in.log.Error("inbox", "path", r.URL.Path, "error", err)
	}
	access.RetryAfter(w, err)
	if err := in.show(w, out.Status, who, page{Name: "refuse", Title: out.Title, Body: out}); err != nil {
		in.log.Error("inbox", "path", r.URL.Path, "error", err)
		http.Error(w, "Something went wrong.", http.StatusInternalServerError)
	}
}

// firstWas says who decided before, and how.
func (in *inbox) firstWas(e *ringi.DecidedError) string {
	name := e.Decision.By.Name
	if name == "" {
		name = e.Decision.By.ID
	}
	if name == "" {
		name = "Somebody else"
	}
	m := in.when(e.At)
	text := fmt.Sprintf("%s was first: the request is %s", escape.Line(name), stateWord(e.State))
	if m.Absolute != "" {
		text += fmt.Sprintf(" (%s, %s)", m.Relative, m.Absolute)
	}
	return text + ". Your answer was not recorded."
}
