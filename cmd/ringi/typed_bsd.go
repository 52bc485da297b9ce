//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropTyped throws away what was typed and not read yet: TIOCFLUSH with FREAD
// (tty(4)).
func dropTyped(f *os.File) error {
	const fread = 1
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCFLUSH, fread)
}
