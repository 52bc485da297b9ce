package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/escape"
	"github.com/ringi-dev/ringi/notify"
)

// Notices is what the inbox reaches people by. Book must be given.
type Notices struct {
	Book *notify.Book
	// Mail and Ntfy say which of these channels there are.
	Mail, Ntfy bool
	// PushKey is the public key that browsers subscribe with; empty: no web push.
	PushKey string
	// Try sends a test to each of somebody's addresses; nil offers none.
	Try func(ctx context.Context, user string) ([]notify.Tried, error)
}

// meBody is the page of somebody's own settings.
type meBody struct {
	Notices
	S                      notify.Settings
	At, QuietFrom, QuietTo string
	Minutes                int
	Devices                []meDevice
	Suggest                string
	Problem, Done          string
	Tried                  []meTried
}

type meDevice struct {
	ID, Name string
	// Digest tells the page's script which of them it runs in, without telling the
	// page the endpoint.
	Digest string
	Since  time.Time
}

type meTried struct{ Channel, Name, Problem string }

// done are what a form has led to, by the word in the address.
var done = map[string]string{
	"saved":     "Saved.",
	"code":      "Saved. A mail with a code is on its way to your address: type it below.",
	"confirmed": "Your address is confirmed.",
	"added":     "This device will be notified.",
	"removed":   "The device is forgotten.",
}

func (in *inbox) me(w http.ResponseWriter, r *http.Request, who access.Who) error {
	if in.o.Notices == nil {
		return ringi.ErrNotFound
	}
	s, err := in.o.Notices.Book.Settings(r.Context(), who.Principal.ID)
	if err != nil {
		return err
	}
	return in.showMe(w, r, who, http.StatusOK, meBody{S: s, Done: done[r.URL.Query().Get("done")]})
}

func (in *inbox) showMe(w http.ResponseWriter, r *http.Request, who access.Who, status int, b meBody) error {
	b.Notices = *in.o.Notices
	devices, err := b.Book.Devices(r.Context(), who.Principal.ID)
	if err != nil {
		return err
	}
	for _, d := range devices {
		b.Devices = append(b.Devices, meDevice{d.ID, d.Name, digestOf(d.Endpoint), d.CreatedAt})
	}
	b.At, b.QuietFrom, b.QuietTo, b.Minutes = clockOf(b.S.At), "", "", b.S.Minutes
	if b.S.QuietFrom != b.S.QuietTo {
		b.QuietFrom, b.QuietTo = clockOf(b.S.QuietFrom), clockOf(b.S.QuietTo)
	}
	if b.S.Digest != notify.Daily && b.S.At == 0 {
		b.At = "09:00"
	}
	if b.Minutes == 0 {
		b.Minutes = 30
	}
	// Whoever knows a topic reads it: a good one is not guessed.
	b.Suggest = strings.ToLower(ringi.NewID("ringi-", in.now()))
	return in.show(w, status, who, page{Name: "me", Title: "How you are reached", Count: -1, Body: b})
}

// saveMe takes the form of settings.
func (in *inbox) saveMe(w http.ResponseWriter, r *http.Request, who access.Who) error {
	if in.o.Notices == nil {
		return ringi.ErrNotFound
	}
	book := in.o.Notices.Book
	before, err := book.Settings(r.Context(), who.Principal.ID)
	if err != nil {
		return err
	}
	s, err := in.typedSettings(r, before)
	if err == nil {
		err = book.SetSettings(r.Context(), who.Principal.ID, s)
	}
	if errors.Is(err, notify.ErrSettings) {
		return in.showMe(w, r, who, http.StatusUnprocessableEntity, meBody{S: s, Problem: sentenceOfError(err)})
	}
	if err != nil {
		return err
	}
	if s.Mail != "" && (s.Mail != before.Mail || !before.Confirmed) {
		return in.to(w, r, "/me?done=code")
	}
	return in.to(w, r, "/me?done=saved")
}

// typedSettings reads the form. What a channel that is not there has set before
// stays.
func (in *inbox) typedSettings(r *http.Request, before notify.Settings) (notify.Settings, error) {
	s := before
	if in.o.Notices.Mail {
		s.Mail = strings.TrimSpace(typed(r, "mail"))
	}
	if in.o.Notices.Ntfy {
		s.Topic = strings.TrimSpace(typed(r, "topic"))
	}
	if in.o.Notices.PushKey != "" {
		s.NoPush = typed(r, "push") == ""
	}
	s.Digest, s.Zone = notify.Digest(typed(r, "digest")), strings.TrimSpace(typed(r, "zone"))
	var errs []error
	if s.Digest == notify.Every {
		n, err := strconv.Atoi(strings.TrimSpace(typed(r, "minutes")))
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: the minutes are no number", notify.ErrSettings))
		}
		s.Minutes = n
	}
	s.QuietFrom, s.QuietTo = 0, 0
	for name, to := range map[string]*int{"at": &s.At, "quiet_from": &s.QuietFrom, "quiet_to": &s.QuietTo} {
		text := strings.TrimSpace(typed(r, name))
		if text == "" || name == "at" && s.Digest != notify.Daily {
			continue
		}
		at, err := time.Parse("15:04", text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: %q is no time of day such as 20:30", notify.ErrSettings, text))
		}
		*to = at.Hour()*60 + at.Minute()
	}
	if (typed(r, "quiet_from") == "") != (typed(r, "quiet_to") == "") {
		errs = append(errs, fmt.Errorf("%w: quiet hours have a beginning and an end", notify.ErrSettings))
	}
	if len(errs) > 0 {
		return s, errs[0]
	}
	return s, nil
}

func clockOf(m int) string { return fmt.Sprintf("%02d:%02d", m/60, m%60) }

// sentenceOfError is a refused setting as a page says it.
func sentenceOfError(err error) string {
	text := strings.TrimPrefix(err.Error(), notify.ErrSettings.Error()+": ")
	if text == "" {
		return ""
	}
	return escape.Line(strings.ToUpper(text[:1]) + text[1:] + ".")
}

// confirmMe takes the code that a mail brought.
func (in *inbox) confirmMe(w http.ResponseWriter, r *http.Request, who access.Who) error {
	if in.o.Notices == nil {
		return ringi.ErrNotFound
	}
	ok, err := in.o.Notices.Book.Confirm(r.Context(), who.Principal.ID, typed(r, "code"))
	if err != nil {
		return err
	}
	if ok {
		return in.to(w, r, "/me?done=confirmed")
	}
	s, err := in.o.Notices.Book.Settings(r.Context(), who.Principal.ID)
	if err != nil {
		return err
	}
	return in.showMe(w, r, who, http.StatusUnprocessableEntity, meBody{S: s, Problem: "This is not the code of the last mail."})
}

// tryMe sends a test to each of somebody's addresses.
func (in *inbox) tryMe(w http.ResponseWriter, r *http.Request, who access.Who) error {
	if in.o.Notices == nil || in.o.Notices.Try == nil {
		return ringi.ErrNotFound
	}
	tried, refused := in.o.Notices.Try(r.Context(), who.Principal.ID)
	if refused != nil && !errors.Is(refused, notify.ErrSettings) {
		return refused
	}
	s, err := in.o.Notices.Book.Settings(r.Context(), who.Principal.ID)
	if err != nil {
		return err
	}
	b := meBody{S: s}
	if refused != nil {
		b.Problem = sentenceOfError(refused)
		return in.showMe(w, r, who, http.StatusTooManyRequests, b)
	}
	for _, t := range tried {
		one := meTried{Channel: string(t.Channel), Name: escape.Line(t.Name)}
		if t.Err != nil {
			one.Problem = escape.Line(t.Err.Error())
		}
		b.Tried = append(b.Tried, one)
	}
	if len(tried) == 0 {
		b.Problem = "There is no way to reach you yet: choose one below."
	}
	return in.showMe(w, r, who, http.StatusOK, b)
}

// digestOf names an endpoint for the page's script, which knows its own.
func digestOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
