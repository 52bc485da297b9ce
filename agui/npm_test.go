package agui_test

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
	fmt.Fprintf(w, "%s %s", s.server.URL, s.beside().Serve(t))
}

// beside is what happens in the world beside a page.
func (s *shop) beside() chattest.Beside {
	return chattest.Beside{World: s.World, Desk: func() chattest.Desk { return s.engine }, Who: principal,
		Thread: agui.Thread("shop", principal("ana"), "thread-1"), Restart: s.restart}
}
