//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

// atServer is a store behind a server, and the variables that reach it.
func atServer(t *testing.T, scenes ...string) (path string, vars []string) {
	t.Helper()
	path, _ = staged(t, nil, scenes...)
	r := serveStore(t, path, nil, access.RoleApprover)
	return path, []string{serverEnv + "=" + r.url, tokenEnv + "=" + r.token}
}

// S-33 at a server: input typed before the prompt decides nothing, and the
// request stands there for a while first.
func TestS33_KeysTypedBeforeThePromptDecideNothingAtAServer(t *testing.T) {
	path, vars := atServer(t, "refund")
	term := atTerminal(t, 100, vars, "approve", "req_1_1_0", "--wait-before-prompt", "700ms")
	term.send("yes\nyes\ny") // while it starts
	term.expect("Exactly what will run")
	term.send("yes\nyes\n") // while it shows
	term.expect("[yes/no] ")
	time.Sleep(300 * time.Millisecond)
	wantState(t, path, "req_1_1_0", ringi.Pending)
	term.send("yes\n")
	term.expect("Approved req_1_1_0 (refund).")
	term.exits(exitDone)
	if state, by := requestState(t, path, "req_1_1_0"); state != ringi.Granted || by != access.LocalID("ann") {
		t.Errorf("request is %s by %q", state, by)
	}
}

// What is approved is what was shown: where something else stands there
// meanwhile nothing is decided, and who was first is told.
func TestS33_WhatIsShownIsWhatIsDecidedAtAServer(t *testing.T) {
	path, vars := atServer(t, "refund")
	term := atTerminal(t, 100, vars, "approve", "req_1_1_0", "--wait-before-prompt", "10ms")
	term.expect("[yes/no] ")
	if got := typed(t, map[string]string{"RINGI_STORE": "sqlite:" + path}, "", "deny", "req_1_1_0", "--reason", "no"); got.code != exitDone {
		t.Fatalf("%+v", got)
	}
	term.send("yes\n")
	term.expect("already decided (denied)")
	term.exits(exitFailed)
	wantState(t, path, "req_1_1_0", ringi.Refused)

	path, vars = atServer(t, "refund")
	term = atTerminal(t, 100, vars, "approve", "req_1_1_0", "--digest", strings.Repeat("0", 64), "--wait-before-prompt", "10ms")
	term.expect("Look at it again with `ringi show`")
	term.exits(exitFailed)
	wantState(t, path, "req_1_1_0", ringi.Pending)
}

// S-10: the editor gets no token.
func TestS10_EditInAnEditorWithoutTheToken(t *testing.T) {
	_, vars := atServer(t, "refund")
	dir := t.TempDir()
	script := filepath.Join(dir, "editor.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nenv > '"+dir+"/env'; sed -i.bak 's/4990/1/' \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	term := atTerminal(t, 100, append(vars, "EDITOR="+script), "edit", "req_1_1_0")
	term.expect("Recorded other input for req_1_1_0")
	term.exits(exitDone)
	env, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil || strings.Contains(string(env), tokenEnv) || !strings.Contains(string(env), "PATH=") {
		t.Errorf("the editor's environment (%v):\n%s", err, env)
	}
}

// Masked values at a server are shown with --reveal, after the server has
// recorded who saw them.
func TestF151_RevealAtAServer(t *testing.T) {
	path, _ := staged(t, nil, "typed")
	s, err := newStage(path, nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	r := serveStore(t, path, s.engine, access.RoleApprover)
	there := map[string]string{serverEnv: r.url, tokenEnv: r.token}
	if got := typed(t, there, "", "fill", "req_1_1_0", "--values", `{"code":"418993","branch":7}`); got.code != exitDone {
		t.Fatalf("%+v", got)
	}
	page, err := s.engine.Requests(t.Context(), ringi.RequestQuery{RunID: "run_1"})
	if err != nil || len(page.Requests) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	id := page.Requests[0].ID
	if got := typed(t, there, "", "show", id); got.code != exitDone || strings.Contains(got.out, "418993") || !strings.Contains(got.out, "masked: /code") {
		t.Errorf("without --reveal: %+v", got)
	}
	if got := typed(t, there, "", "show", id, "--reveal"); got.code != exitDone || !strings.Contains(got.out, "418993") {
		t.Errorf("with --reveal: %+v", got)
	}
	changes, err := r.dir.Changes(t.Context(), operator(), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	if last := changes[len(changes)-1]; last.What != "request.revealed" || last.By != access.LocalID("ann") || last.Target != id || last.Detail != "/code" {
		t.Errorf("recorded: %+v", last)
	}
}
