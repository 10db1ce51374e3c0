package mmap

import "time"

// ID returns a text that tells this content of this file from every other, as
// far as the system's accounts do: the file's number, its size, and the times at
// which its content and its entry were last changed, of which no program can
// choose the last. It is empty where the system keeps no such accounts, or
// nothing is mapped.
//
// settled reports whether a change from now on would make another ID: clocks of
// file systems are coarse, and a change within the same tick would not show.
func (m *Map) ID() (id string, settled bool) {
	if !m.mapped {
		return "", false
	}
	id, changed := idOf(m.file)
	// Ticks take up to 10 ms. Without a fraction of a second the file system may
	// count whole seconds, or two at a time.
	tick := 50 * time.Millisecond
	if changed.Nanosecond() == 0 {
		tick = 3 * time.Second
	}
	return id, id != "" && time.Since(changed) > tick
}
