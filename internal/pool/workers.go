package pool

import "runtime"

// DefaultWorkers returns the number of workers that this process can keep
// busy.
func DefaultWorkers() int { return runtime.GOMAXPROCS(0) }
