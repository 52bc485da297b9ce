package chattest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
)

// Desk is what somebody at the inbox works with, and the worker that goes on.
type Desk interface {
	ringi.Service
	Resume(ctx context.Context, runID string) (*ringi.Result, error)
}

// Beside is what happens in a world beside a page: a test's script asks for it
// by URL.
type Beside struct {
	World   *World
	Desk    func() Desk // another one after a restart
	Who     func(id string) ringi.Principal
	Thread  string // the page's own
	Restart func()
}

// Serve answers at the URL that it returns, until the test is over.
func (b Beside) Serve(t testing.TB) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out, err := b.do(r.Context(), strings.Trim(r.URL.Path, "/"), r.URL.Query())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func (b Beside) do(ctx context.Context, what string, q url.Values) (any, error) {
	switch what {
	case "paid":
		return append([]string{}, b.World.Payments()...), nil
	case "prompts", "prompted":
		b.World.Mu.Lock()
		defer b.World.Mu.Unlock()
		if what == "prompts" {
			return len(b.World.Prompts), nil
		}
		text, err := json.Marshal(b.World.Prompts)
		return string(text), err
	case "gate":
		var n int
		fmt.Sscan(q.Get("n"), &n)
		for range n {
			b.World.Gate <- struct{}{}
		}
		return nil, nil
	case "status":
		rows, err := b.Desk().Runs(ctx, ringi.RunQuery{Thread: b.Thread, Limit: 1})
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		return rows[0].Status, nil
	case "decide":
		return nil, b.Decide(ctx, q)
	case "restart":
		b.Restart()
		return nil, nil
	}
	return nil, fmt.Errorf("unknown: %s", what)
}

// Decide is somebody at the inbox, and the worker that goes on: request, by,
// answer, reason and input.
func (b Beside) Decide(ctx context.Context, q url.Values) error {
	desk, by := b.Desk(), b.Who(q.Get("by"))
	req, err := desk.Request(ctx, q.Get("request"))
	if err != nil {
		return err
	}
	d := req.Deny(by, q.Get("reason"))
	switch q.Get("answer") {
	case "approve":
		d = req.Approve(by)
	case "edit":
		d = req.Edit(by, json.RawMessage(q.Get("input")))
	}
	if _, err = desk.Decide(ctx, d); err == nil {
		go desk.Resume(context.Background(), req.RunID)
	}
	return err
}
