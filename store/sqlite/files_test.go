//go:build unix

package sqlite

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// modes returns the mode of path and of every file in its folder.
func modes(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	out := map[string]fs.FileMode{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		out[rel] = info.Mode()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Folders and files that the store makes belong to their owner alone, whatever
// the umask. The umask is the process's: each case runs in one of its own.
func TestS44_ModesUnderAnyUmask(t *testing.T) {
	for _, umask := range []string{"0", "022", "077"} {
		t.Run(umask, func(t *testing.T) {
			dir := t.TempDir()
			if out, err := childCommand("umask", dir, umask).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			got := modes(t, filepath.Join(dir, "a"))
			want := map[string]fs.FileMode{
				".": fs.ModeDir | 0o700, "b": fs.ModeDir | 0o700, "b/ringi.db": 0o600, "b/ringi.db-wal": 0o600, "b/ringi.db-shm": 0o600,
			}
			if len(got) != len(want) {
				t.Errorf("the files are %v, want %v", got, want)
			}
			for name, mode := range want {
				if got[name] != mode {
					t.Errorf("%s has mode %v, want %v", name, got[name], mode)
				}
			}
		})
	}
}

// umaskChild opens a store in new folders and stays in it, so that the files
// beside the database are there.
func umaskChild(args []string) error {
	dir, umask := args[0], args[1]
	var mask int
	for _, d := range umask {
		mask = mask*8 + int(d-'0')
	}
	syscall.Umask(mask)
	s, err := Open(filepath.Join(dir, "a", "b", "ringi.db"), Options{})
	if err != nil {
		return err
	}
	return s.Commit(context.Background(), first("run_1"))
}

// Files of ours that others may read are closed to them at open.
func TestS44_OpenFilesAreClosed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ringi.db")
	openTest(t, path, Options{}).Close()
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		f, err := os.OpenFile(path+suffix, os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := os.Chmod(path+suffix, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s := openTest(t, path, Options{})
	commit(t, s, first("run_1"))
	for name, mode := range modes(t, dir) {
		if name != "." && mode != 0o600 {
			t.Errorf("%s has mode %v, want 0600", name, mode)
		}
	}
}

// Links, foreign files and what is no file are refused, at every name that
// SQLite uses, and what they point to is not touched.
func TestS44_Refused(t *testing.T) {
	root := os.Geteuid() == 0
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	make := map[string]func(path string) error{
		"a link":           func(path string) error { return os.Symlink(elsewhere, path) },
		"a dangling link":  func(path string) error { return os.Symlink(elsewhere+"-not", path) },
		"a second name":    func(path string) error { return os.Link(elsewhere, path) },
		"a folder":         func(path string) error { return os.Mkdir(path, 0o700) },
		"a pipe":           func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"somebody else's":  nil,
		"a closed foreign": nil,
	}
	if root {
		give := func(mode fs.FileMode) func(string) error {
			return func(path string) error {
				if err := os.WriteFile(path, nil, mode); err != nil {
					return err
				}
				return os.Chown(path, 65534, 65534)
			}
		}
		make["somebody else's"], make["a closed foreign"] = give(0o644), give(0o600)
	}
	for name, put := range make {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			t.Run(name+suffix, func(t *testing.T) {
				if put == nil {
					t.Skip("only root gives files away")
				}
				if err := os.WriteFile(elsewhere, []byte("untouched"), 0o644); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(t.TempDir(), "ringi.db")
				if err := put(path + suffix); err != nil {
					t.Fatal(err)
				}
				s, err := Open(path, Options{})
				if err == nil {
					s.Close()
					t.Fatal("it was opened")
				}
				if !strings.Contains(err.Error(), path+suffix) {
					t.Errorf("the error does not name the file: %v", err)
				}
				if b, err := os.ReadFile(elsewhere); err != nil || string(b) != "untouched" {
					t.Errorf("what the link points to is %q, %v", b, err)
				}
				if info, err := os.Stat(elsewhere); err != nil || info.Mode() != 0o644 {
					t.Errorf("what the link points to has mode %v, %v", info.Mode(), err)
				}
			})
		}
	}
}

func TestS44_FolderThatAllMayWrite(t *testing.T) {
	for mode, refused := range map[fs.FileMode]bool{
		0o777: true, 0o707: true, 0o777 | fs.ModeSticky: false, 0o755: false, 0o700: false,
	} {
		dir := filepath.Join(t.TempDir(), "data")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		s, err := Open(filepath.Join(dir, "ringi.db"), Options{})
		if err == nil {
			s.Close()
		}
		if refused != (err != nil) {
			t.Errorf("a folder of mode %v: %v", mode, err)
		}
		if info, err := os.Stat(dir); err != nil || info.Mode() != fs.ModeDir|mode {
			t.Errorf("the folder's mode is now %v, %v", info.Mode(), err)
		}
	}
}

// SQLite reads a file name as a URI, with a query; ours are names and nothing
// else.
func TestAnyFileName(t *testing.T) {
	for _, name := range []string{
		"a b.db", "a?mode=memory", "a%41.db", "a#b.db", "ä.db", "a&b=c.db", "a+b.db", "a'b\".db", "file:x.db", ":memory:", "a;b.db", "a\\b.db",
	} {
		dir := t.TempDir()
		s := openTest(t, filepath.Join(dir, name), Options{})
		commit(t, s, first("run_1"))
		if row, err := s.Row(context.Background(), "default", "run_1"); err != nil || row.Seq != 1 {
			t.Errorf("%s: %v, %+v", name, err, row)
		}
		got := modes(t, dir)
		for _, want := range []string{name, name + "-wal", name + "-shm"} {
			if got[want] != 0o600 {
				t.Errorf("%s is not there with mode 0600: %v", want, got)
			}
		}
		if len(got) != 4 {
			t.Errorf("the files are %v", got)
		}
	}
	for _, name := range []string{"", "a\x00b"} {
		if s, err := Open(name, Options{}); err == nil {
			s.Close()
			t.Errorf("%q was opened", name)
		}
	}
}

// A relative name stays what it was when the working folder changes.
func TestRelativeName(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	s := openTest(t, "ringi.db", Options{})
	t.Chdir(t.TempDir())
	commit(t, s, first("run_1"))
	for range 8 { // more than there are open readers
		if _, err := s.Load(context.Background(), "default", "run_1"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "ringi.db-wal")); err != nil {
		t.Error(err)
	}
}
