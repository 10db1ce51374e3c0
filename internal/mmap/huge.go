package mmap

import (
	"runtime"
	"sync"
)

// room is address space around a mapping that goes with it; nil if there is
// none.
type room []byte

// hugePage is the size of a huge page.
const hugePage = 2 << 20

// OpenHuge is Open for a file that is read again and again: where the system
// can, it is mapped by huge pages, with which memory is read up to a tenth
// faster. See Huge for what came of it.
func OpenHuge(path string) (*Map, error) { return open(path, true) }

// Fetch brings the first n bytes into memory and into the page tables, reading
// several parts of the file at once. Where the system cannot, they come as they
// are read; a file that was cut short is found out then.
func (m *Map) Fetch(n int) {
	const part = 16 * hugePage
	if !m.mapped {
		return
	}
	var wg sync.WaitGroup
	parts := make(chan []byte)
	for range max(2, min(8, runtime.GOMAXPROCS(0))) { // a disk is faster with several readers, even of one processor
		wg.Go(func() {
			for p := range parts {
				fetch(p)
			}
		})
	}
	for lo := 0; lo < n; lo += part {
		parts <- m.data[lo:min(lo+part, n)]
	}
	close(parts)
	wg.Wait()
}

// Huge returns how many bytes of the mapping are in huge pages now.
func (m *Map) Huge() int64 {
	if !m.mapped || len(m.data) == 0 {
		return 0
	}
	return hugeBytes(m.data)
}
