//go:build !linux

package pool

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
