package inbox

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

// What people do with a request beside answering it.

func (in *inbox) takeBack(w http.ResponseWriter, r *http.Request, who access.Who) error {
	s, err := in.find(r.Context(), who, access.ApprovalsTakeBack, r.PathValue("id"))
	if err != nil {
		return err
	}
	set, err := in.service.TakeBack(r.Context(), s.ID, who.Principal, typed(r, "reason"))
	if err != nil {
		return in.about(r, s, err)
	}
	return in.to(w, r, "/a/"+url.PathEscape(set.Request.ID)+"?done="+escapeQuery(s.ID))
}

func (in *inbox) withdraw(w http.ResponseWriter, r *http.Request, who access.Who) error {
	s, err := in.shownNow(r, who, access.ApprovalsWithdraw)
	if err != nil {
		return err
	}
	if _, err := in.service.Withdraw(r.Context(), s.ID, who.Principal, typed(r, "reason")); err != nil {
		return in.about(r, s, err)
	}
	return in.onward(w, r, who, s.ID)
}

func (in *inbox) reassign(w http.ResponseWriter, r *http.Request, who access.Who) error {
	s, err := in.shownNow(r, who, access.ApprovalsReassign)
	if err != nil {
		return err
	}
	var to ringi.Deciders
	if team := r.PostForm.Get("team"); team != "" {
		to.Teams = []string{team}
	}
	if person := strings.TrimSpace(r.PostForm.Get("person")); person != "" {
		to.People = []string{person}
	}
	if to.IsZero() {
		return in.again(w, r, who, s, "Name a team or a person to hand it over to.")
	}
	if err := in.people.CheckDeciders(r.Context(), to); errors.Is(err, access.ErrInvalid) {
		return in.again(w, r, who, s, "Nobody there could decide it: name a team, or the id of a person who decides. Nothing was changed.")
	} else if err != nil {
		return err
	}
	set, err := in.service.Reassign(r.Context(), s.ID, to, who.Principal, typed(r, "reason"))
	if err != nil {
		return in.about(r, s, err)
	}
	if _, err := in.find(r.Context(), who, access.ApprovalsRead, set.Request.ID); err != nil {
		return in.onward(w, r, who, s.ID) // it is no longer his to see
	}
	return in.to(w, r, "/a/"+url.PathEscape(set.Request.ID))
}

func (in *inbox) extend(w http.ResponseWriter, r *http.Request, who access.Who) error {
	s, err := in.shownNow(r, who, access.ApprovalsExtend)
	if err != nil {
		return err
	}
	more := s.ExpiresAt.Sub(s.CreatedAt) // as long as it was given
	if text := r.PostForm.Get("hours"); text != "same" {
		hours, err := strconv.Atoi(text)
		if err != nil || hours < 1 || hours > 24*30 {
			return access.ErrInvalid
		}
		more = time.Duration(hours) * time.Hour
	}
	// A few seconds pass until the store's clock is asked: a wish for the most
	// that is allowed must not fail by them.
	until := in.now().Add(more - min(10*time.Second, more/10))
	set, err := in.service.Extend(r.Context(), s.ID, until, who.Principal, typed(r, "reason"))
	if errors.Is(err, ringi.ErrAnswer) {
		return in.again(w, r, who, s, "Requests of this agent do not wait that long. Nothing was changed: choose less.")
	}
	if err != nil {
		return in.about(r, s, err)
	}
	return in.to(w, r, "/a/"+url.PathEscape(set.Request.ID))
}

// shownNow returns the request of a form that shows it as it stands.
func (in *inbox) shownNow(r *http.Request, who access.Who, route access.Route) (seen, error) {
	s, err := in.find(r.Context(), who, route, r.PathValue("id"))
	if err != nil {
		return s, err
	}
	if s.State != ringi.Pending || r.PostForm.Get("digest") != s.Digest {
		return s, in.about(r, s, in.whyNot(r.Context(), s, ringi.Decision{Digest: r.PostForm.Get("digest")}))
	}
	return s, nil
}

func (in *inbox) cancel(w http.ResponseWriter, r *http.Request, who access.Who) error {
	row, _, _, _, err := in.runOf(r.Context(), who, access.RunsCancel, r.PathValue("id"))
	if err != nil {
		return err
	}
	if r.PostForm.Get("sure") != "1" {
		return access.ErrInvalid
	}
	if err := in.service.Cancel(r.Context(), row.ID, who.Principal, typed(r, "reason"), false); err != nil {
		return err
	}
	return in.to(w, r, "/run/"+url.PathEscape(row.ID))
}

// look says that somebody still has a request before him, and answers who else
// has.
func (in *inbox) look(w http.ResponseWriter, r *http.Request, who access.Who) error {
	s, err := in.find(r.Context(), who, access.ApprovalsRead, r.PathValue("id"))
	if err != nil {
		return err
	}
	b := requestBody{Looking: []string{}}
	if s.full && s.State == ringi.Pending {
		if err := in.presence(r.Context(), who, s.ID, &b); err != nil {
			return err
		}
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(map[string]any{"looking": escapedAll(b.Looking)})
}
