package hub

import "fmt"

// freeSpace is replaced by tests.
var freeSpace = diskFree

// needSpace reports an error if n more bytes do not fit below dir, with a
// reserve that keeps the system alive.
func needSpace(dir string, n int64) error {
	const reserve = 64 << 20
	free, err := freeSpace(dir)
	if err != nil || n <= 0 || free-reserve >= n { // unknown free space is no reason to stop
		return nil
	}
	return &spaceError{dir, n, free}
}

type spaceError struct {
	dir        string
	need, free int64
}

func (e *spaceError) Error() string {
	return fmt.Sprintf("disk of %s: too little space: needed %s more (and 64 MiB in reserve), free %s",
		e.dir, FormatBytes(e.need), FormatBytes(e.free))
}
