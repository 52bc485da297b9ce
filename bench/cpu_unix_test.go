//go:build unix

package bench

import (
	"syscall"
	"time"
)

// cpuTime is what the whole process has used, the collector's threads among
// it. It stands still while other processes have the machine.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
