package main

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
)

const root = "../.."

// TestPagesAreWoven fails where a page shows code that has changed since.
func TestPagesAreWoven(t *testing.T) {
	stale, err := weaveAll(root, false, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range stale {
		t.Errorf("%s is stale; type: go run ./internal/weave", page)
	}
}

// TestTryIsAsRecorded runs `ringi try` in a terminal and compares what it
// shows with the recording in README, but for ids, digests and times.
func TestTryIsAsRecorded(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("builds the command and waits for its prompt")
	case runtime.GOOS == "windows":
		t.Skip("there is no pseudo-terminal to record in")
	}
	bin, err := buildRingi(root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	got, err := terminal(bin, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(root, tryRecording))
	if err != nil {
		t.Fatal(err)
	}
	if masked(got) != masked(string(want)) {
		t.Errorf("the terminal shows\n%s\nand the recording is\n%s\ntype: go run ./internal/weave -record", got, want)
	}
}

func TestMaskedKeepsEverythingElse(t *testing.T) {
	const line = "run run_06h2wjrj552bhv1s1y2b215ya4, 12s ago, at 2026-11-30 21:10:01Z, in 2d23h, 49.90 EUR"
	if got, want := masked(line), "run run_ID, SECONDS ago, at TIME, in 2d23h, 49.90 EUR"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

var tree = fstest.MapFS{
	"a/b.go": {Data: []byte("package b\n\n// One is 1.\nconst One = 1\n\n// T is a type.\ntype T struct{}\n\n" +
		"// Say says.\nfunc (t *T) Say() {}\n\n// Go goes.\nfunc Go() {\n\t// down\n}\n")},
	"log.txt":  {Data: []byte("$ ringi try\n\n")},
	"fence.md": {Data: []byte("```go\n```\n")},
	"x.sql":    {Data: []byte("SELECT 1;\n")},
	"x.json":   {Data: []byte("{}")},
	"x.tsx":    {Data: []byte("<p/>")},
}

func TestWeave(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"a whole file", "log.txt", "```text\n$ ringi try\n```\n"},
		{"a function", "a/b.go#Go", "```go\n// Go goes.\nfunc Go() {\n\t// down\n}\n```\n"},
		{"a method", "a/b.go#T.Say", "```go\n// Say says.\nfunc (t *T) Say() {}\n```\n"},
		{"a type", "a/b.go#T", "```go\n// T is a type.\ntype T struct{}\n```\n"},
		{"a constant", "a/b.go#One", "```go\n// One is 1.\nconst One = 1\n```\n"},
		{"a text with a fence", "fence.md", "````text\n```go\n```\n````\n"},
		{"SQL", "x.sql", "```sql\nSELECT 1;\n```\n"},
		{"JSON", "x.json", "```json\n{}\n```\n"},
		{"a page of React", "x.tsx", "```tsx\n<p/>\n```\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			opened := "<!-- weave: " + c.source + " -->\n"
			got, err := weave(tree, "before\n"+opened+"stale\nlines\n<!-- /weave -->\nafter")
			if want := "before\n" + opened + c.want + "<!-- /weave -->\nafter"; err != nil || got != want {
				t.Fatalf("%q, %v, want %q", got, err, want)
			}
			again, err := weave(tree, got)
			if err != nil || again != got {
				t.Errorf("weaving twice gives %q, %v", again, err)
			}
		})
	}
}

func TestWeaveRefuses(t *testing.T) {
	for _, c := range []struct{ name, page, want string }{
		{"an unknown file", "<!-- weave: none.go -->\n<!-- /weave -->\n", "line 1: open none.go"},
		{"an unknown declaration", "<!-- weave: a/b.go#Gone -->\n<!-- /weave -->\n", "there is no declaration Gone"},
		{"a declaration of no Go file", "<!-- weave: log.txt#Go -->\n<!-- /weave -->\n", "log.txt"},
		{"one that is not closed", "a\n<!-- weave: log.txt -->\nb\n", "log.txt is not closed"},
		{"one inside another", "<!-- weave: log.txt -->\n<!-- weave: x.sql -->\n", "line 2: log.txt is not closed"},
		{"one that was never opened", "a\n<!-- /weave -->\n", "line 2: nothing is open here"},
		{"a misspelt marker", "<!-- weave log.txt -->\n", "is no marker"},
		{"a misspelt end", "<!-- weave: log.txt -->\n<!-- / weave -->\n", "log.txt is not closed"},
		{"an indented marker", " <!-- weave: log.txt -->\n", "is no marker"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := weave(tree, c.page)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q, %v, want an error with %q", got, err, c.want)
			}
		})
	}
}

func TestWeaveAll(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("log.txt", "new\n")
	write("README.md", "<!-- weave: log.txt -->\nold\n<!-- /weave -->\n")
	write("docs/deep/page.md", "no code\n")
	stale, err := weaveAll(dir, false, io.Discard)
	if err != nil || len(stale) != 1 || stale[0] != "README.md" {
		t.Fatalf("stale %v, %v", stale, err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "README.md")); !strings.Contains(string(b), "old") {
		t.Errorf("a check wrote %q", b)
	}
	if _, err := weaveAll(dir, true, io.Discard); err != nil {
		t.Fatal(err)
	}
	if stale, err := weaveAll(dir, false, io.Discard); err != nil || len(stale) != 0 {
		t.Errorf("stale after weaving: %v, %v", stale, err)
	}
}

// TestRun is the command: -check says what to type, and an unknown flag is an
// error.
func TestRun(t *testing.T) {
	t.Chdir(filepath.Join(root, "internal"))
	if err := run([]string{"-nope"}, io.Discard); err == nil {
		t.Error("an unknown flag is taken")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module x\n", "log.txt": "new\n", "README.md": "<!-- weave: log.txt -->\n<!-- /weave -->\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	if err := run([]string{"-check"}, io.Discard); err == nil || err.Error() != "README.md stale; type: go run ./internal/weave" {
		t.Errorf("-check: %v", err)
	}
	if err := run(nil, io.Discard); err != nil {
		t.Error(err)
	}
	if err := run([]string{"-check"}, io.Discard); err != nil {
		t.Errorf("-check after weaving: %v", err)
	}
}
