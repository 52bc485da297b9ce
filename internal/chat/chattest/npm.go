package chattest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// NeedsNode skips a test where the real clients cannot be run.
func NeedsNode(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: the npm packages are not installed")
	}
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s here: the real client is not run", tool)
		}
	}
}

// Install puts the packages of a lockfile in a folder of the user's cache, once.
func Install(t *testing.T, from string) string {
	t.Helper()
	lock, err := os.ReadFile(filepath.Join(from, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	sum := sha256.Sum256(lock)
	dir := filepath.Join(cache, "ringi-test-npm", filepath.Base(from)+"-"+hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "installed")); err == nil {
		return dir
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("the npm packages cannot be had here: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "installed"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Report makes each line that a page wrote a subtest: {"name","ok","error"}.
func Report(t *testing.T, out []byte, errs string) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(out))
	n := 0
	for lines.Scan() {
		var one struct {
			Name  string
			OK    bool
			Error string
		}
		if json.Unmarshal(lines.Bytes(), &one) != nil {
			continue
		}
		n++
		t.Run(one.Name, func(t *testing.T) {
			if !one.OK {
				t.Error(one.Error)
			}
		})
	}
	if n == 0 {
		t.Errorf("no scenario was played: %s\n%s", out, errs)
	}
}
