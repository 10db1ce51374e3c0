package hub

import (
	"errors"
	"fmt"
	"syscall"

	"ridge/internal/disk"
)

// ErrNoSpace is wrapped by the error of Resolve when a model has no room on the
// disk. What has arrived of it is kept where the download can go on from it.
var ErrNoSpace = errors.New("too little space")

// freeSpace is replaced by tests.
var freeSpace = disk.Free

// needSpace reports an error if n more bytes do not fit below dir, with a
// reserve that keeps the system alive.
func needSpace(dir string, n int64) error {
	const reserve = 64 << 20
	free, err := freeSpace(dir)
	if err != nil || n <= 0 || free-reserve >= n { // unknown free space is no reason to stop
		return nil
	}
	return &spaceError{dir, n, free, nil}
}

// noSpace makes of an error that says that a disk is full one that says what of
// the n bytes still to come below dir would fit; other errors it leaves alone.
func noSpace(dir string, n int64, err error) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	free, _ := freeSpace(dir) // 0 is near enough where it is not known
	return &spaceError{dir, n, free, err}
}

type spaceError struct {
	dir        string
	need, free int64 // bytes
	err        error // of the write that failed, nil if none was tried
}

func (e *spaceError) Error() string {
	s := fmt.Sprintf("disk of %s: %v: needed %s more (and 64 MiB in reserve), free %s", e.dir, ErrNoSpace, FormatBytes(e.need), FormatBytes(e.free))
	if e.err != nil {
		s += ": " + e.err.Error()
	}
	return s
}

func (e *spaceError) Unwrap() error { return ErrNoSpace }
