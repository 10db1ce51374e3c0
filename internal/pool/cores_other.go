//go:build !linux

package pool

import "runtime"

// cores counts the processors of which this process may use a thread.
func cores() int { return runtime.NumCPU() }
