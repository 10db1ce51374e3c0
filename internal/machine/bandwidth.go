// Package machine measures and describes the computer that ridge runs on.
package machine

import (
	"runtime"
	"sync"
	"time"
	"unsafe"

	"ridge/internal/arena"
)

// ReadBandwidth measures how many bytes per second the given number of threads
// read together from a buffer of size bytes, again and again for about d. It
// is the bound of decoding with weights of that size. It returns 0 if there is
// no memory for the buffer.
func ReadBandwidth(threads int, size int, d time.Duration) float64 {
	size = max(size/threads, 1<<20) &^ 4095
	a, err := arena.New(size * threads)
	if err != nil {
		return 0
	}
	defer a.Free()
	rates := make([]float64, threads)
	var ready, done sync.WaitGroup
	ready.Add(threads)
	for i := range threads {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			part := a.Bytes()[i*size : (i+1)*size]
			for j := 0; j < len(part); j += 4096 {
				part[j] = 1 // the first touch gets the page from the system
			}
			ready.Done()
			ready.Wait()
			rates[i] = readFor(part, d)
		})
	}
	done.Wait()
	sum := 0.0
	for _, r := range rates {
		sum += r
	}
	return sum
}

// chunk is read between two looks at the clock.
const chunk = 1 << 20

func readFor(b []byte, d time.Duration) float64 {
	start, n := time.Now(), 0
	for {
		for i := 0; i+chunk <= len(b); i += chunk {
			sink.Store(sumWords(b[i : i+chunk]))
			n += chunk
			if t := time.Since(start); t >= d {
				return float64(n) / t.Seconds()
			}
		}
	}
}

var sink sinkCell

// sinkCell keeps the compiler from dropping the reads.
type sinkCell struct {
	mu sync.Mutex
	v  uint64
}

func (s *sinkCell) Store(v uint64) {
	s.mu.Lock()
	s.v ^= v
	s.mu.Unlock()
}

// sumWords adds the 8-byte words of b, whose length is a multiple of 128. Two
// loads a cycle are enough to outrun any memory.
func sumWords(b []byte) uint64 {
	w := unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), len(b)/8)
	var s0, s1, s2, s3 uint64
	for len(w) >= 16 {
		s0 += w[0] + w[4] + w[8] + w[12]
		s1 += w[1] + w[5] + w[9] + w[13]
		s2 += w[2] + w[6] + w[10] + w[14]
		s3 += w[3] + w[7] + w[11] + w[15]
		w = w[16:]
	}
	return s0 + s1 + s2 + s3
}
