package folder

import (
	"fmt"
	"os"

	"ridge/internal/atomicfile"
)

// Open makes a folder of the server's own, rids it of what a server that was
// killed has left half-written, and lists it.
func Open(dir string) ([]os.DirEntry, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("server: data: %w", err)
	}
	atomicfile.Sweep(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("server: data: %w", err)
	}
	return entries, nil
}
