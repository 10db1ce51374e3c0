//go:build unix

package mmap

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// mapFile maps the first size bytes of f; false if its file system cannot.
func mapFile(f *os.File, size int) ([]byte, bool) {
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	return data, err == nil
}

// state is what changes when a file is written to.
type state struct{ size, modified int64 }

func stateOf(f *os.File) (state, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return state{}, err
	}
	return state{st.Size, st.Mtim.Nano()}, nil
}

// idOf returns what ID does, and when the file, its name or its owner was last
// changed.
func idOf(f *os.File) (string, time.Time) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return "", time.Time{}
	}
	changed := time.Unix(st.Ctim.Unix())
	return fmt.Sprint(st.Ino, st.Size, st.Mtim.Nano(), changed.UnixNano()), changed
}

func unmap(data []byte) error { return os.NewSyscallError("munmap", unix.Munmap(data)) }

func advise(data []byte, a Advice) error {
	advice := unix.MADV_NORMAL
	switch a {
	case Sequential:
		advice = unix.MADV_SEQUENTIAL
	case Random:
		advice = unix.MADV_RANDOM
	case WillNeed:
		advice = unix.MADV_WILLNEED
	case DontNeed:
		advice = unix.MADV_DONTNEED
	}
	return os.NewSyscallError("madvise", unix.Madvise(data, advice))
}
