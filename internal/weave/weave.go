package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

var (
	opening = regexp.MustCompile(`^<!-- weave: (\S+) -->$`)
	closing = regexp.MustCompile(`^<!-- /weave -->$`)
	// almost finds a marker that was misspelt: it would weave nothing, and
	// nobody would see that.
	almost = regexp.MustCompile(`^\s*<!--\s*/?weave`)
)

// weave returns a page with the text between its markers made anew.
func weave(tree fs.FS, page string) (string, error) {
	var out strings.Builder
	inside := ""
	n := 0
	for line := range strings.Lines(page) {
		n++
		bare := strings.TrimRight(line, "\r\n")
		m := opening.FindStringSubmatch(bare)
		switch {
		case m != nil && inside != "":
			return "", fmt.Errorf("line %d: %s is not closed", n, inside)
		case m != nil:
			inside = m[1]
			block, err := blockOf(tree, inside)
			if err != nil {
				return "", fmt.Errorf("line %d: %w", n, err)
			}
			out.WriteString(bare + "\n" + block)
		case closing.MatchString(bare) && inside == "":
			return "", fmt.Errorf("line %d: nothing is open here", n)
		case closing.MatchString(bare):
			inside = ""
			out.WriteString(line)
		case almost.MatchString(bare):
			return "", fmt.Errorf("line %d: %q is no marker", n, bare)
		case inside == "":
			out.WriteString(line)
		}
	}
	if inside != "" {
		return "", fmt.Errorf("%s is not closed", inside)
	}
	return out.String(), nil
}

// blockOf is a fenced block with what a marker names.
func blockOf(tree fs.FS, source string) (string, error) {
	file, name, isPart := strings.Cut(source, "#")
	b, err := fs.ReadFile(tree, file)
	if err != nil {
		return "", err
	}
	text := string(b)
	if isPart {
		if text, err = declaration(text, name); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + languageOf(file) + "\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n", nil
}

func languageOf(file string) string {
	switch path.Ext(file) {
	case ".go":
		return "go"
	case ".sql":
		return "sql"
	case ".json":
		return "json"
	case ".tsx":
		return "tsx"
	}
	return "text"
}

// declaration is one top-level declaration of a Go file, with its comment: a
// function, a method as Type.Method, a type, a constant or a variable.
func declaration(text, name string) (string, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	for _, d := range f.Decls {
		doc, found := named(d, name)
		if !found {
			continue
		}
		from := d.Pos()
		if doc != nil {
			from = doc.Pos()
		}
		return text[set.Position(from).Offset:set.Position(d.End()).Offset], nil
	}
	return "", fmt.Errorf("there is no declaration %s", name)
}

// named reports whether a declaration declares the name, and its comment.
func named(d ast.Decl, name string) (*ast.CommentGroup, bool) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		full := d.Name.Name
		if d.Recv != nil {
			full = receiver(d.Recv.List[0].Type) + "." + full
		}
		return d.Doc, full == name
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.Name == name {
					return d.Doc, true
				}
			case *ast.ValueSpec:
				for _, id := range s.Names {
					if id.Name == name {
						return d.Doc, true
					}
				}
			}
		}
	}
	return nil, false
}

// receiver is the name of a method's type.
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
