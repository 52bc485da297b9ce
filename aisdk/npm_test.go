package aisdk_test

import (
	"bytes"
	"context"
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
	fmt.Fprintf(w, "%s %s", s.server.URL, s.beside().Serve(t))
}

// beside is what happens in the world beside a page.
func (s *shop) beside() chattest.Beside {
	return chattest.Beside{World: s.World, Desk: func() chattest.Desk { return s.engine }, Who: principal,
		Thread: aisdk.Thread("shop", principal("ana"), "chat-1"), Restart: s.restart}
}
