package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// sidecars are the files that SQLite keeps beside the database.
var sidecars = []string{"", "-wal", "-shm", "-journal"}

// prepareFile makes the file and its folders where they are missing, so that
// SQLite finds a file that is readable by its owner alone (it gives the files
// beside it the same mode), and checks what is there. It returns the path made
// absolute: a later change of the working folder moves nothing.
func prepareFile(path string) (string, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("not a file name: %q", path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return "", err
	}
	if err := checkFiles(path); err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|noFollow, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return path, nil // checked above
	}
	if err != nil {
		return "", err
	}
	// The umask may have taken more than others' rights.
	if err := f.Chmod(0o600); err != nil {
		return "", errors.Join(err, f.Close())
	}
	return path, f.Close()
}

// makeFolder makes dir with mode 0700 where it is missing. One that is there
// keeps its mode, but one that everybody may write is refused: they could put
// a file of theirs in the place of ours.
func makeFolder(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeFolder(filepath.Dir(dir)); err != nil {
			return err
		}
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no folder", dir)
	}
	if info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("folder %s may be written by everybody (mode %v)", dir, info.Mode().Perm())
	}
	return nil
}

// checkFiles checks the database and the files beside it, those that are
// there: no links, nobody else's, and closed to others.
func checkFiles(path string) error {
	for _, suffix := range sidecars {
		if err := checkFile(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func checkFile(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file (%v)", path, info.Mode().Type())
	}
	if err := checkOwner(path, info); err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	return closeToOthers(path, info)
}

// closeToOthers gives a file of ours mode 0600. It opens nothing: closing a
// second handle of a database would drop the locks that this process holds on
// it (POSIX advisory locks belong to the process and the file).
func closeToOthers(path string, checked fs.FileInfo) error {
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !os.SameFile(info, checked) || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s was exchanged while it was checked", path)
	}
	return nil
}

// dsn returns SQLite's URI for a path, whatever is in it.
func dsn(path string, params ...string) string {
	escape := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23")
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	return "file://" + escape.Replace(path) + "?" + strings.Join(params, "&")
}
