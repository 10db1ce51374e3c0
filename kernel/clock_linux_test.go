package kernel

import "golang.org/x/sys/unix"

// clock returns the processor time of the calling thread in seconds: what
// other programs take from the thread does not count.
func clock() float64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return float64(t.Sec) + float64(t.Nsec)/1e9
}
