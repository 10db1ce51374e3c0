package aside

import "golang.org/x/sys/unix"

// nice is by how much threads give way: beside a thread that always computes, one
// aside gets a quarter of a processor, and never nothing, since others may wait
// for what it holds.
const nice = 5

// giveWay lets the system prefer all other threads to this one, for ever: the way
// back needs a privilege. Where it is not allowed, the work is still bounded.
func giveWay() {
	before, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
	if err == nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 20-before+nice) // the call has 20 less
	}
}
