package arena

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func reserve(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
}

// advise asks for huge pages in one part, and for none in another. Without huge
// pages the same memory reads at half the speed; a system that has none says so
// here, and small pages serve.
func advise(huge, small []byte) {
	if len(huge) > 0 {
		_ = unix.Madvise(huge, unix.MADV_HUGEPAGE)
	}
	if len(small) > 0 {
		_ = unix.Madvise(small, unix.MADV_NOHUGEPAGE)
	}
}

func release(b []byte) error { return unix.Munmap(b) }

func huge() bool {
	mode, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	return err == nil && !strings.Contains(string(mode), "[never]")
}
