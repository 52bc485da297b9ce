package aisdk_test

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
	"github.com/ringi-dev/ringi/aisdk"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/internal/chat/chattest"
	"github.com/ringi-dev/ringi/internal/npmtest"
)

// The real npm packages drive the server: ai and @ai-sdk/react of both majors,
// with React over jsdom. Each scenario of page.mjs is a subtest.
func TestUseChat(t *testing.T) {
	for _, major := range []string{"7", "6"} {
		t.Run("ai"+major, func(t *testing.T) {
			dir := npmtest.Folder(t, filepath.Join("testdata", "npm", "v"+major))
			world := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { newWorld(t, w, r) }))
			defer world.Close()
			play(t, dir, world.URL, major)
		})
	}
}

func play(t *testing.T, dir, world, major string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("testdata", "npm", "page.mjs"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "page.mjs"), page, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	helper, err := filepath.Abs(filepath.Join("..", "examples", "chat", "ringi.ts"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "page.mjs", world, major, helper, os.Getenv("RINGI_SCENARIO"))
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
	if boss := q.Get("deciders"); boss != "" {
		o.config = func(c *engine.Config) { c.Deciders = ringi.Deciders{People: []string{boss}} }
	}
	if q.Get("policy") == "auto" {
		o.config = func(c *engine.Config) {
			c.RuleFloor = false
			c.Approval.Tools = map[string]ringi.ToolApproval{"pay": {Func: func(_ context.Context, i ringi.CallInfo) (ringi.Verdict, error) {
				if strings.Contains(string(i.Call.Input), "eve") {
					return ringi.Verdict{Status: ringi.Denied, Reason: "not eve"}, nil
				}
				return ringi.Verdict{Status: ringi.Approved, Reason: "small"}, nil
			}}}
		}
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

// control does what happens in the world beside a shop's chat.
func (s *shop) control(r *http.Request) (any, error) {
	q, ctx := r.URL.Query(), r.Context()
	switch what := strings.Trim(r.URL.Path, "/"); what {
	case "paid":
		return append([]string{}, s.Payments()...), nil
	case "prompts":
		s.Mu.Lock()
		defer s.Mu.Unlock()
		return len(s.Prompts), nil
	case "gate":
		var n int
		fmt.Sscan(q.Get("n"), &n)
		for range n {
			s.Gate <- struct{}{}
		}
		return nil, nil
	case "status":
		rows, err := s.engine.Runs(ctx, ringi.RunQuery{Thread: aisdk.Thread("shop", principal("ana"), "chat-1"), Limit: 1})
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		return rows[0].Status, nil
	case "decide":
		req, err := s.engine.Request(ctx, q.Get("request"))
		if err != nil {
			return nil, err
		}
		d := req.Deny(principal(q.Get("by")), q.Get("reason"))
		switch q.Get("answer") {
		case "approve":
			d = req.Approve(principal(q.Get("by")))
		case "edit":
			d = req.Edit(principal(q.Get("by")), json.RawMessage(q.Get("input")))
		}
		_, err = s.engine.Decide(ctx, d)
		if err == nil {
			// The worker of this world.
			go s.engine.Resume(context.Background(), req.RunID)
		}
		return nil, err
	case "restart":
		s.restart()
		return nil, nil
	}
	return nil, fmt.Errorf("unknown: %s", r.URL.Path)
}
