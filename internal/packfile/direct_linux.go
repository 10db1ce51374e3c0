package packfile

import (
	"os"
	"syscall"
)

// openDirect opens a file for reads past the system's cache; nil where its file
// system has none.
func openDirect(path string) *os.File {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECT, 0)
	if err != nil {
		return nil
	}
	return f
}
