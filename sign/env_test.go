package sign

import (
	"os"
	"testing"
)

// unsetenv takes a variable away for one test; t.Setenv puts it back.
func unsetenv(t *testing.T, name string) {
	t.Helper()
	t.Setenv(name, "")
	if err := os.Unsetenv(name); err != nil {
		t.Fatal(err)
	}
}
