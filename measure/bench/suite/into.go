package suite

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"

	"ridge/internal/atomicfile"
)

// The lines of a document between which tables are written.
const (
	Begin = "<!-- ridge bench suite: begin -->"
	End   = "<!-- ridge bench suite: end -->"
)

// CheckInto returns an error if WriteInto could not write into the file: to
// know it before a suite is measured.
func CheckInto(path string) error {
	_, _, _, err := split(path)
	return err
}

// WriteInto replaces what stands between Begin and End in the file at path,
// and nothing else. On any error the file is as it was.
func WriteInto(path, text string) error {
	before, after, mode, err := split(path)
	if err != nil {
		return err
	}
	err = atomicfile.Write(path, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s\n%s\n%s", before, text, after)
		return err
	})
	if err == nil {
		err = os.Chmod(path, mode) // the file is a new one
	}
	if err != nil {
		return fmt.Errorf("bench suite: %w", err)
	}
	return nil
}

// split returns the file up to Begin and from End on.
func split(path string) (before, after []byte, mode fs.FileMode, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("bench suite: %w", err)
	}
	mode = info.Mode()
	if !mode.IsRegular() || mode&0o222 == 0 {
		return nil, nil, 0, fmt.Errorf("bench suite: %s: expected a file that can be written, found one of mode %v", path, mode)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("bench suite: %w", err)
	}
	for _, marker := range []string{Begin, End} {
		if n := bytes.Count(data, []byte(marker)); n != 1 {
			return nil, nil, 0, fmt.Errorf("bench suite: %s: expected %s once, found it %d times", path, marker, n)
		}
	}
	begin, end := bytes.Index(data, []byte(Begin))+len(Begin), bytes.Index(data, []byte(End))
	if end < begin {
		return nil, nil, 0, fmt.Errorf("bench suite: %s: expected %s before %s, found it after", path, Begin, End)
	}
	return data[:begin], data[end:], mode, nil
}
