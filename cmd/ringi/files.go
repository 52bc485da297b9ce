package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// guard says who may do what with a file that the server trusts.
type guard int

const (
	// onlyOursWrite is for configuration: nobody but its owner may write, and
	// its owner is this user or root.
	onlyOursWrite guard = iota
	// onlyOursRead is for secrets: nobody else may read either. Root's file may
	// be read by a group: service managers hand credentials over so.
	onlyOursRead
)

// maxGuarded is more than any such file may hold.
const maxGuarded = 1 << 20

// readGuarded reads a guarded file, of at most 1 MiB.
func readGuarded(path string, g guard) ([]byte, error) {
	f, err := openGuarded(path, g)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxGuarded+1))
	if err == nil && len(text) > maxGuarded {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxGuarded)
	}
	return text, err
}

// checkGuarded is for a file that is read elsewhere: its folder is guarded too,
// so that nobody exchanges it in between.
func checkGuarded(path string, g guard) error {
	f, err := openGuarded(path, g)
	if err != nil {
		return err
	}
	return f.Close()
}

// openGuarded opens a file that says what is allowed, or that is secret, and
// refuses one that somebody else may have written or read (S-42, S-44). It
// checks the file that it has open, not its name.
func openGuarded(path string, g guard) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err == nil {
		err = guarded(path, info, g)
	}
	if err == nil {
		err = guardedFolder(filepath.Dir(path))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// guarded holds an open file against a guard. Where files have no owner and no
// mode that Go can tell, their folder's access list guards them.
func guarded(path string, info fs.FileInfo, g guard) error {
	owner, known := ownerOf(info)
	if !known {
		return nil
	}
	if owner != os.Geteuid() && owner != 0 {
		return fmt.Errorf("%s belongs to user %d, not to user %d", path, owner, os.Geteuid())
	}
	mode, forbidden, fix := info.Mode().Perm(), fs.FileMode(0o022), "go-w"
	if g == onlyOursRead {
		forbidden, fix = 0o077, "go="
		if owner == 0 && os.Geteuid() != 0 {
			forbidden = 0o037
		}
	}
	if mode&forbidden != 0 {
		return fmt.Errorf("%s has mode %04o, so others may use it: chmod %s %s", path, mode, fix, path)
	}
	return nil
}

// guardedFolder refuses a folder in which others could put a file of theirs in
// the place of one of ours. A sticky one protects its files.
func guardedFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner, known := ownerOf(info)
	switch mode := info.Mode(); {
	case !known:
		return nil
	case owner != os.Geteuid() && owner != 0:
		return fmt.Errorf("folder %s belongs to user %d, not to user %d", dir, owner, os.Geteuid())
	case mode.Perm()&0o022 != 0 && mode&fs.ModeSticky == 0:
		return fmt.Errorf("folder %s has mode %04o, so others may exchange files in it: chmod go-w %s", dir, mode.Perm(), dir)
	}
	return nil
}

// prepareData makes the data folder where it is missing, and checks what is
// there (S-44): its own user's, no link, closed to others. A folder of ours that
// is empty, or was a data folder before, is closed; any other that is open is
// refused: it may be somebody's home.
func prepareData(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no folder (a link is none)", dir)
	}
	owner, known := ownerOf(info)
	switch {
	case !known:
		return nil
	case owner != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d, not to user %d", dir, owner, os.Geteuid())
	case info.Mode().Perm() == 0o700:
		return nil
	case info.Mode().Perm()&0o077 != 0 && !mayClose(dir):
		return fmt.Errorf("%s has mode %04o, and holds what no server made: chmod 700 %s, or name another folder", dir, info.Mode().Perm(), dir)
	}
	return os.Chmod(dir, 0o700)
}

// mayClose reports whether a folder is empty, or holds a store.
func mayClose(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, storeFile)); err == nil {
		return true
	}
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 0
}

// makeSecret makes a file that this user alone may read. It follows no link
// and takes the place of nothing: fs.ErrExist where something is there.
func makeSecret(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := guardedFolder(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|noFollow, 0o600)
	if err != nil {
		return err
	}
	err = f.Chmod(0o600) // the umask may have taken more than others' rights
	if err == nil {
		_, err = f.Write(text)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return syncFolder(filepath.Dir(path))
}
