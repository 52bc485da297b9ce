package inbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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
	// Key is the page's own: each of its forms begins one run, however often it is
	// sent.
	Key string
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
	b.Scenarios, b.Key = in.o.Scenarios, ringi.NewID("key_", in.now())
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
	start := ringi.RunStart{Agent: agent, By: who.Principal, Messages: []ringi.Message{message}}
	if key := r.PostForm.Get("key"); key != "" {
		start.Thread, start.Follows = threadOf(who, agent, text, key), ringi.NoRun
	}
	res, err := in.service.Enqueue(r.Context(), start)
	if err != nil && start.Thread != "" {
		if rows, failed := in.service.Runs(r.Context(), ringi.RunQuery{Thread: start.Thread, Limit: 1}); failed == nil && len(rows) > 0 {
			return in.to(w, r, "/run/"+url.PathEscape(rows[0].ID)) // the form was sent twice
		}
	}
	if err != nil {
		return err
	}
	return in.to(w, r, "/run/"+url.PathEscape(res.RunID))
}

// threadOf is the thread of what a form begins: his own, and nobody's before.
func threadOf(who access.Who, agent, text, key string) string {
	h := sha256.New()
	for _, part := range []string{"ringi-inbox-thread-v1", who.Principal.ID, agent, text, key} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return "thr_" + hex.EncodeToString(h.Sum(nil))[:32]
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
