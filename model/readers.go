package model

import (
	"sync"
	"sync/atomic"

	"ridge/internal/packfile"
)

// fileReaders read matrices of a file of packed weights, several at a time and past
// the system's cache: disks give more when they are asked for more.
type fileReaders struct {
	from  *packfile.Reader
	queue chan fileRead
	wait  sync.WaitGroup // of what was asked for
	err   atomic.Pointer[error]
}

// fileRead asks for a matrix in memory of Room bytes.
type fileRead struct {
	index int
	buf   []byte
}

// readers is how many matrices are read at the same time.
const readers = 8

// filePage is what places in memory are multiples of that matrices are read into past the
// system's cache.
const filePage = 4096

// pages rounds up to whole pages.
func pages[N int | int64](n N) N { return (n + filePage - 1) &^ (filePage - 1) }

func newFileReaders(file *packfile.File) *fileReaders {
	return &fileReaders{from: file.Reader()}
}

// start begins to take orders.
func (r *fileReaders) start() {
	r.queue = make(chan fileRead, 64)
	for range readers {
		go func() {
			for o := range r.queue {
				if err := r.from.Read(o.index, o.buf); err != nil {
					r.err.CompareAndSwap(nil, &err)
				}
				r.wait.Done()
			}
		}()
	}
}

// read orders a matrix; wait waits for all.
func (r *fileReaders) read(index int, buf []byte) {
	r.wait.Add(1)
	r.queue <- fileRead{index, buf}
}

// failed returns the first error of reading, nil if there was none.
func (r *fileReaders) failed() error {
	if err := r.err.Load(); err != nil {
		return *err
	}
	return nil
}

// close ends the readers, who must have nothing left to do.
func (r *fileReaders) close() {
	if r.queue != nil {
		close(r.queue)
	}
	r.from.Close()
}
