//go:build unix

package cpu

import (
	"time"

	"golang.org/x/sys/unix"
)

// Time returns the processor time that this process has used, on all threads;
// 0 if the system does not tell.
func Time() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
