//go:build !amd64

package pool

import "sync/atomic"

// spin returns when *word is no longer old, or after some hundred looks.
func spin(word *atomic.Uint32, old uint32) {
	for range 200 {
		if word.Load() != old {
			return
		}
	}
}
