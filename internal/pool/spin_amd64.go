package pool

import "sync/atomic"

// spin returns when *word is no longer old, or after about a microsecond.
func spin(word *atomic.Uint32, old uint32) { spinWait(word, old, 16) }

// spinWait looks n times, with a PAUSE between. It has a stack check, at which
// the garbage collector can stop the thread.
//
//go:noescape
func spinWait(word *atomic.Uint32, old uint32, n int)
