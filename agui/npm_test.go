package agui_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/agui"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/internal/chat/chattest"
	"github.com/ringi-dev/ringi/internal/npmtest"
)

// The real npm package drives the server. Each scenario of page.mjs is a subtest.
func TestHttpAgent(t *testing.T) {
	dir := npmtest.Folder(t, filepath.Join("testdata", "npm", "v1"))
	page, err := os.ReadFile(filepath.Join("testdata", "npm", "page.mjs"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "page.mjs"), page, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	world := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { newWorld(t, w, r) }))
	defer world.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "page.mjs", world.URL, os.Getenv("RINGI_SCENARIO"))
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("page: %v\n%s", err, errs.String())
	}
	chattest.Report(t, out, errs.String())
}

// newWorld makes a shop for one scenario and says where it is.
func newWorld(t *testing.T, w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	o := opened{sqlite: q.Has("sqlite")}
	if people := q.Get("deciders"); people != "" {
		o.config = func(c *engine.Config) { c.Deciders = ringi.Deciders{People: strings.Split(people, ",")} }
	}
	if q.Has("brief") {
		o.config = func(c *engine.Config) { c.Expiry = 300 * time.Millisecond }
	}
	s := newShop(t, o)
	beside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out, err := s.control(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(beside.Close)
	fmt.Fprintf(w, "%s %s", s.server.URL, beside.URL)
}

// control does what happens in the world beside a shop's page.
func (s *shop) control(r *http.Request) (any, error) {
	q, ctx := r.URL.Query(), r.Context()
	switch what := strings.Trim(r.URL.Path, "/"); what {
	case "paid":
		return append([]string{}, s.Payments()...), nil
	case "prompts":
		s.Mu.Lock()
		defer s.Mu.Unlock()
		return len(s.Prompts), nil
	case "prompted":
		s.Mu.Lock()
		defer s.Mu.Unlock()
		b, err := json.Marshal(s.Prompts)
		return string(b), err
	case "gate":
		var n int
		fmt.Sscan(q.Get("n"), &n)
		for range n {
			s.Gate <- struct{}{}
		}
		return nil, nil
	case "status":
		rows, err := s.engine.Runs(ctx, ringi.RunQuery{Thread: agui.Thread("shop", principal("ana"), "thread-1"), Limit: 1})
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		return rows[0].Status, nil
	case "decide":
		return nil, s.decide(ctx, q.Get("request"), q.Get("answer"), q.Get("by"), q.Get("reason"), q.Get("input"))
	case "restart":
		s.restart()
		return nil, nil
	}
	return nil, fmt.Errorf("unknown: %s", r.URL.Path)
}

// decide is somebody at the inbox, and the worker that goes on.
func (s *shop) decide(ctx context.Context, request, answer, by, reason, input string) error {
	req, err := s.engine.Request(ctx, request)
	if err != nil {
		return err
	}
	d := req.Deny(principal(by), reason)
	switch answer {
	case "approve":
		d = req.Approve(principal(by))
	case "edit":
		d = req.Edit(principal(by), json.RawMessage(input))
	}
	if _, err = s.engine.Decide(ctx, d); err == nil {
		go s.engine.Resume(context.Background(), req.RunID)
	}
	return err
}
