//go:build race

package server

// raceDetector: its own memory grows with the addresses and threads that were
// ever seen, so that of the process says nothing.
const raceDetector = true
