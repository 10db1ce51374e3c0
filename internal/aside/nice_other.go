//go:build !linux

package aside

// giveWay does nothing: threads have no priorities here.
func giveWay() {}
