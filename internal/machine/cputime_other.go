//go:build !unix

package machine

import "time"

// CPUTime returns the processor time that this process has used, on all
// threads; 0 if the system does not tell.
func CPUTime() time.Duration { return 0 }
