//go:build unix

package sqlite

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// childEnv names what the test binary plays when it is started as a process of
// its own.
const childEnv = "RINGI_SQLITE_CHILD"

// roles are the parts that a child can play; each gets the arguments.
var roles = map[string]func(args []string) error{
	"umask":  umaskChild,
	"commit": commitChild,
	"full":   fullChild,
	"share":  shareChild,
}

// TestMain lets the test binary play a process of its own: see childCommand.
func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		child(role)
	}
	os.Exit(m.Run())
}

func child(role string) {
	if err := roles[role](os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// childCommand starts the test binary as a process that plays a part.
func childCommand(role string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"="+role)
	return cmd
}
