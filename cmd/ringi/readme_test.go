//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// The commands that README shows for a server do what it says: they are read
// from the page, and run with the programs that it names.
func TestCommandsOfREADME(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	p := newMachine(t)
	p.write("config/ringi/ringi.yaml", fenced(t, string(page), "yaml", "set: backoffice"))
	s := p.serve()
	made := p.line(exitDone, strings.Fields(strings.TrimPrefix(regexp.MustCompile(`(?m)^ringi token create .*$`).FindString(string(page)), "ringi "))...)
	token := regexp.MustCompile(`ringi_\S+`).FindString(made)
	asked := fenced(t, string(page), "sh", `"text": "Mira`)
	curl, pending, ok := strings.Cut(asked[strings.Index(asked, "curl"):], "\nRINGI_TOKEN=$TOKEN ringi ")
	if token == "" || !ok {
		t.Fatalf("no token in %q, or no command in %q", made, asked)
	}
	if out := curled(t, strings.ReplaceAll(curl, "http://127.0.0.1:7464", s.url), "TOKEN="+token); !strings.Contains(out, `"status":"waiting_for_approval"`) {
		t.Errorf("the run: %s", out)
	}
	p.vars[tokenEnv] = token
	if out := p.line(exitDone, strings.Fields(strings.ReplaceAll(pending, "http://127.0.0.1:7464", s.url))...); !strings.Contains(out, "refund") {
		t.Errorf("what waits: %s", out)
	}
	s.stop(syscall.SIGTERM)
}

// The same of the gate over HTTP, with the agent that README names.
func TestCommandsOfREADMEForLoops(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	p := newMachine(t)
	for _, name := range []string{"ringi.yaml", "tools.json"} {
		text, err := os.ReadFile(filepath.Join("../../examples/http-loop", name))
		if err != nil {
			t.Fatal(err)
		}
		p.write(filepath.Join("config/ringi", name), string(text))
	}
	s := p.serve()
	token := regexp.MustCompile(`ringi_\S+`).FindString(p.line(exitDone, "token", "create", "loop", "--agent", "shop", "--scope", "read", "--scope", "call"))
	if out := curled(t, fenced(t, string(page), "sh", "$URL/v1/calls"), "URL="+s.url, "LOOP="+token); !strings.Contains(out, `"state":"waiting"`) {
		t.Errorf("the call: %s", out)
	}
	s.stop(syscall.SIGTERM)
}

// fenced returns the block of a page that holds a text.
func fenced(t *testing.T, page, kind, holds string) string {
	t.Helper()
	for _, block := range strings.Split(page, "```"+kind+"\n")[1:] {
		if text, _, _ := strings.Cut(block, "```"); strings.Contains(text, holds) {
			return text
		}
	}
	t.Fatalf("README has no block of %s with %q", kind, holds)
	return ""
}

// curled runs a command of a page in a shell, with curl.
func curled(t *testing.T, command string, vars ...string) string {
	t.Helper()
	if out, err := exec.Command("curl", "--help", "all").Output(); err != nil || !strings.Contains(string(out), "--json") {
		t.Skip("there is no curl here that has --json (7.82): the page's commands are not tried")
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Env = append(os.Environ(), vars...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}
