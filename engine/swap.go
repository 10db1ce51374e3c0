package engine

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"ridge/sched"
)

// SwapSpace is room for the keys and values of preempted sequences, in memory and
// on disk, that several engines share. It may be used by all of them at once.
type SwapSpace struct {
	ram, disk int64  // bytes at most
	dir       string // "" for none

	mu     sync.Mutex
	used   SwapStats // RAMBytes and DiskBytes of all engines
	stores int
}

// SwapStats describe what an engine wrote out.
type SwapStats struct {
	RAMBytes, DiskBytes int64 // that lie there now
	Failures            int64 // sequences that could not be written out or read back, and were computed again
}

// NewSwapSpace returns room for so many bytes in memory, and for so many in files
// of a folder, which must be there and the space's own. 0 is for none.
func NewSwapSpace(ram, disk int64, dir string) *SwapSpace {
	return &SwapSpace{ram: ram, disk: disk, dir: dir}
}

// Store returns the part of one engine, for its Options.Swap. What is there is
// dropped as its sequences end.
func (s *SwapSpace) Store() sched.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stores++
	t := &swapStore{space: s, ram: sched.RAM{Limit: math.MaxInt64}, disk: sched.Disk{Limit: math.MaxInt64}, sizes: map[uint64]swapped{}}
	if s.disk > 0 {
		t.disk.Dir = filepath.Join(s.dir, strconv.Itoa(s.stores))
	}
	return t
}

// swapped is where a sequence lies.
type swapped struct {
	size   int64
	onDisk bool
}

// swapStore is the part of one engine. All of it but stats belongs to the
// engine's loop.
type swapStore struct {
	space *SwapSpace
	ram   sched.RAM
	disk  sched.Disk
	sizes map[uint64]swapped

	own SwapStats // under the space's lock
}

// reserve takes room for size bytes, in memory if there is some.
func (t *swapStore) reserve(size int64) (onDisk, ok bool) {
	s := t.space
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.used.RAMBytes+size <= s.ram:
	case s.used.DiskBytes+size <= s.disk:
		onDisk = true
	default:
		return false, false
	}
	t.count(size, onDisk)
	return onDisk, true
}

// count adds bytes to what is used. The space is locked.
func (t *swapStore) count(size int64, onDisk bool) {
	for _, st := range []*SwapStats{&t.own, &t.space.used} {
		if onDisk {
			st.DiskBytes += size
		} else {
			st.RAMBytes += size
		}
	}
}

// release gives room back; failed says that what was there is of no use.
func (t *swapStore) release(size int64, onDisk, failed bool) {
	t.space.mu.Lock()
	defer t.space.mu.Unlock()
	t.count(-size, onDisk)
	if failed {
		t.own.Failures++
	}
}

// of is the store of a kind.
func (t *swapStore) of(onDisk bool) sched.Store {
	if onDisk {
		return &t.disk
	}
	return &t.ram
}

// Put keeps a sequence where there is room.
func (t *swapStore) Put(id uint64, size int64, write func(io.Writer) error) error {
	t.Drop(id)
	onDisk, ok := t.reserve(size)
	if !ok {
		t.release(0, false, true)
		return fmt.Errorf("engine: swap: no room for %d bytes beside what is there", size)
	}
	var err error
	if onDisk {
		err = os.MkdirAll(t.disk.Dir, 0o700)
	}
	if err == nil {
		err = t.of(onDisk).Put(id, size, write)
	}
	if err != nil {
		t.release(size, onDisk, true)
		return err
	}
	t.sizes[id] = swapped{size, onDisk}
	return nil
}

// Get reads a sequence and forgets it.
func (t *swapStore) Get(id uint64, read func(io.Reader) error) error {
	at, ok := t.sizes[id]
	if !ok {
		return fmt.Errorf("engine: swap: sequence %d: expected it to be there, found nothing", id)
	}
	err := t.of(at.onDisk).Get(id, read)
	delete(t.sizes, id)
	t.release(at.size, at.onDisk, err != nil)
	return err
}

// Drop forgets a sequence.
func (t *swapStore) Drop(id uint64) {
	if at, ok := t.sizes[id]; ok {
		t.of(at.onDisk).Drop(id)
		delete(t.sizes, id)
		t.release(at.size, at.onDisk, false)
	}
}

// Time returns how long it takes to put or get size bytes, 0 if there is no room.
func (t *swapStore) Time(size int64) time.Duration {
	s := t.space
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.used.RAMBytes+size <= s.ram:
		return t.ram.Time(size)
	case s.used.DiskBytes+size <= s.disk:
		return t.disk.Time(size)
	}
	return 0
}

// SwapStats describe what lies there.
func (t *swapStore) SwapStats() SwapStats {
	t.space.mu.Lock()
	defer t.space.mu.Unlock()
	return t.own
}
