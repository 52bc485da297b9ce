//go:build unix

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ringi-dev/ringi"
)

// open opens the server of a configuration file's text, and closes it.
func (p *machine) open(text string, args ...string) error {
	p.t.Helper()
	p.write("config/ringi/ringi.yaml", text)
	c, err := p.read(args...)
	if err != nil {
		return err
	}
	s, err := p.env().openServer(context.Background(), c)
	if err != nil {
		return err
	}
	return s.close()
}

// S-44: whatever the umask, folders are 0700 and files 0600.
func TestS44_Modes(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o077, 0o277} {
		p := newMachine(t)
		p.write("config/ringi/ringi.yaml", oneAgent)
		old := syscall.Umask(umask)
		err := p.open(oneAgent)
		syscall.Umask(old)
		if umask == 0o277 && os.Geteuid() != 0 {
			continue // such a user cannot enter the folders that he makes
		}
		if err != nil {
			t.Errorf("umask %04o: %v", umask, err)
			continue
		}
		for path, want := range map[string]fs.FileMode{
			"state/ringi": 0o700, "state/ringi/" + storeFile: 0o600, "config/ringi": 0o700, "config/ringi/" + keyName: 0o600,
		} {
			info, err := os.Lstat(filepath.Join(p.dir, path))
			if err != nil || info.Mode().Perm() != want {
				t.Errorf("umask %04o: %s: %v, %v; want %04o", umask, path, info.Mode(), err, want)
			}
		}
	}
}

// S-44: a data folder that is somebody else's, a link, or open, is refused or
// closed.
func TestS44_DataFolder(t *testing.T) {
	p := newMachine(t)
	data := filepath.Join(p.dir, "state", "ringi")
	if err := os.MkdirAll(data, 0o755); err != nil {
		t.Fatal(err)
	}
	os.Chmod(data, 0o755)
	if err := p.open(oneAgent); err != nil {
		t.Errorf("an empty open folder: %v", err)
	}
	if info, _ := os.Lstat(data); info.Mode().Perm() != 0o700 {
		t.Errorf("an empty open folder keeps mode %v", info.Mode())
	}
	os.Chmod(data, 0o750)
	if err := p.open(oneAgent); err != nil {
		t.Errorf("our own open folder: %v", err)
	}
	if info, _ := os.Lstat(data); info.Mode().Perm() != 0o700 {
		t.Errorf("our own open folder keeps mode %v", info.Mode())
	}
	home := filepath.Dir(p.write("home/letter.txt", "dear"))
	os.Chmod(home, 0o755)
	if err := p.open(oneAgent, "--data", home); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("a folder of other things that is open: %v", err)
	}
	if info, _ := os.Lstat(home); info.Mode().Perm() != 0o755 {
		t.Errorf("a folder of other things was changed to %v", info.Mode())
	}
	link := filepath.Join(p.dir, "link")
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	if err := p.open(oneAgent, "--data", link); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("a link: %v", err)
	}
	if err := p.open(oneAgent, "--data", p.write("file", "")); err == nil {
		t.Error("a file is taken for a folder")
	}
	if os.Geteuid() == 0 {
		os.Chown(data, 4711, 4711)
		if err := p.open(oneAgent); err == nil || !strings.Contains(err.Error(), "belongs to user 4711") {
			t.Errorf("somebody else's folder: %v", err)
		}
	}
}

// S-44: the key file is made once, follows no link, and is refused where others
// read it.
func TestS44_KeyFile(t *testing.T) {
	p := newMachine(t)
	key := filepath.Join(p.dir, "config/ringi", keyName)
	target := filepath.Join(p.dir, "target")
	p.write("config/ringi/ringi.yaml", oneAgent)
	if err := os.Symlink(target, key); err != nil {
		t.Fatal(err)
	}
	if err := p.open(oneAgent); err == nil {
		t.Error("a link that points nowhere is followed")
	}
	if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the link's target was made")
	}
	os.Remove(key)
	if err := p.open(oneAgent); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(key)
	if err != nil || len(before) != 45 {
		t.Fatalf("%d bytes, %v", len(before), err)
	}
	if err := p.open(oneAgent); err != nil {
		t.Errorf("the second start: %v", err)
	}
	if after, _ := os.ReadFile(key); string(after) != string(before) {
		t.Error("the second start made another key")
	}
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o644, 0o660, 0o666} {
		os.Chmod(key, mode)
		if err := p.open(oneAgent); err == nil || !strings.Contains(err.Error(), "chmod go=") {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	os.Chmod(key, 0o600)
	if strings.Contains(p.err.String()+p.out.String(), strings.TrimSpace(string(before))) {
		t.Error("the key was written to a log")
	}
}

// S-19: a store that has used a key gets no new one.
func TestS19_NoNewKeyForAnOldStore(t *testing.T) {
	p := newMachine(t)
	if err := p.open(oneAgent); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(p.dir, "config/ringi", keyName)
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	if err := p.open(oneAgent); !errors.Is(err, ringi.ErrNoKey) {
		t.Errorf("without its key: %v", err)
	}
	if _, err := os.Lstat(key); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a key was made")
	}
	if err := p.open(oneAgent, "--data", filepath.Join(p.dir, "new"), "--key-file", key); err != nil {
		t.Fatal(err)
	}
	if err := p.open(oneAgent); !errors.Is(err, ringi.ErrNoKey) {
		t.Errorf("with another store's key: %v", err)
	}
	if err := p.open(oneAgent, "--key-file", key+".away"); err != nil {
		t.Errorf("with its key: %v", err)
	}
	t.Setenv("TOOL_APPROVAL_SECRET", strings.Repeat("A", 43)+"=")
	if err := p.open(oneAgent, "--key-file", key+".away"); err == nil || !strings.Contains(err.Error(), "say which") {
		t.Errorf("two keys: %v", err)
	}
	if err := p.open(oneAgent, "--data", filepath.Join(p.dir, "third")); err != nil {
		t.Errorf("with the key of the environment: %v", err)
	}
}

// A service manager hands key and folder over.
func TestServiceManagersFolders(t *testing.T) {
	p := newMachine(t)
	p.vars["STATE_DIRECTORY"] = filepath.Join(p.dir, "managed")
	p.vars["CREDENTIALS_DIRECTORY"] = filepath.Dir(p.write("credentials/"+keyName, strings.Repeat("A", 43)+"=\n"))
	if err := p.open(oneAgent); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(p.dir, "managed", storeFile)); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(p.dir, "config/ringi", keyName)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a key was made beside the credential")
	}
}

// S-45: a store that a replay made is not served.
func TestS45_ReplayIsNotServed(t *testing.T) {
	p := newMachine(t)
	data := filepath.Dir(p.write("replay/x", ""))
	os.Remove(filepath.Join(data, "x"))
	store, err := makeStore("sqlite:" + filepath.Join(data, storeFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(store.SetFlag(t.Context(), flagReplayed, "replay"), store.Close()); err != nil {
		t.Fatal(err)
	}
	if err := p.open(oneAgent, "--data", data); !errors.Is(err, ringi.ErrSimulated) {
		t.Errorf("serve gives %v", err)
	}
}
