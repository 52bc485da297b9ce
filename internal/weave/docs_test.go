package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
	"github.com/ringi-dev/ringi/store/memory"
)

// The pages say what is in the code. These tests hold every name, test, file,
// command and link that they mention against it.

// packages are those that a page may qualify a name with.
var packages = map[string]string{
	"ringi": ".", "engine": "engine", "policy": "policy", "sign": "sign", "audit": "audit", "memory": "store/memory",
	"sqlite": "store/sqlite", "storetest": "store/storetest", "ringitest": "ringitest",
	"provider": "provider", "openai": "provider/openai", "anthropic": "provider/anthropic", "providertest": "provider/providertest",
}

// names is what a package declares: Name, Type.Field and Type.Method.
type names map[string]bool

func declared(t *testing.T, dir string) names {
	t.Helper()
	out := names{}
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			out.add(d)
		}
	}
	return out
}

func (n names) add(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			n[receiver(d.Recv.List[0].Type)+"."+d.Name.Name] = true
			return
		}
		n[d.Name.Name] = true
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, id := range s.Names {
					n[id.Name] = true
				}
			case *ast.TypeSpec:
				n[s.Name.Name] = true
				n.members(s)
			}
		}
	}
}

func (n names) members(s *ast.TypeSpec) {
	var list *ast.FieldList
	switch t := s.Type.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return
	}
	for _, f := range list.List {
		for _, id := range f.Names {
			n[s.Name.Name+"."+id.Name] = true
		}
	}
}

// page is one page with its text outside fenced blocks, and inside those that
// are not woven.
type page struct{ name, prose, code string }

func pages(t *testing.T) []page {
	t.Helper()
	tree := os.DirFS(root)
	list, err := pagesOf(tree)
	if err != nil {
		t.Fatal(err)
	}
	var out []page
	for _, name := range list {
		b, err := fs.ReadFile(tree, name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, split(name, string(b)))
	}
	if len(out) < 15 {
		t.Fatalf("only %d pages are found: these tests look at nothing", len(out))
	}
	return out
}

func split(name, text string) page {
	p := page{name: name}
	fenced, woven := false, false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "<!-- weave:"):
			woven = true
		case strings.HasPrefix(line, "<!-- /weave"):
			woven = false
		case woven:
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case fenced:
			p.code += line
		default:
			p.prose += line
		}
	}
	return p
}

var (
	span      = regexp.MustCompile("`[^`\n]+`")
	qualified = regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*(?:\.[A-Z]\w*)?)`)
)

// TestNamesExist holds every qualified name of the pages, and every link of
// doc.go, against the packages.
func TestNamesExist(t *testing.T) {
	known := map[string]names{}
	for pkg, dir := range packages {
		known[pkg] = declared(t, dir)
	}
	checked := 0
	for _, p := range pages(t) {
		for _, text := range append(span.FindAllString(p.prose, -1), p.code) {
			for _, m := range qualified.FindAllStringSubmatch(text, -1) {
				if known[m[1]] == nil {
					continue // a package of another project
				}
				checked++
				if !known[m[1]][m[2]] {
					t.Errorf("%s: there is no %s.%s", p.name, m[1], m[2])
				}
			}
		}
	}
	doc, err := os.ReadFile(filepath.Join(root, "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`\[([A-Z][\w.]*)\]`).FindAllStringSubmatch(string(doc), -1) {
		checked++
		if !known["ringi"][m[1]] {
			t.Errorf("doc.go: there is no %s", m[1])
		}
	}
	if checked < 200 {
		t.Errorf("only %d names were checked", checked)
	}
}

// testNames are all tests, examples, benchmarks and fuzz targets, and the
// terminal sessions of the command.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	declares := regexp.MustCompile(`(?m)^func ((?:Test|Example|Benchmark|Fuzz)\w*)\(`)
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
			return err
		case strings.HasSuffix(name, ".txtar"):
			out[path.Base(name)] = true
		case strings.HasSuffix(name, "_test.go"):
			b, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				return err
			}
			for _, m := range declares.FindAllStringSubmatch(string(b), -1) {
				out[m[1]] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var (
	testName = regexp.MustCompile("^`((?:Test|Example|Benchmark|Fuzz)\\w*|[a-z]+\\.txtar)(?:/[^`]*)?`$")
	fileName = regexp.MustCompile("^`([\\w./-]+\\.(?:go|md|sql|txt|json|jsonl))(?:`|#)")
	folder   = regexp.MustCompile("^`((?:audit|cmd|docs|engine|examples|internal|policy|ringitest|scripts|sign|store|tools)(?:/[\\w.-]+)*)/?`$")
	command  = regexp.MustCompile("(?m)(?:^|`|&& )ringi +([a-z-]+)")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// TestTestsFilesAndCommandsExist holds the tests, files, folders, commands and
// links that the pages name against the tree.
func TestTestsFilesAndCommandsExist(t *testing.T) {
	tests, commands := testNames(t), subcommands(t)
	for _, p := range pages(t) {
		for _, s := range span.FindAllString(p.prose, -1) {
			if m := testName.FindStringSubmatch(s); m != nil && !tests[m[1]] && p.name != "docs/evidence.md" { // internal/evidence reads that one
				t.Errorf("%s: there is no test %s", p.name, m[1])
			}
			for _, named := range []*regexp.Regexp{fileName, folder} {
				if m := named.FindStringSubmatch(s); m != nil && !exists(p.name, m[1]) {
					t.Errorf("%s: there is no %s", p.name, m[1])
				}
			}
		}
		for _, text := range append(span.FindAllString(p.prose, -1), p.code) {
			for _, m := range command.FindAllStringSubmatch(text, -1) {
				if !commands[m[1]] {
					t.Errorf("%s: there is no command ringi %s", p.name, m[1])
				}
			}
		}
		for _, m := range link.FindAllStringSubmatch(p.prose, -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if !strings.Contains(target, "://") && target != "" && !exists(p.name, path.Join(path.Dir(p.name), target)) {
				t.Errorf("%s: the link %s leads nowhere", p.name, m[1])
			}
		}
	}
}

// elsewhere are files of a reader's own, or made up, that pages speak of.
var elsewhere = []string{"main.go", "go.mod", "mine.jsonl", "tools.json", "api.txt"}

func exists(page, name string) bool {
	if slices.Contains(elsewhere, name) {
		return true
	}
	for _, at := range []string{name, path.Join(path.Dir(page), name)} {
		if _, err := os.Stat(filepath.Join(root, at)); err == nil {
			return true
		}
	}
	return false
}

// subcommands are the first words of cobra's Use fields.
func subcommands(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(root, "cmd/ringi/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`Use:\s+"([a-z-]+)`).FindAllStringSubmatch(string(b), -1) {
			out[m[1]] = true
		}
	}
	if !out["try"] || !out["approve"] {
		t.Fatalf("commands %v", out)
	}
	return out
}

// rows are the rows of the table between two comments of a page, without its
// heading.
func rows(t *testing.T, name, mark string) [][]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "<!-- "+mark+" -->\n")
	table, _, ok2 := strings.Cut(rest, "<!-- /"+mark+" -->")
	if !ok || !ok2 {
		t.Fatalf("%s has no table %s", name, mark)
	}
	var out [][]string
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		out = append(out, cells)
	}
	return out[2:]
}

// TestFindings holds that docs/threats.md has every finding once, and that
// what it calls held is shown by a test that exists.
func TestFindings(t *testing.T) {
	tests := testNames(t)
	for i, row := range rows(t, "docs/threats.md", "findings") {
		want := "S-" + string([]byte{byte('0' + (i+1)/10), byte('0' + (i+1)%10)})
		if len(row) != 4 || row[0] != want {
			t.Fatalf("row %d is %q, want %s", i+1, row, want)
		}
		today, shown := row[2], span.FindAllString(row[3], -1)
		for _, s := range shown {
			if m := testName.FindStringSubmatch(s); m == nil || !tests[m[1]] {
				t.Errorf("%s: there is no test %s", want, s)
			}
		}
		switch {
		case today == "held" || strings.HasPrefix(today, "held:") || strings.HasPrefix(today, "partly: "):
			if len(shown) == 0 {
				t.Errorf("%s is %s, and nothing shows it", want, today)
			}
		case !strings.HasPrefix(today, "later: "):
			t.Errorf("%s is %q: say held, partly: or later:", want, today)
		}
	}
	if n := len(rows(t, "docs/threats.md", "findings")); n != 47 {
		t.Errorf("%d findings, want 47", n)
	}
}

// TestKinds holds the table of docs/path.md against the kinds of the log, and
// against who may write them.
func TestKinds(t *testing.T) {
	want := []ringi.EventBody{
		&ringi.RunStarted{}, &ringi.ModelResponded{}, &ringi.CallJudged{}, &ringi.ApprovalRequested{}, &ringi.InputProposed{},
		&ringi.InputRefused{}, &ringi.ApprovalDecided{}, &ringi.ApprovalTakenBack{}, &ringi.RequestClosed{}, &ringi.ToolStarted{},
		&ringi.ToolFinished{}, &ringi.OutcomeUnknown{}, &ringi.OutcomeSettled{}, &ringi.CancelRequested{}, &ringi.RunFinished{}, &ringi.RunErased{},
	}
	table := rows(t, "docs/path.md", "kinds")
	if len(table) != len(want) {
		t.Fatalf("%d kinds, want %d", len(table), len(want))
	}
	for i, body := range want {
		kind := body.Kind()
		who := "owner"
		if kind.Settles() {
			who = "settler"
		}
		typed := strings.TrimPrefix(fmt.Sprintf("%T", body), "*")
		if r := table[i]; r[0] != "`"+string(kind)+"`" || !strings.HasPrefix(r[1], "`"+typed+"`") || r[2] != who {
			t.Errorf("row %d is %q, want %s, %s, %s", i+1, r, kind, typed, who)
		}
	}
}

// counting counts the commits that a store makes.
type counting struct {
	ringi.Store
	commits int
}

func (c *counting) Commit(ctx context.Context, commit *ringi.Commit) error {
	err := c.Store.Commit(ctx, commit)
	if err == nil {
		c.commits++
	}
	return err
}

// TestSixCommits counts what docs/path.md says of a run that asks once.
func TestSixCommits(t *testing.T) {
	store := &counting{Store: memory.New(memory.Options{})}
	tools := ringi.NewRegistry()
	var ran ringitest.Effects
	ran.Tool(tools, ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite}, "paid")
	open := func(model ringi.Model) *engine.Engine {
		e, err := engine.New(engine.Config{Registry: tools, Model: model, Store: store})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	agent := open(ringitest.Script(ringitest.Calls(ringitest.Call("pay", `{}`)), ringitest.Text("Paid.")))
	res, err := agent.Run(t.Context(), ringi.RunStart{Messages: []ringi.Message{ringi.User("Pay.")}})
	if err != nil {
		t.Fatal(err)
	}
	if n := store.commits; n != 2 {
		t.Errorf("%d commits until the run waits, want 2", n)
	}
	if _, err := open(nil).Decide(t.Context(), res.Pending[0].Approve(ringitest.Ana)); err != nil {
		t.Fatal(err)
	}
	if n := store.commits; n != 3 {
		t.Errorf("%d commits with the decision, want 3", n)
	}
	if res, err = agent.Resume(t.Context(), res.RunID); err != nil || res.Err() != nil {
		t.Fatalf("%+v, %v", res, err)
	}
	if n := store.commits; n != 6 {
		t.Errorf("%d commits in all, want 6", n)
	}
	ran.Want(t, "pay", 1)
}
