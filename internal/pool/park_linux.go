package pool

import (
	"math"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// FUTEX_WAIT and FUTEX_WAKE for threads of one process.
const (
	futexWait = 0 | 128
	futexWake = 1 | 128
)

// sleep sleeps while *word is old; it may also return for no reason.
func sleep(word *atomic.Uint32, old uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(old), 0, 0, 0)
}

// wake wakes all who sleep on word.
func wake(word *atomic.Uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, math.MaxInt32, 0, 0, 0)
}
