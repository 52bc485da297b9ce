//go:build unix

package sqlite

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// noFollow makes an open fail on a link.
const noFollow = syscall.O_NOFOLLOW

// checkOwner refuses a file that belongs to somebody else, or that has a
// second name: SQLite finds the files beside the database by its name.
func checkOwner(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("owner of %s is not known", path)
	}
	if int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, not to user %d", path, stat.Uid, os.Geteuid())
	}
	if stat.Nlink > 1 {
		return fmt.Errorf("%s has %d names (hard links)", path, stat.Nlink)
	}
	return nil
}
