// Command weave copies compiled source into README.md and the pages of docs/,
// so that what they show is what was built and run.
//
//	go run ./internal/weave            weave every page
//	go run ./internal/weave -check     change nothing; fail where a page is stale
//	go run ./internal/weave -record    record a terminal of `ringi try`, then weave
//
// A page names its source in a comment. What stands between that comment and
// the closing one is replaced:
//
//	<!-- weave: examples/hello/main.go -->
//	<!-- /weave -->
//
// A Go file may be followed by # and the name of one declaration, as in
// engine/example_run_test.go#ExampleEngine_Run.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "weave:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("weave", flag.ContinueOnError)
	check := flags.Bool("check", false, "change nothing; fail where a page is stale")
	record := flags.Bool("record", false, "record a terminal of ringi try first")
	flags.SetOutput(out)
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	if *record {
		if err := recordTry(root); err != nil {
			return err
		}
	}
	stale, err := weaveAll(root, !*check, out)
	if err != nil {
		return err
	}
	if *check && len(stale) > 0 {
		return fmt.Errorf("%s stale; type: go run ./internal/weave", strings.Join(stale, ", "))
	}
	return nil
}

// moduleRoot is the folder of go.mod, at or above the working folder.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("find go.mod: none at or above the working folder")
		}
		dir = up
	}
}

// weaveAll weaves every page, and names those that were stale. Pages are only
// written where write is set.
func weaveAll(root string, write bool, out io.Writer) ([]string, error) {
	tree := os.DirFS(root)
	pages, err := pagesOf(tree)
	if err != nil {
		return nil, err
	}
	var stale []string
	for _, page := range pages {
		old, err := fs.ReadFile(tree, page)
		if err != nil {
			return nil, err
		}
		fresh, err := weave(tree, string(old))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", page, err)
		}
		if fresh == string(old) {
			continue
		}
		stale = append(stale, page)
		if !write {
			continue
		}
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(page)), []byte(fresh), 0o644); err != nil {
			return nil, err
		}
		fmt.Fprintln(out, "woven:", page)
	}
	return stale, nil
}

// pagesOf lists the pages that a reader opens: those beside go.mod, and all of
// docs/.
func pagesOf(tree fs.FS) ([]string, error) {
	pages, err := fs.Glob(tree, "*.md")
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(tree, "docs", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path.Ext(name) == ".md" {
			pages = append(pages, name)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return pages, err
}
