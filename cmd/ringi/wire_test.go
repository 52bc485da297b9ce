package main

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// wire.go is the only file that names concrete stores: whoever reads it knows
// what is plugged in.
func TestOnlyWireNamesStores(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	named := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			path, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(path, "/ringi/store/") && path != "modernc.org/sqlite" {
				continue
			}
			named++
			if name != "wire.go" {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
	if named < 3 {
		t.Errorf("%d imports of stores are found, want those of wire.go", named)
	}
}
