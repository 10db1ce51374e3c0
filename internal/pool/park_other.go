//go:build !linux

package pool

import (
	"sync"
	"sync/atomic"
)

// sleeping is where all threads of all pools sleep.
var sleeping = struct {
	sync.Mutex
	*sync.Cond
}{}

func init() { sleeping.Cond = sync.NewCond(&sleeping.Mutex) }

// sleep sleeps while *word is old.
func sleep(word *atomic.Uint32, old uint32) {
	sleeping.Lock()
	defer sleeping.Unlock()
	for word.Load() == old {
		sleeping.Wait()
	}
}

// wake wakes all who sleep on word.
func wake(*atomic.Uint32) {
	sleeping.Lock()
	defer sleeping.Unlock()
	sleeping.Broadcast()
}
