package house

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

var update = flag.Bool("update", false, "rewrite api.txt")

const root = "../.."

func tree(t *testing.T) []file {
	t.Helper()
	files, err := sources(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestArrows(t *testing.T) {
	for _, b := range brokenArrows(tree(t)) {
		t.Error(b)
	}
}

func TestOneWayToRunATool(t *testing.T) {
	files := tree(t)
	for _, b := range brokenPromises(files) {
		t.Error(b)
	}
	// The checks look at something: the one file and the two functions exist.
	text := read(t, "engine/execute.go") + read(t, "engine/grant.go") + read(t, "policy/rule.go")
	for _, want := range []string{"reg.Handler(", "func grantByPolicy(", "func grantByPerson(", "func Rule("} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is gone: the checks of this test look at nothing", want)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPlantedBreaches shows that each check fails where it must.
func TestPlantedBreaches(t *testing.T) {
	for _, c := range []struct{ name, path, text, want string }{
		{"adapter imports engine", "store/sqlite/x.go", `package sqlite; import _ "github.com/ringi-dev/ringi/engine"`, "must not import"},
		{"root imports policy", "x.go", `package ringi; import _ "github.com/ringi-dev/ringi/policy"`, "must not import"},
		{"engine imports a database", "engine/x.go", `package engine; import _ "github.com/ringi-dev/ringi/store/sqlite"`, "must not import"},
		{"a leaf imports the root", "internal/x/x.go", `package x; import _ "github.com/ringi-dev/ringi"`, "must not import"},
		{"unknown package", "helpers/x.go", `package helpers; import _ "github.com/ringi-dev/ringi"`, "must not import"},
		{"second file asks for a handler", "engine/x.go", `package engine; func f(r reg) { r.Handler("refund") }`, "asks for a handler"},
		{"adapter asks for a handler", "httpapi/x.go", `package httpapi; func f(r reg) { r.Handler("refund") }`, "asks for a handler"},
		{"third function makes a grant", "engine/grant.go", `package engine; func grantAnyway() grant { return grant{callID: "c"} }`, "makes a grant"},
		{"grant in another file", "engine/settle.go", `package engine; func grantByPolicy() grant { return grant{"c"} }`, "makes a grant"},
		{"second rule", "engine/x.go", `package engine; func f() ringi.Verdict { return ringi.Verdict{Source: ringi.SourceEffect} }`, "speaks for the rule"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files, err := sources(fstest.MapFS{c.path: {Data: []byte(c.text)}})
			if err != nil {
				t.Fatal(err)
			}
			found := strings.Join(append(brokenArrows(files), brokenPromises(files)...), "\n")
			if !strings.Contains(found, c.want) {
				t.Errorf("breach is not found: %q", found)
			}
		})
	}
}

// TestAPI compares every public name with api.txt.
func TestAPI(t *testing.T) {
	files := tree(t)
	var got []string
	for _, pkg := range []string{"", "policy", "engine", "sign", "ringitest"} {
		got = append(got, exported(files, pkg)...)
	}
	text := strings.Join(got, "\n") + "\n"
	name := filepath.Join(root, "api.txt")
	if *update {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != text {
		t.Errorf("public names differ from api.txt (go test ./internal/house -update):\n%s", difference(string(want), text))
	}
}

func difference(want, got string) string {
	lines := func(s string) map[string]bool {
		m := map[string]bool{}
		for l := range strings.Lines(s) {
			m[l] = true
		}
		return m
	}
	w, g := lines(want), lines(got)
	var b strings.Builder
	for l := range w {
		if !g[l] {
			b.WriteString("- " + l)
		}
	}
	for l := range g {
		if !w[l] {
			b.WriteString("+ " + l)
		}
	}
	return b.String()
}

// TestConsumer makes a module that imports what a library user does: its
// go.mod lists at most six modules, and no database driver.
func TestConsumer(t *testing.T) {
	if testing.Short() {
		t.Skip("makes a module of its own")
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/consumer\n\ngo 1.26\n\nrequire "+module+" v0.0.0\n\nreplace "+module+" => "+abs+"\n")
	write("main.go", "package main\n\nimport (\n\t_ \""+module+"\"\n\t_ \""+module+"/engine\"\n\t_ \""+module+"/ringitest\"\n)\n\nfunc main() {}\n")
	run := func(args ...string) string {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("mod", "tidy")
	mods := strings.Fields(run("list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "."))
	seen := map[string]bool{}
	for _, m := range mods {
		seen[m] = true
		if strings.Contains(m, "sqlite") || strings.Contains(m, "pgx") {
			t.Errorf("a library user compiles %s", m)
		}
	}
	delete(seen, "example.com/consumer")
	if len(seen) > 6 {
		t.Errorf("a library user compiles %d modules, want at most 6: %v", len(seen), seen)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	for l := range strings.Lines(string(mod)) {
		l = strings.TrimPrefix(strings.TrimSpace(l), "require ")
		if f := strings.Fields(l); len(f) >= 2 && strings.Contains(f[0], "/") && strings.HasPrefix(f[1], "v") {
			listed++
			if strings.Contains(f[0], "sqlite") {
				t.Errorf("go.mod of a library user lists %s", f[0])
			}
		}
	}
	if listed > 6 {
		t.Errorf("go.mod of a library user lists %d modules, want at most 6:\n%s", listed, mod)
	}
}
