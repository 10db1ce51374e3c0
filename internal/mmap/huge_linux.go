package mmap

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapHuge maps the first size bytes of f to an address that is a multiple of
// the size of a huge page, as their offsets in the file are. If it cannot, keep
// is false.
func mapHuge(f *os.File, size int) (data []byte, r room, keep bool) {
	total := uintptr(size) + hugePage
	base, err := unix.MmapPtr(-1, 0, nil, total, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, nil, false
	}
	r = unsafe.Slice((*byte)(base), total)
	at := unsafe.Add(base, -uintptr(base)&(hugePage-1))
	p, err := unix.MmapPtr(int(f.Fd()), 0, at, uintptr(size), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_FIXED)
	if err != nil {
		_ = unmapRoom(r) // the caller maps the file in the usual way
		return nil, nil, false
	}
	data = unsafe.Slice((*byte)(p), size)
	_ = unix.Madvise(data, unix.MADV_HUGEPAGE) // Huge tells what came of it
	return data, r, true
}

func dropCache(f *os.File, at, n int64) { _ = unix.Fadvise(int(f.Fd()), at, n, unix.FADV_DONTNEED) }

func unmapRoom(r room) error {
	return os.NewSyscallError("munmap", unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(r)), uintptr(len(r))))
}

// fetch maps all pages of b; Linux before 5.14 leaves that to their readers.
func fetch(b []byte) { _ = unix.Madvise(b, unix.MADV_POPULATE_READ) }

// hugeBytes adds up what the system's account of the mappings says.
func hugeBytes(b []byte) int64 {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0
	}
	defer f.Close()
	base, sum, inside := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), int64(0), false
	for s := bufio.NewScanner(f); s.Scan(); {
		name, rest, _ := strings.Cut(s.Text(), " ")
		if lo, hi, ok := strings.Cut(name, "-"); ok {
			from, err1 := strconv.ParseUint(lo, 16, 64)
			to, err2 := strconv.ParseUint(hi, 16, 64)
			inside = err1 == nil && err2 == nil && from < base+uint64(len(b)) && to > base
			continue
		}
		if inside && (name == "FilePmdMapped:" || name == "ShmemPmdMapped:") {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			sum += kib << 10
		}
	}
	return sum
}
