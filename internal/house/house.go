// Package house holds what the layout of this repository promises: which
// package may import which, that one file asks for a handler, that two
// functions make a grant, that one function is the rule, and which names are
// public. Its tests read the source.
package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/ringi-dev/ringi"

// may is the table of arrows: a package of ours, and which of ours it may
// import. "" is the root. Every package may import leaves below internal/, and a
// leaf imports leaves only.
var may = map[string][]string{
	"":                {},
	"policy":          {""},
	"sign":            {""},
	"audit":           {""},
	"engine":          {"", "policy", "sign", "audit", "store/memory"}, // the memory store is the zero value of Config.Store
	"worker":          {"", "engine"},
	"access":          {""},
	"access/oidc":     {"", "access"}, // apart, so that who needs no provider links none of its libraries
	"store/memory":    {""},
	"store/sqlite":    {""},
	"store/postgres":  {""},
	"store/storetest": {""},
	"toolhttp":        {""},
	"mcpclient":       {""},
	"mcpgateway":      {""},
	"live":            {""},
	"aisdk":           {"", "live"},
	"agui":            {"", "live"},
	"aisdk/identity":  {""},
	"inbox":           {"", "access", "notify"},
	"notify":          {"", "access"},
	"httpapi":         {"", "aisdk", "access"},
	"webhook":         {""},
	"ringitest":       {"", "policy", "engine", "store/memory"},
	"provider":        {""},
	// The suite of all providers drives them through the engine.
	"provider/providertest": {"", "engine", "ringitest"},
	// What providers share is no leaf: it speaks of messages and model errors.
	"internal/vendor": {""},
	// The demo's agent is no leaf: it has tools and a model, as a user's program does.
	"internal/backoffice": {""},
	// What handlers for chats share is no leaf: it follows runs.
	"internal/chat":          {"", "live", "sign"}, // ClientJSON: what a client has read and written again
	"internal/chat/chattest": {""},
	// Who sees what is no leaf: it asks who is asking.
	"internal/sight": {"", "access"},
	// What tells of requests is no leaf: it reads them.
	"internal/news": {""},
	"internal/risk": {""},
}

// file is a parsed source file.
type file struct {
	name string // path in the module
	pkg  string // folder, "" for the root
	ast  *ast.File
}

// sources parses every Go file of the tree but tests and testdata.
func sources(tree fs.FS) ([]file, error) {
	var out []file
	set := token.NewFileSet()
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if d.IsDir() {
			if name != "." && (base == "testdata" || strings.HasPrefix(base, ".") || base == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go") {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := path.Dir(name)
		if pkg == "." {
			pkg = ""
		}
		out = append(out, file{name, pkg, f})
		return nil
	})
	return out, err
}

// brokenArrows lists imports that the table does not allow.
func brokenArrows(files []file) []string {
	var out []string
	for _, f := range files {
		for _, spec := range f.ast.Imports {
			to, _ := strconv.Unquote(spec.Path.Value)
			if to != module && !strings.HasPrefix(to, module+"/") {
				continue
			}
			to = strings.TrimPrefix(strings.TrimPrefix(to, module), "/")
			if !allowed(f.pkg, to) {
				out = append(out, fmt.Sprintf("%s: %q must not import %q", f.name, f.pkg, to))
			}
		}
	}
	return out
}

func allowed(from, to string) bool {
	switch {
	case strings.HasPrefix(to, "cmd/"), strings.HasPrefix(to, "examples/"):
		return false
	case strings.HasPrefix(from, "cmd/"), strings.HasPrefix(from, "examples/"):
		return true
	case strings.HasPrefix(to, "internal/"):
		return true
	case strings.HasPrefix(from, "provider/") && may[from] == nil:
		return to == ""
	}
	return slices.Contains(may[from], to)
}

// brokenPromises lists uses that the one way to run a tool forbids.
func brokenPromises(files []file) []string {
	var out []string
	for _, f := range files {
		fn := ""
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				fn = n.Name.Name
			case *ast.CallExpr:
				if asksForHandler(n) && f.name != "engine/execute.go" {
					out = append(out, fmt.Sprintf("%s: %s asks for a handler; only engine/execute.go may", f.name, fn))
				}
			case *ast.CompositeLit:
				if id, ok := n.Type.(*ast.Ident); ok && f.pkg == "engine" && id.Name == "grant" && len(n.Elts) > 0 &&
					!(f.name == "engine/grant.go" && (fn == "grantByPolicy" || fn == "grantByPerson")) {
					out = append(out, fmt.Sprintf("%s: %s makes a grant; only grantByPolicy and grantByPerson may", f.name, fn))
				}
			case *ast.KeyValueExpr:
				if name := ruleSource(n); name != "" && f.name != "policy/rule.go" {
					out = append(out, fmt.Sprintf("%s: %s speaks for the rule (%s); only policy/rule.go may", f.name, fn, name))
				}
			}
			return true
		})
	}
	return out
}

// asksForHandler reports whether a call has the shape of Registry.Handler: a
// method Handler of one argument that is no function.
func asksForHandler(n *ast.CallExpr) bool {
	sel, ok := n.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Handler" || len(n.Args) != 1 {
		return false
	}
	_, wraps := n.Args[0].(*ast.FuncLit)
	return !wraps
}

// ruleSource names the source of a verdict in the making that only the rule
// gives; "" for any other.
func ruleSource(n *ast.KeyValueExpr) string {
	key, ok := n.Key.(*ast.Ident)
	sel, ok2 := n.Value.(*ast.SelectorExpr)
	if !ok || !ok2 || key.Name != "Source" {
		return ""
	}
	switch sel.Sel.Name {
	case "SourceMarker", "SourceRemote", "SourceEffect":
		return sel.Sel.Name
	}
	return ""
}

// exported lists the public names of a package: constants, variables, types,
// functions and methods, one a line, sorted.
func exported(files []file, pkg string) []string {
	name := path.Base(module)
	if pkg != "" {
		name = path.Base(pkg)
	}
	var out []string
	add := func(kind, id string) {
		if ast.IsExported(id[strings.LastIndexByte(id, '.')+1:]) {
			out = append(out, name+": "+kind+" "+id)
		}
	}
	for _, f := range files {
		if f.pkg != pkg {
			continue
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add("func", d.Name.Name)
				} else if recv := receiver(d.Recv.List[0].Type); ast.IsExported(recv) {
					add("method", recv+"."+d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						add("type", s.Name.Name)
					case *ast.ValueSpec:
						for _, id := range s.Names {
							add(d.Tok.String(), id.Name)
						}
					}
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
