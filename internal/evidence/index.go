package evidence

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// index is every test of the repository by its name. One name may be declared
// in several packages.
type index struct {
	tests   map[string][]test
	scripts map[string]bool // of cmd/ringi/testdata/script, without their ending
}

// test is one declaration of a test function.
type test struct {
	file     string
	literals map[string]bool // the strings that may name its subtests
	skipped  bool            // its body skips, whatever happens
	noOutput bool            // an example that is compiled and not run
	skips    map[string]bool // subtests that skip, whatever happens
}

// scriptTest is the one function that runs the scripts, each as a subtest of
// its file's name.
const (
	scriptTest = "TestScripts"
	scriptDir  = "cmd/ringi/testdata/script"
)

// readIndex parses every *_test.go below the root, and the packages whose
// business is testing (storetest, ringitest, providertest): their functions
// name subtests for those who call them.
func readIndex(root fs.FS) (*index, error) {
	x := &index{tests: map[string][]test{}, scripts: map[string]bool{}}
	kits := map[string]map[string]bool{}
	type parsed struct {
		name string
		file *ast.File
	}
	var files []parsed
	set := token.NewFileSet()
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); name != "." && (base[0] == '.' || base[0] == '_') {
				return fs.SkipDir
			}
			return nil
		}
		if path.Dir(name) == scriptDir && path.Ext(name) == ".txtar" {
			x.scripts[strings.TrimSuffix(path.Base(name), ".txtar")] = true
		}
		dir := path.Base(path.Dir(name))
		isTest, isKit := strings.HasSuffix(name, "_test.go"), strings.HasSuffix(dir, "test") && path.Ext(name) == ".go"
		if !isTest && !isKit || strings.Contains(name, "testdata/") {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if !isTest {
			kits[dir] = union(kits[dir], literalsOf(f))
			return nil
		}
		files = append(files, parsed{name, f})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, p := range files {
		literals := literalsOf(p.file)
		for kit, more := range kits {
			if imports(p.file, kit) {
				literals = union(literals, more)
			}
		}
		for _, decl := range p.file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || fn.Body == nil || !testName.MatchString(fn.Name.Name) {
				continue
			}
			x.tests[fn.Name.Name] = append(x.tests[fn.Name.Name], test{
				file: p.name, literals: literals, skipped: skips(fn.Body), skips: skippedSubtests(fn.Body),
				noOutput: strings.HasPrefix(fn.Name.Name, "Example") && !hasOutput(p.file, fn),
			})
		}
	}
	return x, nil
}

var testName = regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)([^a-z].*)?$`)

func union(a, b map[string]bool) map[string]bool {
	all := make(map[string]bool, len(a)+len(b))
	for s := range a {
		all[s] = true
	}
	for s := range b {
		all[s] = true
	}
	return all
}

func literalsOf(f *ast.File) map[string]bool {
	found := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if s, err := strconv.Unquote(l.Value); err == nil && s != "" {
				found[s] = true
			}
		}
		return true
	})
	return found
}

func imports(f *ast.File, pkg string) bool {
	for _, i := range f.Imports {
		if p, err := strconv.Unquote(i.Path.Value); err == nil && path.Base(p) == pkg {
			return true
		}
	}
	return false
}

// skips says whether a body skips on its own level: not under an if, not in a
// function within it.
func skips(body *ast.BlockStmt) bool {
	for _, s := range body.List {
		e, ok := s.(*ast.ExprStmt)
		if !ok {
			continue
		}
		if call, ok := e.X.(*ast.CallExpr); ok {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Skip" || sel.Sel.Name == "Skipf" || sel.Sel.Name == "SkipNow") {
				return true
			}
		}
	}
	return false
}

// skippedSubtests are those that are named by a literal and skip.
func skippedSubtests(body *ast.BlockStmt) map[string]bool {
	found := map[string]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		sel, isRun := call.Fun.(*ast.SelectorExpr)
		name, isName := call.Args[0].(*ast.BasicLit)
		fn, isFunc := call.Args[1].(*ast.FuncLit)
		if isRun && isName && isFunc && sel.Sel.Name == "Run" && skips(fn.Body) {
			if s, err := strconv.Unquote(name.Value); err == nil {
				found[s] = true
			}
		}
		return true
	})
	return found
}

func hasOutput(f *ast.File, fn *ast.FuncDecl) bool {
	for _, c := range f.Comments {
		text := strings.ToLower(strings.TrimSpace(c.Text()))
		if c.Pos() > fn.Body.Pos() && c.End() < fn.Body.End() && (strings.HasPrefix(text, "output:") || strings.HasPrefix(text, "unordered output:")) {
			return true
		}
	}
	return false
}

// find says what is wrong with a name as evidence: nil where a test of that
// name exists and runs. "TestX/a/b" is a subtest: each part must be a string
// in the file of TestX (or in the kit that it calls), or begin with one that
// ends in "_" or " ", as where a name is put together.
func (x *index) find(name string) error {
	parts := strings.Split(name, "/")
	if parts[0] == scriptTest && len(parts) == 2 {
		if !x.scripts[parts[1]] {
			return fmt.Errorf("no script %s in %s", parts[1], scriptDir)
		}
		parts = parts[:1]
	}
	found := x.tests[parts[0]]
	if len(found) == 0 {
		return fmt.Errorf("no test is named %s", parts[0])
	}
	var last error
	for _, t := range found {
		if last = t.shows(parts[1:]); last == nil {
			return nil
		}
	}
	return last
}

func (t test) shows(sub []string) error {
	if t.skipped {
		return fmt.Errorf("the test in %s skips itself", t.file)
	}
	if t.noOutput {
		return fmt.Errorf("the example in %s is compiled and not run", t.file)
	}
	for _, s := range sub {
		if !t.names(s) {
			return fmt.Errorf("%s holds no subtest %q", t.file, s)
		}
		if t.skips[s] || t.skips[strings.ReplaceAll(s, "_", " ")] {
			return fmt.Errorf("subtest %q in %s skips itself", s, t.file)
		}
	}
	return nil
}

// names compares as package testing writes names: blanks become underscores.
func (t test) names(sub string) bool {
	for l := range t.literals {
		written := strings.ReplaceAll(l, " ", "_")
		if written == sub || len(written) > 2 && strings.HasSuffix(written, "_") && strings.HasPrefix(sub, written) {
			return true
		}
	}
	return false
}
