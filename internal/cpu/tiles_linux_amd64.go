package cpu

import (
	"sync"

	"golang.org/x/sys/unix"
)

// tileRegisters reports whether the system lets this process use tile
// registers, and asks for it. All threads get the right at once; those of Go
// have signal stacks that are large enough (Linux, Documentation/arch/x86/xstate.rst).
var tileRegisters = sync.OnceValue(func() bool {
	const (
		requestPermission = 0x1023 // ARCH_REQ_XCOMP_PERM
		tileData          = 18     // XFEATURE_XTILEDATA
	)
	_, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return errno == 0
})
