// Package atomicfile replaces files whole: a reader, or a machine that stops
// half-way, sees the old content or the new one and never a part of it.
package atomicfile

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Suffix ends the names of files still being written. They are safe to remove
// when nothing writes them.
const Suffix = ".incomplete"

// Write calls write with a new file beside path, flushes that file to the disk
// and renames it to path. On any error path is as it was and the new file is
// gone; after a crash the new file may be left, under a name that ends in
// Suffix. A symbolic link at path is replaced by a regular file.
func Write(path string, write func(io.Writer) error) (err error) {
	f, err := create(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	syncDir(filepath.Dir(path))
	return nil
}

// Sweep removes from dir what a process that was killed has left there. Nothing
// may be writing files in dir. Errors are dropped: it is a try.
func Sweep(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), Suffix) {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// create makes a file beside path under a name nobody else has. It does not use
// os.CreateTemp, which ignores the user's umask and allows the owner only.
func create(path string) (*os.File, error) {
	for {
		name := path + "." + strconv.FormatUint(rand.Uint64(), 36) + Suffix
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !os.IsExist(err) {
			return f, err
		}
	}
}

// syncDir makes a rename in dir last through a power cut. Not every system can
// do that, and the file is whole without it, so errors are dropped.
func syncDir(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	_ = d.Sync()
	d.Close()
}
