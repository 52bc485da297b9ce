//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// noFollow makes an open fail on a link.
const noFollow = syscall.O_NOFOLLOW

// ownerOf is the user to whom a file belongs.
func ownerOf(info fs.FileInfo) (uid int, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, true // nobody's: refused
	}
	return int(stat.Uid), true
}

// syncFolder puts a new name on the disk.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
