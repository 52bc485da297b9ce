package inbox

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/escape"
)

type startBody struct {
	Agents    []ringi.AgentInfo
	Scenarios []Scenario
	Problem   string
	Text      string
}

// maxMessage is the largest first message: 32 KiB.
const maxMessage = 32 << 10

func (in *inbox) startPage(w http.ResponseWriter, r *http.Request, who access.Who) error {
	if err := in.mayStart(who); err != nil {
		return err
	}
	return in.showStart(w, r, who, http.StatusOK, startBody{})
}

func (in *inbox) mayStart(who access.Who) error {
	if !in.o.Start {
		return ringi.ErrNotFound
	}
	return access.May(who, access.RunsStart, access.Own)
}

func (in *inbox) showStart(w http.ResponseWriter, r *http.Request, who access.Who, status int, b startBody) error {
	var err error
	if b.Agents, err = in.service.Agents(r.Context()); err != nil {
		return err
	}
	b.Scenarios = in.o.Scenarios
	return in.show(w, status, who, page{Name: "start", Title: "Start a run", Body: b})
}

// start begins a run and shows it.
func (in *inbox) start(w http.ResponseWriter, r *http.Request, who access.Who) error {
	if err := in.mayStart(who); err != nil {
		return err
	}
	text, agent := strings.TrimSpace(typed(r, "text")), r.PostForm.Get("agent")
	if text == "" || len(text) > maxMessage {
		return in.showStart(w, r, who, http.StatusUnprocessableEntity, startBody{Problem: "Write a message of at most 32 KiB.", Text: text})
	}
	agents, err := in.service.Agents(r.Context())
	if err != nil {
		return err
	}
	if agent == "" && len(agents) > 0 {
		agent = agents[0].Name
	}
	if !slices.ContainsFunc(agents, func(a ringi.AgentInfo) bool { return a.Name == agent }) {
		return ringi.ErrNotFound
	}
	message := ringi.User(text)
	message.Author = who.Principal.ID
	res, err := in.service.Enqueue(r.Context(), ringi.RunStart{Agent: agent, By: who.Principal, Messages: []ringi.Message{message}})
	if err != nil {
		return err
	}
	return in.to(w, r, "/run/"+url.PathEscape(res.RunID))
}

func (in *inbox) help(w http.ResponseWriter, _ *http.Request, who access.Who) error {
	return in.show(w, http.StatusOK, who, page{Name: "help", Title: "Help and keys"})
}

func sortSpans(s [][2]time.Time) {
	slices.SortFunc(s, func(a, b [2]time.Time) int { return a[0].Compare(b[0]) })
}

func escapedAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = escape.Line(s)
	}
	return out
}
