package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	driver "modernc.org/sqlite"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/sign"
	"github.com/ringi-dev/ringi/store/memory"
	"github.com/ringi-dev/ringi/store/sqlite"
)

// This file is the only one that names concrete stores, and where keys come
// from.

// makeStore opens the store that a --store value names, and makes it where it
// is missing: memory, or sqlite:FILE.
func makeStore(name string) (ringi.Store, error) {
	if name == "memory" {
		return memory.New(memory.Options{}), nil
	}
	path, err := sqlitePath(name)
	if err != nil {
		return nil, err
	}
	return openSQLite(path)
}

// openStore opens a store that is there already: a mistyped name makes none.
func openStore(name string) (ringi.Store, error) {
	if name == "memory" {
		return nil, usagef("the memory store lives in another process and ends with it: say --store sqlite:FILE")
	}
	path, err := sqlitePath(name)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open store: there is no file %s", path)
	}
	return openSQLite(path)
}

func sqlitePath(name string) (string, error) {
	path, ok := strings.CutPrefix(name, "sqlite:")
	if !ok || path == "" {
		return "", usagef("unknown store %q: say memory or sqlite:FILE", name)
	}
	return path, nil
}

func openSQLite(path string) (ringi.Store, error) {
	s, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		if isDamaged(err) {
			return nil, fmt.Errorf("%w: %w", ringi.ErrCorrupt, err)
		}
		return nil, err
	}
	return s, nil
}

// isDamaged reports whether a store's error says that its file is not what a
// store wrote: SQLite's SQLITE_CORRUPT (11) and SQLITE_NOTADB (26), the low
// byte of the code (sqlite.org/rescode.html).
func isDamaged(err error) bool {
	e, ok := errors.AsType[*driver.Error](err)
	return ok && (e.Code()&0xff == 11 || e.Code()&0xff == 26)
}

// keyring reads the keys of the process; nil where it has none.
func keyring() (*sign.Keyring, error) {
	k, err := sign.FromEnv()
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	return k, nil
}
