// Package scratch makes folders for what is of no use once the process has ended,
// and removes what processes that were killed have left in theirs.
package scratch

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// Folder is a folder of this process alone.
type Folder struct {
	path string
	lock *flock.Flock
}

// lockName is the file in a folder that is locked as long as its process lives.
const lockName = "lock"

// Open makes a folder in base, which it makes too, and removes those in it whose
// processes have ended. Nothing else may lie in base.
func Open(base string) (*Folder, error) {
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, fmt.Errorf("scratch: %w", err)
	}
	// One after the other, so that nobody removes a folder that is not locked yet.
	door := flock.New(filepath.Join(base, lockName))
	if err := door.Lock(); err != nil {
		return nil, fmt.Errorf("scratch: %w", err)
	}
	defer door.Close()
	entries, err := os.ReadDir(base)
	if err != nil {
		return nil, fmt.Errorf("scratch: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() {
			sweep(filepath.Join(base, e.Name()))
		}
	}
	path, err := os.MkdirTemp(base, "")
	if err != nil {
		return nil, fmt.Errorf("scratch: %w", err)
	}
	f := &Folder{path: path, lock: flock.New(filepath.Join(path, lockName))}
	if err := f.lock.Lock(); err != nil {
		return nil, fmt.Errorf("scratch: %w", err)
	}
	return f, nil
}

// sweep removes a folder if its process has ended. What cannot be removed is
// tried again at the next start.
func sweep(path string) {
	l := flock.New(filepath.Join(path, lockName))
	if ok, err := l.TryLock(); !ok || err != nil {
		return
	}
	_ = l.Close() // before the removal: some systems remove no open files
	_ = os.RemoveAll(path)
}

// Path is where the folder is.
func (f *Folder) Path() string { return f.path }

// Close removes the folder with all that is in it.
func (f *Folder) Close() error {
	err := f.lock.Close()
	if e := os.RemoveAll(f.path); err == nil {
		err = e
	}
	return err
}
