// Package npmtest gives tests the npm packages that they run with Node.
package npmtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Folder returns a new folder of the test's own that holds the files of from
// and, as node_modules, the packages that from/package-lock.json names. They are
// installed once, in the user's cache, for all tests that use this lockfile. The
// test is skipped by -short, where node or npm is not here, and where npm cannot
// reach its registry.
func Folder(t testing.TB, from string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: the npm packages are not installed")
	}
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s here: what runs on Node is left out", tool)
		}
	}
	packages, err := installed(t.Context(), from)
	if err != nil {
		t.Skipf("the npm packages cannot be had here: %v", err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(packages, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// installed returns the cached node_modules of a lockfile. Several processes may
// ask at once: whoever has installed first puts the folder in its place whole.
func installed(ctx context.Context, from string) (string, error) {
	lock, err := os.ReadFile(filepath.Join(from, "package-lock.json"))
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	cache = filepath.Join(cache, "ringi-test-npm")
	sum := sha256.Sum256(lock)
	dir := filepath.Join(cache, "lock-"+hex.EncodeToString(sum[:12]))
	packages := filepath.Join(dir, "node_modules")
	if _, err := os.Stat(packages); err == nil {
		return packages, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(cache, "new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	for _, name := range []string{"package.json", "package-lock.json"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(fresh, name), b, 0o644)
		}
		if err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = fresh
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	if err := os.Rename(fresh, dir); err != nil {
		if _, there := os.Stat(packages); there != nil {
			return "", err
		}
	}
	return packages, nil
}
