package mmap

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"ridge/internal/diag"
)

// Files are the mappings of the files of one model, nil where the bytes of one
// came from elsewhere.
type Files []*Map

// Advise passes a to the system for all files. Advice is a hint: nothing depends
// on what becomes of it.
func (f Files) Advise(a Advice) {
	for _, m := range f {
		if m != nil {
			_ = m.Advise(a)
		}
	}
}

// Release is Map.Release of the file that b lies in, if it lies in one. It is a
// hint too.
func (f Files) Release(b []byte) {
	for _, m := range f {
		if m != nil {
			_ = m.Release(b)
		}
	}
}

// Read copies b to dst. What lies in one of the mappings is read from its file,
// so that no page of it comes into this process. Where the file was cut short the
// error is a *fs.PathError with ErrChanged.
func (f Files) Read(dst, b []byte) error {
	for _, m := range f {
		if m == nil {
			continue
		}
		if at, ok := m.place(b); ok {
			if n, err := m.file.ReadAt(dst[:len(b)], int64(at)); n < len(b) {
				if errors.Is(err, io.EOF) {
					err = ErrChanged
				}
				return &fs.PathError{Op: "read", Path: m.file.Name(), Err: err}
			}
			return nil
		}
	}
	copy(dst, b)
	return nil
}

// Check is Map.Check of all files.
func (f Files) Check() error {
	for _, m := range f {
		if m != nil {
			if err := m.Check(); err != nil {
				return err
			}
		}
	}
	return nil
}

// ID joins the IDs of the files. It is empty if one of them is, or is not
// mapped, and settled if all are.
func (f Files) ID() (id string, settled bool) {
	settled = len(f) > 0
	for _, m := range f {
		if m == nil {
			return "", false
		}
		one, ok := m.ID()
		if one == "" {
			return "", false
		}
		id, settled = id+one+"\n", settled && ok
	}
	return id, settled
}

// Close removes all mappings. The error is of type *fs.PathError, the first one.
func (f Files) Close() error {
	var first error
	for _, m := range f {
		if m == nil {
			continue
		}
		name := ""
		if m.file != nil {
			name = m.file.Name()
		}
		if err := m.Close(); err != nil && first == nil {
			first = &fs.PathError{Op: "close", Path: name, Err: err}
		}
	}
	return first
}

// Explain makes of a *fs.PathError an error of the reader of a file format, with
// the path, once, and the operation. Other errors stay as they are, nil too.
func Explain(format string, err error) error {
	if err == nil {
		return nil // without the memory that As takes: Check is called at every step
	}
	var pe *fs.PathError
	if !errors.As(err, &pe) {
		return err
	}
	return fmt.Errorf("%s: %s: %s: %w", format, diag.Path(pe.Path), pe.Op, pe.Err)
}
