//go:build !(linux && amd64)

package cpu

// tileRegisters is for Linux on amd64, where a program asks for them.
func tileRegisters() bool { return false }
