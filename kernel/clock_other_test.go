//go:build !linux

package kernel

import "time"

var clockStart = time.Now()

// clock returns a time in seconds.
func clock() float64 { return time.Since(clockStart).Seconds() }
