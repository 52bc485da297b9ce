//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ringi-dev/ringi/sign"
)

// S-10: the doctor finds a store that others read, a key beside it, a secret in
// the environment, and scripts that may decide; and nothing where nothing is.
func TestS10_Doctor(t *testing.T) {
	keys, err := sign.New([]byte(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	path, _ := staged(t, keys)
	os.Chmod(path, 0o600)
	look := func(vars map[string]string, wantCode int) (found []ill, text string) {
		t.Helper()
		got := typed(t, vars, "", "doctor", "--store", "sqlite:"+path, "--json")
		var doc struct {
			Files    int
			Findings []ill
		}
		if err := json.Unmarshal([]byte(got.out), &doc); err != nil || doc.Files == 0 {
			t.Fatalf("%s%s: %v", got.out, got.err, err)
		}
		for _, f := range doc.Findings {
			if !strings.Contains(f.What, "this is root") {
				found = append(found, f)
			}
		}
		if os.Geteuid() != 0 && got.code != wantCode || os.Geteuid() == 0 && got.code != exitFailed {
			t.Errorf("exit %d: %s%s", got.code, got.out, got.err)
		}
		return found, got.out
	}
	if found, _ := look(nil, exitDone); len(found) != 0 {
		t.Errorf("nothing is wrong, and it found %+v", found)
	}
	for _, c := range []struct {
		name, want string
		vars       map[string]string
		spoil      func() (mend func())
	}{
		{"the store is read by others", "chmod", nil, func() func() {
			os.Chmod(path, 0o644)
			return func() { os.Chmod(path, 0o600) }
		}},
		{"a key beside it", "lies beside the store", nil, func() func() {
			key := filepath.Join(filepath.Dir(path), "ringi.key")
			os.WriteFile(key, []byte("x"), 0o600)
			return func() { os.Remove(key) }
		}},
		{"the secret in the environment", sign.SecretEnv, map[string]string{sign.SecretEnv: strings.Repeat("k", 44)}, nil},
		{"a token in the environment", tokenEnv, map[string]string{tokenEnv: "ringi_x"}, nil},
	} {
		mend := func() {}
		if c.spoil != nil {
			mend = c.spoil()
		}
		found, text := look(c.vars, exitFailed)
		mend()
		if len(found) != 1 || !strings.Contains(found[0].What, c.want) || found[0].Fix == "" {
			t.Errorf("%s: found %+v", c.name, found)
		}
		for _, secret := range c.vars {
			if strings.Contains(text, secret) {
				t.Errorf("%s: it shows the secret", c.name)
			}
		}
	}
	open, _ := staged(t, nil)
	os.Chmod(open, 0o600)
	path = open
	if found, _ := look(nil, exitFailed); len(found) != 1 || !strings.Contains(found[0].What, "no key") {
		t.Errorf("a store without a key: %+v", found)
	}
	store, err := openStore("sqlite:" + open)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.SetFlag(t.Context(), flagScripted, "on"); err != nil {
		t.Fatal(err)
	}
	store.Close()
	if found, _ := look(nil, exitFailed); len(found) != 2 {
		t.Errorf("scripts may decide: %+v", found)
	}
	if got := typed(t, map[string]string{serverEnv: "https://ringi.example"}, "", "doctor", "--store", "sqlite:"+open); got.code != exitFailed || !strings.Contains(got.out, "no key") {
		t.Errorf("as text: %d %s%s", got.code, got.out, got.err)
	}
}

// The files of a server that was started as it should be are as they should be.
func TestS10_DoctorOfAServer(t *testing.T) {
	p := newMachine(t)
	p.write("config/ringi/ringi.yaml", oneAgent)
	if got := typed(t, p.vars, "", "doctor"); got.code != exitFailed || !strings.Contains(got.err, "no server has been started") {
		t.Errorf("%d %s%s", got.code, got.out, got.err)
	}
	p.serve().stop(syscall.SIGTERM)
	got := typed(t, p.vars, "", "doctor", "--json")
	if text := strings.ReplaceAll(got.out, "this is root", ""); strings.Count(text, `"what"`) > 1 || strings.Contains(text, "beside") || strings.Contains(text, "mode") {
		t.Errorf("%d %s%s", got.code, got.out, got.err)
	}
	os.Chmod(filepath.Join(p.dir, "config/ringi/ringi.key"), 0o644)
	if got := typed(t, p.vars, "", "doctor"); got.code != exitFailed || !strings.Contains(got.out, "ringi.key") {
		t.Errorf("an open key: %d %s%s", got.code, got.out, got.err)
	}
}
