package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropTyped throws away what was typed and not read yet (tcflush(3)).
func dropTyped(f *os.File) error {
	return unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
